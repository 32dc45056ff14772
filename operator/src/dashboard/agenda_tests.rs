//! Who is asked when. Time is made up.

use std::{collections::HashMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

use super::{
    agenda::{Agenda, Batch},
    inquiry::{Inquiry, Occasion, Purpose, Reply},
    job::{Endpoint, JobInfo},
};
use crate::runtime::key::ObjectKey;

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("n", name)
}

fn inquiry(cluster: &str, job: &str) -> Inquiry {
    Inquiry {
        endpoint: Endpoint {
            namespace: "n".into(),
            service: cluster.into(),
            address: format!("{cluster}:8265").into(),
            token_secret: None,
        },
        job_id: job.to_owned(),
        purpose: Purpose::Follow,
        occasion: Occasion::Routine,
        announced: false,
    }
}

fn job(status: &str) -> Reply {
    Reply::Job(JobInfo { status: status.to_owned(), message: String::new(), start: None, end: None })
}

struct Bench {
    agenda: Agenda,
    begin: Instant,
    passed: Duration,
}

impl Bench {
    fn new() -> Self {
        Self { agenda: Agenda::default(), begin: Instant::now(), passed: Duration::ZERO }
    }

    fn now(&self) -> Instant {
        self.begin + self.passed
    }

    fn stamp(&self) -> Timestamp {
        Timestamp::from_second(1_000_000 + i64::try_from(self.passed.as_secs()).unwrap()).unwrap()
    }

    fn set(&mut self, name: &str, inquiry: Option<Inquiry>) -> bool {
        let now = self.now();
        self.agenda.set(&key(name), inquiry, now)
    }

    fn take(&mut self) -> Vec<Batch> {
        let now = self.now();
        self.agenda.take(100, now)
    }

    fn record(&mut self, name: &str, asked: &Arc<Inquiry>, reply: Reply) -> bool {
        let (now, stamp) = (self.now(), self.stamp());
        self.agenda.record(&key(name), asked, reply, stamp, now)
    }

    /// Moves to the next question about a single job and answers it; returns whether that was news.
    fn round(&mut self, name: &str, reply: Reply) -> bool {
        let due = self.agenda.next_due().expect("nothing is due");
        self.passed = self.passed.max(due - self.begin);
        let batch = self.take().pop().unwrap();
        let asked = batch.questions.into_iter().find(|(found, _)| *found == key(name)).unwrap().1;
        self.record(name, &asked, reply)
    }

    fn gap(&self) -> f64 {
        (self.agenda.next_due().unwrap() - self.now()).as_secs_f64()
    }
}

#[test]
fn a_new_question_is_due_at_once_and_is_answered_once_at_a_time() {
    let mut bench = Bench::new();
    assert!(bench.set("a", Some(inquiry("c", "1"))));
    assert!(!bench.set("a", Some(inquiry("c", "1"))), "the same question is no new one");
    assert_eq!(bench.take().len(), 1);
    bench.passed += Duration::from_secs(100);
    assert_eq!(bench.take().len(), 0, "it is being asked");
    assert_eq!(bench.agenda.next_due(), None);
}

#[test]
fn the_longer_a_job_has_not_changed_the_less_it_is_asked_for() {
    let table = [(false, 1, 3.0), (false, 59, 3.0), (false, 200, 10.0), (false, 10_000, 15.0), (true, 10_000, 30.0), (true, 59, 3.0)];
    for (announced, quiet, wanted) in table {
        let mut bench = Bench::new();
        bench.set("a", Some(Inquiry { announced, ..inquiry("c", "1") }));
        bench.round("a", job("RUNNING"));
        let asked = bench.begin;
        while bench.passed < Duration::from_secs(quiet) {
            bench.round("a", job("RUNNING"));
        }
        assert!(bench.begin == asked && (wanted * 0.88..=wanted * 1.06).contains(&bench.gap()), "{announced} {quiet}: {}", bench.gap());
    }
}

#[test]
fn a_change_makes_it_quick_again() {
    let mut bench = Bench::new();
    bench.set("a", Some(inquiry("c", "1")));
    bench.round("a", job("PENDING"));
    bench.passed += Duration::from_secs(600);
    assert!(bench.round("a", job("RUNNING")));
    assert!(bench.gap() <= 3.0);
}

#[test]
fn an_ended_job_is_not_asked_for_any_more() {
    for reply in [job("SUCCEEDED"), job("FAILED"), job("STOPPED"), Reply::Refused("no".to_owned())] {
        let mut bench = Bench::new();
        bench.set("a", Some(inquiry("c", "1")));
        bench.round("a", reply);
        assert_eq!(bench.agenda.next_due(), None);
        // Until there is another question about it.
        bench.set("a", Some(Inquiry { purpose: Purpose::Stop, ..inquiry("c", "1") }));
        assert!(bench.gap() <= 0.0);
    }
}

#[test]
fn what_is_about_to_happen_is_asked_for_soon() {
    for reply in [Reply::Submitted, Reply::StopSent] {
        let mut bench = Bench::new();
        bench.set("a", Some(inquiry("c", "1")));
        bench.round("a", reply);
        assert!(bench.gap() <= 1.0);
    }
}

#[test]
fn only_news_wakes() {
    let mut bench = Bench::new();
    bench.set("a", Some(inquiry("c", "1")));
    let no = |text: &str| Reply::NoAnswer(text.to_owned());
    let table = [
        (Reply::NotFound, true),
        (Reply::NotFound, false),
        (job("RUNNING"), true),
        (job("RUNNING"), false),
        (no("refused"), true),
        (no("timeout"), false),
        (job("RUNNING"), true),
        (job("SUCCEEDED"), true),
    ];
    for (reply, wanted) in table {
        let text = format!("{reply:?}");
        assert_eq!(bench.round("a", reply), wanted, "{text}");
    }
}

#[test]
fn an_answer_tells_which_question_it_answers_and_since_when_it_holds() {
    let mut bench = Bench::new();
    bench.set("a", Some(inquiry("c", "1")));
    bench.round("a", Reply::NotFound);
    let first = bench.agenda.answer(&key("a")).unwrap();
    bench.passed += Duration::from_secs(30);
    bench.set("a", Some(Inquiry { occasion: Occasion::SubmitterEnded, ..inquiry("c", "1") }));
    assert_eq!(bench.agenda.answer(&key("a")).unwrap().inquiry.occasion, Occasion::Routine, "not answered yet");
    assert!(bench.round("a", Reply::NotFound), "the same reply to another question is news");
    let second = bench.agenda.answer(&key("a")).unwrap();
    assert_eq!((second.inquiry.occasion, second.since), (Occasion::SubmitterEnded, first.asked));
    assert!(second.asked > first.asked);
}

#[test]
fn a_question_that_changes_while_it_is_asked_is_asked_again() {
    let mut bench = Bench::new();
    bench.set("a", Some(inquiry("c", "1")));
    let asked = bench.take().pop().unwrap().questions.pop().unwrap().1;
    bench.set("a", Some(Inquiry { occasion: Occasion::DeadlinePassed, ..inquiry("c", "1") }));
    assert_eq!(bench.agenda.next_due(), None);
    bench.record("a", &asked, job("RUNNING"));
    assert_eq!(bench.agenda.answer(&key("a")).unwrap().inquiry.occasion, Occasion::Routine);
    assert!(bench.gap() <= 0.0);
}

#[test]
fn answers_about_another_job_are_forgotten() {
    let mut bench = Bench::new();
    bench.set("a", Some(inquiry("c", "1")));
    let asked = bench.take().pop().unwrap().questions.pop().unwrap().1;
    bench.set("a", Some(inquiry("c", "2")));
    assert!(!bench.record("a", &asked, job("SUCCEEDED")));
    assert_eq!(bench.agenda.answer(&key("a")), None);
    bench.set("a", None);
    assert_eq!((bench.agenda.len(), bench.agenda.next_due(), bench.agenda.answer(&key("a"))), (0, None, None));
}

#[test]
fn jobs_of_one_cluster_are_asked_for_together() {
    let mut bench = Bench::new();
    for name in ["a", "b", "c", "d"] {
        bench.set(name, Some(inquiry("shared", name)));
    }
    bench.set("e", Some(inquiry("other", "e")));
    bench.set("f", Some(Inquiry { purpose: Purpose::Stop, ..inquiry("shared", "f") }));
    let sizes: HashMap<bool, Vec<usize>> = bench.take().into_iter().fold(HashMap::new(), |mut all, batch| {
        all.entry(batch.together).or_default().push(batch.questions.len());
        all
    });
    assert_eq!((&sizes[&true], &sizes[&false]), (&vec![4], &vec![1, 1]));
}

#[test]
fn a_cluster_without_a_list_is_asked_for_single_jobs() {
    let mut bench = Bench::new();
    let now = bench.now();
    bench.agenda.unlistable(&inquiry("shared", "").endpoint, now);
    for name in ["a", "b", "c"] {
        bench.set(name, Some(inquiry("shared", name)));
    }
    assert!(bench.take().iter().all(|batch| !batch.together));
}

#[test]
fn no_more_is_taken_than_there_is_room_for() {
    let mut bench = Bench::new();
    for name in ["a", "b", "c"] {
        bench.set(name, Some(inquiry(name, name)));
    }
    let now = bench.now();
    assert_eq!(bench.agenda.take(2, now).len(), 2);
    assert_eq!(bench.agenda.take(2, now).len(), 1);
}

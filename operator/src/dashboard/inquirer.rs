//! Asks dashboards about jobs, off the path of any reconcile: a slow dashboard holds up nobody but itself.
//!
//! A reconcile says what it wants to know ([`Inquirer::set`]) and looks at what is known ([`Inquirer::answer`]); it is woken when
//! that changes. Every question is answered in bounded time, if only by [`Reply::NoAnswer`].

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::FutureExt as _;
use tokio::{sync::Notify, task::JoinSet, time::Instant};

use super::{
    agenda::{Agenda, Batch},
    client::Dashboards,
    inquiry::{Answer, Inquiry, Purpose, Reply},
    reply::{DashboardError, Submission},
};
use crate::runtime::{clock::Clock, key::ObjectKey};

/// How many dashboards are asked at the same time on the straight way.
const PLACES: usize = 64;
/// The same through the API server, which has better things to do.
const PLACES_PROXIED: usize = 16;

/// Called with the key of an inquiry about which there is news.
pub type Wake = Arc<dyn Fn(&ObjectKey) + Send + Sync>;

/// Handle to the inquiries. Clones share them.
#[derive(Clone)]
pub struct Inquirer {
    shared: Arc<Shared>,
}

struct Shared {
    agenda: Mutex<Agenda>,
    changed: Notify,
    dashboards: Dashboards,
    clock: Clock,
    wake: Wake,
}

impl Inquirer {
    /// Asks through `dashboards` and calls `wake` when there is news. Nothing is asked before [`Inquirer::run`].
    pub fn new(dashboards: Dashboards, clock: Clock, wake: Wake) -> Self {
        Self { shared: Arc::new(Shared { agenda: Mutex::default(), changed: Notify::new(), dashboards, clock, wake }) }
    }

    /// From now on `inquiry` is asked for `key`, again and again as long as its answer may change; `None` ends it. Setting the same
    /// inquiry again changes nothing.
    pub fn set(&self, key: &ObjectKey, inquiry: Option<Inquiry>) {
        if self.agenda().set(key, inquiry, Instant::now()) {
            self.shared.changed.notify_one();
        }
    }

    /// The last answer for `key`.
    pub fn answer(&self, key: &ObjectKey) -> Option<Answer> {
        self.agenda().answer(key)
    }

    /// Number of jobs that are asked for.
    pub fn len(&self) -> usize {
        self.agenda().len()
    }

    /// Whether no job is asked for.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Asks until the future is dropped; whatever is being asked then is given up.
    pub async fn run(&self) {
        let places = if self.shared.dashboards.is_proxied() { PLACES_PROXIED } else { PLACES };
        let mut asking = JoinSet::new();
        loop {
            let free = places.saturating_sub(asking.len());
            let (batches, due) = {
                let mut agenda = self.agenda();
                (agenda.take(free, Instant::now()), agenda.next_due())
            };
            for batch in batches {
                let shared = Arc::clone(&self.shared);
                asking.spawn(async move { shared.ask(batch).await });
            }
            let full = asking.len() >= places;
            tokio::select! {
                () = self.shared.changed.notified(), if !full => {}
                Some(_) = asking.join_next() => {}
                () = sleep_until(due), if !full => {}
            }
        }
    }

    fn agenda(&self) -> MutexGuard<'_, Agenda> {
        self.shared.agenda()
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

impl Shared {
    fn agenda(&self) -> MutexGuard<'_, Agenda> {
        self.agenda.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask(&self, batch: Batch) {
        let Batch { together, questions } = batch;
        if together && self.ask_together(&questions).await {
            return;
        }
        for (key, inquiry) in &questions {
            self.ask_one(key, inquiry).await;
        }
    }

    /// One call for all of them. `false` if this dashboard has no list to give; then they have not been asked.
    async fn ask_together(&self, questions: &[(ObjectKey, Arc<Inquiry>)]) -> bool {
        let Some((_, first)) = questions.first() else { return true };
        let asked = self.clock.now();
        let listed = AssertUnwindSafe(self.dashboards.jobs(&first.endpoint)).catch_unwind().await;
        match listed {
            Ok(Ok(jobs)) => {
                for (key, inquiry) in questions {
                    let reply = match jobs.get(&inquiry.job_id) {
                        Some(Ok(info)) => Reply::Job(info.clone()),
                        Some(Err(problem)) => Reply::NoAnswer(problem.clone()),
                        None => Reply::NotFound,
                    };
                    self.record(key, inquiry, reply, asked);
                }
                true
            }
            Ok(Err(
                DashboardError::TooLong(_) | DashboardError::NotFound | DashboardError::Garbled(_) | DashboardError::Rejected { .. },
            ))
            | Err(_) => {
                self.agenda().unlistable(&first.endpoint, Instant::now());
                false
            }
            Ok(Err(error)) => {
                for (key, inquiry) in questions {
                    self.record(key, inquiry, Reply::NoAnswer(error.to_string()), asked);
                }
                true
            }
        }
    }

    async fn ask_one(&self, key: &ObjectKey, inquiry: &Arc<Inquiry>) {
        let asked = self.clock.now();
        let reply = AssertUnwindSafe(self.reply(inquiry)).catch_unwind().await;
        let reply = reply.unwrap_or_else(|_| Reply::NoAnswer("asking failed by a bug of the operator".to_owned()));
        self.record(key, inquiry, reply, asked);
    }

    fn record(&self, key: &ObjectKey, inquiry: &Arc<Inquiry>, reply: Reply, asked: jiff::Timestamp) {
        if matches!(reply, Reply::NoAnswer(_)) {
            // Why is for the RayJob's condition: a dashboard that fails may quote the runtime environment, secrets and all.
            tracing::debug!(%key, job = inquiry.job_id, "no answer about the job");
        }
        let news = self.agenda().record(key, inquiry, reply, asked, Instant::now());
        if news {
            (self.wake)(key);
        }
        self.changed.notify_one();
    }

    async fn reply(&self, inquiry: &Inquiry) -> Reply {
        match &inquiry.purpose {
            Purpose::Follow => self.state(inquiry).await,
            Purpose::Submit(request) => {
                let state = self.dashboards.job(&inquiry.endpoint, &inquiry.job_id).await;
                // Any page that is not there may be the job that is not there: submitting twice does no harm.
                let unknown = matches!(state, Err(DashboardError::NotFound | DashboardError::Garbled(_)));
                if !unknown {
                    return of(state);
                }
                match self.dashboards.submit(&inquiry.endpoint, request).await {
                    Ok(Submission::Accepted | Submission::AlreadyKnown) => Reply::Submitted,
                    Err(DashboardError::Rejected { status, text }) => Reply::Refused(format!("HTTP {status}: {text}")),
                    Err(error) => Reply::NoAnswer(error.to_string()),
                }
            }
            Purpose::Stop => match self.dashboards.stop(&inquiry.endpoint, &inquiry.job_id).await {
                Ok(began) => match self.state(inquiry).await {
                    Reply::Job(info) if info.is_terminal() => Reply::Job(info),
                    _ if began => Reply::StopSent,
                    other => other,
                },
                Err(DashboardError::NotFound) => Reply::NotFound,
                Err(error) => Reply::NoAnswer(error.to_string()),
            },
        }
    }

    async fn state(&self, inquiry: &Inquiry) -> Reply {
        of(self.dashboards.job(&inquiry.endpoint, &inquiry.job_id).await)
    }
}

fn of(state: Result<super::job::JobInfo, DashboardError>) -> Reply {
    match state {
        Ok(info) => Reply::Job(info),
        Err(DashboardError::NotFound) => Reply::NotFound,
        Err(error) => Reply::NoAnswer(error.to_string()),
    }
}

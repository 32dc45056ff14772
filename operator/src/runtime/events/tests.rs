use jiff::{SignedDuration, Timestamp};

use super::{
    aggregate::{Aggregator, Flushed, Write},
    *,
};

fn occurrence(object: &str, reason: &str, note: &str) -> Occurrence {
    Occurrence {
        regarding: ObjectReference {
            name: Some(object.to_owned()),
            namespace: Some("ns".to_owned()),
            uid: Some(format!("uid-{object}")),
            ..ObjectReference::default()
        },
        reporter: "raycluster-controller",
        severity: Severity::Normal,
        reason: reason.to_owned(),
        action: "Create".to_owned(),
        note: note.to_owned(),
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
}

fn aggregator() -> Aggregator {
    Aggregator::new("operator-1".to_owned(), 41)
}

fn flush(aggregator: &mut Aggregator, second: i64, occurrences: impl IntoIterator<Item = Occurrence>) -> Flushed {
    occurrences.into_iter().for_each(|occurrence| aggregator.record(occurrence));
    aggregator.flush(at(second))
}

fn notes(flushed: &Flushed) -> Vec<&str> {
    let notes = flushed.writes.iter().filter_map(|write| match write {
        Write::Create(event) => event.note.as_deref(),
        Write::Series { .. } => None,
    });
    notes.collect()
}

#[test]
fn an_event_says_what_where_and_who() {
    let flushed = flush(&mut aggregator(), 100, [occurrence("c", "CreatedHeadPod", "created Pod c-head")]);
    let [Write::Create(event)] = flushed.writes.as_slice() else { panic!("{flushed:?}") };
    assert_eq!(event.metadata.name.as_deref(), Some("c.000000000000002a"));
    assert_eq!(event.metadata.namespace.as_deref(), Some("ns"));
    assert_eq!(
        (event.type_.as_deref(), event.reason.as_deref(), event.action.as_deref()),
        (Some("Normal"), Some("CreatedHeadPod"), Some("Create"))
    );
    assert_eq!(event.reporting_controller.as_deref(), Some("raycluster-controller"));
    assert_eq!(event.reporting_instance.as_deref(), Some("operator-1"));
    assert_eq!(event.event_time.as_ref().unwrap().0, at(100));
}

#[test]
fn what_happens_at_once_is_one_event() {
    let pods = (0..10).map(|number| occurrence("c", "CreatedWorkerPod", &format!("created Pod c-{number}")));
    let flushed = flush(&mut aggregator(), 0, pods);
    assert_eq!(notes(&flushed), ["created Pod c-0 (and 9 more)"]);
    assert_eq!(flushed.merged, 9);

    let alike = |count| flush(&mut aggregator(), 0, (0..count).map(|_| occurrence("c", "Same", "again")));
    assert_eq!(notes(&alike(2)), ["again (twice)"]);
    assert_eq!(notes(&alike(3)), ["again (3 times)"]);
}

#[test]
fn different_things_stay_apart() {
    let mut aggregator = aggregator();
    let mut warning = occurrence("c", "A", "x");
    warning.severity = Severity::Warning;
    let flushed = flush(&mut aggregator, 0, [occurrence("c", "A", "x"), occurrence("c", "B", "x"), occurrence("d", "A", "x"), warning]);
    assert_eq!(flushed.writes.len(), 4);
}

#[test]
fn a_repeat_counts_up_the_first_event_but_not_all_the_time() {
    let mut aggregator = aggregator();
    let again = || [occurrence("c", "Failed", "quota")];
    assert_eq!(flush(&mut aggregator, 0, again()).writes.len(), 1);
    for second in [5, 10, 59] {
        assert!(flush(&mut aggregator, second, again()).writes.is_empty(), "{second}");
    }
    let flushed = flush(&mut aggregator, 61, again());
    assert!(matches!(flushed.writes.as_slice(), [Write::Series { count: 5, name, .. }] if name == "c.000000000000002a"), "{flushed:?}");
    assert_eq!(notes(&flush(&mut aggregator, 62, [occurrence("c", "Failed", "another quota")])), ["another quota"]);
    assert_eq!(notes(&flush(&mut aggregator, 1000, again())), ["quota"], "after ten minutes it is news again");
}

#[test]
fn one_object_cannot_flood_the_others() {
    let mut aggregator = aggregator();
    let many = (0..40).map(|number| occurrence("c", &format!("R{number}"), "x"));
    let flushed = flush(&mut aggregator, 0, many.chain([occurrence("d", "R", "x")]));
    assert_eq!((flushed.writes.len(), flushed.dropped), (26, 15));
    let later = (0..3).map(|number| occurrence("c", &format!("L{number}"), "x"));
    assert_eq!(flush(&mut aggregator, 60, later).writes.len(), 2, "one more each half minute");
}

#[test]
fn long_notes_are_cut_between_characters() {
    let flushed = flush(&mut aggregator(), 0, [occurrence("c", "A", &"ä".repeat(800)), occurrence("c", "A", "b")]);
    let note = notes(&flushed)[0].to_owned();
    assert!(note.len() <= 1024 && note.ends_with("ä (and 1 more)"), "{} {note}", note.len());
}

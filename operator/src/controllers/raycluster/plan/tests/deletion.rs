//! The end of a cluster.

use serde_json::json;
use shared::labels::{annotation, finalizer};

use crate::controllers::raycluster::plan::{CleanupJob, FinalizerStep, Observed, Plan, Stage, Verdict, Why, plan};
use crate::controllers::raycluster::testing::*;
use crate::settings::Settings;

fn redis() -> serde_json::Value {
    json!({ "gcsFaultToleranceOptions": { "redisAddress": "redis:6379" } })
}

fn deleted(spec: serde_json::Value, held: bool, pods: &[P]) -> Observed {
    let mut cluster = cluster(&[group("a", 1)], spec);
    cluster.metadata.deletion_timestamp = Some(serde_json::from_value(json!(at(0))).unwrap());
    if held {
        cluster.metadata.finalizers = Some(vec!["other/finalizer".to_owned(), finalizer::GCS_FT_REDIS_CLEANUP.to_owned()]);
    }
    observed(cluster, pods)
}

fn decide(observed: &Observed, seconds: i64) -> Plan {
    plan(observed, &mut Default::default(), &Settings::default(), at(seconds))
}

#[test]
fn rc_108_the_finalizer_comes_before_the_first_pod_and_goes_when_it_is_not_needed() {
    let without_cleanup = {
        let mut settings = Settings::default();
        settings.switches.redis_cleanup = false;
        settings
    };
    let rocksdb = json!({ "gcsFaultToleranceOptions": { "backend": "rocksdb" } });
    let table = [
        (redis(), false, Settings::default(), FinalizerStep::Add),
        (redis(), true, Settings::default(), FinalizerStep::Keep),
        (json!({}), false, Settings::default(), FinalizerStep::Keep),
        // RC-117: fault tolerance or the clean-up was switched off.
        (json!({}), true, Settings::default(), FinalizerStep::Remove),
        (redis(), true, without_cleanup.clone(), FinalizerStep::Remove),
        (redis(), false, without_cleanup, FinalizerStep::Keep),
        (rocksdb, true, Settings::default(), FinalizerStep::Remove),
    ];
    for (spec, held, settings, wanted) in table {
        let mut cluster = cluster(&[], spec.clone());
        cluster.metadata.finalizers = held.then(|| vec![finalizer::GCS_FT_REDIS_CLEANUP.to_owned()]);
        let plan = plan(&observed(cluster, &[]), &mut Default::default(), &settings, at(0));
        assert_eq!(plan.finalizer, wanted, "{spec} {held}");
    }
    let plan = decide(&observed(annotated(cluster(&[], json!({})), annotation::FT_ENABLED, "True"), &[]), 0);
    assert_eq!(plan.finalizer, FinalizerStep::Add);
}

#[test]
fn rc_312_the_keys_are_deleted_once_the_head_is_gone() {
    let worker = P::worker("w", "a");
    let everything = [("h".to_owned(), Why::ClusterDeleted), ("w".to_owned(), Why::ClusterDeleted)];
    let plan = decide(&deleted(redis(), true, &[P::head("h"), worker.clone()]), 1);
    assert_eq!((going(&plan).as_slice(), plan.start_cleanup), (&everything[..], false));
    let plan = decide(&deleted(redis(), true, &[P::head("h").terminating(at(30)), worker.clone()]), 1);
    assert_eq!((going(&plan).as_slice(), plan.start_cleanup), (&everything[1..], false));
    // A worker that is left does not hold the clean-up.
    let plan = decide(&deleted(redis(), true, &[worker]), 1);
    assert_eq!((going(&plan).as_slice(), plan.start_cleanup), (&everything[1..], true));
    assert_eq!(plan.finalizer, FinalizerStep::Keep);
    assert_eq!((plan.stage, plan.wake), (Stage::Deleting, Some(at(300))));
}

#[test]
fn rc_113_the_finalizer_goes_with_the_end_of_the_job_or_of_patience() {
    let with_job = |job| Observed { cleanup_job: job, ..deleted(redis(), true, &[]) };
    assert_eq!(decide(&with_job(CleanupJob::Runs), 299).finalizer, FinalizerStep::Keep);
    assert!(!decide(&with_job(CleanupJob::Runs), 299).start_cleanup);
    assert_eq!(decide(&with_job(CleanupJob::Ended), 1).finalizer, FinalizerStep::Remove);
    assert_eq!(decide(&with_job(CleanupJob::Ended), 900).finalizer, FinalizerStep::Remove);
    assert!(matches!(decide(&with_job(CleanupJob::Runs), 300).finalizer, FinalizerStep::Force { .. }));
    // RC-114.
    for (timeout, at_seconds, forced) in [("7", 7, true), ("7", 6, false), ("0", 7, false), ("-3", 299, false), ("soon", 299, false)] {
        let mut seen = with_job(CleanupJob::Runs);
        let cluster = annotated((*seen.cluster).clone(), annotation::FT_DELETION_TIMEOUT, timeout);
        seen.cluster = cluster.into();
        assert_eq!(matches!(decide(&seen, at_seconds).finalizer, FinalizerStep::Force { .. }), forced, "{timeout}");
    }
    // A head on a node that is gone does not hold it for ever either.
    let stuck = deleted(redis(), true, &[P::head("h").terminating(at(30))]);
    assert!(matches!(decide(&stuck, 300).finalizer, FinalizerStep::Force { .. }));
}

#[test]
fn rc_104_a_cluster_without_finalizer_is_left_to_the_garbage_collector() {
    for spec in [redis(), json!({})] {
        let plan = decide(&deleted(spec, false, &[P::head("h"), P::worker("w", "a")]), 1);
        assert_eq!((going(&plan), plan.finalizer, plan.start_cleanup), (Vec::new(), FinalizerStep::Keep, false));
    }
    // RC-109: the finalizer of another time.
    let plan = decide(&deleted(json!({}), true, &[P::head("h")]), 1);
    assert_eq!((going(&plan), plan.finalizer), (Vec::new(), FinalizerStep::Remove));
}

#[test]
fn c_22_deletion_does_not_ask_whether_the_spec_is_valid() {
    let invalid = Verdict::Invalid { reason: "InvalidRayClusterSpec", message: "min above max".to_owned() };
    let seen = Observed { verdict: invalid, ..deleted(redis(), true, &[P::head("h"), P::worker("w", "a")]) };
    assert_eq!(going(&decide(&seen, 1)).len(), 2);
    let seen = Observed { pods: Vec::new(), ..seen };
    assert!(decide(&seen, 2).start_cleanup);
}

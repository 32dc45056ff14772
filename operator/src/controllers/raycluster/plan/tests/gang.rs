//! The PodGroup as part of the plan.

use serde_json::json;

use crate::build::scheduling::{Gang, Scheduler, of_cluster};
use crate::controllers::raycluster::plan::{Observed, Plan, Verdict, plan};
use crate::controllers::raycluster::testing::*;
use crate::settings::Settings;

fn plan_with(scheduler: Option<Scheduler>, observed: &Observed) -> Plan {
    let settings = Settings { scheduler, ..Settings::default() };
    plan(observed, &mut Default::default(), &settings, at(0))
}

fn volcano(observed: &Observed) -> Gang {
    plan_with(Some(Scheduler::Volcano), observed).children.pod_group
}

/// BS-5, BS-10: every pass has the group as it is to be; suspended clusters keep nothing free.
#[test]
fn bs_10_a_group_goes_with_the_phase() {
    let settings = Settings { scheduler: Some(Scheduler::Volcano), ..Settings::default() };
    let spec = |suspend: bool| cluster(&[group("a", 2)], json!({ "suspend": suspend }));
    let (holds, rests) = (of_cluster(&spec(false), true, &settings), of_cluster(&spec(true), false, &settings));
    assert!(matches!((&holds, &rests), (Gang::Hold(_), Gang::Settle(_))));
    let pods = [P::head("h"), P::worker("w", "a")];
    let table = [
        (spec(false), &pods[..], &holds),
        (spec(false), &[], &holds),
        // Nothing happens before the status says what is to come.
        (spec(true), &pods, &Gang::Leave),
        (saying(spec(true), &[("RayClusterSuspending", "True")]), &pods, &rests),
        (saying(spec(true), &[("RayClusterSuspended", "True")]), &[], &rests),
        (saying(spec(false), &[("RayClusterSuspended", "True")]), &[], &holds),
    ];
    for (cluster, pods, wanted) in table {
        let seen = observed(cluster, pods);
        assert_eq!(&volcano(&seen), wanted, "{:?} {:?}", seen.cluster.spec.suspend, seen.cluster.status);
        assert_eq!(plan_with(None, &seen).children.pod_group, Gang::Leave);
    }
    // The garbage collector takes a group with its cluster, whatever labels there are.
    let mut goes = spec(false);
    goes.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(0)));
    assert_eq!(volcano(&observed(goes, &pods)), Gang::Leave);
    let invalid = Verdict::Invalid { reason: "InvalidRayClusterSpec", message: "x".to_owned() };
    assert_eq!(volcano(&Observed { verdict: invalid, ..observed(spec(false), &pods) }), Gang::Leave);
}

/// BS-5: without a scheduler, a plan is what it was, and a scheduler changes nothing in it but the group.
#[test]
fn bs_5_nothing_else_in_a_plan_knows_of_schedulers() {
    let seen = observed(cluster(&[group("a", 2)], json!({})), &[P::head("h")]);
    let without = format!("{:?}", plan_with(None, &seen));
    for scheduler in Scheduler::ALL {
        let mut plan = plan_with(Some(scheduler), &seen);
        plan.children.pod_group = Gang::Leave;
        assert_eq!(format!("{plan:?}"), without, "{scheduler:?}");
    }
}

/// BS-16.
#[test]
fn bs_16_a_label_that_cannot_be_read_does_not_hold_the_deletion() {
    let mut wrong = cluster(&[], json!({}));
    let labels = [("volcano.sh/network-topology-mode", "hard"), ("volcano.sh/network-topology-highest-tier-allowed", "x")];
    wrong.metadata.labels = Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    assert!(matches!(volcano(&observed(wrong.clone(), &[])), Gang::Impossible { .. }));
    wrong.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(0)));
    assert_eq!(volcano(&observed(wrong, &[])), Gang::Leave);
}

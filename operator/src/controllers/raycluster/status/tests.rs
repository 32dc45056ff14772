use std::sync::Arc;

use serde_json::{Value, json};
use shared::api::raycluster::RayClusterStatus;

use super::*;
use crate::controllers::raycluster::memory::Refusal;
use crate::controllers::raycluster::testing::*;

const ACTIVE: Stage = Stage::In(Phase::Active);

fn applied(pods: &[P]) -> Applied {
    Applied::untroubled(ACTIVE, pods.iter().map(P::pod).collect())
}

fn tell(cluster: &RayCluster, applied: &Applied) -> RayClusterStatus {
    status(cluster, applied, &ClusterMemory::default(), &Settings::default(), at(0))
}

fn says<'a>(status: &'a RayClusterStatus, name: &str) -> Option<(&'a str, &'a str)> {
    let condition = status.conditions.iter().find(|condition| condition.type_ == name)?;
    Some((&condition.status, &condition.reason))
}

fn pair() -> RayCluster {
    cluster(&[group("a", 1)], json!({}))
}

#[test]
fn c_24_ready_and_provisioned_need_every_wanted_pod() {
    let (head, worker) = (P::head("h"), P::worker("w", "a"));
    let running_without_condition = worker.clone().status(json!({ "phase": "Running" }));
    let table: [(&[P], bool); 9] = [
        (&[head.clone(), worker.clone()], true),
        (&[head.clone(), running_without_condition], true),
        (std::slice::from_ref(&head), false),
        (std::slice::from_ref(&worker), false),
        (&[head.clone(), worker.clone().pending()], false),
        (&[head.clone(), worker.clone().unready()], false),
        (&[head.clone(), worker.clone().failed()], false),
        (&[head.clone(), worker.clone().terminating(at(5))], false),
        (&[head.clone(), worker.clone(), P::worker("more", "a")], false),
    ];
    for (pods, complete) in table {
        let status = tell(&pair(), &applied(pods));
        assert_eq!(status.state == READY, complete, "{pods:?}", pods = pods.iter().map(P::view).collect::<Vec<_>>());
        let wanted = if complete { ("True", "AllPodRunningAndReadyFirstTime") } else { ("False", "RayClusterPodsProvisioning") };
        assert_eq!(says(&status, "RayClusterProvisioned"), Some(wanted));
    }
}

#[test]
fn the_state_tells_the_truth_when_pods_are_lost_and_provisioned_stays() {
    let mut cluster = saying(pair(), &[("RayClusterProvisioned", "True")]);
    cluster.status.as_mut().unwrap().state = READY.to_owned();
    let lost = tell(&cluster, &applied(&[P::head("h")]));
    assert_eq!(lost.state, "");
    assert_eq!(says(&lost, "RayClusterProvisioned"), Some(("True", "Test")));
}

#[test]
fn rc_462_and_463_counts() {
    let groups = [
        with(group("a", 2), json!({ "minReplicas": 1, "maxReplicas": 4, "numOfHosts": 2 })),
        with(group("b", 3), json!({ "minReplicas": 2, "suspend": true })),
        with(group("c", 9), json!({ "maxReplicas": 5 })),
    ];
    let pods =
        [P::head("h"), P::worker("w1", "a"), P::worker("w2", "a").unready(), P::worker("w3", "c").pending(), P::worker("w4", "c").failed()];
    let status = tell(&cluster(&groups, json!({})), &applied(&pods));
    let counts = [status.desired_worker_replicas, status.min_worker_replicas, status.max_worker_replicas];
    assert_eq!(counts, [4 + 5, 2, 8 + 5]);
    assert_eq!((status.available_worker_replicas, status.ready_worker_replicas), (2, 1));
    // RC-308.
    let huge = with(group("a", 1), json!({ "maxReplicas": i32::MAX, "numOfHosts": 4 }));
    assert_eq!(tell(&cluster(&[huge], json!({})), &applied(&[])).max_worker_replicas, i32::MAX);
    let unbounded = with(group("a", 1), json!({ "maxReplicas": null }));
    assert_eq!(tell(&cluster(&[unbounded], json!({})), &applied(&[])).max_worker_replicas, i32::MAX);
}

#[test]
fn rc_471_head_pod_ready() {
    let ready =
        |status: &str, reason: &str, message: &str| json!({ "type": "Ready", "status": status, "reason": reason, "message": message });
    let waiting = json!([{ "name": "ray", "state": { "waiting": { "reason": "ImagePullBackOff", "message": "m" } } }]);
    let table: [(Value, Value, (&str, &str, &str)); 6] = [
        (ready("True", "", ""), json!([]), ("True", "HeadPodRunningAndReady", "")),
        (ready("True", "Fine", "x"), json!([]), ("True", "Fine", "x")),
        (ready("False", "", "x"), json!([]), ("False", "Unknown", "x")),
        (ready("Unknown", "NodeLost", "x"), json!([]), ("Unknown", "NodeLost", "x")),
        // RC-309.
        (
            ready("False", "ContainersNotReady", "containers not ready"),
            waiting.clone(),
            ("False", "ImagePullBackOff", "containers not ready; ray: m"),
        ),
        (ready("False", "ContainersNotReady", ""), waiting, ("False", "ImagePullBackOff", "ray: m")),
    ];
    for (condition, containers, (status, reason, message)) in table {
        let head = P::head("h").status(json!({ "phase": "Running", "conditions": [condition], "containerStatuses": containers }));
        let told = tell(&pair(), &applied(&[head]));
        let found = told.conditions.iter().find(|condition| condition.type_ == "HeadPodReady").unwrap();
        assert_eq!((found.status.as_str(), found.reason.as_str(), found.message.as_str()), (status, reason, message));
    }
    assert_eq!(says(&tell(&pair(), &applied(&[])), "HeadPodReady"), Some(("False", "HeadPodNotFound")));
    let silent = P::head("h").status(json!({ "phase": "Pending" }));
    assert_eq!(says(&tell(&pair(), &applied(&[silent])), "HeadPodReady"), Some(("False", "Unknown")));
}

#[test]
fn rc_467_and_468_head_and_endpoints() {
    let service = |spec: Value| -> Arc<ServiceView> {
        Arc::new(serde_json::from_value(json!({ "metadata": { "name": "c-head-svc", "namespace": "n" }, "spec": spec })).unwrap())
    };
    let head = P::head("h").status(json!({ "phase": "Running", "podIP": "10.0.0.1" }));
    let ports = json!([
        { "name": "gcs", "port": 6379, "targetPort": 6379 },
        { "name": "node", "port": 1, "targetPort": 2, "nodePort": 30001 },
        { "name": "named", "port": 3, "targetPort": "serve" },
        { "name": "none", "port": 4 },
        { "port": 5, "targetPort": 5 },
    ]);
    let headless = service(json!({ "clusterIP": "None", "ports": ports }));
    let told = tell(&pair(), &applied(&[head]).but(|parts| *parts.head_service = Some(headless)));
    assert_eq!((told.head.pod_name.as_str(), told.head.pod_ip.as_str()), ("h", "10.0.0.1"));
    assert_eq!((told.head.service_name.as_str(), told.head.service_ip.as_str()), ("c-head-svc", "10.0.0.1"));
    let endpoints: Vec<(&str, &str)> = told.endpoints.iter().map(|(name, target)| (name.as_str(), target.as_str())).collect();
    assert_eq!(endpoints, [("gcs", "6379"), ("named", "serve"), ("node", "30001")]);
    let told = tell(&pair(), &applied(&[]).but(|parts| *parts.head_service = Some(service(json!({ "clusterIP": "10.1.1.1" })))));
    assert_eq!((told.head.service_ip.as_str(), told.head.pod_name.as_str()), ("10.1.1.1", ""));
}

#[test]
fn rc_473_to_475_suspension_conditions() {
    let head = [P::head("h")];
    let none: [P; 0] = [];
    let table: [(Stage, &[P], &str, &str, &str); 5] = [
        (ACTIVE, &head, "False", "False", READY),
        (Stage::In(Phase::Asked), &head, "True", "False", ""),
        (Stage::In(Phase::Suspending), &head, "True", "False", ""),
        (Stage::In(Phase::Suspending), &none, "False", "True", SUSPENDED),
        (Stage::In(Phase::Suspended), &none, "False", "True", SUSPENDED),
    ];
    for (stage, pods, suspending, suspended, state) in table {
        let cluster = saying(cluster(&[], json!({ "suspend": true })), &[("RayClusterProvisioned", "True")]);
        let told = tell(&cluster, &Applied::untroubled(stage, pods.iter().map(P::pod).collect()));
        assert_eq!(says(&told, "RayClusterSuspending").unwrap().0, suspending, "{stage:?}");
        assert_eq!(says(&told, "RayClusterSuspended").unwrap().0, suspended);
        assert_eq!(told.state, state);
        // RC-474: what comes back has to be provisioned anew.
        assert_eq!(says(&told, "RayClusterProvisioned").unwrap().0, if suspended == "True" { "False" } else { "True" });
    }
}

#[test]
fn rc_470_replica_failure_lasts_as_long_as_the_refusal() {
    let mut memory = ClusterMemory::default();
    memory.group("a").refusal = Some(Refusal::after(None, "FailedCreateWorkerPod", "exceeded quota".to_owned(), at(0)));
    let told = status(&pair(), &applied(&[P::head("h")]), &memory, &Settings::default(), at(0));
    assert_eq!(says(&told, "ReplicaFailure"), Some(("True", "FailedCreateWorkerPod")));
    assert_eq!(told.reason, "FailedCreateWorkerPod: exceeded quota");
    let mut cluster = pair();
    cluster.status = Some(told);
    let told = tell(&cluster, &applied(&[P::head("h"), P::worker("w", "a")]));
    assert_eq!((says(&told, "ReplicaFailure"), told.reason.as_str()), (None, ""));
    let failure = Trouble { reason: "FailedDeleteHeadPod".to_owned(), message: "forbidden".to_owned() };
    let told = tell(&pair(), &applied(&[P::head("h"), P::worker("w", "a")]).but(|parts| *parts.failure = Some(failure)));
    assert_eq!(says(&told, "ReplicaFailure"), Some(("True", "FailedDeleteHeadPod")));
    assert_eq!(told.state, "");
}

#[test]
fn c_50_the_first_cause_is_lifted_up() {
    let worker = |status: Value| [P::head("h"), P::worker("w", "a").status(status)];
    let container = |state: Value, last: Value| json!([{ "name": "ray", "state": state, "lastState": last }]);
    let table: [(Value, &str, &[&str]); 9] = [
        (
            json!({ "phase": "Pending", "containerStatuses": container(json!({ "waiting": { "reason": "ErrImagePull", "message": "no such image" } }), json!({})) }),
            "ErrImagePull",
            &["w", "container ray", "no such image"],
        ),
        (
            json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "False" }], "containerStatuses": container(
                json!({ "waiting": { "reason": "CrashLoopBackOff" } }), json!({ "terminated": { "exitCode": 3, "reason": "Error" } })) }),
            "CrashLoopBackOff",
            &["container ray", "exit code 3"],
        ),
        (
            json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes" }] }),
            "Unschedulable",
            &["w", "0/3 nodes"],
        ),
        (
            json!({ "phase": "Pending", "initContainerStatuses": [{ "name": "setup", "state": { "terminated": { "exitCode": 2, "reason": "Error" } } }] }),
            "Error",
            &["init container setup", "exit code 2"],
        ),
        (
            json!({ "phase": "Failed", "reason": "Evicted", "message": "the node was low on memory", "containerStatuses":
                container(json!({ "terminated": { "exitCode": 137, "reason": "Error" } }), json!({})) }),
            "Evicted",
            &["low on memory"],
        ),
        (
            json!({ "phase": "Failed", "containerStatuses": container(json!({ "terminated": { "exitCode": 137, "reason": "OOMKilled" } }), json!({})) }),
            "OOMKilled",
            &["container ray", "137"],
        ),
        // The usual course of things is no cause.
        (
            json!({ "phase": "Pending", "containerStatuses": container(json!({ "waiting": { "reason": "ContainerCreating" } }), json!({})) }),
            "",
            &[],
        ),
        (
            json!({ "phase": "Pending", "conditions": [{ "type": "PodScheduled", "status": "False", "reason": "SchedulingGated" }] }),
            "",
            &[],
        ),
        (json!({ "phase": "Running", "conditions": [{ "type": "Ready", "status": "False" }] }), "", &[]),
    ];
    for (state, reason, parts) in table {
        let told = tell(&pair(), &applied(&worker(state.clone())));
        assert!(told.reason.starts_with(reason) && told.reason.is_empty() == reason.is_empty(), "{state}: {}", told.reason);
        assert!(parts.iter().all(|part| told.reason.contains(part)), "{}", told.reason);
        assert_eq!(says(&told, "PodsBlocked").map(|(_, reason)| reason.to_owned()), (!reason.is_empty()).then(|| reason.to_owned()));
    }
}

#[test]
fn the_cause_of_a_crash_stays_until_the_group_has_recovered() {
    let mut memory = ClusterMemory::default();
    memory.group("a").crashes.release(&P::worker("w", "a").failed().pod(), at(0));
    let waits = status(&pair(), &applied(&[P::head("h"), P::worker("w2", "a").pending()]), &memory, &Settings::default(), at(1));
    assert!(waits.reason.starts_with("OOMKilled"), "{}", waits.reason);
    let works = status(&pair(), &applied(&[P::head("h"), P::worker("w2", "a")]), &memory, &Settings::default(), at(1));
    assert_eq!((works.reason.as_str(), works.state.as_str()), ("", READY));
}

#[test]
fn a_wrong_spec_and_a_taken_name_are_shown_and_heal() {
    let invalid = Verdict::Invalid { reason: "InvalidRayClusterSpec", message: "spec.x: is wrong".to_owned() };
    let mut ready = pair();
    ready.status = Some(RayClusterStatus { state: READY.to_owned(), ..RayClusterStatus::default() });
    let pods = [P::head("h"), P::worker("w", "a")];
    let wrong = |cluster: &RayCluster, pods: &[P]| {
        let pods = pods.iter().map(P::pod).collect();
        tell(cluster, &Applied::untroubled(Stage::Invalid, pods).but(|parts| *parts.verdict = invalid.clone()))
    };
    let told = wrong(&ready, &pods);
    assert_eq!(says(&told, "SpecValid"), Some(("False", "InvalidSpec")));
    assert_eq!(told.state, READY, "nothing has happened to its Pods");
    assert_eq!(wrong(&ready, &[P::head("h").failed()]).state, "");
    assert_eq!(wrong(&pair(), &[]).state, "");
    assert!(wrong(&pair(), &[]).reason.contains("is wrong"));
    let mut healed = pair();
    healed.status = Some(told);
    assert_eq!(says(&tell(&healed, &applied(&pods)), "SpecValid"), None);

    let taken = Trouble { reason: "NameTaken".to_owned(), message: "Service c-head-svc exists".to_owned() };
    let told = tell(&pair(), &applied(&[]).but(|parts| *parts.conflict = Some(taken)));
    assert_eq!(says(&told, "NameConflict"), Some(("True", "NameTaken")));
    assert!(told.reason.starts_with("NameTaken"));
}

#[test]
fn rc_466_and_469_times_change_with_what_they_stand_for() {
    let pods = [P::head("h"), P::worker("w", "a")];
    let mut cluster = pair();
    let first = tell(&cluster, &applied(&pods));
    assert_eq!(first.state_transition_times.get(READY).map(|time| time.0), Some(at(0)));
    cluster.status = Some(first.clone());
    let second = status(&cluster, &applied(&pods), &ClusterMemory::default(), &Settings::default(), at(60));
    assert_eq!(second, first, "an unchanged cluster has an unchanged status");
    assert_eq!(worth_writing(Some(&first), &second), Write::No);
}

#[test]
fn rc_469_without_the_gate_there_are_no_conditions() {
    let mut settings = Settings::default();
    settings.features = settings.features.with(Feature::RayClusterStatusConditions, false);
    let suspended = cluster(&[], json!({ "suspend": true }));
    let told =
        status(&suspended, &Applied::untroubled(Stage::In(Phase::Suspended), Vec::new()), &ClusterMemory::default(), &settings, at(0));
    assert_eq!((told.conditions.len(), told.state.as_str()), (0, SUSPENDED));
}

#[test]
fn rc_480_what_is_written_and_when() {
    let pods = [P::head("h"), P::worker("w", "a").pending()];
    let mut cluster = pair();
    let old = tell(&cluster, &applied(&pods));
    cluster.status = Some(old.clone());
    let change = |change: &dyn Fn(&mut RayClusterStatus)| {
        let mut new = old.clone();
        change(&mut new);
        worth_writing(Some(&old), &new)
    };
    assert_eq!(change(&|_| {}), Write::No);
    assert_eq!(change(&|new| new.last_update_time = Some(Time(at(9)))), Write::No);
    assert_eq!(change(&|new| new.state = READY.to_owned()), Write::Now);
    assert_eq!(change(&|new| new.observed_generation = 2), Write::Now);
    assert_eq!(change(&|new| new.conditions[0].status = "Unknown".to_owned()), Write::Now);
    assert_eq!(change(&|new| new.reason = "ErrImagePull: x".to_owned()), Write::Now);
    assert_eq!(change(&|new| new.conditions[0].message = "other".to_owned()), Write::Within(DETAILS));
    assert_eq!(change(&|new| new.ready_worker_replicas = 1), Write::Within(DETAILS));
    assert_eq!(change(&|new| new.head.pod_ip = "10.0.0.1".to_owned()), Write::Within(DETAILS));
}

#[test]
fn rc_480_progress_waits_a_moment_and_trouble_does_not() {
    let with = |pods: &[P]| tell(&pair(), &applied(pods));
    let (coming, head_up) = (with(&[P::head("h").pending()]), with(&[P::head("h"), P::worker("w", "a").pending()]));
    let ready = with(&[P::head("h"), P::worker("w", "a")]);
    let waiting = json!([{ "name": "ray", "state": { "waiting": { "reason": "ErrImagePull" } } }]);
    let stuck = with(&[P::head("h").status(json!({ "phase": "Pending", "containerStatuses": waiting }))]);
    let suspended = {
        let cluster = cluster(&[], json!({ "suspend": true }));
        tell(&cluster, &Applied::untroubled(Stage::In(Phase::Asked), Vec::new()))
    };
    for (what, old, new, expected) in [
        ("taken up", None, &coming, Write::Within(PROGRESS)),
        ("taken up, the head is ready already", None, &head_up, Write::Within(PROGRESS)),
        ("the head is ready", Some(&coming), &head_up, Write::Within(PROGRESS)),
        ("all are ready", Some(&coming), &ready, Write::Now),
        ("ready at the first look", None, &ready, Write::Now),
        ("the head is no longer ready", Some(&head_up), &coming, Write::Now),
        ("in trouble at the first look", None, &stuck, Write::Now),
        ("in trouble", Some(&coming), &stuck, Write::Now),
        ("suspension was asked for, which the status has to hold before it begins (RC-151)", None, &suspended, Write::Now),
    ] {
        assert_eq!(worth_writing(old, new), expected, "{what}");
    }
}

#[test]
fn reasons_are_such_that_the_api_server_takes_them() {
    let odd =
        json!({ "phase": "Pending", "containerStatuses": [{ "name": "ray", "state": { "waiting": { "reason": "9 odd-reason!" } } }] });
    let told = tell(&pair(), &applied(&[P::head("h"), P::worker("w", "a").status(odd)]));
    assert_eq!(says(&told, "PodsBlocked"), Some(("True", "oddreason")));
}

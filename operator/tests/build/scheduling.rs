//! BS-1..BS-54: what each gang scheduler finds on Pods, and which PodGroup there is.

use operator::build::pod;
use operator::build::scheduling::pod_group::{Family, Group, Plugins, PodGroup, Spec, Volcano};
use operator::build::scheduling::{Gang, Scheduler, of_cluster, of_job};
use operator::build::{job_cluster, submitter};
use operator::settings::Settings;
use serde_json::{Value, json};
use shared::api::rayjob::SubmissionMode;
use shared::api::{RayCluster, RayJob};

use crate::fixture::{Edit, PodExt as _, cluster, head_group, head_with, limits, ray, worker_group, worker_with};

const GANG: &str = "ray.io/gang-scheduling-enabled";

fn with(scheduler: Scheduler) -> Settings {
    Settings { scheduler: Some(scheduler), ..Settings::default() }
}

fn labels(object: &mut Value, labels: Value) {
    object["metadata"]["labels"] = labels;
}

/// Job `job` of namespace `ml`, whose cluster is that of the fixture, after `edit`.
fn job(mode: &str, edit: impl FnOnce(&mut Value)) -> RayJob {
    let mut value = json!({
        "apiVersion": "ray.io/v1", "kind": "RayJob",
        "metadata": { "name": "job", "namespace": "ml", "uid": "5f3c9e1a-0000-4000-8000-000000000002" },
        "spec": { "entrypoint": "e", "submissionMode": mode, "rayClusterSpec": serde_json::to_value(cluster(|_| ())).unwrap()["spec"] },
    });
    edit(&mut value);
    serde_json::from_value(value).unwrap()
}

fn mode(job: &RayJob) -> SubmissionMode {
    SubmissionMode::parse(job.spec.submission_mode.as_deref()).unwrap()
}

/// The cluster made for a job.
fn made(job: &RayJob, settings: &Settings) -> RayCluster {
    job_cluster::cluster(job, mode(job), "job-xyz", "id", settings).unwrap()
}

fn submitter_of(job: &RayJob, settings: &Settings) -> Value {
    let job = submitter::job(job, &made(job, settings), "a:1", "id", settings).unwrap();
    json!(job.spec.unwrap().template)
}

fn volcano(gang: Gang) -> PodGroup<Volcano> {
    match gang {
        Gang::Hold(group) | Gang::Settle(group) => match *group {
            Group::Volcano(group) => group,
            Group::Plugins(_) => panic!("not Volcano's"),
        },
        other => panic!("{other:?}"),
    }
}

fn plugins(gang: Gang) -> PodGroup<Plugins> {
    match gang {
        Gang::Hold(group) => match *group {
            Group::Plugins(group) => group,
            Group::Volcano(_) => panic!("not that of scheduler-plugins"),
        },
        other => panic!("{other:?}"),
    }
}

/// Members and resources in one text.
fn size(spec: &Spec) -> String {
    let amounts = spec.min_resources.iter().map(|(name, amount)| format!("{name}={amount}"));
    std::iter::once(spec.min_member.to_string()).chain(amounts).collect::<Vec<_>>().join(" ")
}

fn cluster_group(edit: impl FnOnce(&mut Value)) -> PodGroup<Volcano> {
    volcano(of_cluster(&cluster(edit), true, &with(Scheduler::Volcano)))
}

/// BS-4: what is asked of a scheduler by name.
#[test]
fn bs_2_bs_50_names() {
    let table = [
        ("volcano", "volcano", Some(("scheduling.volcano.sh", "v1beta1"))),
        ("yunikorn", "yunikorn", None),
        ("kai-scheduler", "kai-scheduler", None),
        ("scheduler-plugins", "scheduler-plugins-scheduler", Some(("scheduling.x-k8s.io", "v1alpha1"))),
    ];
    for (name, on_pods, groups) in table {
        let scheduler = Scheduler::parse(name).unwrap();
        assert_eq!((scheduler.name(), scheduler.pod_scheduler(), scheduler.pod_groups()), (name, on_pods, groups));
    }
    for name in ["", "default", "kubernetes-was-v1alpha2", "VOLCANO"] {
        assert_eq!(Scheduler::parse(name), None, "{name}");
    }
}

/// BS-5: without a scheduler nothing differs, whatever labels there are.
#[test]
fn bs_5_no_scheduler_no_trace() {
    let all = json!({
        GANG: "true", "volcano.sh/queue-name": "q", "yunikorn.apache.org/app-id": "a", "yunikorn.apache.org/queue": "q",
        "kai.scheduler/queue": "q", "ray.io/priority-class-name": "p",
    });
    let none = Settings::default();
    assert_eq!(head_with(|c| labels(c, all.clone()), &none), head_with(|_| (), &none));
    assert_eq!(worker_with(|c| labels(c, all.clone()), &none), worker_with(|_| (), &none));
    let cluster = cluster(|c| labels(c, all.clone()));
    assert_eq!(of_cluster(&cluster, true, &none), Gang::Leave);
    let marked = job("K8sJobMode", |job| labels(job, all.clone()));
    assert_eq!(of_job(&marked, SubmissionMode::K8sJob, None, true, &none), Gang::Leave);
    assert_eq!(submitter_of(&marked, &none), submitter_of(&job("K8sJobMode", |_| ()), &none));
    assert_eq!(made(&marked, &none).metadata.annotations, None);
}

/// A scheduler's name on a Pod wins over that of the template, as in KubeRay.
#[test]
fn bs_5_every_pod_of_ray_is_handed_over() {
    for scheduler in Scheduler::ALL {
        let settings = with(scheduler);
        let own = |group: &mut Value| group["template"]["spec"]["schedulerName"] = json!("mine");
        for pod in [head_with(|c| own(head_group(c)), &settings), worker_with(|c| own(worker_group(c)), &settings)] {
            assert_eq!(pod.spec.unwrap().scheduler_name.as_deref(), Some(scheduler.pod_scheduler()));
        }
        let template = submitter_of(&job("K8sJobMode", |_| ()), &settings);
        assert_eq!(template["spec"]["schedulerName"], scheduler.pod_scheduler());
    }
}

#[test]
fn bs_8_bs_13_members_and_resources_are_those_of_the_same_pods() {
    let workers = |values: Value| {
        move |c: &mut Value| {
            for (key, value) in ["replicas", "minReplicas", "maxReplicas", "numOfHosts", "suspend"].iter().zip(values.as_array().unwrap()) {
                worker_group(c)[*key] = value.clone();
            }
        }
    };
    let table = [
        (json!([2, 0, 5, 1, null]), "3 cpu=3 memory=6Gi", "1 cpu=1 memory=2Gi"),
        // KubeRay counts 2 workers here and the resources of none.
        (json!([0, 2, 5, 1, null]), "3 cpu=3 memory=6Gi", "3 cpu=3 memory=6Gi"),
        (json!([9, 1, 2, 1, null]), "3 cpu=3 memory=6Gi", "2 cpu=2 memory=4Gi"),
        (json!([null, 1, 5, 4, null]), "5 cpu=5 memory=10Gi", "5 cpu=5 memory=10Gi"),
        (json!([null, null, null, null, null]), "1 cpu=1 memory=2Gi", "1 cpu=1 memory=2Gi"),
        (json!([2, 2, 5, 1, true]), "1 cpu=1 memory=2Gi", "1 cpu=1 memory=2Gi"),
        (json!([2, -1, 5, 1, null]), "3 cpu=3 memory=6Gi", "1 cpu=1 memory=2Gi"),
    ];
    for (values, desired, least) in table {
        assert_eq!(size(&cluster_group(workers(values.clone())).spec), desired, "{values}");
        let autoscaling = |c: &mut Value| {
            workers(values.clone())(c);
            c["spec"]["enableInTreeAutoscaling"] = true.into();
        };
        assert_eq!(size(&cluster_group(autoscaling).spec), least, "{values} with an autoscaler");
    }
    let limits_only = |c: &mut Value| {
        limits(worker_group(c), &json!({ "cpu": "4", "nvidia.com/gpu": "1" }));
        worker_group(c)["template"]["spec"]["initContainers"] = json!([{ "name": "i", "resources": { "requests": { "cpu": "9" } } }]);
    };
    assert_eq!(size(&cluster_group(limits_only).spec), "2 cpu=5 memory=2Gi nvidia.com/gpu=1", "BS-7");
}

#[test]
fn bs_10_bs_11_bs_12_whose_group_it_is() {
    let group = cluster_group(|_| ());
    assert_eq!(group.metadata.name.as_deref(), Some("ray-demo-pg"));
    assert_eq!(group.metadata.namespace.as_deref(), Some("ml"));
    let owner = &group.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.name.as_str(), owner.controller), ("RayCluster", "demo", Some(true)));
    assert_eq!(owner.api_version, "ray.io/v1");

    let of = |crd: &str, name: &str| {
        let (crd, name) = (crd.to_owned(), name.to_owned());
        move |c: &mut Value| labels(c, json!({ "ray.io/originated-from-crd": crd, "ray.io/originated-from-cr-name": name }))
    };
    for (crd, name, own) in [("RayJob", "job", None), ("RayService", "s", Some("ray-demo-pg")), ("RayJob", "", Some("ray-demo-pg"))] {
        let gang = of_cluster(&cluster(of(crd, name)), true, &with(Scheduler::Volcano));
        assert_eq!(own.is_none(), gang == Gang::Leave, "{crd} {name}");
        let pod = head_with(of(crd, name), &with(Scheduler::Volcano));
        assert_eq!(pod.annotations()["scheduling.k8s.io/group-name"], own.unwrap_or("ray-job-pg"));
    }
    // Suspended, it asks for nothing, and is not made.
    let rests = of_cluster(&cluster(|_| ()), false, &with(Scheduler::Volcano));
    assert!(matches!(rests, Gang::Settle(_)));
    assert_eq!(size(&volcano(rests).spec), "0");
    assert_eq!(of_cluster(&cluster(of("RayJob", "job")), false, &with(Scheduler::Volcano)), Gang::Leave);
}

#[test]
fn bs_14_rj_180_a_jobs_group_has_the_submitter_in_its_resources_alone() {
    let own_template = |job: &mut Value| {
        let container = json!({ "name": "x", "resources": { "requests": { "cpu": "3" }, "limits": { "cpu": "4", "memory": "1Gi" } } });
        job["spec"]["submitterPodTemplate"] = json!({ "spec": { "containers": [container] } });
    };
    let silent_template = |job: &mut Value| {
        job["spec"]["submitterPodTemplate"] = json!({ "spec": { "containers": [{ "name": "y" }, { "name": "ray-job-submitter" }] } });
    };
    let autoscaled = |job: &mut Value| job["spec"]["rayClusterSpec"]["enableInTreeAutoscaling"] = true.into();
    let nothing = |_: &mut Value| ();
    let table: [(&str, Edit<'_>, &str); 7] = [
        ("K8sJobMode", &nothing, "2 cpu=2500m memory=4296Mi"),
        ("K8sJobMode", &own_template, "2 cpu=5 memory=5Gi"),
        // The defaults that the submitter will have (C-09).
        ("K8sJobMode", &silent_template, "2 cpu=2500m memory=4296Mi"),
        ("K8sJobMode", &autoscaled, "1 cpu=1500m memory=2248Mi"),
        ("SidecarMode", &nothing, "2 cpu=2500m memory=4296Mi"),
        ("HTTPMode", &nothing, "2 cpu=2 memory=4Gi"),
        ("InteractiveMode", &nothing, "2 cpu=2 memory=4Gi"),
    ];
    let settings = with(Scheduler::Volcano);
    for (name, edit, wanted) in table {
        let job = job(name, |job| edit(job));
        let gang = of_job(&job, mode(&job), None, true, &settings);
        assert!(matches!(gang, Gang::Hold(_)));
        let group = volcano(gang);
        assert_eq!(size(&group.spec), wanted, "{name}");
        assert_eq!(group.metadata.name.as_deref(), Some("ray-job-pg"));
        let owner = &group.metadata.owner_references.as_ref().unwrap()[0];
        assert_eq!((owner.kind.as_str(), owner.controller), ("RayJob", Some(true)));
        // The cluster that is made of it asks for the same.
        let live = made(&job, &settings);
        assert_eq!(size(&volcano(of_job(&job, mode(&job), Some(&live), true, &settings)).spec), wanted, "{name}, made");
    }
}

#[test]
fn bs_14_the_live_cluster_counts_once_it_is_there() {
    let settings = with(Scheduler::Volcano);
    let job = job("HTTPMode", |_| ());
    let mut live = made(&job, &settings);
    live.spec.worker_group_specs.as_mut().unwrap()[0].replicas = Some(4);
    assert_eq!(size(&volcano(of_job(&job, SubmissionMode::Http, Some(&live), true, &settings)).spec), "5 cpu=5 memory=10Gi");
}

#[test]
fn bs_15_jobs_on_other_clusters_have_no_group() {
    let settings = with(Scheduler::Volcano);
    for spec in [json!(null), json!(cluster(|_| ()).spec)] {
        let shared = job("K8sJobMode", |job| {
            job["spec"]["clusterSelector"] = json!({ "ray.io/cluster": "demo" });
            job["spec"]["rayClusterSpec"] = spec.clone();
            labels(job, json!({ "volcano.sh/queue-name": "q" }));
        });
        for goes_on in [true, false] {
            assert_eq!(of_job(&shared, SubmissionMode::K8sJob, None, goes_on, &settings), Gang::Leave);
        }
        // Its submitter is a Pod like any other.
        let submitter = submitter::job(&shared, &cluster(|_| ()), "a:1", "id", &settings).unwrap().spec.unwrap().template;
        let metadata = submitter.metadata.unwrap();
        assert_eq!(metadata.annotations, None);
        assert_eq!(metadata.labels.unwrap()["volcano.sh/queue-name"], "q");
        assert_eq!(submitter.spec.unwrap().scheduler_name.as_deref(), Some("volcano"));
    }
}

#[test]
fn bs_16_what_a_group_takes_from_its_owner() {
    let (mode, tier) = ("volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier-allowed");
    let object = |values: Value| {
        let group = cluster_group(|c| {
            labels(c, values.clone());
            c["metadata"]["annotations"] = json!({ "a": "b", "kubectl.kubernetes.io/last-applied-configuration": "{}" });
        });
        serde_json::to_value(group).unwrap()
    };
    let table = [
        (json!({}), json!({})),
        (json!({ "volcano.sh/queue-name": "q" }), json!({ "queue": "q" })),
        (json!({ "volcano.sh/queue-name": "" }), json!({})),
        (json!({ "ray.io/priority-class-name": "p" }), json!({ "priorityClassName": "p" })),
        (json!({ mode: "soft" }), json!({ "networkTopology": { "mode": "soft" } })),
        (json!({ mode: "hard", tier: "2" }), json!({ "networkTopology": { "mode": "hard", "highestTierAllowed": 2 } })),
        (json!({ tier: "2" }), json!({})),
        (json!({ tier: "two" }), json!({})),
    ];
    for (values, more) in table {
        let object = object(values.clone());
        let mut wanted = json!({ "minMember": 2, "minResources": { "cpu": "2", "memory": "4Gi" } });
        wanted.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(object["spec"], wanted, "{values}");
        assert_eq!(object["status"], json!({ "phase": "Pending" }));
        assert_eq!(object["metadata"]["annotations"], json!({ "a": "b" }));
        assert_eq!((&object["apiVersion"], &object["kind"]), (&json!("scheduling.volcano.sh/v1beta1"), &json!("PodGroup")));
    }
    for text in ["two", "1.5", "0x1", " 1"] {
        let wrong = |object: &mut Value| labels(object, json!({ mode: "hard", tier: text }));
        let settings = with(Scheduler::Volcano);
        let of_job = |goes_on| of_job(&job("HTTPMode", wrong), SubmissionMode::Http, None, goes_on, &settings);
        for gang in [of_cluster(&cluster(wrong), true, &settings), of_job(true)] {
            let Gang::Impossible { problem } = gang else { panic!("{gang:?}") };
            assert!(problem.contains(tier) && problem.contains(text), "{problem}");
        }
        // It holds up no end.
        assert!(matches!(of_job(false), Gang::Settle(_)));
        assert!(matches!(of_cluster(&cluster(wrong), false, &settings), Gang::Settle(_)));
    }
}

#[test]
fn bs_17_changes_name_what_differs_and_nothing_else() {
    fn read<F: Family>(spec: &Value) -> PodGroup<F> {
        serde_json::from_value(json!({ "metadata": { "name": "g" }, "spec": spec })).unwrap()
    }
    let table = [
        (json!({ "minMember": 2 }), json!({ "minMember": 2 }), json!(null)),
        (json!({ "minMember": 3 }), json!({ "minMember": 2 }), json!({ "minMember": 3 })),
        (json!({ "minMember": 0 }), json!({}), json!(null)),
        // The same amounts, written otherwise.
        (
            json!({ "minResources": { "cpu": "1500m", "memory": "1Gi" } }),
            json!({ "minResources": { "cpu": "1.5", "memory": "1024Mi" } }),
            json!(null),
        ),
        (json!({ "minResources": { "cpu": "2" } }), json!({ "minResources": { "cpu": 2 } }), json!(null)),
        (
            json!({ "minResources": { "cpu": "2", "x": "1" } }),
            json!({ "minResources": { "cpu": "1", "y": "1" } }),
            json!({ "minResources": { "cpu": "2", "x": "1", "y": null } }),
        ),
        (json!({ "minMember": 1 }), json!({ "minMember": "many", "minResources": 7, "queue": [] }), json!({ "minMember": 1 })),
    ];
    for (wanted, found, change) in table {
        let (wanted, found) = (read::<Volcano>(&wanted), read::<Volcano>(&found));
        let change = Some(change).filter(|change| !change.is_null()).map(|change| json!({ "spec": change }));
        assert_eq!(wanted.resized(&found), change, "{found:?}");
        assert_eq!(wanted.moved(&found), None);
    }
    let topology = |mode: &str, tier: i64| json!({ "networkTopology": { "mode": mode, "highestTierAllowed": tier } });
    let table = [
        (json!({ "queue": "a" }), json!({ "queue": "default" }), json!({ "queue": "a" })),
        // What is not asked for is Volcano's to fill in.
        (json!({}), json!({ "queue": "default", "priorityClassName": "p", "networkTopology": { "mode": "hard" } }), json!(null)),
        (json!({ "priorityClassName": "p" }), json!({}), json!({ "priorityClassName": "p" })),
        (topology("soft", 1), topology("hard", 1), topology("soft", 1)),
        (topology("hard", 2), topology("hard", 1), topology("hard", 2)),
        (json!({ "networkTopology": { "mode": "hard" } }), topology("hard", 1), json!(null)),
    ];
    for (wanted, found, change) in table {
        let (wanted, found) = (read::<Volcano>(&wanted), read::<Volcano>(&found));
        let change = Some(change).filter(|change| !change.is_null()).map(|change| json!({ "spec": change }));
        assert_eq!(wanted.moved(&found), change, "{found:?}");
        assert_eq!(wanted.resized(&found), None);
    }
}

#[test]
fn bs_18_what_volcano_finds_on_children() {
    let settings = with(Scheduler::Volcano);
    let marks = |c: &mut Value| labels(c, json!({ "volcano.sh/queue-name": "q", "ray.io/priority-class-name": "" }));
    for (pod, group) in [(head_with(marks, &settings), "headgroup"), (worker_with(marks, &settings), "cpu")] {
        assert_eq!(pod.annotations()["scheduling.k8s.io/group-name"], "ray-demo-pg");
        assert_eq!(pod.annotations()["volcano.sh/task-spec"], group);
        assert_eq!(pod.labels()["volcano.sh/queue-name"], "q");
        assert_eq!(pod.labels()["ray.io/priority-class-name"], json!(null), "an empty value says nothing");
    }
    let template = submitter_of(&job("K8sJobMode", marks), &settings);
    let annotations = &template["metadata"]["annotations"];
    assert_eq!(annotations, &json!({ "scheduling.k8s.io/group-name": "ray-job-pg", "volcano.sh/task-spec": "submittergroup" }));
    assert_eq!(template["metadata"]["labels"]["volcano.sh/queue-name"], "q");
    // Only the Job's mode writes on the cluster.
    let annotations = |mode: &str| made(&job(mode, marks), &settings).metadata.annotations;
    assert_eq!(json!(annotations("K8sJobMode")), json!({ "scheduling.k8s.io/group-name": "ray-job-pg" }));
    assert_eq!(annotations("HTTPMode"), None);
}

#[test]
fn bs_19_after_the_end_a_group_asks_for_what_is_left() {
    let settings = with(Scheduler::Volcano);
    let job = job("K8sJobMode", |_| ());
    let live = made(&job, &settings);
    let mut workers_gone = live.clone();
    workers_gone.spec.worker_group_specs.as_mut().unwrap()[0].suspend = Some(true);
    let mut held = live.clone();
    held.spec.suspend = Some(true);
    let table = [
        (Some(&live), false, "2 cpu=2 memory=4Gi"),
        (Some(&workers_gone), false, "1 cpu=1 memory=2Gi"),
        (Some(&held), false, "0"),
        (Some(&held), true, "0"),
        (None, false, "0"),
    ];
    for (cluster, goes_on, wanted) in table {
        let gang = of_job(&job, SubmissionMode::K8sJob, cluster, goes_on, &settings);
        assert!(matches!(gang, Gang::Settle(_)), "it is not made again");
        let group = volcano(gang);
        assert_eq!(size(&group.spec), wanted);
        assert_eq!((group.spec.queue, group.phase), (None, None));
    }
}

/// BS-30..BS-34 and RJ-181 on one head and one worker.
fn yunikorn(values: Value, edit: impl FnOnce(&mut Value)) -> (Value, Value) {
    let pod = worker_with(
        |c| {
            labels(c, values);
            edit(c);
        },
        &with(Scheduler::YuniKorn),
    );
    let mut labels = pod.labels();
    labels.as_object_mut().unwrap().retain(|key, _| matches!(key.as_str(), "applicationId" | "queue"));
    (labels, pod.annotations())
}

/// BS-6.
#[test]
fn bs_31_bs_32_labels_and_the_wish_for_a_gang() {
    let (app, queue) = ("yunikorn.apache.org/app-id", "yunikorn.apache.org/queue");
    assert_eq!(yunikorn(json!({}), |_| ()), (json!({}), json!(null)));
    assert_eq!(yunikorn(json!({ app: "a", queue: "root.q" }), |_| ()).0, json!({ "applicationId": "a", "queue": "root.q" }));
    assert_eq!(yunikorn(json!({ app: "", queue: "" }), |_| ()).0, json!({}));
    for (value, on) in [("true", true), ("", true), ("yes", true), ("false", false), ("False", false)] {
        let (_, annotations) = yunikorn(json!({ GANG: value }), |_| ());
        assert_eq!(annotations["yunikorn.apache.org/task-group-name"].is_string(), on, "{value:?}");
        assert_eq!(annotations["yunikorn.apache.org/task-groups"].is_string(), on, "{value:?}");
    }
    let own = |c: &mut Value| c["metadata"]["annotations"] = json!({ "yunikorn.apache.org/task-groups": "[mine]" });
    let (_, annotations) = yunikorn(json!({ GANG: "true" }), own);
    assert_eq!(annotations, json!({ "yunikorn.apache.org/task-groups": "[mine]", "yunikorn.apache.org/task-group-name": "cpu" }));
    assert_eq!(yunikorn(json!({}), own).1, json!(null), "only with the label");
}

/// The list that a worker carries.
fn list(edit: impl FnOnce(&mut Value)) -> Value {
    let (_, annotations) = yunikorn(json!({ GANG: "true" }), edit);
    serde_json::from_str(annotations["yunikorn.apache.org/task-groups"].as_str().unwrap()).unwrap()
}

#[test]
fn bs_33_task_groups() {
    let plain = json!({ "cpu": "1", "memory": "2Gi" });
    let head = json!({ "name": "headgroup", "minMember": 1, "minResource": plain });
    let workers = |members: i32| json!([head, { "name": "cpu", "minMember": members, "minResource": plain }]);
    let with = |values: Value| {
        list(|c| {
            for (key, value) in ["replicas", "minReplicas", "numOfHosts", "suspend"].iter().zip(values.as_array().unwrap()) {
                worker_group(c)[*key] = value.clone();
            }
            c["spec"]["enableInTreeAutoscaling"] = values[4].clone();
        })
    };
    let table = [
        // replicas, minReplicas, numOfHosts, suspend, autoscaling
        (json!([5, 2, 1, null, false]), workers(2)),
        (json!([5, 2, 4, null, true]), workers(8)),
        // YuniKorn takes no group of none.
        (json!([3, 0, 1, null, false]), workers(3)),
        (json!([3, 0, 1, null, true]), json!([head])),
        (json!([0, 0, 1, null, false]), json!([head])),
        (json!([3, 2, 1, true, false]), json!([head])),
    ];
    for (values, wanted) in table {
        assert_eq!(with(values.clone()), wanted, "{values}");
    }
    let placed = list(|c| {
        worker_group(c)["template"]["spec"]["nodeSelector"] = json!({ "a": "b" });
        worker_group(c)["template"]["spec"]["tolerations"] = json!([{ "key": "k", "operator": "Exists" }]);
        worker_group(c)["template"]["spec"]["affinity"] = json!({ "nodeAffinity": {} });
        ray(worker_group(c))["resources"] = json!({ "limits": { "nvidia.com/gpu": "2" } });
    });
    let wanted = json!({
        "name": "cpu", "minMember": 1, "minResource": { "nvidia.com/gpu": "2" }, "nodeSelector": { "a": "b" },
        "affinity": { "nodeAffinity": {} }, "tolerations": [{ "key": "k", "operator": "Exists" }],
    });
    assert_eq!(placed[1], wanted);
}

#[test]
fn bs_34_rj_181_a_jobs_pods_share_its_list() {
    let settings = with(Scheduler::YuniKorn);
    let gang = |job: &mut Value| labels(job, json!({ GANG: "true", "yunikorn.apache.org/app-id": "a" }));
    let names = |list: &Value| -> Vec<String> {
        let groups: Vec<Value> = serde_json::from_str(list.as_str().unwrap()).unwrap();
        groups
            .iter()
            .map(|group| format!("{} {}", group["name"].as_str().unwrap(), group["minResource"]["cpu"].as_str().unwrap()))
            .collect()
    };
    let key = "yunikorn.apache.org/task-groups";
    let with_submitter = job("K8sJobMode", gang);
    let cluster_of_job = made(&with_submitter, &settings);
    let annotations = json!(cluster_of_job.metadata.annotations);
    assert_eq!(names(&annotations[key]), ["headgroup 1", "cpu 1", "submittergroup 500m"]);
    assert_eq!(cluster_of_job.metadata.labels.as_ref().unwrap()["applicationId"], "a");
    let template = submitter_of(&with_submitter, &settings);
    assert_eq!(
        template["metadata"]["annotations"],
        json!({ key: annotations[key], "yunikorn.apache.org/task-group-name": "submittergroup" })
    );
    let head = pod::head(&cluster_of_job, &settings).unwrap();
    assert_eq!(head.annotations()[key], annotations[key]);
    assert_eq!(head.labels()["applicationId"], "a");
    // Without a Pod that submits there is nobody to wait for.
    for mode in ["HTTPMode", "SidecarMode", "InteractiveMode"] {
        let head = pod::head(&made(&job(mode, gang), &settings), &settings).unwrap();
        let names = names(&head.annotations()[key]);
        assert!(names.len() == 2 && names[0].starts_with("headgroup") && names[1] == "cpu 1", "{mode}: {names:?}");
    }
    // On somebody else's cluster the submitter starts alone, unless the RayJob has a list of its own.
    for (own, wanted) in [
        (json!(null), json!(null)),
        (json!({ key: "[x]" }), json!({ key: "[x]", "yunikorn.apache.org/task-group-name": "submittergroup" })),
    ] {
        let shared = job("K8sJobMode", |job| {
            gang(job);
            job["metadata"]["annotations"] = own;
            job["spec"]["rayClusterSpec"] = json!(null);
            job["spec"]["clusterSelector"] = json!({ "ray.io/cluster": "demo" });
        });
        let template = submitter::job(&shared, &cluster(|_| ()), "a:1", "id", &settings).unwrap().spec.unwrap().template;
        assert_eq!(json!(template.metadata.unwrap().annotations), wanted);
    }
}

#[test]
fn bs_40_bs_41_kai_takes_a_queue_and_any_job() {
    let settings = with(Scheduler::Kai);
    let queue = |object: &mut Value| labels(object, json!({ "kai.scheduler/queue": "q", GANG: "true" }));
    assert_eq!(head_with(queue, &settings).labels()["kai.scheduler/queue"], "q");
    assert_eq!(head_with(|_| (), &settings).labels()["kai.scheduler/queue"], json!(null));
    let job = job("K8sJobMode", queue);
    assert_eq!(submitter_of(&job, &settings)["metadata"]["labels"]["kai.scheduler/queue"], "q");
    assert_eq!(of_job(&job, SubmissionMode::K8sJob, None, true, &settings), Gang::Leave);
    assert_eq!(of_cluster(&cluster(queue), true, &settings), Gang::Leave);
}

#[test]
fn bs_51_bs_52_bs_53_bs_54_scheduler_plugins() {
    let settings = with(Scheduler::SchedulerPlugins);
    let gang = |object: &mut Value| labels(object, json!({ GANG: "true" }));
    let group = plugins(of_cluster(&cluster(gang), true, &settings));
    assert_eq!((group.metadata.name.as_deref(), size(&group.spec).as_str()), (Some("demo"), "2 cpu=2 memory=4Gi"));
    let owner = &group.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!((owner.api_version.as_str(), owner.kind.as_str(), owner.controller), ("ray.io/v1", "RayCluster", Some(true)));
    let object = serde_json::to_value(&group).unwrap();
    assert_eq!((&object["apiVersion"], &object["status"]), (&json!("scheduling.x-k8s.io/v1alpha1"), &json!(null)));
    let autoscaled = |c: &mut Value| {
        gang(c);
        c["spec"]["enableInTreeAutoscaling"] = true.into();
    };
    assert_eq!(size(&plugins(of_cluster(&cluster(autoscaled), true, &settings)).spec), "1 cpu=1 memory=2Gi");
    // The kind takes no group of nobody.
    let goes = Gang::Remove { name: "demo".to_owned() };
    assert_eq!(of_cluster(&cluster(gang), false, &settings), goes);
    for value in [json!({}), json!({ GANG: "false" })] {
        assert_eq!(of_cluster(&cluster(|c| labels(c, value.clone())), true, &settings), goes, "{value}");
        let pod = head_with(|c| labels(c, value.clone()), &settings);
        assert_eq!(pod.labels()["scheduling.x-k8s.io/pod-group"], json!(null));
        assert_eq!(pod.spec.unwrap().scheduler_name.as_deref(), Some("scheduler-plugins-scheduler"));
    }
    assert_eq!(worker_with(gang, &settings).labels()["scheduling.x-k8s.io/pod-group"], "demo");
    // The cluster of a RayJob has a group of its own; the submitter is in none.
    let job = job("K8sJobMode", gang);
    assert_eq!(of_job(&job, SubmissionMode::K8sJob, None, true, &settings), Gang::Leave);
    assert_eq!(plugins(of_cluster(&made(&job, &settings), true, &settings)).metadata.name.as_deref(), Some("job-xyz"));
    assert_eq!(submitter_of(&job, &settings)["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"], json!(null));
}

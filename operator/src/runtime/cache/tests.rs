use std::collections::BTreeMap;

use serde_json::json;
use shared::api::RayCluster;

use super::*;
use crate::runtime::{pod_view::PodView, views::ServiceView};

fn pod(name: &str, cluster: &str, uid: &str, version: u64) -> PodView {
    serde_json::from_value(json!({
        "metadata": { "namespace": "ns", "name": name, "uid": uid, "resourceVersion": version.to_string(), "labels": { "ray.io/cluster": cluster } },
        "spec": { "nodeName": format!("node-{version}") },
    }))
    .unwrap()
}

fn cache() -> Cache<PodView> {
    Cache::new(|pod: &PodView| Some(pod.label("ray.io/cluster")), &[Scope::Cluster])
}

fn list(cache: &Cache<PodView>, pods: impl IntoIterator<Item = PodView>) -> Vec<Change<PodView>> {
    cache.list_begins(&Scope::Cluster);
    let mut changes: Vec<_> = pods.into_iter().filter_map(|pod| cache.listed(&Scope::Cluster, pod)).collect();
    changes.extend(cache.list_ends(&Scope::Cluster).gone);
    changes
}

fn names(cache: &Cache<PodView>, group: &str) -> Vec<String> {
    cache.in_group("ns", group).iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
}

fn gone(changes: &[Change<PodView>]) -> Vec<&str> {
    changes
        .iter()
        .filter(|change| matches!(change, Change::Gone { .. }))
        .map(|change| change.object().metadata.name.as_deref().unwrap())
        .collect()
}

#[test]
fn groups_follow_the_objects() {
    let cache = cache();
    list(&cache, [pod("b", "one", "1", 1), pod("a", "one", "2", 2), pod("c", "two", "3", 3)]);
    assert_eq!(names(&cache, "one"), ["a", "b"]);
    cache.applied(pod("a", "two", "2", 4));
    assert_eq!((names(&cache, "one"), names(&cache, "two")), (vec!["b".to_owned()], vec!["a".to_owned(), "c".to_owned()]));
    cache.deleted(&pod("c", "two", "3", 5));
    assert_eq!(names(&cache, "two"), ["a"]);
    assert_eq!(cache.in_group("other", "two").len(), 0, "a group ends at its namespace");
    assert_eq!(&*cache.in_group("ns", "two")[0].spec.node_name.clone().unwrap(), "node-4");
}

#[test]
fn a_new_list_tells_of_what_went_away_unseen() {
    let cache = cache();
    list(&cache, [pod("a", "one", "1", 1), pod("b", "one", "2", 2)]);
    let changes = list(&cache, [pod("b", "one", "2", 2), pod("c", "one", "3", 9)]);
    assert_eq!(gone(&changes), ["a"]);
    assert_eq!(changes.len(), 2, "the one that is gone and the one that is new: {changes:?}");
    assert_eq!(names(&cache, "one"), ["b", "c"]);
}

#[test]
fn a_list_that_breaks_off_takes_nothing_away() {
    let cache = cache();
    list(&cache, [pod("a", "one", "1", 1), pod("b", "one", "2", 2)]);
    cache.list_begins(&Scope::Cluster);
    cache.listed(&Scope::Cluster, pod("a", "one", "1", 1));
    assert_eq!(names(&cache, "one"), ["a", "b"]);
    assert!(gone(&list(&cache, [pod("a", "one", "1", 1), pod("b", "one", "2", 2)])).is_empty());
}

#[test]
fn namespaces_are_listed_apart() {
    let scopes = ["ns", "other"].map(|name| Scope::Namespace(name.into()));
    let cache: Cache<PodView> = Cache::new(|_| None, &scopes);
    cache.list_begins(&scopes[0]);
    cache.list_begins(&scopes[1]);
    cache.listed(&scopes[0], pod("a", "one", "1", 1));
    cache.list_ends(&scopes[0]);
    assert!(!cache.is_ready(), "one scope is missing");
    assert!(cache.list_ends(&scopes[1]).gone.is_empty(), "the other scope's object is none of its business");
    assert!(cache.is_ready());
    assert!(cache.get("ns", "a").is_some());
}

#[test]
fn only_news_is_told() {
    let cache = cache();
    assert!(cache.applied(pod("a", "one", "1", 1)).is_some());
    let mut same = pod("a", "one", "1", 1);
    same.metadata.resource_version = Some("2".to_owned());
    assert!(cache.applied(same).is_none());
    assert_eq!(cache.get("ns", "a").unwrap().metadata.resource_version.as_deref(), Some("2"), "it is kept all the same");
    assert!(matches!(cache.applied(pod("a", "one", "1", 3)), Some(Change::Set { old: Some(_), .. })));
}

#[test]
fn own_writes_are_known_at_once_and_never_undone_by_older_news() {
    let cache = cache();
    list(&cache, [pod("a", "one", "1", 10)]);
    let (_, change) = cache.observe(pod("a", "one", "1", 20));
    assert!(change.is_some());
    assert!(cache.applied(pod("a", "one", "1", 15)).is_none(), "what was on its way before the write");
    assert_eq!(cache.get("ns", "a").unwrap().metadata.resource_version.as_deref(), Some("20"));
    assert!(cache.observe(pod("a", "one", "1", 12)).1.is_none(), "an answer that the watch has overtaken");
    assert!(cache.applied(pod("a", "one", "1", 20)).is_none(), "the echo");
}

#[test]
fn an_object_that_was_deleted_before_the_answer_to_its_create_arrives_stays_away() {
    let cache = cache();
    list(&cache, []);
    cache.applied(pod("a", "one", "1", 1));
    cache.deleted(&pod("a", "one", "1", 2));
    cache.observe(pod("a", "one", "1", 1));
    assert!(cache.get("ns", "a").is_none());
}

#[test]
fn a_late_deletion_does_not_hit_the_successor() {
    let cache = cache();
    list(&cache, [pod("a", "one", "old", 1)]);
    cache.observe(pod("a", "one", "new", 5));
    assert!(cache.deleted(&pod("a", "one", "old", 4)).is_none());
    assert!(cache.applied(pod("a", "one", "old", 3)).is_none());
    assert_eq!(cache.get("ns", "a").unwrap().metadata.uid.as_deref(), Some("new"));
    cache.forget("ns", "a", "old");
    assert!(cache.get("ns", "a").is_some());
    cache.forget("ns", "a", "new");
    assert!(cache.get("ns", "a").is_none());
}

#[test]
fn what_only_an_own_write_has_told_survives_a_list_that_lags_behind_and_is_doubted() {
    let cache = cache();
    list(&cache, []);
    cache.observe(pod("a", "one", "1", 7));
    cache.list_begins(&Scope::Cluster);
    let end = cache.list_ends(&Scope::Cluster);
    assert!(end.gone.is_empty());
    assert_eq!(end.doubtful.len(), 1);
    let key = ObjectKey::new("ns", "a");
    assert!(cache.is_untold(&key, "1") && !cache.is_untold(&key, "2"));
    cache.applied(pod("a", "one", "1", 7));
    assert!(!cache.is_untold(&key, "1"), "the watch has told of it");
    assert_eq!(gone(&list(&cache, [])), ["a"]);
}

#[test]
fn a_cluster_restored_from_a_backup_is_believed() {
    let cache = cache();
    list(&cache, [pod("a", "one", "1", 1000)]);
    list(&cache, [pod("a", "two", "1", 10)]);
    assert_eq!(names(&cache, "two"), ["a"]);
    assert!(cache.applied(pod("a", "one", "1", 11)).is_some());
}

#[test]
fn a_comparison_holds_for_one_version() {
    let cache = cache();
    list(&cache, [pod("a", "one", "1", 1)]);
    let known = cache.get("ns", "a").unwrap();
    assert_eq!(cache.verified(&known), None);
    cache.set_verified(&known, 42);
    assert_eq!(cache.verified(&known), Some(42));
    cache.applied(pod("a", "one", "1", 1));
    assert_eq!(cache.verified(&known), Some(42), "the echo is the same version");
    cache.applied(pod("a", "one", "1", 2));
    assert_eq!(cache.verified(&cache.get("ns", "a").unwrap()), None);
    cache.set_verified(&known, 43);
    assert_eq!(cache.verified(&cache.get("ns", "a").unwrap()), None, "a comparison with an old version does not count");
}

#[tokio::test]
async fn any_number_of_tasks_may_wait() {
    let cache = cache();
    let waiting: Vec<_> = (0..50)
        .map(|_| {
            let cache = cache.clone();
            tokio::spawn(async move { cache.ready().await })
        })
        .collect();
    tokio::task::yield_now().await;
    list(&cache, []);
    for task in waiting {
        tokio::time::timeout(std::time::Duration::from_secs(5), task).await.unwrap().unwrap();
    }
    cache.ready().await;
}

/// The content after any sequence of events equals a plain map's, and every group equals a scan of it.
#[test]
fn churn_leaves_content_and_groups_right() {
    let mut seed = 7_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let cache = cache();
    let mut world: BTreeMap<String, PodView> = BTreeMap::new();
    let mut version = 0;
    for _ in 0..20_000 {
        version += 1;
        let name = format!("pod-{}", random(40));
        let group = format!("g{}", random(5));
        match (random(100), world.get(&name)) {
            (0, _) => {
                // The watch breaks, things happen unseen, and a list follows.
                for _ in 0..random(10) {
                    version += 1;
                    let name = format!("pod-{}", random(40));
                    if world.remove(&name).is_none() {
                        world.insert(name.clone(), pod(&name, &group, &version.to_string(), version));
                    }
                }
                list(&cache, world.values().cloned());
            }
            (1..40, Some(known)) => {
                let mut deleted = pod(&name, &group, "", version);
                deleted.metadata = known.metadata.clone();
                cache.deleted(&deleted);
                world.remove(&name);
            }
            (_, known) => {
                let uid = known.and_then(|known| known.metadata.uid.clone()).unwrap_or_else(|| version.to_string());
                let new = pod(&name, &group, &uid, version);
                // Half of the changes are own writes, with their echo.
                if random(2) == 0 {
                    cache.observe(new.clone());
                }
                cache.applied(new.clone());
                world.insert(name, new);
            }
        }
    }
    assert_eq!(cache.len(), world.len());
    for group in (0..5).map(|number| format!("g{number}")) {
        let wanted: Vec<&String> = world.iter().filter(|(_, pod)| pod.label("ray.io/cluster") == group).map(|(name, _)| name).collect();
        assert_eq!(names(&cache, &group).iter().collect::<Vec<_>>(), wanted, "{group}");
    }
    for (name, pod) in &world {
        assert_eq!(cache.get("ns", name).unwrap().metadata.resource_version, pod.metadata.resource_version);
    }
}

fn cluster(spec: &serde_json::Value) -> Lazy<RayCluster> {
    let object = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster",
        "metadata": { "namespace": "ns", "name": "c", "uid": "u", "resourceVersion": "3", "managedFields": [{ "manager": "m" }],
                      "annotations": { "kubectl.kubernetes.io/last-applied-configuration": "{}", "kept": "yes" } },
        "spec": spec,
    });
    serde_json::from_str(&object.to_string()).unwrap()
}

#[test]
fn ray_objects_are_decoded_when_they_are_read() {
    let roots: Roots<RayCluster> = Roots::new(|_| None, &[Scope::Cluster]);
    roots.cache().applied(cluster(
        &json!({ "rayVersion": "2.54.1", "headGroupSpec": { "rayStartParams": {}, "template": { "spec": { "containers": [] } } } }),
    ));
    let read = roots.get("ns", "c").unwrap().unwrap();
    assert_eq!(read.spec.ray_version.as_deref(), Some("2.54.1"));
    assert_eq!(read.metadata.managed_fields, None);
    let annotations = read.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations.keys().collect::<Vec<_>>(), ["kept"]);
    assert!(roots.get("ns", "other").unwrap().is_none());
}

#[test]
fn what_a_decoder_quotes_reaches_no_message() {
    let roots: Roots<RayCluster> = Roots::new(|_| None, &[Scope::Cluster]);
    for secret in ["hunter2", "a \"hunter2\" b", "hunter2\\"] {
        roots.cache().applied(cluster(&json!({ "headGroupSpec": secret })));
        let fault = roots.get("ns", "c").unwrap_err();
        assert!(!fault.to_string().contains("hunter2"), "{fault}");
        assert!(fault.problem.contains("invalid type: string \"…\", expected") && fault.problem.contains("at line 1"), "{fault}");
    }
}

#[test]
fn an_object_that_cannot_be_decoded_is_named_and_stops_nobody() {
    let roots: Roots<RayCluster> = Roots::new(|_| None, &[Scope::Cluster]);
    roots.cache().applied(cluster(&json!({ "headGroupSpec": 7 })));
    let fault = roots.get("ns", "c").unwrap_err();
    assert_eq!((fault.kind.as_str(), fault.namespace.as_str(), fault.name.as_str()), ("RayCluster", "ns", "c"));
    assert!(fault.problem.starts_with("spec: "), "{fault}");
    assert_eq!(roots.cache().get("ns", "c").unwrap().meta().uid.as_deref(), Some("u"));
    let grouped: Roots<RayCluster> = Roots::new(|_| Some("g"), &[Scope::Cluster]);
    grouped.cache().applied(cluster(&json!({ "headGroupSpec": 7 })));
    assert!(grouped.in_group("ns", "g").is_err());
    let each = grouped.each_in_group("ns", "g");
    assert_eq!(each[0].as_ref().unwrap_err().uid.as_deref(), Some("u"));
}

#[test]
fn a_status_alone_is_no_edit_but_news() {
    let with = |status: &str, generation: i64| -> Lazy<RayCluster> {
        let text = format!(
            r#"{{"metadata":{{"namespace":"ns","name":"c","resourceVersion":"{generation}","generation":{generation}}},"spec":{{}},"status":{status}}}"#
        );
        serde_json::from_str(&text).unwrap()
    };
    let old = with(r#"{"state":""}"#, 1);
    let told = with(r#"{"state":"ready"}"#, 1);
    assert!(told.differs(&old) && !told.is_edited(&old));
    assert!(with(r#"{"state":""}"#, 2).is_edited(&old));
    assert!(!with(r#"{"state":""}"#, 1).differs(&old));
}

#[test]
fn of_a_pod_only_what_is_used_is_kept() {
    let text = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "namespace": "ns", "name": "p", "uid": "u", "resourceVersion": "1", "generateName": "p-", "managedFields": [{ "manager": "m" }],
            "labels": { "ray.io/cluster": "c", "ray.io/node-type": "head", "app.kubernetes.io/created-by": "kuberay-operator", "team": "red" },
            "annotations": { "ray.io/kuberay-version": "1", "ray.io/upgrade-strategy-recreate-hash": "h", "note": "long" },
            "ownerReferences": [{ "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "uid": "cu", "controller": true }],
        },
        "spec": {
            "restartPolicy": "Never", "nodeName": "n", "volumes": [{ "name": "v" }],
            "containers": [{ "name": "ray-head", "image": "i", "env": [{ "name": "A" }] }, { "name": "side" }],
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1",
            "conditions": [{ "type": "PodScheduled", "status": "True" }, { "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z" },
                           { "type": "DisruptionTarget", "status": "True", "reason": "Preemption" }],
            "containerStatuses": [{ "name": "ray-head", "ready": true, "restartCount": 2, "image": "i", "state": { "running": { "startedAt": "2026-01-01T00:00:00Z" } },
                                    "lastState": { "terminated": { "exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-01-01T00:00:00Z" } } }],
        },
    });
    let pod: PodView = serde_json::from_str(&text.to_string()).unwrap();
    assert!(pod.metadata.labels.is_none());
    assert_eq!(pod.metadata.annotations.as_ref().unwrap().len(), 2);
    assert!(pod.metadata.managed_fields.is_none() && pod.metadata.generate_name.is_none());
    assert!(pod.is_head() && pod.is_ready() && !pod.is_terminating());
    assert_eq!(&*pod.spec.ray_container, "ray-head");
    let conditions: Vec<&str> = pod.status.conditions.iter().map(|condition| &*condition.type_).collect();
    assert_eq!(conditions, ["Ready", "DisruptionTarget"]);
    let container = pod.ray_container().unwrap();
    assert!(container.state.running.is_some());
    assert_eq!(container.last_state.terminated.as_ref().unwrap().exit_code, 137);
}

#[test]
fn bare_and_strange_objects_are_read() {
    for text in [
        r#"{"metadata":{}}"#,
        r#"{"metadata":{},"spec":{"containers":null},"status":{"conditions":null,"containerStatuses":null,"phase":"New"}}"#,
        r#"{"metadata":{},"spec":{"containers":[{}],"restartPolicy":"Sometimes"},"status":{"containerStatuses":[{"name":"a","state":{}}]}}"#,
    ] {
        assert!(serde_json::from_str::<PodView>(text).is_ok(), "{text}");
    }
    assert!(serde_json::from_str::<ServiceView>(r#"{"metadata":{},"spec":{"type":"ExternalName","externalName":"x"}}"#).is_ok());
}

//! Caches, own writes and events at a real API server.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use api_tests::{Proxy, namespace, server};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Resource as _, ResourceExt as _};
use operator::runtime::api::{Created, Deleted, Ensured, StatusWrite};
use operator::runtime::cache::Scope;
use operator::runtime::clock::Clock;
use operator::runtime::metrics::Metrics;
use operator::runtime::watch::{Listing, Watches};
use operator::runtime::{Context, DashboardAccess, Parts};
use operator::settings::Settings;
use serde_json::{Value, json};
use shared::api::{RayCluster, RayClusterStatus};
use testcluster::wait;

const PATIENCE: Duration = Duration::from_secs(30);

fn context(client: Client, scopes: Vec<Scope>) -> Arc<Context> {
    let (settings, dashboard) = (Settings::default(), DashboardAccess::Direct);
    Arc::new(Context::new(Parts { client, settings, dashboard, scopes, metrics: Metrics::default(), clock: Clock::system() }))
}

fn in_namespace(name: &str) -> Vec<Scope> {
    vec![Scope::Namespace(name.into())]
}

fn pod(name: &str, cluster: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": { "name": name, "labels": { "ray.io/node-type": "worker", "ray.io/cluster": cluster } },
        "spec": { "terminationGracePeriodSeconds": 0, "containers": [{ "name": "ray-worker", "image": "i" }] },
    }))
    .unwrap()
}

/// What there is: name to uid, version and cluster.
type World = BTreeMap<String, (Option<String>, Option<String>, String)>;

fn entry<K: kube::Resource>(object: &K, cluster: Option<&str>) -> (String, (Option<String>, Option<String>, String)) {
    (object.name_any(), (object.uid(), object.resource_version(), cluster.unwrap_or_default().to_owned()))
}

fn listed_entry(pod: &Pod) -> (String, (Option<String>, Option<String>, String)) {
    entry(pod, pod.labels().get("ray.io/cluster").map(String::as_str))
}

async fn wait_equal(context: &Context, pods: &Api<Pod>) {
    let equal = wait::until("a cache that equals the API server", PATIENCE, || async {
        let listed: World = pods.list(&ListParams::default().labels("ray.io/node-type")).await?.iter().map(listed_entry).collect();
        let cached: World = context.pods.all().iter().map(|pod| entry(&**pod, pod.cluster())).collect();
        Ok((listed == cached).then_some(listed))
    });
    let world = equal.await.unwrap();
    for cluster in ["a", "b", "c"] {
        let namespace = context.pods.all().first().and_then(|pod| pod.namespace()).unwrap_or_default();
        let group: Vec<String> = context.pods.in_group(&namespace, cluster).iter().map(|pod| pod.name_any()).collect();
        let wanted: Vec<String> = world.iter().filter(|(_, (_, _, of))| of == cluster).map(|(name, _)| name.clone()).collect();
        assert_eq!(group, wanted, "{cluster}");
    }
}

async fn churn(pods: &Api<Pod>, rounds: u32, seed: u32) {
    for round in 0..rounds {
        let number = round.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 8;
        let (name, cluster) = (format!("p{}", number % 25), ["a", "b", "c"][(number / 25 % 3) as usize]);
        match number / 75 % 3 {
            0 => drop(pods.delete(&name, &DeleteParams::default()).await),
            1 => {
                let patch = json!({ "metadata": { "labels": { "ray.io/cluster": cluster } } });
                drop(pods.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await);
            }
            _ => drop(pods.create(&PostParams::default(), &pod(&name, cluster)).await),
        }
    }
}

async fn follows_churn_through_broken_watches(listing: Listing) {
    let direct = server().client().await.unwrap();
    let namespace = namespace(&direct, "churn").await.unwrap();
    let pods: Api<Pod> = Api::namespaced(direct, &namespace);
    let target = server().instance().url().trim_start_matches("https://").to_owned();
    let proxy = Proxy::start(target).await.unwrap();
    let client = Client::try_from(proxy.through(server().instance().config().await.unwrap()).unwrap()).unwrap();
    let context = context(client, in_namespace(&namespace));

    churn(&pods, 60, 1).await;
    let mut watches = Watches::new(Arc::clone(&context), in_namespace(&namespace), listing);
    watches.start::<Pod>();
    tokio::time::timeout(PATIENCE, watches.complete()).await.unwrap();
    wait_equal(&context, &pods).await;
    for round in 0..8 {
        churn(&pods, 30, round * 7919).await;
        proxy.cut();
        churn(&pods, 30, round * 104_729).await;
    }
    wait_equal(&context, &pods).await;

    // Things happen while nothing is watched; the list that follows tells of them, deletions included.
    drop(watches);
    drain(&context).await;
    let kept = pods.list(&ListParams::default()).await.unwrap().items;
    let gone = kept.first().unwrap();
    pods.delete(&gone.name_any(), &DeleteParams::default()).await.unwrap();
    let mut watches = Watches::new(Arc::clone(&context), in_namespace(&namespace), listing);
    watches.start::<Pod>();
    wait_equal(&context, &pods).await;
    let woken = tokio::time::timeout(PATIENCE, context.queues.clusters.next()).await.unwrap().0;
    assert_eq!(Some(&*woken.name), gone.labels().get("ray.io/cluster").map(String::as_str), "the cluster of the deleted Pod is looked at");

    // The API server cannot be reached for a while.
    proxy.close();
    churn(&pods, 60, 99).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    proxy.open();
    wait_equal(&context, &pods).await;
}

async fn drain(context: &Context) {
    while let Ok((key, _)) = tokio::time::timeout(Duration::from_millis(500), context.queues.clusters.next()).await {
        context.queues.clusters.finish(&key, operator::runtime::queue::Finished::Gone);
    }
}

#[tokio::test]
async fn runtime_caches_follow_churn_with_streamed_lists() {
    follows_churn_through_broken_watches(Listing::Streamed).await;
}

#[tokio::test]
async fn runtime_caches_follow_churn_with_paged_lists() {
    follows_churn_through_broken_watches(Listing::Paged).await;
}

/// A context that watches Pods, Services and RayClusters of a namespace of its own.
async fn watched(prefix: &str) -> (Arc<Context>, Watches, String) {
    let client = server().client().await.unwrap();
    let namespace = namespace(&client, prefix).await.unwrap();
    let context = context(client, in_namespace(&namespace));
    let mut watches = Watches::new(Arc::clone(&context), in_namespace(&namespace), Listing::Streamed);
    watches.start::<Pod>();
    watches.start::<Service>();
    watches.start::<RayCluster>();
    tokio::time::timeout(PATIENCE, watches.complete()).await.unwrap();
    (context, watches, namespace)
}

fn service(namespace: &str, owner: &str, spec: &Value) -> Service {
    serde_json::from_value(json!({
        "metadata": {
            "namespace": namespace, "name": "s", "labels": { "ray.io/cluster": "c" }, "annotations": { "note": "one" },
            "ownerReferences": [{ "apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "c", "uid": owner, "controller": true }],
        },
        "spec": spec,
    }))
    .unwrap()
}

#[tokio::test]
async fn runtime_ensure_makes_compares_and_repairs() {
    let (context, _watches, namespace) = watched("ensure").await;
    let services: Api<Service> = Api::namespaced(context.client.clone(), &namespace);
    // An owner that the garbage collector can find.
    let clusters: Api<RayCluster> = Api::namespaced(context.client.clone(), &namespace);
    let owner = clusters.create(&PostParams::default(), &cluster(&namespace)).await.unwrap().uid().unwrap();
    let port = |port: i32| json!({ "name": format!("p{port}"), "port": port, "protocol": "TCP" });
    let wanted = |ports: &[i32], annotated: bool| {
        let spec = json!({ "type": "ClusterIP", "selector": { "a": "b" }, "ports": ports.iter().copied().map(port).collect::<Vec<_>>() });
        let mut service = service(&namespace, &owner, &spec);
        if !annotated {
            service.metadata.annotations = None;
        }
        service
    };
    let ensure = async |service: &Service| context.ensure(service).await.unwrap();
    assert!(matches!(ensure(&wanted(&[1, 2], true)).await, Ensured::Created(_)));
    assert!(matches!(ensure(&wanted(&[1, 2], true)).await, Ensured::Unchanged(_)));
    assert_eq!(writes(&context), 1, "{}", context.metrics.render());

    // A port and an annotation are no longer wanted: they go, although a create has set them.
    assert!(matches!(ensure(&wanted(&[2], false)).await, Ensured::Updated(_)));
    let live = services.get("s").await.unwrap();
    assert_eq!(live.spec.as_ref().unwrap().ports.as_ref().unwrap().len(), 1);
    assert_eq!(live.metadata.annotations, None);
    let before = writes(&context);
    assert!(matches!(ensure(&wanted(&[2], false)).await, Ensured::Unchanged(_)));
    assert_eq!(writes(&context), before);

    // Somebody edits it: what is wanted is put right, what is not spoken of stays.
    let edit = json!({ "metadata": { "annotations": { "mine": "yes" } }, "spec": { "selector": { "a": "wrong" } } });
    let edited = services.patch("s", &PatchParams::default(), &Patch::Merge(edit)).await.unwrap();
    let seen = wait::until("the edit in the cache", PATIENCE, || async {
        Ok(context.services.get(&namespace, "s").filter(|service| service.resource_version() == edited.resource_version()))
    });
    seen.await.unwrap();
    assert!(matches!(ensure(&wanted(&[2], false)).await, Ensured::Updated(_)));
    let live = services.get("s").await.unwrap();
    assert_eq!(live.spec.as_ref().unwrap().selector.as_ref().unwrap()["a"], "b");
    assert_eq!(live.annotations()["mine"], "yes");
    assert_eq!(live.uid(), edited.uid());

    // One restart costs one comparison.
    let again = self::context(context.client.clone(), in_namespace(&namespace));
    let mut watches = Watches::new(Arc::clone(&again), in_namespace(&namespace), Listing::Streamed);
    watches.start::<Service>();
    tokio::time::timeout(PATIENCE, watches.complete()).await.unwrap();
    assert!(matches!(again.ensure(&wanted(&[2], false)).await.unwrap(), Ensured::Unchanged(_)));
    assert!(matches!(again.ensure(&wanted(&[2], false)).await.unwrap(), Ensured::Unchanged(_)));
    assert_eq!(writes(&again), 1);
}

#[tokio::test]
async fn runtime_what_belongs_to_others_is_never_touched() {
    let (context, _watches, namespace) = watched("foreign").await;
    let services: Api<Service> = Api::namespaced(context.client.clone(), &namespace);
    let spec = json!({ "ports": [{ "name": "p", "port": 1 }], "selector": { "a": "b" } });
    for labelled in [true, false] {
        let mut foreign = service(&namespace, "u-other", &json!({ "ports": [{ "name": "mine", "port": 7 }] }));
        foreign.metadata.owner_references = None;
        if !labelled {
            foreign.metadata.labels = None;
        }
        let made = services.create(&PostParams::default(), &foreign).await.unwrap();
        assert!(matches!(context.ensure(&service(&namespace, "u", &spec)).await.unwrap(), Ensured::Foreign), "labelled: {labelled}");
        assert_eq!(services.get("s").await.unwrap().resource_version(), made.resource_version());
        // A uid that is not its own deletes nothing.
        assert_eq!(context.delete::<Service>(&namespace, "s", "another-uid").await.unwrap(), Deleted::Gone);
        assert!(services.get_opt("s").await.unwrap().is_some());
        assert_eq!(context.delete::<Service>(&namespace, "s", &made.uid().unwrap()).await.unwrap(), Deleted::Begun);
        wait::until("the end of the Service", PATIENCE, || async { Ok(services.get_opt("s").await?.is_none().then_some(())) })
            .await
            .unwrap();
        wait::until("it in the cache", PATIENCE, || async { Ok(context.services.get(&namespace, "s").is_none().then_some(())) })
            .await
            .unwrap();
    }
    assert_eq!(context.delete::<Service>(&namespace, "s", "u").await.unwrap(), Deleted::Gone);
}

#[tokio::test]
async fn runtime_own_writes_are_known_before_the_watch_tells() {
    let (context, _watches, namespace) = watched("own").await;
    for number in 0..50 {
        let mut pod = pod(&format!("p{number}"), "c");
        pod.metadata.namespace = Some(namespace.clone());
        let Created::New(made) = context.create(&pod).await.unwrap() else { panic!("it is new") };
        assert_eq!(context.pods.in_group(&namespace, "c").len(), number + 1);
        assert!(matches!(context.create(&pod).await.unwrap(), Created::Exists));
        if number == 49 {
            assert_eq!(context.delete::<Pod>(&namespace, "p49", made.metadata.uid.as_deref().unwrap()).await.unwrap(), Deleted::Begun);
        }
    }
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &namespace);
    wait_equal(&context, &pods).await;
    assert_eq!(context.pods.len(), 49);
}

fn cluster(namespace: &str) -> RayCluster {
    serde_json::from_value(json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "namespace": namespace, "name": "c" },
        "spec": { "headGroupSpec": { "rayStartParams": {}, "template": { "spec": { "containers": [{ "name": "ray-head", "image": "i" }] } } } },
    }))
    .unwrap()
}

#[tokio::test]
async fn runtime_statuses_are_written_when_they_change_and_never_over_somebody_else() {
    let (context, _watches, namespace) = watched("status").await;
    let Created::New(_) = context.create(&cluster(&namespace)).await.unwrap() else { panic!("it is new") };
    let old = context.clusters.get(&namespace, "c").unwrap().unwrap();
    let status: RayClusterStatus = serde_json::from_value(json!({ "desiredWorkerReplicas": 3, "readyWorkerReplicas": 1 })).unwrap();
    assert!(matches!(context.write_status(&*old, &status).await.unwrap(), StatusWrite::Written(Some(_))));
    let new = context.clusters.get(&namespace, "c").unwrap().unwrap();
    assert_eq!(new.status.as_ref().unwrap().desired_worker_replicas, 3, "known at once");
    let before = writes(&context);
    assert!(matches!(context.write_status(&*new, &status).await.unwrap(), StatusWrite::Unchanged));
    assert_eq!(writes(&context), before);

    let status = RayClusterStatus { ready_worker_replicas: 0, ..status };
    let error = context.write_status(&*old, &status).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    context.write_status(&*new, &status).await.unwrap();
    let clusters: Api<RayCluster> = Api::namespaced(context.client.clone(), &namespace);
    let stored = clusters.get("c").await.unwrap().status.unwrap();
    assert_eq!((stored.desired_worker_replicas, stored.ready_worker_replicas), (3, 0));

    // Finalizers and the like.
    let known = context.clusters.cache().get(&namespace, "c").unwrap().meta().clone();
    context.patch::<RayCluster>(&known, json!({ "metadata": { "finalizers": ["ray.io/x"] } })).await.unwrap();
    assert!(context.patch::<RayCluster>(&known, json!({ "metadata": { "finalizers": null } })).await.unwrap_err().is_conflict());
    let known = context.clusters.cache().get(&namespace, "c").unwrap().meta().clone();
    assert_eq!(known.finalizers.as_deref(), Some(&["ray.io/x".to_owned()][..]));
    context.patch::<RayCluster>(&known, json!({ "metadata": { "finalizers": null } })).await.unwrap();
}

fn writes(context: &Context) -> u64 {
    let text = context.metrics.render();
    let values = text.lines().filter(|line| line.starts_with("kuberay_api_writes_total")).filter_map(|line| line.rsplit(' ').next());
    values.filter_map(|value| value.parse::<u64>().ok()).sum()
}

#[tokio::test]
async fn runtime_events_reach_the_object_they_are_about() {
    let (context, _watches, namespace) = watched("events").await;
    let Created::New(_) = context.create(&cluster(&namespace)).await.unwrap() else { panic!("it is new") };
    let cluster = context.clusters.get(&namespace, "c").unwrap().unwrap();
    let recorder = context.events.recorder("raycluster-controller");
    for number in 0..10 {
        recorder.normal(&*cluster, "CreatedWorkerPod", "Create", format!("created Pod c-{number}"));
    }
    recorder.warning(&*cluster, "FailedToCreateService", "Create", "no");
    let events: Api<Event> = Api::namespaced(context.client.clone(), &namespace);
    let found = wait::until("two events", PATIENCE, || async {
        Ok(Some(events.list(&ListParams::default()).await?.items).filter(|found| found.len() >= 2))
    });
    let found = found.await.unwrap();
    assert_eq!(found.len(), 2, "{found:?}");
    let of = |reason: &str| found.iter().find(|event| event.reason.as_deref() == Some(reason)).unwrap();
    let created = of("CreatedWorkerPod");
    assert_eq!(created.note.as_deref(), Some("created Pod c-0 (and 9 more)"));
    assert_eq!(created.type_.as_deref(), Some("Normal"));
    assert_eq!(created.reporting_controller.as_deref(), Some("raycluster-controller"));
    let regarding = created.regarding.as_ref().unwrap();
    assert_eq!((regarding.kind.as_deref(), regarding.uid.clone()), (Some("RayCluster"), cluster.meta().uid.clone()));
    assert_eq!(of("FailedToCreateService").type_.as_deref(), Some("Warning"));

    // The same again counts up, and is not written again at once.
    recorder.warning(&*cluster, "FailedToCreateService", "Create", "no");
    let merged = wait::until("a merged event", PATIENCE, || async {
        Ok(context.metrics.render().lines().any(|line| line == r#"kuberay_events_total{fate="merged"} 10"#).then_some(()))
    });
    merged.await.unwrap();
    assert_eq!(events.list(&ListParams::default()).await.unwrap().items.len(), 2);
}

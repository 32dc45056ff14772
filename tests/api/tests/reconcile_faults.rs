//! RayClusters while things go wrong: the operator is killed, there are two of it, the API server answers with errors. And what a
//! healthy cluster costs. Pods run on nodes that do not exist.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

#[path = "reconcile_faults/proxy.rs"]
mod proxy;
#[path = "reconcile_faults/watcher.rs"]
mod watcher;

use std::collections::BTreeMap;
use std::time::Duration;

use api_tests::Scene;
use api_tests::scene::{group, spec};
use api_tests::server::{Server, Wanted, server_with};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;
use shared::api::RayCluster;
use testcluster::api::FakeNodes;
use tokio::time::{Instant, sleep};

use proxy::FaultyProxy;
use watcher::Watcher;

fn wanted(pod_cidr: &str) -> Wanted {
    Wanted { fake_nodes: Some(FakeNodes { pod_cidr: pod_cidr.to_owned(), ..FakeNodes::default() }) }
}

fn server() -> &'static Server {
    server_with(wanted("10.94.0.0/16"))
}

async fn scene(prefix: &str) -> Scene {
    Scene::without_operator(server(), prefix).await.unwrap()
}

/// Numbers that look random and are the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Changes the clusters at random and keeps the books: how many workers each is to have, `None` for one that is deleted.
struct Churn {
    dice: Dice,
    wanted: BTreeMap<String, Option<i32>>,
}

impl Churn {
    async fn new(scene: &Scene, clusters: usize, seed: u64) -> Self {
        let mut wanted = BTreeMap::new();
        for number in 0..clusters {
            let name = format!("c{number}");
            scene.cluster(&name, spec(&[group("a", 2)], json!({}))).await.unwrap();
            wanted.insert(name, Some(2));
        }
        Self { dice: Dice(seed), wanted }
    }

    /// Scales or deletes one cluster, or deletes one of its Pods.
    async fn step(&mut self, scene: &Scene) {
        let number = usize::try_from(self.dice.below(self.wanted.len() as u64)).unwrap();
        let Some((name, workers)) = self.wanted.iter_mut().nth(number) else { return };
        if workers.is_none() {
            return;
        }
        match self.dice.below(10) {
            0 if self.dice.below(5) == 0 => {
                scene.delete::<RayCluster>(name).await.unwrap();
                *workers = None;
            }
            1..4 => {
                if let Some(pod) = scene.pods(name, "").await.unwrap().first() {
                    let _ = scene.delete::<Pod>(&pod.name_any()).await;
                }
            }
            _ => {
                let replicas = i32::try_from(self.dice.below(5)).unwrap();
                scene.patch_group(name, "replicas", json!(replicas)).await.unwrap();
                *workers = Some(replicas);
            }
        }
    }

    /// A step every now and then.
    async fn goes_on(&mut self, scene: &Scene, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            self.step(scene).await;
            let pause = 20 + self.dice.below(130);
            sleep(Duration::from_millis(pause)).await;
        }
    }

    /// Waits until there is exactly what is wanted, and that it stays.
    async fn settles(&self, scene: &Scene) {
        let exact = async || {
            let pods = scene.api::<Pod>().list(&ListParams::default().labels("ray.io/cluster,ray.io/cluster!=other")).await?;
            let mut found: BTreeMap<&str, (i32, i32)> = BTreeMap::new();
            for pod in &pods {
                let (heads, workers) = found.entry(&pod.labels()["ray.io/cluster"]).or_default();
                *(if pod.labels()["ray.io/node-type"] == "head" { heads } else { workers }) += 1;
            }
            let wanted: BTreeMap<&str, (i32, i32)> =
                self.wanted.iter().filter_map(|(name, workers)| Some((name.as_str(), (1, (*workers)?)))).collect();
            Ok((found == wanted).then_some(()))
        };
        scene.until("exactly the wanted Pods", exact).await.unwrap();
        sleep(Duration::from_secs(2)).await;
        assert!(exact().await.unwrap().is_some(), "it does not stay so");
        let ready = async || {
            let clusters = scene.api::<RayCluster>().list(&ListParams::default()).await?;
            let all = clusters.iter().all(|cluster| cluster.status.as_ref().is_some_and(|status| status.state == "ready"));
            Ok(all.then_some(()))
        };
        scene.until("every cluster to be ready", ready).await.unwrap();
    }
}

/// A Pod of somebody else with labels of a cluster, and one without owner: nobody may touch them.
async fn bystanders(scene: &Scene) -> Vec<String> {
    let mut uids = Vec::new();
    for name in ["bystander", "unowned"] {
        let labels = if name == "unowned" {
            json!({ "ray.io/node-type": "worker", "ray.io/group": "a", "ray.io/cluster": "other" })
        } else {
            json!({})
        };
        let pod = json!({ "metadata": { "name": name, "labels": labels }, "spec": { "containers": [{ "name": "x", "image": "x" }] } });
        uids.push(scene.create::<Pod>(pod).await.unwrap().uid().unwrap());
    }
    uids
}

async fn untouched(scene: &Scene, uids: &[String]) {
    for (name, uid) in ["bystander", "unowned"].iter().zip(uids) {
        assert_eq!(scene.api::<Pod>().get(name).await.unwrap().uid().as_ref(), Some(uid), "{name}");
        scene.delete::<Pod>(name).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconcile_a_healthy_cluster_costs_at_most_six_writes() {
    let mut scene = scene("writes").await;
    scene.start().await.unwrap();
    scene.cluster("c", spec(&[group("a", 2)], json!({}))).await.unwrap();
    scene.status("c", "the cluster to be ready", |status| status.state == "ready").await.unwrap();
    let writes = async || {
        let all = scene.metric("kuberay_api_writes_total", &[]).await.unwrap();
        let pods = scene.metric("kuberay_api_writes_total", &[r#"kind="Pod""#, r#"verb="create""#]).await.unwrap();
        let services = scene.metric("kuberay_api_writes_total", &[r#"kind="Service""#, r#"verb="create""#]).await.unwrap();
        assert_eq!((pods, services), (3.0, 1.0));
        all - pods - services
    };
    // Whatever waits to be written is written within this time.
    sleep(Duration::from_secs(7)).await;
    let at_rest = writes().await;
    assert!(at_rest <= 6.0, "{at_rest} writes:\n{}", scene.operator().metrics().await.unwrap());
    let looks = scene.metric("controller_runtime_reconcile_total", &[r#"controller="raycluster""#]).await.unwrap();
    sleep(Duration::from_secs(6)).await;
    assert!((writes().await - at_rest).abs() < f64::EPSILON, "a cluster at rest is not written to");
    let later = scene.metric("controller_runtime_reconcile_total", &[r#"controller="raycluster""#]).await.unwrap();
    assert!((later - looks).abs() < f64::EPSILON, "nor looked at: {looks} and {later}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconcile_an_operator_killed_fifty_times_doubles_and_orphans_nothing() {
    let mut scene = scene("killed").await;
    let bystanders = bystanders(&scene).await;
    let watcher = Watcher::start(&scene);
    let mut churn = Churn::new(&scene, 50, 1).await;
    for _ in 0..50 {
        scene.start().await.unwrap();
        let pause = churn.dice.below(250);
        for _ in 0..3 {
            churn.step(&scene).await;
            sleep(Duration::from_millis(pause / 3)).await;
        }
        scene.kill().await.unwrap();
    }
    scene.start().await.unwrap();
    churn.settles(&scene).await;
    watcher.assert_never_doubled();
    untouched(&scene, &bystanders).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconcile_two_operators_at_once_double_nothing() {
    let scene = scene("two").await;
    let bystanders = bystanders(&scene).await;
    let watcher = Watcher::start(&scene);
    let (one, two) = tokio::join!(scene.another("one", None), scene.another("two", None));
    let (one, mut two) = (one.unwrap(), two.unwrap());
    let mut churn = Churn::new(&scene, 20, 2).await;
    churn.goes_on(&scene, Duration::from_secs(15)).await;
    churn.settles(&scene).await;
    watcher.assert_never_doubled();

    // One of them is gone now and then, and has forgotten everything when it returns.
    for round in 0..4 {
        two.kill().await.unwrap();
        churn.goes_on(&scene, Duration::from_secs(1)).await;
        two = scene.another(&format!("two-{round}"), None).await.unwrap();
        churn.goes_on(&scene, Duration::from_secs(3)).await;
    }
    churn.settles(&scene).await;
    untouched(&scene, &bystanders).await;
    for program in [one, two] {
        program.terminate().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconcile_a_minute_of_errors_leaves_exactly_what_is_wanted() {
    let scene = scene("errors").await;
    let bystanders = bystanders(&scene).await;
    let watcher = Watcher::start(&scene);
    let proxy = FaultyProxy::start(server().client().await.unwrap()).await.unwrap();
    let operator = scene.another("behind", Some(proxy.kubeconfig(scene.folder()).unwrap())).await.unwrap();
    let mut churn = Churn::new(&scene, 20, 3).await;
    proxy.set_faulty(true);
    churn.goes_on(&scene, Duration::from_secs(60)).await;
    proxy.set_faulty(false);
    churn.settles(&scene).await;
    let faults = proxy.faults();
    assert!(faults.values().all(|count| *count > 5), "too few of some fault: {faults:?}");
    watcher.assert_never_doubled();
    untouched(&scene, &bystanders).await;
    operator.terminate().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconcile_an_api_server_that_restarts_leaves_exactly_what_is_wanted() {
    let mut server = Server::alone(wanted("10.92.0.0/16")).await.unwrap();
    let mut scene = Scene::without_operator(&server, "restarts").await.unwrap();
    let bystanders = bystanders(&scene).await;
    scene.start().await.unwrap();
    let pid = scene.operator().pid();
    let mut churn = Churn::new(&scene, 20, 4).await;
    for outage in [Duration::ZERO, Duration::from_secs(3), Duration::from_secs(8)] {
        churn.goes_on(&scene, Duration::from_secs(3)).await;
        // In the middle of the work that the last steps have caused.
        server.restart_api_server(outage).await.unwrap();
        let started = Instant::now();
        churn.settles(&scene).await;
        println!("an API server that was away for {outage:?}: everything as wanted {:?} after it was back", started.elapsed());
    }
    assert_eq!(scene.operator().pid(), pid, "the operator sat it out");
    untouched(&scene, &bystanders).await;
}

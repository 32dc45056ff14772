//! RayClusters with real Ray on a real node. Run with `make test-e2e`; `KUBERAY_E2E_DEBUG=1` takes the debug build of both programs.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e_tests::scenario::{self, PodFacts, SOON, Scenario, UP, get};
use serde_json::Value;
use testcluster::{cache::Cache, image, progress::Progress};

fn uids(pods: &[PodFacts]) -> Vec<&str> {
    pods.iter().map(|pod| pod.uid.as_str()).collect()
}

/// Pods named in the output of `actors.py`, in the order of its lines.
fn places(lines: &[Vec<String>]) -> Result<Vec<&str>> {
    lines.iter().map(|line| line.last().map(String::as_str).context("actors.py printed an empty line")).collect()
}

/// Actors that need CPUs bring workers up; each worker that has nothing left to do goes, and no other one; and all the while the
/// operator makes no Pod and deletes none but what the autoscaler asks for.
#[tokio::test]
async fn e2e_autoscaler_brings_workers_up_and_takes_exactly_the_idle_ones_down() {
    scenario::run("autoscaler", async |scenario: &Scenario| {
        scenario.apply("autoscaled.yaml").await?;
        scenario.wait_ready("autoscaled", 0).await?;
        ensure!(scenario.pods("worker").await?.is_empty(), "there are workers before anything asked for them");

        let lines = scenario.actors("start one two").await?;
        let places = places(&lines)?;
        ensure!(places.len() == 2 && places[0] != places[1], "two actors of one CPU each on workers of one CPU: {lines:?}");
        let workers = scenario.wait_pods("two workers", SOON, "worker", |pods| pods.len() == 2 && pods.iter().all(|pod| pod.ready)).await?;
        scenario.wait_ready("autoscaled", 2).await?;

        // The younger by name or by age does not matter: the one that is idle goes.
        scenario.actors("kill one").await?;
        let stays: Vec<&PodFacts> = workers.iter().filter(|pod| pod.name == places[1]).collect();
        let left = scenario.wait_pods("the idle worker going", SOON, "worker", |pods| pods.len() < 2).await?;
        ensure!(uids(&left) == stays.iter().map(|pod| &*pod.uid).collect::<Vec<_>>(), "the worker with the actor is to stay: {left:?}");
        scenario.stays("worker", Duration::from_secs(10)).await?;
        let spec = scenario.quiet("get raycluster autoscaled -o jsonpath='{.spec.workerGroupSpecs[0].replicas}'").await?;
        ensure!(spec == "1", "the spec says {spec} replicas");
        let lines = scenario.actors("increment two").await?;
        ensure!(lines == [["two", "1", places[1]]], "the actor that was not idle: {lines:?}");

        // Up again, beside the one that stayed.
        let lines = scenario.actors("start three").await?;
        ensure!(lines[0][1] != places[1], "the third actor found no worker of its own: {lines:?}");
        scenario.actors("kill two three").await?;
        scenario.wait_pods("the last workers going", SOON, "worker", <[_]>::is_empty).await?;
        scenario.stays("worker", Duration::from_secs(10)).await?;
        scenario.wait_ready("autoscaled", 0).await?;
        let (heads, workers) = (scenario.record().count("head")?, scenario.record().count("worker")?);
        ensure!((heads, workers) == (1, 3), "one head and three workers were to be made, not {heads} and {workers}");
        scenario.delete_cluster("autoscaled").await
    })
    .await
    .unwrap();
}

/// With its state in Redis, a cluster goes on under a new head: workers and the actors in them are untouched. At its end its keys, and only
/// its keys, are deleted from Redis.
#[tokio::test]
async fn e2e_head_returns_with_redis_and_its_keys_go_with_the_cluster() {
    scenario::run("redis", async |scenario: &Scenario| {
        let archive = image::redis(&Cache::from_env()?, &Progress::stderr()).await?;
        scenario.node().load_image(&archive).await?;
        scenario.apply("redis.yaml").await?;
        scenario.kubectl("rollout status deployment/redis --timeout=60s").await?;
        let keys = "exec deployment/redis -- redis-cli --scan";
        scenario.kubectl("exec deployment/redis -- redis-cli set of-somebody-else value").await?;

        scenario.apply("fault-tolerant.yaml").await?;
        scenario.wait_ready("fault-tolerant", 2).await?;
        let (head, workers) = (scenario.head().await?, scenario.pods("worker").await?);
        let place = scenario.actors("start counter").await?;
        for _ in 0..2 {
            scenario.actors("increment counter").await?;
        }
        let uid = scenario.quiet("get raycluster fault-tolerant -o jsonpath='{.metadata.uid}'").await?;
        let listed = scenario.quiet(keys).await?;
        ensure!(listed.contains(&uid), "no key of the cluster {uid} is in Redis:\n{listed}");

        scenario.kubectl(&format!("delete pod {}", head.name)).await?;
        let heads =
            scenario.wait_pods("a new head", UP, "head", |pods| pods.len() == 1 && pods[0].ready && pods[0].uid != head.uid).await?;
        scenario.wait_ready("fault-tolerant", 2).await?;
        let lines = scenario.actors("increment counter").await?;
        ensure!(lines == [["counter", "3", &place[0][1]]], "the actor has forgotten what it had counted, or moved: {lines:?}");
        let after = scenario.pods("worker").await?;
        ensure!(uids(&after) == uids(&workers), "workers were replaced: {after:?}");
        ensure!(after.iter().chain(&heads).all(|pod| pod.restarts == 0), "containers were restarted: {after:?} {heads:?}");
        let (heads, workers) = (scenario.record().count("head")?, scenario.record().count("worker")?);
        ensure!((heads, workers) == (2, 2), "two heads and two workers were to be made, not {heads} and {workers}");

        scenario.delete_cluster("fault-tolerant").await?;
        let listed = scenario.kubectl(keys).await?;
        ensure!(listed == "of-somebody-else", "what is left in Redis:\n{listed}");
        Ok(())
    })
    .await
    .unwrap();
}

/// A worker that is lost is replaced, and nothing else is: one whose container dies, and one whose Pod is deleted.
#[tokio::test]
async fn e2e_lost_workers_are_replaced() {
    scenario::run("workers", async |scenario: &Scenario| {
        scenario.apply("two-workers.yaml").await?;
        scenario.wait_ready("two-workers", 2).await?;
        let head = scenario.head().await?;
        let workers = scenario.pods("worker").await?;

        let container = "{.status.containerStatuses[?(@.name==\"ray-worker\")].containerID}";
        let id = scenario.quiet(&format!("get pod {} -o jsonpath='{container}'", workers[0].name)).await?;
        scenario.shell().say(&format!("$ # kill the container of {}", workers[0].name));
        scenario.node().stop_container(&id).await?;
        let is_whole = |pods: &[PodFacts]| pods.len() == 2 && pods.iter().all(|pod| pod.ready);
        let after = scenario
            .wait_pods("the replacement of the killed worker", SOON, "worker", |pods| {
                is_whole(pods) && !uids(pods).contains(&&*workers[0].uid)
            })
            .await?;
        ensure!(uids(&after).contains(&&*workers[1].uid), "the other worker was replaced, too: {after:?}");
        scenario.wait_ready("two-workers", 2).await?;

        scenario.kubectl(&format!("delete pod {}", workers[1].name)).await?;
        let last = scenario
            .wait_pods("the replacement of the deleted worker", SOON, "worker", |pods| {
                is_whole(pods) && !uids(pods).contains(&&*workers[1].uid)
            })
            .await?;
        let kept = after.iter().find(|pod| pod.uid != workers[1].uid).context("the first replacement")?;
        ensure!(uids(&last).contains(&&*kept.uid), "the other worker was replaced, too: {last:?}");
        ensure!(scenario.head().await? == head, "the head was touched");
        let lines = scenario.actors("start one two").await?;
        ensure!(places(&lines)?.iter().all(|place| last.iter().any(|pod| pod.name == *place)), "Ray does not use the workers: {lines:?}");
        let (heads, workers) = (scenario.record().count("head")?, scenario.record().count("worker")?);
        ensure!((heads, workers) == (1, 4), "one head and four workers were to be made, not {heads} and {workers}");
        scenario.delete_cluster("two-workers").await
    })
    .await
    .unwrap();
}

/// The dashboard answers through the head's Service: at the address of the Service, at the node's port, by its name from inside, and
/// where the Ingress points to.
#[tokio::test]
async fn e2e_dashboard_is_reached_through_the_head_service() {
    scenario::run("exposed", async |scenario: &Scenario| {
        scenario.apply("exposed.yaml").await?;
        scenario.wait_ready("exposed", 0).await?;
        scenario.kubectl("get service,ingress -l ray.io/cluster=exposed").await?;

        let ingress: Value = serde_json::from_str(&scenario.quiet("get ingress exposed-head-ingress -o json").await?)?;
        let at = |path: &str| ingress.pointer(path).cloned().unwrap_or_default();
        ensure!(at("/spec/ingressClassName") == "nginx", "class: {ingress:#}");
        ensure!(at("/metadata/annotations/nginx.ingress.kubernetes.io~1rewrite-target") == "/$1", "annotations: {ingress:#}");
        ensure!(at("/spec/rules/0/host") == "ray.example.com", "host: {ingress:#}");
        let path = at("/spec/rules/0/http/paths/0");
        ensure!(path["path"] == "/exposed/(.*)" && path["pathType"] == "ImplementationSpecific", "path: {ingress:#}");
        let backend = &path["backend"]["service"];

        let name = backend["name"].as_str().context("the Ingress names no Service")?;
        let service: Value = serde_json::from_str(&scenario.quiet(&format!("get service {name} -o json")).await?)?;
        let ports = service["spec"]["ports"].as_array().context("the Service has no ports")?;
        let dashboard = ports.iter().find(|port| port["port"] == backend["port"]["number"]).context("the Ingress points to no port")?;
        let node = scenario.quiet("get node testbed -o jsonpath='{.status.addresses[?(@.type==\"InternalIP\")].address}'").await?;
        let address = service["spec"]["clusterIP"].as_str().context("the Service has no address")?;
        for url in
            [format!("http://{address}:{}/api/version", dashboard["port"]), format!("http://{node}:{}/api/version", dashboard["nodePort"])]
        {
            let answer: Value = serde_json::from_str(&get(&url).await?)?;
            scenario.shell().say(&format!("$ curl {url}\n{answer}"));
            ensure!(answer["ray_version"] == testcluster::versions::RAY, "{answer}");
        }
        let (head, namespace) = (scenario.head().await?.name, scenario.namespace());
        let inside = format!("exec {head} -c ray-head -- curl -sSf http://{name}.{namespace}:{}/api/version", dashboard["port"]);
        let answer = scenario.kubectl(&inside).await?;
        ensure!(answer.contains(testcluster::versions::RAY), "{answer}");
        let proxied = format!("get --raw /api/v1/namespaces/{namespace}/services/{name}:dashboard/proxy/api/version");
        let answer = scenario.kubectl(&proxied).await?;
        ensure!(answer.contains(testcluster::versions::RAY), "{answer}");

        let endpoint =
            scenario.quiet("get raycluster exposed -o jsonpath='{.status.endpoints.dashboard} {.status.head.serviceIP}'").await?;
        ensure!(endpoint == format!("{} {address}", dashboard["nodePort"]), "the status says {endpoint}");
        scenario.delete_cluster("exposed").await
    })
    .await
    .unwrap();
}

/// A quota with room for the head alone: the status says so, nothing claims to be ready, and the operator does not hammer the API
/// server. With more room the cluster becomes healthy and nothing of the trouble stays in its status.
#[tokio::test]
async fn e2e_quota_that_allows_only_the_head_is_said_and_healed() {
    scenario::run("quota", async |scenario: &Scenario| {
        let cluster = "one-worker";
        scenario.apply("quota.yaml").await?;
        scenario.wait("the quota's count", SOON, "get resourcequota pods -o jsonpath='{.status.used.pods}'", |text| text == "0").await?;
        scenario.apply("one-worker.yaml").await?;
        let failure = scenario.wait_condition(cluster, "ReplicaFailure", SOON, |condition| condition.status == "True").await?;
        ensure!(failure.reason == "FailedCreateWorkerPod" && failure.message.contains("exceeded quota"), "{failure:?}");
        scenario.wait_condition(cluster, "HeadPodReady", UP, |condition| condition.status == "True").await?;

        let provisioned = scenario.condition(cluster, "RayClusterProvisioned").await?;
        ensure!(provisioned.status == "False", "{provisioned:?}");
        let failure = scenario.condition(cluster, "ReplicaFailure").await?;
        ensure!(failure.status == "True", "{failure:?}");
        let fields = "{.status.state}/{.status.desiredWorkerReplicas}/{.status.availableWorkerReplicas}/{.status.readyWorkerReplicas}";
        let counts = scenario.quiet(&format!("get raycluster {cluster} -o jsonpath='{fields}'")).await?;
        ensure!(counts == "/1//", "state, desired, available and ready workers: {counts}");
        let events = scenario.kubectl("get events --field-selector reason=FailedToCreateWorkerPod").await?;
        ensure!(events.contains("exceeded quota") && events.lines().count() <= 3, "one event, perhaps repeated, was to say it:\n{events}");

        scenario.kubectl("patch resourcequota pods --type=merge -p '{\"spec\":{\"hard\":{\"pods\":\"2\"}}}'").await?;
        scenario.wait_ready(cluster, 1).await?;
        let provisioned = scenario.condition(cluster, "RayClusterProvisioned").await?;
        ensure!(provisioned.status == "True", "{provisioned:?}");
        for name in ["ReplicaFailure", "PodsBlocked"] {
            let condition = scenario.condition(cluster, name).await?;
            ensure!(condition.status.is_empty(), "{name} is over and stays in the status: {condition:?}");
        }
        let (heads, workers) = (scenario.record().count("head")?, scenario.record().count("worker")?);
        ensure!((heads, workers) == (1, 1), "one head and one worker were to be made, not {heads} and {workers}");
        scenario.delete_cluster(cluster).await
    })
    .await
    .unwrap();
}

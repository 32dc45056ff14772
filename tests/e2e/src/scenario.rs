//! A scenario with RayClusters and RayJobs: a namespace of its own, what to ask and to do there, and a record of every Pod that was ever
//! made in it.

mod rayjob;
mod record;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kube::Client;
use serde_json::{Value, json};
use testcluster::node::Node;
use testcluster::progress::Progress;
use tokio::time::timeout;

pub use rayjob::{condition_of, until_let_go};
pub use record::Record;

use crate::install;
use crate::show::Shell;

/// Label of the namespaces of scenarios.
const LABEL: &str = "kuberay-e2e";
const MANIFESTS: &str = "tests/e2e/manifests";
/// How long a healthy cluster may take to come up on a busy machine.
pub const UP: Duration = Duration::from_secs(180);
/// How long a change of something that runs may take.
pub const SOON: Duration = Duration::from_secs(120);

/// A running scenario.
pub struct Scenario {
    node: Node,
    client: Client,
    shell: Shell,
    namespace: String,
    record: Record,
}

/// A Pod as a scenario sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodFacts {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// Restarts of its containers in all.
    pub restarts: u64,
    /// Whether it is ready and not on its way out.
    pub ready: bool,
}

/// A condition in the status of a RayCluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// `True`, `False` or `Unknown`; empty if there is no such condition.
    pub status: String,
    /// Reason.
    pub reason: String,
    /// Message.
    pub message: String,
}

/// Runs a scenario on the node with the chart installed, and takes away everything that it made. When it fails, what the cluster looked
/// like is printed, and the namespace stays until the next scenario begins.
///
/// # Errors
/// Whatever the scenario fails with, or that something of it stays.
pub async fn run(name: &str, steps: impl AsyncFnOnce(&Scenario) -> Result<()>) -> Result<()> {
    run_with(&[], name, steps).await
}

/// The same with these feature gates besides the guide's.
///
/// # Errors
/// Whatever the scenario fails with, or that something of it stays.
pub async fn run_with(gates: &[&str], name: &str, steps: impl AsyncFnOnce(&Scenario) -> Result<()>) -> Result<()> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let node = install::node(&Progress::stderr()).await?;
    let shell = Shell::new(&node, true);
    install::chart_with(&shell, gates).await?;
    shell.quiet(&format!("kubectl delete namespace -l {LABEL} --timeout=120s")).await?;

    let begun = Instant::now();
    let namespace = format!("e2e-{name}");
    shell.run(&format!("kubectl create namespace {namespace}")).await?;
    shell.quiet(&format!("kubectl label namespace {namespace} {LABEL}=")).await?;
    let client = node.client().await?;
    let record = Record::begin(&client, &namespace).await?;
    let scenario = Scenario { node, client, shell, namespace, record };
    scenario.kubectl(&format!("create configmap scripts --from-file={MANIFESTS}/scripts")).await?;
    if let Err(error) = steps(&scenario).await {
        scenario.explain().await;
        return Err(error);
    }
    scenario.kubectl(&format!("delete namespace {} --timeout=60s", scenario.namespace)).await?;
    scenario.shell.say(&format!("scenario {name}: {} s", begun.elapsed().as_secs()));
    Ok(())
}

impl Scenario {
    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// The shell.
    pub fn shell(&self) -> &Shell {
        &self.shell
    }

    /// The namespace.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Every Pod of Ray that was made so far, whether it is still there or not.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Shows and runs kubectl in the namespace, and gives what it printed.
    ///
    /// # Errors
    /// When it fails.
    pub async fn kubectl(&self, arguments: &str) -> Result<String> {
        self.shell.run(&self.line(arguments)).await
    }

    /// Runs kubectl in the namespace without showing it, and gives its standard output.
    ///
    /// # Errors
    /// When it fails.
    pub async fn quiet(&self, arguments: &str) -> Result<String> {
        self.shell.quiet(&self.line(arguments)).await
    }

    /// Waits until a kubectl command prints something that `wanted` accepts.
    ///
    /// # Errors
    /// When that takes longer than `limit`.
    pub async fn wait(&self, what: &str, limit: Duration, arguments: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
        self.shell.wait_for(what, limit, &self.line(arguments), wanted).await
    }

    /// `kubectl apply` of a file of `tests/e2e/manifests`.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn apply(&self, file: &str) -> Result<()> {
        self.kubectl(&format!("apply -f {MANIFESTS}/{file}")).await.map(drop)
    }

    /// `kubectl apply` of an object, in the namespace of the scenario.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn make(&self, mut object: Value) -> Result<()> {
        let name = format!("{} {}", text_at(&object, "/kind"), text_at(&object, "/metadata/name"));
        let metadata = object.pointer_mut("/metadata").and_then(Value::as_object_mut).context("an object without metadata")?;
        metadata.insert("namespace".to_owned(), json!(self.namespace));
        let printed = self.shell.apply(&format!("- # {name}"), &object.to_string()).await?;
        ensure!(printed.ok, "{name} was refused:\n{}", printed.text);
        Ok(())
    }

    /// Waits until a cluster is ready with this many workers, and shows it.
    ///
    /// # Errors
    /// When it is not in time.
    pub async fn wait_ready(&self, cluster: &str, workers: usize) -> Result<()> {
        let fields = "{.status.state} {.status.desiredWorkerReplicas} {.status.readyWorkerReplicas}";
        let wanted = if workers == 0 { "ready".to_owned() } else { format!("ready {workers} {workers}") };
        // A count of zero is not written.
        self.wait("the cluster being ready", UP, &format!("get raycluster {cluster} -o jsonpath='{fields}'"), |text| text.trim() == wanted)
            .await?;
        self.kubectl(&format!("get raycluster {cluster}")).await.map(drop)
    }

    /// The Pods of Ray of one node type, in order of their names.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn pods(&self, node_type: &str) -> Result<Vec<PodFacts>> {
        let text = self.quiet(&format!("get pods -l ray.io/node-type={node_type} -o json")).await?;
        let list: Value = serde_json::from_str(&text).context("reading a list of Pods")?;
        let items = list.get("items").and_then(Value::as_array).context("a list of Pods has no items")?;
        let mut pods: Vec<PodFacts> = items.iter().map(facts).collect();
        pods.sort_unstable();
        Ok(pods)
    }

    /// Waits until the Pods of one node type are such that `wanted` accepts them.
    ///
    /// # Errors
    /// When that takes longer than `limit`; the error shows them.
    pub async fn wait_pods(
        &self,
        what: &str,
        limit: Duration,
        node_type: &str,
        wanted: impl Fn(&[PodFacts]) -> bool,
    ) -> Result<Vec<PodFacts>> {
        let last = std::cell::RefCell::new(Vec::new());
        let wanted = &wanted;
        let probe = || async {
            let pods = self.pods(node_type).await?;
            let found = wanted(&pods).then(|| pods.clone());
            last.replace(pods);
            Ok(found)
        };
        let result = Progress::stderr().step(what, testcluster::wait::until(what, limit, probe)).await;
        result.with_context(|| format!("the {node_type} Pods were: {:#?}", last.borrow()))
    }

    /// The one head Pod.
    ///
    /// # Errors
    /// When there is none or there are several.
    pub async fn head(&self) -> Result<PodFacts> {
        let mut heads = self.pods("head").await?;
        ensure!(heads.len() == 1, "expected one head Pod: {heads:?}");
        heads.pop().context("expected one head Pod")
    }

    /// The one head Pod of a cluster.
    ///
    /// # Errors
    /// When there is none or there are several.
    pub async fn head_of(&self, cluster: &str) -> Result<PodFacts> {
        let mut heads = self.pods(&format!("head,ray.io/cluster={cluster}")).await?;
        ensure!(heads.len() == 1, "expected one head Pod of {cluster}: {heads:?}");
        heads.pop().context("expected one head Pod")
    }

    /// What the dashboard of a cluster answers to a GET of this path.
    ///
    /// # Errors
    /// When it does not answer with success and JSON.
    pub async fn ray(&self, cluster: &str, path: &str) -> Result<Value> {
        let text = self.quiet(&format!("get --raw {}", self.dashboard(cluster, path))).await?;
        serde_json::from_str(&text).with_context(|| format!("{path}: {text}"))
    }

    /// Path at the API server that leads to a path of a cluster's dashboard.
    fn dashboard(&self, cluster: &str, path: &str) -> String {
        format!("/api/v1/namespaces/{}/services/{cluster}-head-svc:dashboard/proxy/{path}", self.namespace)
    }

    /// Stops the operator, does `meanwhile`, and has it start again once it was away for `how_long`.
    ///
    /// # Errors
    /// Whatever `meanwhile` fails with, or that the operator does not stop or start. It is started in any case.
    pub async fn without_operator<T>(&self, how_long: Duration, meanwhile: impl AsyncFnOnce() -> Result<T>) -> Result<T> {
        let away = async {
            self.shell.run("kubectl scale deployment kuberay-operator --replicas=0").await?;
            let pods = "kubectl get pods -l app.kubernetes.io/name=kuberay-operator -o name";
            self.shell.wait_for("the operator going", SOON, pods, str::is_empty).await?;
            let begun = Instant::now();
            let result = meanwhile().await?;
            let what = format!("{} s without the operator", how_long.as_secs());
            let rest = || async { Ok((begun.elapsed() >= how_long).then_some(())) };
            Progress::stderr().step(&what, testcluster::wait::until(&what, how_long + SOON, rest)).await?;
            Ok(result)
        };
        let result = away.await;
        self.shell.run("kubectl scale deployment kuberay-operator --replicas=1").await?;
        self.shell.run("kubectl rollout status deployment/kuberay-operator --timeout=120s").await?;
        result
    }

    /// Runs `actors.py` in the head, and gives what it printed, a line an element, its words in it.
    ///
    /// # Errors
    /// When it fails, or runs for longer than three minutes.
    pub async fn actors(&self, arguments: &str) -> Result<Vec<Vec<String>>> {
        let head = self.head().await?.name;
        let exec = format!("exec {head} -c ray-head -- python /home/ray/scripts/actors.py {arguments}");
        let text = timeout(Duration::from_secs(180), self.kubectl(&exec)).await.context("actors.py does not end")??;
        Ok(text.lines().map(|line| line.split_ascii_whitespace().map(str::to_owned).collect()).collect())
    }

    /// A condition of a cluster.
    ///
    /// # Errors
    /// When the cluster is not there.
    pub async fn condition(&self, cluster: &str, name: &str) -> Result<Condition> {
        let text = self.quiet(&format!("get raycluster {cluster} -o json")).await?;
        let object: Value = serde_json::from_str(&text).context("reading a RayCluster")?;
        let conditions = object.pointer("/status/conditions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let found = conditions.iter().find(|condition| text_at(condition, "/type") == name);
        Ok(found.map_or_else(Condition::default, |condition| Condition {
            status: text_at(condition, "/status"),
            reason: text_at(condition, "/reason"),
            message: text_at(condition, "/message"),
        }))
    }

    /// Waits until a condition of a cluster is such that `wanted` accepts it.
    ///
    /// # Errors
    /// When that takes longer than `limit`; the error shows it.
    pub async fn wait_condition(
        &self,
        cluster: &str,
        name: &str,
        limit: Duration,
        wanted: impl Fn(&Condition) -> bool,
    ) -> Result<Condition> {
        let last = std::cell::RefCell::new(Condition::default());
        let wanted = &wanted;
        let probe = || async {
            let condition = self.condition(cluster, name).await?;
            let found = wanted(&condition).then(|| condition.clone());
            last.replace(condition);
            Ok(found)
        };
        let what = format!("condition {name}");
        let result = Progress::stderr().step(&what, testcluster::wait::until(&what, limit, probe)).await;
        result.with_context(|| format!("it was: {:?}", last.borrow()))
    }

    /// Asks for the Pods of one node type again and again for a while, and fails if they ever are other ones than now.
    ///
    /// # Errors
    /// When they change, or cannot be listed.
    pub async fn stays(&self, node_type: &str, how_long: Duration) -> Result<()> {
        let uids = |pods: &[PodFacts]| pods.iter().map(|pod| pod.uid.clone()).collect::<Vec<_>>();
        let before = uids(&self.pods(node_type).await?);
        let begun = Instant::now();
        let probe = || async {
            let now = self.pods(node_type).await?;
            ensure!(uids(&now) == before, "the {node_type} Pods changed: {now:#?}");
            Ok((begun.elapsed() >= how_long).then_some(()))
        };
        let what = format!("the same {node_type} Pods staying");
        Progress::stderr().step(&what, testcluster::wait::until(&what, how_long * 2, probe)).await
    }

    /// Deletes a cluster and waits until everything that belonged to it is gone.
    ///
    /// # Errors
    /// When something stays.
    pub async fn delete_cluster(&self, cluster: &str) -> Result<()> {
        self.kubectl(&format!("delete raycluster {cluster} --timeout=120s")).await?;
        let kinds = "pods,jobs,services,ingresses,serviceaccounts,roles,rolebindings,secrets,persistentvolumeclaims";
        let left = format!("get {kinds} -l ray.io/cluster={cluster} -o name");
        self.wait("the cluster's objects going", SOON, &left, str::is_empty).await.map(drop)
    }

    fn line(&self, arguments: &str) -> String {
        format!("kubectl -n {} {arguments}", self.namespace)
    }

    /// Prints what may tell why the scenario failed.
    async fn explain(&self) {
        for line in [
            self.line("get rayclusters,rayjobs,raycronjobs -o yaml"),
            self.line("get pods,jobs,services,ingresses -o wide"),
            self.line("get events --sort-by=.metadata.creationTimestamp"),
            self.line("logs -l ray.io/node-type=head --all-containers --prefix --tail=15"),
            self.line("logs -l batch.kubernetes.io/job-name --prefix --tail=30"),
            "kubectl logs deployment/kuberay-operator --tail=40".to_owned(),
        ] {
            if let Err(error) = self.shell.attempt(&line).await {
                self.shell.say(&format!("{error:#}"));
            }
        }
        for (name, uid) in self.record.all() {
            self.shell.say(&format!("made: {name} {uid}"));
        }
    }
}

fn facts(pod: &Value) -> PodFacts {
    let containers = pod.pointer("/status/containerStatuses").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_ready = conditions.iter().any(|condition| text_at(condition, "/type") == "Ready" && text_at(condition, "/status") == "True");
    PodFacts {
        name: text_at(pod, "/metadata/name"),
        uid: text_at(pod, "/metadata/uid"),
        restarts: containers.iter().filter_map(|container| container.get("restartCount")?.as_u64()).sum(),
        ready: is_ready && pod.pointer("/metadata/deletionTimestamp").is_none(),
    }
}

fn text_at(value: &Value, path: &str) -> String {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The answer of an HTTP server to a GET, if it answers with success.
///
/// # Errors
/// When curl is missing, or the server does not answer in five seconds, or not with success.
pub async fn get(url: &str) -> Result<String> {
    let output = tokio::process::Command::new("curl")
        .args(["--silent", "--show-error", "--fail", "--noproxy", "*", "--max-time", "5", url])
        .output()
        .await
        .context("starting curl")?;
    if !output.status.success() {
        bail!("{url}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

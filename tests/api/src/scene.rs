//! A namespace with an operator of its own, and short ways to look at RayClusters and to play the kubelet.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use shared::api::RayCluster;
use testcluster::wait;

use crate::{Program, Server, namespace};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(40);

/// A namespace with an operator of its own.
pub struct Scene {
    /// Client of the test.
    pub client: Client,
    /// Name of the namespace.
    pub namespace: String,
    kubeconfig: PathBuf,
    folder: tempfile::TempDir,
    operator: Option<Program>,
}

impl Scene {
    /// A fresh namespace without an operator.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn without_operator(server: &Server, prefix: &str) -> Result<Self> {
        let client = server.client().await?;
        let namespace = namespace(&client, prefix).await?;
        Ok(Self { client, namespace, kubeconfig: server.kubeconfig(), folder: tempfile::tempdir()?, operator: None })
    }

    /// A fresh namespace with an operator that works on nothing else.
    ///
    /// # Errors
    /// When the API server refuses or the operator does not start.
    pub async fn new(server: &Server, prefix: &str) -> Result<Self> {
        let mut scene = Self::without_operator(server, prefix).await?;
        scene.start().await?;
        Ok(scene)
    }

    /// Another operator for the same namespace.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn another(&self, name: &str, kubeconfig: Option<PathBuf>) -> Result<Program> {
        let folder = self.folder.path().join(name);
        std::fs::create_dir_all(&folder)?;
        let kubeconfig = kubeconfig.as_ref().unwrap_or(&self.kubeconfig);
        let flags = [&format!("--watch-namespace={}", self.namespace), "--enable-leader-election=false"];
        Program::operator(&folder, kubeconfig, &flags, &[]).await
    }

    /// Starts the operator.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start(&mut self) -> Result<()> {
        self.operator = Some(self.another("operator", None).await?);
        Ok(())
    }

    /// Starts the operator with further flags.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start_with(&mut self, flags: &[&str]) -> Result<()> {
        self.start_in(flags, &[]).await
    }

    /// Starts the operator with further flags and environment variables.
    ///
    /// # Errors
    /// When it does not start.
    pub async fn start_in(&mut self, flags: &[&str], environment: &[(&str, &str)]) -> Result<()> {
        let namespace = format!("--watch-namespace={}", self.namespace);
        let all: Vec<&str> = [namespace.as_str(), "--enable-leader-election=false"].into_iter().chain(flags.iter().copied()).collect();
        self.operator = Some(Program::operator(self.folder.path(), &self.kubeconfig, &all, environment).await?);
        Ok(())
    }

    /// Kills the operator, as `kill -9` does.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub async fn kill(&mut self) -> Result<()> {
        match self.operator.take() {
            Some(operator) => operator.kill().await,
            None => Ok(()),
        }
    }

    /// The operator.
    ///
    /// # Panics
    /// When it does not run.
    #[allow(clippy::expect_used)] // a helper of tests
    pub fn operator(&self) -> &Program {
        self.operator.as_ref().expect("an operator")
    }

    /// Folder of the scene's own.
    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// Objects of a kind in the namespace.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Makes an object.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn create<K>(&self, object: Value) -> Result<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + serde::Serialize
            + serde::de::DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        let object = serde_json::from_value(object)?;
        self.api::<K>().create(&PostParams::default(), &object).await.context("creating an object")
    }

    /// Makes a RayCluster.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn cluster(&self, name: &str, spec: Value) -> Result<RayCluster> {
        self.create(json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": name }, "spec": spec })).await
    }

    /// Changes an object by a merge patch.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn patch<K>(&self, name: &str, change: Value) -> Result<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + serde::de::DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        Ok(self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(change)).await?)
    }

    /// Changes a field of the first worker group.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn patch_group(&self, cluster: &str, field: &str, value: Value) -> Result<()> {
        let change = json!([{ "op": "add", "path": format!("/spec/workerGroupSpecs/0/{field}"), "value": value }]);
        let patch = Patch::<RayCluster>::Json(serde_json::from_value(change)?);
        self.api::<RayCluster>().patch(cluster, &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Deletes an object at once.
    ///
    /// # Errors
    /// When the API server refuses.
    pub async fn delete<K>(&self, name: &str) -> Result<()>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + serde::de::DeserializeOwned
            + Clone
            + std::fmt::Debug,
    {
        self.api::<K>().delete(name, &DeleteParams::background().grace_period(0)).await?;
        Ok(())
    }

    /// Pods of a cluster that nobody has deleted: of a node type, or all if that is empty.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub async fn pods(&self, cluster: &str, node_type: &str) -> Result<Vec<Pod>> {
        let node_type = if node_type.is_empty() { String::new() } else { format!(",ray.io/node-type={node_type}") };
        let list = ListParams::default().labels(&format!("ray.io/cluster={cluster}{node_type}"));
        let pods = self.api::<Pod>().list(&list).await?;
        Ok(pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect())
    }

    /// Waits until a cluster has exactly so many heads and workers, and gives them.
    ///
    /// # Errors
    /// When it never has.
    pub async fn has_pods(&self, cluster: &str, heads: usize, workers: usize) -> Result<Vec<Pod>> {
        let what = format!("{heads} head and {workers} workers of {cluster}");
        wait::until(&what, PATIENCE, || async {
            let all = self.pods(cluster, "").await?;
            let count =
                |wanted: &str| all.iter().filter(|pod| pod.labels().get("ray.io/node-type").is_some_and(|kind| kind == wanted)).count();
            Ok((count("head") == heads && count("worker") == workers).then_some(all))
        })
        .await
    }

    /// Sets a Pod's status, as a kubelet would.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn set_pod(&self, pod: &Pod, status: Value) -> Result<()> {
        let patch = Patch::Merge(json!({ "status": status }));
        self.api::<Pod>().patch_status(&pod.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }

    /// Has a Pod run and be ready.
    ///
    /// # Errors
    /// When the API server refuses it.
    pub async fn make_ready(&self, pod: &Pod) -> Result<()> {
        let conditions = json!([{ "type": "Ready", "status": "True" }]);
        self.set_pod(pod, json!({ "phase": "Running", "podIP": "10.0.0.1", "podIPs": [{ "ip": "10.0.0.1" }], "conditions": conditions }))
            .await
    }

    /// Has every Pod of a cluster run until the cluster is ready.
    ///
    /// # Errors
    /// When it never is.
    pub async fn run_to_ready(&self, cluster: &str) -> Result<RayCluster> {
        wait::until(&format!("{cluster} to be ready"), PATIENCE, || async {
            for pod in self.pods(cluster, "").await? {
                if pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Pending") {
                    self.make_ready(&pod).await?;
                }
            }
            let found = self.api::<RayCluster>().get(cluster).await?;
            Ok(found.status.as_ref().is_some_and(|status| status.state == "ready").then_some(found))
        })
        .await
    }

    /// Waits until a cluster's status is as wanted.
    ///
    /// # Errors
    /// When it never is; the text shows the last one.
    pub async fn status(&self, cluster: &str, what: &str, wanted: impl Fn(&shared::api::RayClusterStatus) -> bool) -> Result<RayCluster> {
        let clusters = self.api::<RayCluster>();
        let wait = wait::until(what, PATIENCE, || async {
            Ok(clusters.get_opt(cluster).await?.filter(|found| found.status.as_ref().is_some_and(&wanted)))
        });
        match wait.await {
            Ok(found) => Ok(found),
            Err(error) => {
                let last = clusters.get_opt(cluster).await?.and_then(|found| found.status);
                Err(error.context(format!("{}\nthe operator says:\n{}", serde_json::to_string(&last)?, self.log())))
            }
        }
    }

    /// Waits until `probe` finds something.
    ///
    /// # Errors
    /// When it never does.
    pub async fn until<T>(&self, what: &str, probe: impl AsyncFn() -> Result<Option<T>>) -> Result<T> {
        let wait = wait::until(what, PATIENCE, || probe());
        wait.await.with_context(|| format!("the operator says:\n{}", self.log()))
    }

    fn log(&self) -> String {
        self.operator.as_ref().map(Program::log).unwrap_or_default()
    }

    /// Sum of the samples of a metric whose labels contain all of `labels`.
    ///
    /// # Errors
    /// When the operator does not show its metrics.
    pub async fn metric(&self, name: &str, labels: &[&str]) -> Result<f64> {
        let text = self.operator().metrics().await?;
        let samples = text.lines().filter(|line| line.starts_with(&format!("{name}{{")) && labels.iter().all(|label| line.contains(label)));
        Ok(samples.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }
}

/// A Pod template with one container.
pub fn template(container: &str) -> Value {
    json!({ "spec": { "terminationGracePeriodSeconds": 0, "containers": [{ "name": container, "image": "rayproject/ray:2.52.0" }] } })
}

/// A worker group.
pub fn group(name: &str, replicas: i32) -> Value {
    json!({ "groupName": name, "replicas": replicas, "minReplicas": 0, "maxReplicas": 10, "rayStartParams": {}, "template": template("ray-worker") })
}

/// A cluster's spec with these worker groups and further fields.
pub fn spec(groups: &[Value], more: Value) -> Value {
    let mut spec = json!({
        "rayVersion": "2.52.0",
        "headGroupSpec": { "rayStartParams": {}, "template": template("ray-head") },
        "workerGroupSpecs": groups,
    });
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    spec
}

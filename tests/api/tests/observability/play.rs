//! Both programs with something to do, in a namespace of their own.

use std::time::Duration;

use api_tests::chart::Rendered;
use api_tests::scene::{Scene, group, spec};
use api_tests::server::{Server, Wanted, server_with};
use api_tests::{Dashboard, Program, hook};
use k8s_openapi::api::core::v1::{Pod, ResourceQuota};
use serde_json::{Value, json};
use shared::api::RayJob;
use testcluster::api::FakeNodes;

pub(crate) struct Play {
    pub(crate) scene: Scene,
    pub(crate) webhook: Program,
    pub(crate) rendered: Rendered,
    pub(crate) ray: Dashboard,
    server: &'static Server,
}

/// The chart with everything that observes.
pub(crate) fn chart(namespace: &str) -> Rendered {
    let values = [
        "metrics.dashboard.enabled=true",
        "metrics.alerts.enabled=true",
        "metrics.serviceMonitor.enabled=true",
        "webhook.podMonitor.enabled=true",
    ];
    hook::chart_for(namespace, &values).unwrap()
}

impl Play {
    /// `None` where it cannot run.
    pub(crate) async fn start(prefix: &str) -> Option<Self> {
        if testcluster::platform::require_linux_root().is_err() {
            eprintln!("skipped: fake Pods at addresses of this machine need root");
            return None;
        }
        let nodes = FakeNodes { count: 2, local_pods: true, pod_cidr: "10.92.0.0/16".to_owned(), ..FakeNodes::default() };
        let server = server_with(Wanted { fake_nodes: Some(nodes) });
        let mut scene = Scene::without_operator(server, prefix).await.unwrap();
        scene.start_with(&["--use-kubernetes-proxy", "--enable-metrics", "--feature-gates=RayCronJob=true"]).await.unwrap();
        let rendered = chart(&scene.namespace);
        // A file that cannot be understood is no reason not to start.
        let rules = scene.folder().join("rules.yaml");
        std::fs::write(&rules, "warnOnly: 5").unwrap();
        let rules = format!("--rules-file={}", rules.display());
        let webhook = hook::start(server, &scene, &rendered, &[&rules]).await.unwrap();
        let ray = Dashboard::start(scene.client.clone(), &scene.namespace);
        Some(Self { scene, webhook, rendered, ray, server })
    }

    /// What Prometheus has to scrape: as the chart's monitors say, under the names that the Prometheus operator gives.
    pub(crate) fn jobs(&self) -> Vec<Value> {
        let namespace = &self.scene.namespace;
        let honor =
            |kind: &str, pointer: &str| self.rendered.of_kind(kind).next().unwrap().pointer(pointer).cloned().unwrap_or(Value::Bool(false));
        let job = |name: String, honor: Value, port: u16, pod: &str| {
            let labels = json!({ "namespace": namespace, "pod": pod });
            json!({ "job_name": name, "honor_labels": honor, "static_configs": [{ "targets": [format!("127.0.0.1:{port}")], "labels": labels }] })
        };
        let operator = self.scene.operator().metrics_port();
        let instance = self.server.instance();
        let url = instance.url();
        let apiserver = json!({
            "job_name": "apiserver",
            "scrape_interval": "3s",
            "scheme": "https",
            "tls_config": { "ca_file": instance.pki().path("ca.crt"), "cert_file": instance.pki().path("admin.crt"), "key_file": instance.pki().path("admin.key") },
            "static_configs": [{ "targets": [url.trim_start_matches("https://")] }],
        });
        vec![
            job(namespace.clone(), honor("ServiceMonitor", "/spec/endpoints/0/honorLabels"), operator, "operator-0"),
            job(
                format!("{namespace}/{namespace}-webhook"),
                honor("PodMonitor", "/spec/podMetricsEndpoints/0/honorLabels"),
                self.webhook.metrics_port(),
                "webhook-0",
            ),
            apiserver,
        ]
    }

    /// Clusters that come up, jobs that end, objects that are refused and warned of.
    pub(crate) async fn work(&self) {
        for name in ["one", "two", "three"] {
            self.scene.cluster(name, spec(&[group("workers", 2)], json!({}))).await.unwrap();
            self.stumble(2).await;
        }
        self.ray.submitted("SUCCEEDED");
        self.job("short").await;
        let jobs = self.scene.api::<RayJob>();
        let ended = async || {
            let status = jobs.get("short").await?.status.unwrap_or_default();
            Ok((status.job_deployment_status.as_str() == "Complete").then_some(()))
        };
        self.scene.until("the job's end", ended).await.unwrap();
        self.ray.submitted("RUNNING");
        self.job("long").await;
        self.stumble(6).await;
        // Nothing more may be made.
        let pods = self.scene.api::<Pod>().list(&Default::default()).await.unwrap().items.len();
        let quota = json!({ "metadata": { "name": "full" }, "spec": { "hard": { "pods": pods.to_string() } } });
        self.scene.create::<ResourceQuota>(quota).await.unwrap();
        self.scene.patch_group("one", "replicas", json!(9)).await.unwrap();
        self.stumble(6).await;
    }

    /// Changes the size of a cluster.
    pub(crate) async fn resize(&self, replicas: i32) {
        self.scene.patch_group("three", "replicas", json!(replicas)).await.unwrap();
    }

    async fn job(&self, name: &str) {
        let spec = json!({ "entrypoint": "python x.py", "submissionMode": "HTTPMode", "rayClusterSpec": spec(&[], json!({})) });
        let object = json!({ "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": name }, "spec": spec });
        self.scene.create::<RayJob>(object).await.unwrap();
    }

    /// Mistakes that people make, some in a second.
    pub(crate) async fn stumble(&self, times: usize) {
        for _ in 0..times {
            let twice = spec(&[group("same", 1), group("same", 1)], json!({}));
            assert!(self.scene.cluster("bad", twice).await.is_err(), "the webhook is in the way");
            let many = spec(&[group("many", 50)], json!({}));
            hook::ask(&self.scene, "warned", many).await.unwrap();
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
    }

    /// A namespace whose webhook does not answer.
    ///
    /// Never ends.
    pub(crate) async fn nobody_answers(&self) {
        let deserted = Scene::without_operator(self.server, "deserted").await.unwrap();
        hook::configure(self.server, &deserted, &chart(&deserted.namespace).with_webhooks().unwrap(), 1).await.unwrap();
        let refused = async || {
            Ok(deserted
                .cluster("c", spec(&[], json!({})))
                .await
                .err()
                .filter(|error| format!("{error:#}").contains("failed calling webhook")))
        };
        loop {
            deserted.until("the API server's refusal", refused).await.unwrap();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// What a terminal shows when an object is refused.
    pub(crate) async fn refusal(&self) -> String {
        let file = self.scene.folder().join("raycluster.yaml");
        let mut twice = spec(&[group("workers", 2), group("workers", 1)], json!({}));
        let limits = json!({ "limits": { "cpu": "2", "memory": "8Gi" } });
        for pod in ["/headGroupSpec", "/workerGroupSpecs/0", "/workerGroupSpecs/1"] {
            twice.pointer_mut(pod).unwrap()["template"]["spec"]["containers"][0]["resources"] = limits.clone();
        }
        twice["workerGroupSpecs"][0]["minReplicas"] = json!(5);
        twice["workerGroupSpecs"][0]["maxReplicas"] = json!(3);
        let object = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": "training" }, "spec": twice });
        std::fs::write(&file, object.to_string()).unwrap();
        let mut kubectl = self.server.instance().kubectl();
        kubectl.current_dir(self.scene.folder()).args(["--namespace", &self.scene.namespace, "apply", "-f", "raycluster.yaml"]);
        let output = kubectl.output().await.unwrap();
        assert!(!output.status.success());
        format!("$ kubectl apply -f raycluster.yaml\n{}", String::from_utf8(output.stderr).unwrap())
    }

    /// Both programs end.
    pub(crate) async fn end(self) {
        let Self { mut scene, webhook, .. } = self;
        scene.kill().await.unwrap();
        webhook.kill().await.unwrap();
    }
}

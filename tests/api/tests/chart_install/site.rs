//! One namespace to install into, and one test at a time: the chart's cluster roles have fixed names.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use api_tests::modules::{CERT_MANAGER, PROMETHEUS_OPERATOR};
use api_tests::{Server, chart, server};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::{Mutex, MutexGuard};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

pub(crate) struct Site {
    server: &'static Server,
    pub(crate) namespace: String,
    _turn: MutexGuard<'static, ()>,
}

/// A fresh namespace that enforces Pod Security "restricted", at an API server that knows the kinds of other projects, too.
pub(crate) async fn site(name: &str) -> Site {
    let turn = ONE_AT_A_TIME.lock().await;
    let server = server();
    let site = Site { server, namespace: name.to_owned(), _turn: turn };
    for module in [CERT_MANAGER, PROMETHEUS_OPERATOR] {
        module.install(server).await.unwrap();
    }
    let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    site.kubectl(&["create", "--filename=-"], &namespace.to_string()).await.unwrap();
    site
}

impl Site {
    /// A value that keeps the webhook from the other namespaces of the same API server, where nobody answers for it.
    pub(crate) fn own_namespace_only(&self) -> String {
        format!(r#"webhook.namespaceSelector={{"matchLabels":{{"kubernetes.io/metadata.name":"{}"}}}}"#, self.namespace)
    }

    /// Standard output of kubectl in this namespace, or its standard error.
    pub(crate) async fn kubectl(&self, arguments: &[&str], input: &str) -> Result<String, String> {
        let mut command = self.server.instance().kubectl();
        command.args(["--namespace", &self.namespace]).args(arguments);
        run(command, input).await
    }

    /// Helm in this namespace, from the workspace's root.
    pub(crate) async fn helm(&self, arguments: &[&str], values: &[&str]) -> Result<String, String> {
        let mut command = self.server.instance().helm();
        command.current_dir(chart::workspace()).args(arguments).args(["--namespace", &self.namespace]).args(values);
        run(command, "").await
    }

    /// The same with Helm 3.
    pub(crate) async fn helm3(&self, arguments: &[&str], values: &[&str]) -> Result<String, String> {
        let mut command = Command::new(chart::helm3());
        command.env("KUBECONFIG", self.kubeconfig()).current_dir(chart::workspace());
        command.args(arguments).args(["--namespace", &self.namespace]).args(values);
        run(command, "").await
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.server.kubeconfig()
    }

    pub(crate) async fn get(&self, kind: &str, name: &str) -> Value {
        serde_json::from_str(&self.kubectl(&["get", kind, name, "-o", "json"], "").await.unwrap()).unwrap()
    }

    /// How many Pods there are with the `app.kubernetes.io/name` of a Deployment.
    pub(crate) async fn pods(&self, deployment: &str) -> u64 {
        let selector = format!("--selector=app.kubernetes.io/name={}", self.app_name(deployment).await);
        let names = self.kubectl(&["get", "pods", &selector, "-o", "name"], "").await.unwrap();
        names.lines().count() as u64
    }

    async fn app_name(&self, deployment: &str) -> String {
        let name = "jsonpath={.spec.selector.matchLabels.app\\.kubernetes\\.io/name}";
        self.kubectl(&["get", "deployment", deployment, "-o", name], "").await.unwrap()
    }

    /// Everything that a release could have left, in this namespace and outside of namespaces.
    pub(crate) async fn leftovers(&self) -> Vec<String> {
        let kinds = "deployments,replicasets,pods,services,endpointslices,serviceaccounts,secrets,configmaps,roles,rolebindings,\
                     poddisruptionbudgets,networkpolicies,servicemonitors,podmonitors,prometheusrules,certificates,issuers";
        let here = self.kubectl(&["get", kinds, "-o", "name"], "").await.unwrap();
        let kinds = "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations";
        let outside = self.kubectl(&["get", kinds, "-o", "name"], "").await.unwrap();
        let ours = |name: &&str| name.contains("kuberay") || name.contains("ray-operator") || name.contains("-role");
        let standard = ["serviceaccount/default", "configmap/kube-root-ca.crt"];
        let here = here.lines().filter(|name| !standard.contains(name) && !name.starts_with("secret/sh.helm.release"));
        let outside = outside.lines().filter(|name| !name.contains("/system:")).filter(ours);
        here.chain(outside).map(str::to_owned).collect()
    }

    pub(crate) async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let waiting = async {
            while !holds().await {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, waiting).await.is_err() {
            let events = self.kubectl(&["get", "events"], "").await.unwrap_or_default();
            panic!("{what}: not within {} s; left: {:?}\n{events}", PATIENCE.as_secs(), self.leftovers().await);
        }
    }
}

async fn run(mut command: Command, input: &str) -> Result<String, String> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(format!("{}{}", text(&output.stdout), text(&output.stderr))) }
}

//! One API server with the chart's CRDs for all admission tests, and a namespace for each.

use std::future::Future;
use std::path::Path;
use std::sync::LazyLock;
use std::time::Duration;

use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};
use testcluster::api::{ApiServer, Options};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// No test may take longer.
const LIMIT: Duration = Duration::from_secs(90);
/// Longest wait for any one thing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
/// The CA's Secret, in each test's own namespace.
pub(crate) const SECRET: &str = "kuberay-webhook-ca";
const SERVICE: &str = "kuberay-webhook";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));
static SERVER: OnceCell<ApiServer> = OnceCell::const_new();

/// Runs a test on the runtime and the API server that all tests share.
pub(crate) fn with_namespace<F: Future<Output = ()>>(name: &str, test: impl FnOnce(Scene) -> F) {
    RUNTIME.block_on(async {
        let server = SERVER.get_or_init(start).await;
        let scene = Scene { server, client: server.client(), namespace: name.to_owned() };
        scene.create_namespace().await;
        tokio::time::timeout(LIMIT, test(scene)).await.expect("the test ends in time");
    });
}

async fn start() -> ApiServer {
    let crds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/kuberay-operator/crds");
    let options = Options { manifests: vec![crds], controller_manager: false, ..Options::default() };
    ApiServer::start(options).await.expect("an API server")
}

/// A test's own namespace. Webhook configurations carry its name and are for it alone.
#[derive(Clone)]
pub(crate) struct Scene {
    pub(crate) server: &'static ApiServer,
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

impl Scene {
    async fn create_namespace(&self) {
        let namespace: Namespace =
            serde_json::from_value(json!({"metadata": {"name": self.namespace, "labels": {"tier": "gpu"}}})).expect("a namespace");
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await.expect("created");
    }

    /// Lets the API server call a webhook on `port` of this machine for this namespace: as it calls one behind a Service.
    pub(crate) async fn register(&self, port: u16) {
        let services: Api<Service> = Api::namespaced(self.client.clone(), &self.namespace);
        let service = json!({"metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
        services.create(&PostParams::default(), &serde_json::from_value(service).expect("a Service")).await.expect("created");
        self.configure(port).await;
    }

    /// Creates or re-applies both webhook configurations without a caBundle, as a chart does.
    pub(crate) async fn configure(&self, port: u16) {
        let configuration = |mode: &str| {
            let webhook = |kind: &str| {
                json!({
                    "name": format!("{mode}{kind}.kb.io"),
                    "admissionReviewVersions": ["v1"],
                    "sideEffects": "None",
                    "failurePolicy": "Fail",
                    "timeoutSeconds": 10,
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": self.namespace}},
                    "clientConfig": {"service": {"name": SERVICE, "namespace": self.namespace, "port": port, "path": format!("/{mode}-ray-io-v1-{kind}")}},
                    "rules": [{"apiGroups": ["ray.io"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": [format!("{kind}s")], "scope": "Namespaced"}],
                })
            };
            let webhooks: Vec<Value> = ["raycluster", "rayjob", "rayservice", "raycronjob"].map(webhook).to_vec();
            json!({"metadata": {"name": self.namespace}, "webhooks": webhooks})
        };
        let with_kind = |mut object: Value, kind: &str| {
            object["apiVersion"] = json!("admissionregistration.k8s.io/v1");
            object["kind"] = json!(kind);
            object
        };
        let params = PatchParams::apply("chart");
        let validating = with_kind(configuration("validate"), "ValidatingWebhookConfiguration");
        self.validating().patch(&self.namespace, &params, &Patch::Apply(&validating)).await.expect("applied");
        let mutating = with_kind(configuration("mutate"), "MutatingWebhookConfiguration");
        self.mutating().patch(&self.namespace, &params, &Patch::Apply(&mutating)).await.expect("applied");
    }

    pub(crate) fn validating(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    pub(crate) fn mutating(&self) -> Api<MutatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    pub(crate) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The CA's Secret as it stands.
    pub(crate) async fn secret(&self) -> Option<Secret> {
        self.secrets().get_opt(SECRET).await.expect("an answer")
    }

    /// The caBundles of all eight webhooks.
    pub(crate) async fn bundles(&self) -> Vec<Vec<u8>> {
        let validating = self.validating().get_opt(&self.namespace).await.expect("an answer");
        let mutating = self.mutating().get_opt(&self.namespace).await.expect("an answer");
        let validating = validating.and_then(|configuration| configuration.webhooks).unwrap_or_default();
        let mutating = mutating.and_then(|configuration| configuration.webhooks).unwrap_or_default();
        let configs = validating.into_iter().map(|webhook| webhook.client_config);
        let configs = configs.chain(mutating.into_iter().map(|webhook| webhook.client_config));
        configs.map(|config| config.ca_bundle.unwrap_or_default().0).collect()
    }

    /// Writes one caBundle into the first validating webhook, as somebody else would.
    pub(crate) async fn overwrite_bundle(&self, pem: &str) {
        let patch =
            json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": k8s_openapi::ByteString(pem.as_bytes().to_vec())}]);
        let patch = Patch::Json::<()>(serde_json::from_value(patch).expect("a patch"));
        self.validating().patch(&self.namespace, &PatchParams::default(), &patch).await.expect("patched");
    }

    pub(crate) async fn delete_configurations(&self) {
        self.validating().delete(&self.namespace, &DeleteParams::default()).await.expect("deleted");
        self.mutating().delete(&self.namespace, &DeleteParams::default()).await.expect("deleted");
    }

    pub(crate) fn rays(&self, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("ray.io", "v1", kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Creates a RayCluster; `dry` only asks.
    pub(crate) async fn create(&self, object: &Value, dry: bool) -> kube::Result<DynamicObject> {
        let object: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
        let kind = object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
        self.rays(&kind).create(&PostParams { dry_run: dry, ..PostParams::default() }, &object).await
    }

    /// Waits until the API server has the webhook in its way: until a bad object is refused by it.
    pub(crate) async fn enforced(&self) {
        until("the webhook refuses a bad object", async || match self.create(&raycluster("probe", &["a", "a"]), true).await {
            Err(kube::Error::Api(status)) => status.code == 422 && status.message.contains("groupName"),
            _ => false,
        })
        .await;
    }
}

/// Waits for a condition.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what}: not within {} s", PATIENCE.as_secs()));
}

/// A RayCluster with these worker groups.
pub(crate) fn raycluster(name: &str, groups: &[&str]) -> Value {
    let template = |name: &str| {
        let container = json!({"name": name, "image": "rayproject/ray:2.54.1", "resources": {"limits": {"cpu": "1", "memory": "2Gi"}}});
        json!({"spec": {"containers": [container]}})
    };
    let groups: Vec<Value> = groups
        .iter()
        .map(|group| json!({"groupName": group, "replicas": 1, "minReplicas": 0, "maxReplicas": 2, "rayStartParams": {}, "template": template("ray-worker")}))
        .collect();
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name},
        "spec": {"headGroupSpec": {"rayStartParams": {}, "template": template("ray-head")}, "workerGroupSpecs": groups},
    })
}

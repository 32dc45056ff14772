//! One API server with the chart's CRDs for all admission tests, and a namespace for each.

use std::future::Future;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use certs::{Certificate, bundle};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::{Namespace, Secret, Service};
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use serde_json::{Value, json};
use testcluster::api::{ApiServer, Options};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use crate::chart::{self, text};

/// No test may take longer.
const LIMIT: Duration = Duration::from_secs(90);
/// Longest wait for any one thing.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Label of a namespace: whose webhook reviews the objects in it.
const REVIEWED_BY: &str = "reviewed-by";
/// The CA's Secret, in each test's own namespace.
pub const SECRET: &str = "kuberay-webhook-ca";
/// The Service in front of the webhook, in each test's own namespace.
pub(super) const SERVICE: &str = "kuberay-webhook";

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));
static SERVER: OnceCell<ApiServer> = OnceCell::const_new();

/// Runs a test on the runtime and the API server that all tests share.
pub fn with_namespace<F: Future<Output = ()>>(name: &str, test: impl FnOnce(Scene) -> F) {
    RUNTIME.block_on(async {
        let server = SERVER.get_or_init(start).await;
        let scene = Scene { server, client: server.client(), namespace: name.to_owned() };
        scene.create_namespace().await;
        tokio::time::timeout(LIMIT, test(scene)).await.expect("the test ends in time");
    });
}

async fn start() -> ApiServer {
    let crds = chart::folder("kuberay-operator").join("crds");
    let options = Options { manifests: vec![crds], controller_manager: false, ..Options::default() };
    ApiServer::start(options).await.expect("an API server")
}

/// A test's own namespace. Webhook configurations carry its name and are for it alone.
#[derive(Clone)]
pub struct Scene {
    /// The API server.
    pub server: &'static ApiServer,
    /// The administrator.
    pub client: Client,
    /// Its name.
    pub namespace: String,
}

impl Scene {
    /// Another test namespace on the same API server.
    pub async fn another(&self, name: &str) -> Self {
        let scene = Self { namespace: name.to_owned(), ..self.clone() };
        scene.create_namespace().await;
        scene
    }

    /// A further namespace whose objects this scene's webhook reviews.
    pub async fn annex(&self, name: &str) -> Self {
        let annex = Self { namespace: name.to_owned(), ..self.clone() };
        annex.create_labelled(&self.namespace).await;
        annex
    }

    async fn create_namespace(&self) {
        self.create_labelled(&self.namespace).await;
    }

    async fn create_labelled(&self, reviewed_by: &str) {
        let labels = json!({"tier": "gpu", REVIEWED_BY: reviewed_by});
        let namespace: Namespace =
            serde_json::from_value(json!({"metadata": {"name": self.namespace, "labels": labels}})).expect("a namespace");
        Api::all(self.client.clone()).create(&PostParams::default(), &namespace).await.expect("created");
    }

    /// Name of both webhook configurations.
    pub fn configuration(&self) -> String {
        format!("{SERVICE}-{}", self.namespace)
    }

    /// Lets the API server call a webhook on `port` of this machine for this namespace: as it calls one behind a Service.
    pub async fn register(&self, port: u16) {
        let services: Api<Service> = Api::namespaced(self.client.clone(), &self.namespace);
        let service = json!({"metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
        services.create(&PostParams::default(), &serde_json::from_value(service).expect("a Service")).await.expect("created");
        self.configure(port).await;
    }

    /// Creates or re-applies the chart's webhook configurations, which have no caBundle.
    pub async fn configure(&self, port: u16) {
        let selector = format!(r#"webhook.namespaceSelector={{"matchLabels":{{"{REVIEWED_BY}":"{}"}}}}"#, self.namespace);
        // Where somebody else keeps the certificate, the chart spells the webhooks out; they are the same everywhere.
        let spelled_out = r#"webhook.certificates.mode="secret""#;
        let values = ["--set-json", r#"fullnameOverride="kuberay""#, "--set-json", &selector, "--set-json", spelled_out];
        let rendered = chart::render("kuberay-operator", "ray", &self.namespace, &values).expect("rendered");
        let rendered = rendered.with_webhooks().expect("webhooks");
        let params = PatchParams::apply("helm");
        for mut object in rendered.objects().iter().filter(|object| text(object, "/kind").ends_with("WebhookConfiguration")).cloned() {
            assert_eq!(text(&object, "/metadata/name"), self.configuration());
            for webhook in object["webhooks"].as_array_mut().expect("a list") {
                webhook["clientConfig"]["service"]["port"] = json!(port);
            }
            let name = self.configuration();
            match text(&object, "/kind") {
                "ValidatingWebhookConfiguration" => {
                    drop(self.validating().patch(&name, &params, &Patch::Apply(&object)).await.expect("applied"))
                }
                _ => drop(self.mutating().patch(&name, &params, &Patch::Apply(&object)).await.expect("applied")),
            }
        }
    }

    /// The configurations of validating webhooks.
    pub fn validating(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    /// The configurations of mutating webhooks.
    pub fn mutating(&self) -> Api<MutatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    /// The Secrets of the namespace.
    pub fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The CA's Secret as it stands.
    pub async fn secret(&self) -> Option<Secret> {
        self.secrets().get_opt(SECRET).await.expect("an answer")
    }

    /// The CA that signs now, according to the Secret.
    pub async fn current_ca(&self) -> Option<certs::Certificate> {
        match certs::secret::read(self.secret().await.as_ref()) {
            certs::secret::SecretState::Sound(material) => Some(material.current.certificate().clone()),
            _ => None,
        }
    }

    /// The caBundles of all eight webhooks.
    pub async fn bundles(&self) -> Vec<Vec<u8>> {
        let validating = self.validating().get_opt(&self.configuration()).await.expect("an answer");
        let mutating = self.mutating().get_opt(&self.configuration()).await.expect("an answer");
        let validating = validating.and_then(|configuration| configuration.webhooks).unwrap_or_default();
        let mutating = mutating.and_then(|configuration| configuration.webhooks).unwrap_or_default();
        let configs = validating.into_iter().map(|webhook| webhook.client_config);
        let configs = configs.chain(mutating.into_iter().map(|webhook| webhook.client_config));
        configs.map(|config| config.ca_bundle.unwrap_or_default().0).collect()
    }

    /// Waits until every caBundle has `ours`, which takes less than five seconds.
    pub async fn healed(&self, ours: &Certificate) {
        let start = Instant::now();
        until("every caBundle has our CA", async || {
            let bundles = self.bundles().await;
            bundles.len() == 8 && bundles.iter().all(|pem| bundle::parse(pem).contains(ours))
        })
        .await;
        println!("healed after {:?}", start.elapsed());
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    }

    /// Writes one caBundle into the first validating webhook, as somebody else would.
    pub async fn overwrite_bundle(&self, pem: &str) {
        let patch =
            json!([{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": k8s_openapi::ByteString(pem.as_bytes().to_vec())}]);
        let patch = Patch::Json::<()>(serde_json::from_value(patch).expect("a patch"));
        self.validating().patch(&self.configuration(), &PatchParams::default(), &patch).await.expect("patched");
    }

    /// Deletes both webhook configurations.
    pub async fn delete_configurations(&self) {
        self.validating().delete(&self.configuration(), &DeleteParams::default()).await.expect("deleted");
        self.mutating().delete(&self.configuration(), &DeleteParams::default()).await.expect("deleted");
    }

    /// The objects of a kind of `ray.io/v1` in the namespace.
    pub fn rays(&self, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("ray.io", "v1", kind));
        Api::namespaced_with(self.client.clone(), &self.namespace, &resource)
    }

    /// Creates an object; `dry` only asks.
    ///
    /// # Errors
    /// What the API server says.
    pub async fn create(&self, object: &Value, dry: bool) -> kube::Result<DynamicObject> {
        let object: DynamicObject = serde_json::from_value(object.clone()).expect("an object");
        let kind = object.types.as_ref().map(|types| types.kind.clone()).unwrap_or_default();
        self.rays(&kind).create(&PostParams { dry_run: dry, ..PostParams::default() }, &object).await
    }

    /// Waits until the API server has the webhook in its way: until a bad object is refused by it.
    pub async fn enforced(&self) {
        until("the webhook refuses a bad object", async || match self.create(&raycluster("probe", &["a", "a"]), true).await {
            Err(kube::Error::Api(status)) => status.code == 422 && status.message.contains("groupName"),
            _ => false,
        })
        .await;
    }
}

/// Waits for a condition.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what}: not within {} s", PATIENCE.as_secs()));
}

/// A RayCluster with these worker groups.
pub fn raycluster(name: &str, groups: &[&str]) -> Value {
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

//! Reads and writes of the authority at the API server. Decides nothing.

use std::time::Duration;

use futures::stream::{BoxStream, SelectAll};
use futures::{Stream, StreamExt};
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ObjectMeta, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, Resource};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::configurations::{APPLIED, Configuration, ConfigurationState, Entry, Injection, WANTED};

/// Name under which our writes appear in `managedFields`.
const FIELD_MANAGER: &str = "kuberay-webhook";
/// No single request may hold the loop up for longer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Which kind of webhook configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Validating,
    Mutating,
}

/// A webhook configuration that the authority looks after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) kind: Kind,
    pub(super) name: String,
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            Kind::Validating => "ValidatingWebhookConfiguration",
            Kind::Mutating => "MutatingWebhookConfiguration",
        };
        write!(f, "{kind} {}", self.name)
    }
}

/// Something that the API server reported.
#[derive(Debug)]
pub(super) enum Event {
    Secret(Option<Box<Secret>>),
    Configuration(usize, ConfigurationState),
    SecretError(String),
    ConfigurationError(usize, String),
}

/// How a write ended.
#[derive(Debug)]
pub(super) enum Outcome<T> {
    Written(T),
    /// Somebody else was faster; this is what they left.
    Overtaken(T),
    Failed(String),
}

/// Webhook configurations without the parts that nobody here needs.
trait View: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static {
    fn into_state(self) -> ConfigurationState;
}

macro_rules! view {
    ($name:ident, $of:ident) => {
        #[derive(Resource, Deserialize, Clone, Debug)]
        #[resource(inherit = $of)]
        struct $name {
            metadata: ObjectMeta,
            #[serde(default)]
            webhooks: Vec<WebhookView>,
        }

        impl View for $name {
            fn into_state(self) -> ConfigurationState {
                let entries = self.webhooks.into_iter().map(Entry::from).collect();
                let mut annotations = self.metadata.annotations.unwrap_or_default();
                ConfigurationState::Present(Configuration {
                    resource_version: self.metadata.resource_version,
                    entries,
                    wanted: annotations.remove(WANTED),
                    applied: annotations.remove(APPLIED),
                })
            }
        }
    };
}

view!(ValidatingView, ValidatingWebhookConfiguration);
view!(MutatingView, MutatingWebhookConfiguration);

#[derive(Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
struct WebhookView {
    name: String,
    #[serde(default)]
    client_config: ClientConfigView,
}

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(rename_all = "camelCase")]
struct ClientConfigView {
    #[serde(default)]
    ca_bundle: Option<ByteString>,
}

impl From<WebhookView> for Entry {
    fn from(view: WebhookView) -> Self {
        Self { name: view.name, bundle: view.client_config.ca_bundle.unwrap_or_default().0 }
    }
}

/// The objects that an authority works on.
pub(super) struct Cluster {
    client: Client,
    namespace: String,
    secret: String,
}

impl Cluster {
    pub(super) fn new(client: Client, namespace: String, secret: String) -> Self {
        Self { client, namespace, secret }
    }

    /// One endless stream of everything that happens to the Secret and the configurations. It repairs itself.
    pub(super) fn watch(&self, targets: &[Target]) -> SelectAll<BoxStream<'static, Event>> {
        let mut streams = SelectAll::new();
        streams.push(
            watcher::watch_object(self.secrets(), &self.secret)
                .default_backoff()
                .map(|item| match item {
                    Ok(secret) => Event::Secret(secret.map(Box::new)),
                    Err(error) => Event::SecretError(error.to_string()),
                })
                .boxed(),
        );
        for (index, target) in targets.iter().enumerate() {
            streams.push(match target.kind {
                Kind::Validating => configuration_events::<ValidatingView>(&self.client, index, &target.name).boxed(),
                Kind::Mutating => configuration_events::<MutatingView>(&self.client, index, &target.name).boxed(),
            });
        }
        streams
    }

    /// Creates the Secret, or replaces it if `secret` carries a resource version.
    pub(super) async fn write_secret(&self, mut secret: Secret) -> Outcome<Option<Box<Secret>>> {
        secret.metadata.name = Some(self.secret.clone());
        let api = self.secrets();
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let replaces = secret.metadata.resource_version.is_some();
        let written =
            timed(async { if replaces { api.replace(&self.secret, &params, &secret).await } else { api.create(&params, &secret).await } });
        match written.await {
            Ok(secret) => Outcome::Written(Some(Box::new(secret))),
            // "Not found" on a create speaks of the namespace.
            Err(error) if error.code == 409 || (error.code == 404 && replaces) => match timed(api.get_opt(&self.secret)).await {
                Ok(found) => Outcome::Overtaken(found.map(Box::new)),
                Err(error) => Outcome::Failed(error.text),
            },
            Err(error) => Outcome::Failed(error.text),
        }
    }

    /// Sends a patch made by [`Configuration::injection`].
    pub(super) async fn inject(&self, target: &Target, patch: &Injection) -> Outcome<ConfigurationState> {
        match target.kind {
            Kind::Validating => inject::<ValidatingView>(&self.client, &target.name, patch).await,
            Kind::Mutating => inject::<MutatingView>(&self.client, &target.name, patch).await,
        }
    }

    fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }
}

fn configuration_events<V: View>(client: &Client, index: usize, name: &str) -> impl Stream<Item = Event> + Send + use<V> {
    let api: Api<V> = Api::all(client.clone());
    watcher::watch_object(api, name).default_backoff().map(move |item| match item {
        Ok(found) => Event::Configuration(index, found.map_or(ConfigurationState::Absent, View::into_state)),
        Err(error) => Event::ConfigurationError(index, error.to_string()),
    })
}

async fn inject<V: View>(client: &Client, name: &str, injection: &Injection) -> Outcome<ConfigurationState> {
    let api: Api<V> = Api::all(client.clone());
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
    let patch = match injection {
        Injection::Bundles(patch) => Patch::Strategic(patch),
        Injection::Webhooks(patch) => Patch::Merge(patch),
    };
    match timed(api.patch(name, &params, &patch)).await {
        Ok(view) => Outcome::Written(view.into_state()),
        Err(error) if matches!(error.code, 404 | 409) => match timed(api.get_opt(name)).await {
            Ok(found) => Outcome::Overtaken(found.map_or(ConfigurationState::Absent, View::into_state)),
            Err(error) => Outcome::Failed(error.text),
        },
        Err(error) => Outcome::Failed(error.text),
    }
}

/// A failed request.
struct RequestError {
    text: String,
    /// HTTP status; zero if there was no answer.
    code: u16,
}

async fn timed<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, RequestError> {
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            let code = if let kube::Error::Api(status) = &error { status.code } else { 0 };
            Err(RequestError { text: error.to_string(), code })
        }
        Err(_) => Err(RequestError { text: format!("no answer within {} s", REQUEST_TIMEOUT.as_secs()), code: 0 }),
    }
}

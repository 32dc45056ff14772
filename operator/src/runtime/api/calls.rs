//! Single calls: addressed, limited in time, counted.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Client, Resource,
    api::{DeleteParams, GetParams, ListParams, Patch, PatchParams, PostParams, Preconditions},
    core::Request,
};
use serde::{Serialize, de::DeserializeOwned};

use super::{ApiError, FIELD_MANAGER};
use crate::runtime::{metrics::Metrics, traces};

/// How long the API server may take for an answer. Admission webhooks may use ten seconds each.
const DEADLINE: Duration = Duration::from_secs(30);

/// Makes calls. Cheap to clone.
#[derive(Clone)]
pub struct Calls {
    client: Client,
    metrics: Metrics,
}

/// Object that a call is about.
pub(super) struct Target<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
}

impl<'a> Target<'a> {
    pub(super) fn of(meta: &'a ObjectMeta) -> Self {
        Self {
            namespace: meta.namespace.as_deref().unwrap_or_default(),
            name: meta.name.as_deref().or(meta.generate_name.as_deref()).unwrap_or_default(),
        }
    }
}

impl Calls {
    /// Calls through `client`, counted in `metrics`.
    pub fn new(client: Client, metrics: Metrics) -> Self {
        Self { client, metrics }
    }

    /// Reads one object from the API server rather than from a cache; `None` if it does not exist. For kinds without a cache, such
    /// as Nodes and Secrets of users.
    ///
    /// # Errors
    /// When the API server cannot be asked or says anything but "not found".
    pub async fn get<K, V>(&self, namespace: &str, name: &str) -> Result<Option<V>, ApiError>
    where
        K: Resource<DynamicType = ()>,
        V: DeserializeOwned,
    {
        let request = Self::path::<K>(namespace).get(name, &GetParams::default());
        let answer = self.send::<K, V>("get", &Target { namespace, name }, request).await;
        match answer {
            Err(error) if error.is_not_found() => Ok(None),
            other => other.map(Some),
        }
    }

    /// Reads the objects of a namespace that a label selector picks from the API server rather than from a cache: for decisions that
    /// must not rest on a cache that may lag behind.
    ///
    /// # Errors
    /// When the API server cannot be asked or does not answer with a list.
    pub async fn list<K, V>(&self, namespace: &str, selector: &str) -> Result<Vec<V>, ApiError>
    where
        K: Resource<DynamicType = ()>,
        V: DeserializeOwned,
    {
        #[derive(serde::Deserialize)]
        struct List<V> {
            items: Vec<V>,
        }
        let request = Self::path::<K>(namespace).list(&ListParams::default().labels(selector));
        let list: List<V> = self.send::<K, _>("list", &Target { namespace, name: selector }, request).await?;
        Ok(list.items)
    }

    pub(super) async fn create<K, V>(&self, object: &K) -> Result<V, ApiError>
    where
        K: Resource<DynamicType = ()> + Serialize,
        V: DeserializeOwned,
    {
        let target = Target::of(object.meta());
        let body = serde_json::to_vec(object).map_err(|error| ApiError::form(Self::what::<K>("create", &target), error))?;
        let params = PostParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PostParams::default() };
        let request = Self::path::<K>(target.namespace).create(&params, body);
        self.send::<K, V>("create", &target, request).await
    }

    pub(super) async fn delete<K, V>(&self, target: &Target<'_>, uid: &str, params: DeleteParams) -> Result<V, ApiError>
    where
        K: Resource<DynamicType = ()>,
        V: DeserializeOwned,
    {
        let params = params.preconditions(Preconditions { uid: Some(uid.to_owned()), resource_version: None });
        let request = Self::path::<K>(target.namespace).delete(target.name, &params);
        self.send::<K, V>("delete", target, request).await
    }

    /// Patches an object or, with `sub`, a part of it such as `status`.
    pub(super) async fn patch<K, V, P>(&self, target: &Target<'_>, sub: Option<&str>, patch: &Patch<P>) -> Result<V, ApiError>
    where
        K: Resource<DynamicType = ()>,
        V: DeserializeOwned,
        P: Serialize + std::fmt::Debug,
    {
        let params = PatchParams {
            field_manager: Some(FIELD_MANAGER.to_owned()),
            force: matches!(patch, Patch::Apply(_)),
            ..PatchParams::default()
        };
        let path = Self::path::<K>(target.namespace);
        let request = match sub {
            Some(sub) => path.patch_subresource(sub, target.name, &params, patch),
            None => path.patch(target.name, &params, patch),
        };
        let verb = match (sub, patch) {
            (Some(_), _) => "patch_status",
            (None, Patch::Apply(_)) => "apply",
            (None, _) => "patch",
        };
        self.send::<K, V>(verb, target, request).await
    }

    async fn send<K, V>(
        &self,
        verb: &'static str,
        target: &Target<'_>,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> Result<V, ApiError>
    where
        K: Resource<DynamicType = ()>,
        V: DeserializeOwned,
    {
        let what = || Self::what::<K>(verb, target);
        let mut request = request.map_err(|error| ApiError::new(what(), kube::Error::BuildRequest(error)))?;
        let call = traces::call(verb, &K::kind(&()), target.namespace, target.name);
        traces::hand_on(&call, request.headers_mut());
        let answer = tokio::time::timeout(DEADLINE, self.client.request_text(request)).await;
        let result = match answer {
            Err(_) => Err(ApiError::timeout(what(), DEADLINE)),
            Ok(Err(error)) => Err(ApiError::new(what(), error)),
            Ok(Ok(text)) => serde_json::from_str(&text).map_err(|error| ApiError::form(what(), error)),
        };
        traces::called(&call, result.as_ref().err());
        if !matches!(verb, "get" | "list") {
            self.metrics.api_write(&K::kind(&()), verb, result.as_ref().err().map(|error: &ApiError| error.code()));
        }
        result
    }

    fn path<K: Resource<DynamicType = ()>>(namespace: &str) -> Request {
        Request::new(K::url_path(&(), Some(namespace).filter(|namespace| !namespace.is_empty())))
    }

    fn what<K: Resource<DynamicType = ()>>(verb: &'static str, target: &Target<'_>) -> (&'static str, String, String, String) {
        (verb, K::kind(&()).into_owned(), target.namespace.to_owned(), target.name.to_owned())
    }
}

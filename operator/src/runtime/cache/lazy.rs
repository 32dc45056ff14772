//! Ray objects, kept as text.
//!
//! A decoded RayCluster takes about ten times the memory of its JSON, most of it empty fields of Pod templates. So only metadata is
//! kept decoded; the rest is decoded each time the object is looked at, which takes a few microseconds. An object whose spec cannot
//! be decoded is still an object with a name, and never stops a watch.

use std::{
    collections::HashMap,
    fmt,
    marker::PhantomData,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{Resource, ResourceExt as _};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use shared::{
    api::{RayCluster, RayClusterSpec, RayClusterStatus, RayCronJob, RayCronJobSpec, RayCronJobStatus, RayJob, RayJobSpec, RayJobStatus},
    labels::annotation,
};

use super::{Cache, Kept, ObjectKey, Scope};
use crate::runtime::trim;

/// A kind whose objects people write and the operator reconciles.
pub trait Root: Resource<DynamicType = ()> + Clone + fmt::Debug + Send + Sync + 'static {
    /// What people want.
    type Spec: DeserializeOwned;
    /// What the operator says.
    type Status: DeserializeOwned;

    /// Puts an object together from its parts.
    fn assemble(metadata: ObjectMeta, spec: Self::Spec, status: Option<Self::Status>) -> Self;
}

macro_rules! root {
    ($($kind:ident, $spec:ident, $status:ident;)+) => {$(
        impl Root for $kind {
            type Spec = $spec;
            type Status = $status;

            fn assemble(metadata: ObjectMeta, spec: Self::Spec, status: Option<Self::Status>) -> Self {
                Self { metadata, spec, status }
            }
        }
    )+};
}

root! {
    RayCluster, RayClusterSpec, RayClusterStatus;
    RayJob, RayJobSpec, RayJobStatus;
    RayCronJob, RayCronJobSpec, RayCronJobStatus;
}

/// A Ray object of which only the metadata is decoded.
#[derive(Deserialize, Clone)]
#[serde(bound = "")]
pub struct Lazy<T> {
    #[serde(default, deserialize_with = "trim::metadata")]
    metadata: ObjectMeta,
    #[serde(default)]
    spec: Option<Box<RawValue>>,
    #[serde(default)]
    status: Option<Box<RawValue>>,
    #[serde(skip)]
    kind: PhantomData<T>,
}

/// A stored object that this program cannot read: the CustomResourceDefinition let something through that it should not have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {namespace}/{name} cannot be read, and is left alone until it changes: {problem}")]
pub struct Undecodable {
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
    /// What is wrong, and where.
    pub problem: String,
}

impl<T: Root> Lazy<T> {
    /// Decodes the object.
    ///
    /// # Errors
    /// When the spec is missing, or spec or status do not have the form that the API types say.
    pub fn decode(&self) -> Result<T, Undecodable> {
        let part = |name: &str, problem: serde_json::Error| self.undecodable(format!("{name}: {}", without_values(&problem.to_string())));
        let spec = self.spec.as_deref().map_or("null", RawValue::get);
        let spec = serde_json::from_str(spec).map_err(|problem| part("spec", problem))?;
        let status = self.status.as_deref().map(RawValue::get).map(serde_json::from_str::<Option<T::Status>>).transpose();
        let status = status.map_err(|problem| part("status", problem))?.flatten();
        Ok(T::assemble(self.metadata.clone(), spec, status))
    }

    /// As much of the spec as `S` asks for, if that can be read.
    pub fn spec<S: DeserializeOwned>(&self) -> Option<S> {
        serde_json::from_str(self.spec.as_deref()?.get()).ok()
    }

    /// Whether this version differs from `older` in more than its status. A status alone says nothing new to its author.
    pub fn is_edited(&self, older: &Self) -> bool {
        trim::metadata_differs(&self.metadata, &older.metadata)
    }

    fn undecodable(&self, problem: String) -> Undecodable {
        Undecodable { kind: T::kind(&()).into_owned(), namespace: self.namespace().unwrap_or_default(), name: self.name_any(), problem }
    }
}

/// What a decoder says, without the texts that it quotes: they may be secret.
fn without_values(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    for letter in text.chars() {
        if letter == '"' && !escaped {
            quoted = !quoted;
            kept.push_str(if quoted { "\"…" } else { "\"" });
        } else if !quoted {
            kept.push(letter);
        }
        escaped = letter == '\\' && !escaped;
    }
    kept
}

impl<T> fmt::Debug for Lazy<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lazy").field("name", &self.metadata.name).field("resource_version", &self.metadata.resource_version).finish()
    }
}

impl<T: Root> Resource for Lazy<T> {
    type DynamicType = ();
    type Scope = T::Scope;

    fn kind(dt: &()) -> std::borrow::Cow<'_, str> {
        T::kind(dt)
    }

    fn group(dt: &()) -> std::borrow::Cow<'_, str> {
        T::group(dt)
    }

    fn version(dt: &()) -> std::borrow::Cow<'_, str> {
        T::version(dt)
    }

    fn plural(dt: &()) -> std::borrow::Cow<'_, str> {
        T::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<T: Root> Kept for Lazy<T> {
    fn trim(&mut self) {
        trim::retain_annotations(&mut self.metadata, |key| key != annotation::LAST_APPLIED);
    }

    fn differs(&self, older: &Self) -> bool {
        self.is_edited(older) || self.status.as_deref().map(RawValue::get) != older.status.as_deref().map(RawValue::get)
    }
}

/// How many faulty objects are remembered as logged. Beyond that, faults may be logged again.
const MOST_LOGGED: usize = 1000;

/// A cache of Ray objects, decoded on each read.
pub struct Roots<T> {
    cache: Cache<Lazy<T>>,
    /// Objects whose fault was logged, with the version that has it.
    logged: Arc<Mutex<HashMap<ObjectKey, Option<String>>>>,
}

impl<T> Clone for Roots<T> {
    fn clone(&self) -> Self {
        Self { cache: self.cache.clone(), logged: Arc::clone(&self.logged) }
    }
}

impl<T: Root> Roots<T> {
    /// An empty cache, see [`Cache::new`].
    pub fn new(index: fn(&Lazy<T>) -> Option<&str>, scopes: &[Scope]) -> Self {
        Self { cache: Cache::new(index, scopes), logged: Arc::default() }
    }

    /// The object of this name, if it exists.
    ///
    /// # Errors
    /// When it exists and cannot be decoded. The fault is logged once for each version of the object.
    pub fn get(&self, namespace: &str, name: &str) -> Result<Option<Arc<T>>, Undecodable> {
        self.cache.get(namespace, name).map(|object| self.decode(&object)).transpose()
    }

    /// The objects of a group, ordered by name, see [`Cache::in_group`].
    ///
    /// # Errors
    /// When one of them cannot be decoded.
    pub fn in_group(&self, namespace: &str, group: &str) -> Result<Vec<Arc<T>>, Undecodable> {
        self.cache.in_group(namespace, group).iter().map(|object| self.decode(object)).collect()
    }

    /// The same, one by one: of an object that cannot be decoded its metadata, since it is there all the same.
    pub fn each_in_group(&self, namespace: &str, group: &str) -> Vec<Result<Arc<T>, Box<ObjectMeta>>> {
        let objects = self.cache.in_group(namespace, group);
        objects.iter().map(|object| self.decode(object).map_err(|_| Box::new(object.metadata.clone()))).collect()
    }

    /// The cache beneath: for waiting, counting and watching.
    pub fn cache(&self) -> &Cache<Lazy<T>> {
        &self.cache
    }

    /// Decodes one of the cache's objects.
    ///
    /// # Errors
    /// When it cannot be decoded. The fault is logged once for each version of the object.
    pub fn decode(&self, object: &Lazy<T>) -> Result<Arc<T>, Undecodable> {
        object.decode().map(Arc::new).inspect_err(|fault| {
            let version = object.metadata.resource_version.clone();
            let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
            if logged.len() >= MOST_LOGGED {
                logged.clear();
            }
            if logged.insert(ObjectKey::of(object), version.clone()) != Some(version) {
                tracing::error!(kind = %fault.kind, namespace = %fault.namespace, name = %fault.name, "{fault}");
            }
        })
    }
}

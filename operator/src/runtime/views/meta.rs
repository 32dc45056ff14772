//! Kinds of which only the metadata is kept.

use std::{borrow::Cow, fmt, marker::PhantomData};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use serde::{Deserialize, Deserializer};

use crate::runtime::{cache::Kept, trim};

/// An object of kind `K` without anything but its name and owners.
pub struct Meta<K> {
    /// Names and owners. Neither labels nor annotations.
    pub metadata: ObjectMeta,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Meta<K> {
    fn clone(&self) -> Self {
        Self { metadata: self.metadata.clone(), kind: PhantomData }
    }
}

impl<K> fmt::Debug for Meta<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Meta").field(&self.metadata).finish()
    }
}

impl<'de, K> Deserialize<'de> for Meta<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct OnlyMetadata {
            #[serde(default, deserialize_with = "trim::metadata")]
            metadata: ObjectMeta,
        }
        OnlyMetadata::deserialize(deserializer).map(|object| Self { metadata: object.metadata, kind: PhantomData })
    }
}

impl<K: Resource<DynamicType = ()>> Resource for Meta<K> {
    type DynamicType = ();
    type Scope = K::Scope;

    fn kind(dt: &()) -> Cow<'_, str> {
        K::kind(dt)
    }

    fn group(dt: &()) -> Cow<'_, str> {
        K::group(dt)
    }

    fn version(dt: &()) -> Cow<'_, str> {
        K::version(dt)
    }

    fn plural(dt: &()) -> Cow<'_, str> {
        K::plural(dt)
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

impl<K: Resource<DynamicType = ()> + 'static> Kept for Meta<K> {
    fn trim(&mut self) {
        trim::to_identity(&mut self.metadata);
    }

    fn differs(&self, older: &Self) -> bool {
        trim::is_other_version(&self.metadata, &older.metadata)
    }
}

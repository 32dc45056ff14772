//! A Pod in the making, with the Ray container set apart so that no step has to look for it.

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec, PodTemplateSpec, Volume};
use kube::core::ObjectMeta;

use crate::build::BuildError;

/// A Pod in the making.
pub(in crate::build) struct Draft {
    pub(in crate::build) metadata: ObjectMeta,
    /// The rest of the spec; its lists of containers and volumes are empty until [`Draft::into_pod`].
    pub(in crate::build) spec: PodSpec,
    /// The first container.
    pub(in crate::build) ray: Container,
    /// The containers behind it, in order (RC-34).
    pub(in crate::build) others: Vec<Container>,
    pub(in crate::build) init_containers: Vec<Container>,
    pub(in crate::build) volumes: Vec<Volume>,
}

impl Draft {
    /// Starts from a user's template, found at `path` of the spec.
    pub(in crate::build) fn from_template(template: &PodTemplateSpec, path: &str) -> Result<Self, BuildError> {
        let mut spec = template.spec.clone().unwrap_or_default();
        let mut containers = std::mem::take(&mut spec.containers).into_iter();
        let ray = containers.next().ok_or_else(|| BuildError::NoContainers { path: format!("{path}.spec.containers") })?;
        Ok(Self {
            metadata: template.metadata.clone().unwrap_or_default(),
            ray,
            others: containers.collect(),
            init_containers: spec.init_containers.take().unwrap_or_default(),
            volumes: spec.volumes.take().unwrap_or_default(),
            spec,
        })
    }

    /// The finished Pod.
    pub(in crate::build) fn into_pod(self) -> Pod {
        let Self { metadata, mut spec, ray, others, init_containers, volumes } = self;
        spec.containers = std::iter::once(ray).chain(others).collect();
        spec.init_containers = (!init_containers.is_empty()).then_some(init_containers);
        spec.volumes = (!volumes.is_empty()).then_some(volumes);
        Pod { metadata, spec: Some(spec), status: None }
    }

    pub(in crate::build) fn annotation(&self, key: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(key).map(String::as_str)
    }

    pub(in crate::build) fn annotate(&mut self, key: &str, value: impl Into<String>) {
        self.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.into());
    }

    pub(in crate::build) fn label(&mut self, key: &str, value: impl Into<String>) {
        self.metadata.labels.get_or_insert_default().insert(key.to_owned(), value.into());
    }

    /// Adds a volume unless one of the same name exists.
    pub(in crate::build) fn volume_if_absent(&mut self, volume: Volume) {
        if !self.volumes.iter().any(|known| known.name == volume.name) {
            self.volumes.push(volume);
        }
    }

    /// The container of the Pod with this name, the Ray container aside.
    pub(in crate::build) fn other_mut(&mut self, name: &str) -> Option<&mut Container> {
        // The operator's own containers come behind the user's; the last of a name is ours.
        self.others.iter_mut().rev().find(|container| container.name == name)
    }
}

//! Small operations on containers that keep the builders free of `Option` handling.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar, ResourceRequirements, VolumeMount};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::settings::Settings;

/// Command of every container whose argument is a text for the shell (RC-40); with `exit_on_error` the shell stops at the first
/// command that fails (RJ-114).
pub fn shell(settings: &Settings, exit_on_error: bool) -> Vec<String> {
    let options = match (settings.switches.login_shell, exit_on_error) {
        (false, false) => "-c",
        (true, false) => "-cl",
        (false, true) => "-ce",
        (true, true) => "-cel",
    };
    ["/bin/bash", options, "--"].map(str::to_owned).to_vec()
}

/// Requests and limits that are the same, so that the container never takes more than it asked for.
pub(super) fn fixed_resources(cpu: &str, memory: &str) -> ResourceRequirements {
    ResourceRequirements { limits: Some(amounts(cpu, memory)), requests: Some(amounts(cpu, memory)), claims: None }
}

/// CPU and memory as a resource list.
pub(super) fn amounts(cpu: &str, memory: &str) -> BTreeMap<String, Quantity> {
    [("cpu", cpu), ("memory", memory)].map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned()))).into()
}

/// Reading and adding of variables and mounts.
pub(super) trait ContainerExt {
    /// Whether a variable of this name is set on the container itself.
    fn has_env(&self, name: &str) -> bool;
    /// Adds a variable behind all others.
    fn push_env(&mut self, variable: EnvVar);
    /// Adds variables behind all others.
    fn push_envs(&mut self, variables: impl IntoIterator<Item = EnvVar>);
    /// Adds a variable unless one of the same name exists.
    fn env_if_absent(&mut self, variable: EnvVar);
    /// The mounts.
    fn mounts(&self) -> &[VolumeMount];
    /// The mount at `path`.
    fn mount_at(&self, path: &str) -> Option<&VolumeMount>;
    /// Adds a mount.
    fn push_mount(&mut self, mount: VolumeMount);
    /// The limit of a resource.
    fn limit(&self, name: &str) -> Option<&Quantity>;
    /// The request of a resource.
    fn request(&self, name: &str) -> Option<&Quantity>;
    /// Number of the port called `name`.
    fn port_named(&self, name: &str) -> Option<i32>;
}

impl ContainerExt for Container {
    fn has_env(&self, name: &str) -> bool {
        self.env.iter().flatten().any(|variable| variable.name == name)
    }

    fn push_env(&mut self, variable: EnvVar) {
        self.env.get_or_insert_default().push(variable);
    }

    fn push_envs(&mut self, variables: impl IntoIterator<Item = EnvVar>) {
        self.env.get_or_insert_default().extend(variables);
    }

    fn env_if_absent(&mut self, variable: EnvVar) {
        if !self.has_env(&variable.name) {
            self.push_env(variable);
        }
    }

    fn mounts(&self) -> &[VolumeMount] {
        self.volume_mounts.as_deref().unwrap_or_default()
    }

    fn mount_at(&self, path: &str) -> Option<&VolumeMount> {
        // A trailing slash names the same folder.
        self.mounts().iter().find(|mount| mount.mount_path.trim_end_matches('/') == path)
    }

    fn push_mount(&mut self, mount: VolumeMount) {
        self.volume_mounts.get_or_insert_default().push(mount);
    }

    fn limit(&self, name: &str) -> Option<&Quantity> {
        self.resources.as_ref()?.limits.as_ref()?.get(name)
    }

    fn request(&self, name: &str) -> Option<&Quantity> {
        self.resources.as_ref()?.requests.as_ref()?.get(name)
    }

    fn port_named(&self, name: &str) -> Option<i32> {
        self.ports.iter().flatten().find(|port| port.name.as_deref() == Some(name)).map(|port| port.container_port)
    }
}

/// A mount without options.
pub(super) fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount { name: volume.to_owned(), mount_path: path.to_owned(), ..VolumeMount::default() }
}

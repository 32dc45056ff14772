//! Shared memory and the shared log folder (RC-35).

use k8s_openapi::api::core::v1::{EmptyDirVolumeSource, Volume, VolumeMount};

use super::draft::Draft;
use crate::build::container::{ContainerExt, mount};

const SHARED_MEMORY: &str = "shared-mem";
const LOGS: &str = "ray-logs";
const LOGS_PATH: &str = "/tmp/ray";

/// Memory-backed `/dev/shm` for Ray's object store, as large as the memory of the Ray container.
pub(super) fn add_shared_memory(pod: &mut Draft) {
    const PATH: &str = "/dev/shm";
    if pod.ray.mount_at(PATH).is_some() {
        return;
    }
    let size_limit = pod.ray.limit("memory").or_else(|| pod.ray.request("memory")).cloned();
    pod.volume_if_absent(Volume {
        name: SHARED_MEMORY.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource { medium: Some("Memory".to_owned()), size_limit, ..EmptyDirVolumeSource::default() }),
        ..Volume::default()
    });
    pod.ray.push_mount(mount(SHARED_MEMORY, PATH));
}

/// Gives the container called `name` Ray's log folder. Where the user has mounted a volume of his own there, it is that volume.
pub(super) fn share_logs_with(pod: &mut Draft, name: &str) {
    let shared = match pod.ray.mount_at(LOGS_PATH) {
        Some(of_user) => of_user.clone(),
        None => {
            let logs = mount(LOGS, LOGS_PATH);
            pod.ray.push_mount(logs.clone());
            logs
        }
    };
    if shared.name == LOGS {
        pod.volume_if_absent(Volume { name: LOGS.to_owned(), empty_dir: Some(EmptyDirVolumeSource::default()), ..Volume::default() });
    }
    if let Some(other) = pod.other_mut(name)
        && other.mount_at(LOGS_PATH).is_none()
    {
        other.push_mount(VolumeMount { mount_path: LOGS_PATH.to_owned(), ..shared });
    }
}

//! Token authentication of Ray: variables and volumes of every container that talks to a cluster (RC-90..RC-92, RJ-115).

use k8s_openapi::api::core::v1::{
    Container, PodSpec, ProjectedVolumeSource, ServiceAccountTokenProjection, Volume, VolumeMount, VolumeProjection,
};
use shared::api::RayCluster;
use shared::api::raycluster::AuthMode;
use shared::labels::container::WAIT_GCS_READY;
use shared::labels::env;
use shared::names;

use super::container::{ContainerExt, mount};
use super::env::{secret_key, value};
use super::pod::Draft;

/// Key of the Secret that holds the token.
pub const TOKEN_KEY: &str = "auth_token";
const VOLUME: &str = "ray-token";
const PATH: &str = "/var/run/secrets/ray.io/serviceaccount";

/// Whether nodes and clients of the cluster must show a token (RC-90).
pub fn uses_tokens(cluster: &RayCluster) -> bool {
    cluster.spec.auth_options.as_ref().is_some_and(|options| options.mode == Some(AuthMode::Token))
}

/// Whether the tokens are those of Kubernetes ServiceAccounts instead of one in a Secret.
pub fn uses_service_account_tokens(cluster: &RayCluster) -> bool {
    uses_tokens(cluster) && cluster.spec.auth_options.as_ref().is_some_and(|options| options.enable_k8s_token_auth == Some(true))
}

/// Name of the Secret with the cluster's token: the user's, or the one that the operator makes (RC-91).
pub fn secret_name(cluster: &RayCluster) -> String {
    let chosen = cluster.spec.auth_options.as_ref().and_then(|options| options.secret_name.as_deref());
    match chosen {
        Some(name) if !name.is_empty() => name.to_owned(),
        _ => names::auth_secret(cluster.metadata.name.as_deref().unwrap_or_default()),
    }
}

/// Gives one container what it needs to show the cluster's token; variables and mounts that exist already stay. The Pod needs
/// [`add_volume`] as well.
pub fn add_to_container(container: &mut Container, cluster: &RayCluster) {
    if !uses_tokens(cluster) {
        return;
    }
    container.env_if_absent(value(env::RAY_AUTH_MODE, "token"));
    if uses_service_account_tokens(cluster) {
        container.env_if_absent(value(env::RAY_ENABLE_K8S_TOKEN_AUTH, "true"));
        if !container.mounts().iter().any(|mount| mount.name == VOLUME) {
            container.push_mount(VolumeMount { read_only: Some(true), ..mount(VOLUME, PATH) });
        }
    } else {
        container.env_if_absent(secret_key(env::RAY_AUTH_TOKEN, &secret_name(cluster), TOKEN_KEY));
    }
}

/// Gives a Pod the volume that [`add_to_container`] mounts, if one is needed and not there yet.
pub fn add_volume(pod: &mut PodSpec, cluster: &RayCluster) {
    if let Some(volume) = volume(cluster)
        && !pod.volumes.iter().flatten().any(|known| known.name == volume.name)
    {
        pod.volumes.get_or_insert_default().push(volume);
    }
}

/// The projected token of the Pod's ServiceAccount; its lifetime is the kubelet's default (RC-92).
fn volume(cluster: &RayCluster) -> Option<Volume> {
    let token = ServiceAccountTokenProjection { path: "token".to_owned(), ..ServiceAccountTokenProjection::default() };
    let source = VolumeProjection { service_account_token: Some(token), ..VolumeProjection::default() };
    uses_service_account_tokens(cluster).then(|| Volume {
        name: VOLUME.to_owned(),
        projected: Some(ProjectedVolumeSource { sources: Some(vec![source]), ..ProjectedVolumeSource::default() }),
        ..Volume::default()
    })
}

/// A Ray Pod: Ray itself and the wait for the head; the autoscaler and the collector are given theirs where they are made.
pub(super) fn add_to_pod(pod: &mut Draft, cluster: &RayCluster) {
    add_to_container(&mut pod.ray, cluster);
    for init in pod.init_containers.iter_mut().filter(|init| init.name == WAIT_GCS_READY) {
        add_to_container(init, cluster);
    }
    if let Some(volume) = volume(cluster) {
        pod.volume_if_absent(volume);
    }
}

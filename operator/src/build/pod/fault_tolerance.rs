//! GCS fault tolerance: what Pods need to find the store (RC-80..RC-86).

use k8s_openapi::api::core::v1::{EnvVar, PersistentVolumeClaimVolumeSource, Volume, VolumeMount};
use shared::api::raycluster::{GcsFaultToleranceOptions, RedisCredential};
use shared::labels::{annotation, env};

use super::draft::Draft;
use crate::build::container::ContainerExt;
use crate::build::context::Context;
use crate::build::env::value;
use crate::build::pvc;
use crate::build::ray_start::Params;
use crate::build::{GcsStore, gcs_store};

const STORAGE_VOLUME: &str = "gcs-storage";
const STORAGE_PATH: &str = "/data/gcs";

/// RC-81: workers wait for a head that comes back instead of giving up.
pub(super) fn add_to_worker(pod: &mut Draft, cx: &Context<'_>) {
    if gcs_store(cx.cluster).is_some() {
        pod.ray.env_if_absent(value(env::RAY_GCS_RPC_SERVER_RECONNECT_TIMEOUT_S, "600"));
    }
}

/// Annotates the head and connects it to its store.
pub(super) fn add_to_head(pod: &mut Draft, params: &mut Params, cx: &Context<'_>) {
    let store = gcs_store(cx.cluster);
    pod.annotate(annotation::FT_ENABLED, if store.is_some() { "true" } else { "false" });
    match store {
        None => {}
        Some(GcsStore::Redis) => add_redis(pod, params, cx),
        Some(GcsStore::Embedded) => add_embedded(pod, cx),
    }
}

fn add_redis(pod: &mut Draft, params: &mut Params, cx: &Context<'_>) {
    let options = cx.cluster.spec.gcs_fault_tolerance_options.as_ref();
    let namespace = storage_namespace(options, cx);
    pod.annotate(annotation::EXTERNAL_STORAGE_NAMESPACE, &namespace);
    pod.ray.env_if_absent(value(env::RAY_EXTERNAL_STORAGE_NAMESPACE, namespace));
    match options {
        Some(options) => {
            pod.ray.push_env(value(env::RAY_REDIS_ADDRESS, options.redis_address.clone().unwrap_or_default()));
            add_credential(pod, params, "redis-username", env::REDIS_USERNAME, options.redis_username.as_ref());
            add_credential(pod, params, "redis-password", env::REDIS_PASSWORD, options.redis_password.as_ref());
        }
        // Clusters that know fault tolerance from the annotation alone pass the password as an option (RC-84). The clean-up needs it
        // as a variable.
        None => {
            if let Some(password) = params.get("redis-password") {
                pod.ray.env_if_absent(value(env::REDIS_PASSWORD, password));
            }
        }
    }
}

/// RC-82: the uid keeps clusters apart that share a Redis, and a cluster of an earlier life with the same name.
fn storage_namespace(options: Option<&GcsFaultToleranceOptions>, cx: &Context<'_>) -> String {
    let chosen = options.and_then(|options| options.external_storage_namespace.as_deref()).filter(|name| !name.is_empty());
    chosen
        .or_else(|| cx.annotation(annotation::EXTERNAL_STORAGE_NAMESPACE))
        .or(cx.cluster.metadata.uid.as_deref())
        .unwrap_or_default()
        .to_owned()
}

/// RC-83: the option refers to the variable, so that the secret itself stands neither in the command nor in a process list. In quotes,
/// because a password may hold blanks and whatever else a shell would take apart.
fn add_credential(pod: &mut Draft, params: &mut Params, option: &str, variable: &str, credential: Option<&RedisCredential>) {
    let Some(credential) = credential else { return };
    params.insert(option.to_owned(), format!("\"${variable}\""));
    pod.ray.push_env(EnvVar { name: variable.to_owned(), value: credential.value.clone(), value_from: credential.value_from.clone() });
}

/// RC-85.
fn add_embedded(pod: &mut Draft, cx: &Context<'_>) {
    pod.ray.env_if_absent(value(env::RAY_GCS_STORAGE, "rocksdb"));
    pod.ray.env_if_absent(value(env::RAY_GCS_STORAGE_PATH, STORAGE_PATH));
    let storage = cx.cluster.spec.gcs_fault_tolerance_options.as_ref().and_then(|options| options.storage.as_ref());
    pod.ray.push_mount(VolumeMount {
        name: STORAGE_VOLUME.to_owned(),
        mount_path: STORAGE_PATH.to_owned(),
        sub_path: storage.and_then(|storage| storage.sub_path.clone()).filter(|path| !path.is_empty()),
        ..VolumeMount::default()
    });
    pod.volumes.push(Volume {
        name: STORAGE_VOLUME.to_owned(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource { claim_name: pvc::gcs_claim_name(cx.cluster), read_only: None }),
        ..Volume::default()
    });
}

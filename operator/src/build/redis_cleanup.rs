//! The Job that deletes a cluster's keys from Redis (RC-116).

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::core::ObjectMeta;
use shared::api::RayCluster;
use shared::labels::container::WAIT_TLS_IP_SAN;
use shared::labels::{APPLICATION_NAME, OPERATOR_NAME, env, label, node_type};
use shared::names;

use super::container::{ContainerExt, fixed_resources};
use super::env::value;
use super::{BuildError, owner_reference, pod, shell};
use crate::settings::Settings;

/// The Job: the head Pod reduced to its Ray container, which runs Ray's own clean-up with the head's variables and volumes.
///
/// # Errors
/// When the head's template has no container.
pub fn job(cluster: &RayCluster, settings: &Settings) -> Result<Job, BuildError> {
    let head = pod::head(cluster, settings)?;
    let mut spec = head.spec.unwrap_or_default();
    spec.containers.truncate(1);
    spec.restart_policy = Some("Never".to_owned());
    // The address that this one waits for is the head's; no certificate will ever name the address of this Pod.
    spec.init_containers = spec
        .init_containers
        .map(|init| init.into_iter().filter(|container| container.name != WAIT_TLS_IP_SAN).collect::<Vec<_>>())
        .filter(|init| !init.is_empty());
    for ray in &mut spec.containers {
        let with_username = ray.has_env(env::REDIS_USERNAME);
        ray.push_envs([value("RAY_redis_db_connect_retries", "120"), value("RAY_redis_db_connect_wait_milliseconds", "500")]);
        ray.command = Some(shell(settings, false));
        ray.args = Some(vec![script(with_username)]);
        ray.resources = Some(fixed_resources("200m", "256Mi"));
        (ray.liveness_probe, ray.readiness_probe, ray.startup_probe) = (None, None, None);
        // Hooks belong to a running Ray; a failing one would end the container.
        ray.lifecycle = None;
    }

    let mut labels = head.metadata.labels.unwrap_or_default();
    labels.insert(label::NODE_TYPE.to_owned(), node_type::REDIS_CLEANUP.to_owned());
    // The operator finds its Jobs by these two, whatever the user wrote on the head's template.
    labels.insert(label::K8S_NAME.to_owned(), APPLICATION_NAME.to_owned());
    labels.insert(label::K8S_CREATED_BY.to_owned(), OPERATOR_NAME.to_owned());
    let annotations = head.metadata.annotations;
    Ok(Job {
        metadata: ObjectMeta {
            name: Some(names::redis_cleanup_job(cluster.metadata.name.as_deref().unwrap_or_default())),
            namespace: cluster.metadata.namespace.clone(),
            labels: Some(labels.clone()),
            annotations: annotations.clone(),
            owner_references: Some(vec![owner_reference(cluster)]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec {
            backoff_limit: Some(0),
            active_deadline_seconds: Some(300),
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta { labels: Some(labels), annotations, ..ObjectMeta::default() }),
                spec: Some(spec),
            },
            ..JobSpec::default()
        }),
        status: None,
    })
}

/// Everything variable comes from the environment, so the text holds nothing that a shell or Python could misread.
fn script(with_username: bool) -> String {
    let username = if with_username { ", username=os.getenv('REDIS_USERNAME') or url.username" } else { "" };
    format!(
        r#"echo "Deleting the keys of this cluster from Redis. If this fails, delete them by hand: they start with the value of RAY_external_storage_namespace." && python -c "
import os, sys
from urllib.parse import urlparse
from ray._private.gcs_utils import cleanup_redis_storage
address = os.getenv('RAY_REDIS_ADDRESS', '').split(',')[0]
url = urlparse(address if '://' in address else 'redis://' + address)
done = cleanup_redis_storage(host=url.hostname, port=url.port or 6379, password=os.getenv('REDIS_PASSWORD') or url.password or '', use_ssl=url.scheme == 'rediss', storage_namespace=os.getenv('RAY_external_storage_namespace'){username})
sys.exit(0 if done else 1)
""#
    )
}

//! The RayCluster that is made for a RayJob (RJ-82, RJ-140).

use kube::core::ObjectMeta;
use shared::api::rayjob::SubmissionMode;
use shared::api::{RayCluster, RayJob};
use shared::features::Feature;
use shared::labels::{annotation, label, port};

use super::submitter::{self, SubmitError};
use super::{head_fqdn, owner_reference, scheduling, service};
use crate::settings::Settings;

/// The cluster called `name` for the try whose job has the id `job_id`. In SidecarMode the head Pod gets the submitter, never
/// starts again, and is not replaced once the cluster has been complete.
///
/// # Errors
/// When there is no cluster spec, or in SidecarMode when the job cannot be turned into a request to Ray.
pub fn cluster(job: &RayJob, mode: SubmissionMode, name: &str, job_id: &str, settings: &Settings) -> Result<RayCluster, SubmitError> {
    let job_name = job.metadata.name.clone().unwrap_or_default();
    let spec = job.spec.ray_cluster_spec.clone().ok_or(SubmitError::NoClusterSpec)?;
    let mut labels = job.metadata.labels.clone().unwrap_or_default();
    labels.insert(label::ORIGINATED_FROM_CR_NAME.to_owned(), job_name);
    labels.insert(label::ORIGINATED_FROM_CRD.to_owned(), "RayJob".to_owned());
    labels.insert(label::JOB_SUBMISSION_MODE.to_owned(), mode.as_str().to_owned());
    let mut annotations = job.metadata.annotations.clone().unwrap_or_default();
    // It describes the RayJob, and doubles the size of the object (WEAK-33).
    annotations.remove(annotation::LAST_APPLIED);
    let mut cluster = RayCluster {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: job.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: None,
            owner_references: Some(vec![owner_reference(job)]),
            ..ObjectMeta::default()
        },
        spec,
        status: None,
    };
    if submitter::in_head(mode) {
        let restarts = settings.features.enabled(Feature::SidecarSubmitterRestart);
        let container = submitter::sidecar(job, &cluster, job_id, restarts, settings)?;
        annotations.insert(annotation::DISABLE_PROVISIONED_HEAD_RESTART.to_owned(), "true".to_owned());
        let head = cluster.spec.head_group_spec.template.spec.get_or_insert_default();
        head.containers.push(container);
        head.restart_policy = Some("Never".to_owned());
    }
    cluster.metadata.annotations = (!annotations.is_empty()).then_some(annotations);
    scheduling::mark_cluster(&mut cluster, job, mode, settings);
    Ok(cluster)
}

/// `host:port` of a cluster's dashboard inside Kubernetes (RJ-84): the port of the head Service that is called `dashboard`, or
/// Ray's usual one (WEAK-7).
pub fn dashboard_address(cluster: &RayCluster, settings: &Settings) -> String {
    let service = service::head(cluster, settings);
    let ports = service.spec.and_then(|spec| spec.ports).unwrap_or_default();
    let port = ports.iter().find(|port| port.name.as_deref() == Some(port::DASHBOARD_NAME)).map_or(port::DASHBOARD, |port| port.port);
    format!("{}:{port}", head_fqdn(cluster, settings))
}

#[cfg(test)]
#[path = "job_cluster_tests.rs"]
mod tests;

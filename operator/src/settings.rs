//! What was decided at start and holds for the life of the process: gates, switches, Pod defaults, platform.
//!
//! `build` and `plan` see nothing of the operator's surroundings but this.

use std::{collections::BTreeMap, path::PathBuf};

use k8s_openapi::api::core::v1::{Container, EnvVar};
use shared::features::FeatureGates;

use crate::build::scheduling::Scheduler;

/// Version that the operator writes into annotations and tells Ray. It differs from every KubeRay version on purpose: Pods that
/// carry another version get their annotations refreshed instead of being replaced (RC-156, RC-157).
pub const VERSION: &str = concat!("rs-v", env!("CARGO_PKG_VERSION"));

/// Everything that building and planning may depend on besides the objects themselves.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Feature gates.
    pub features: FeatureGates,
    /// Switches from environment variables.
    pub switches: Switches,
    /// What the configuration file adds to Pods.
    pub pods: PodDefaults,
    /// What was found of the cluster at start.
    pub platform: Platform,
    /// Gang scheduler, if one was chosen (BS-1).
    pub scheduler: Option<Scheduler>,
    /// File that names the rules that only warn, if there is one.
    pub rules_file: Option<PathBuf>,
}

/// Switches from environment variables (RC-246). [`Switches::default`] is what no variable at all gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switches {
    /// `ENABLE_INIT_CONTAINER_INJECTION`: workers wait for the head (RC-65).
    pub init_container_injection: bool,
    /// `ENABLE_PROBES_INJECTION` (RC-60).
    pub probes_injection: bool,
    /// `ENABLE_GCS_FT_REDIS_CLEANUP` (RC-108).
    pub redis_cleanup: bool,
    /// `ENABLE_RANDOM_POD_DELETE`: surplus workers of autoscaled groups may be chosen by the operator (RC-182).
    pub random_pod_delete: bool,
    /// `ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE`: the head Service gets an address of its own (RC-132).
    pub head_cluster_ip_service: bool,
    /// `ENABLE_DETERMINISTIC_HEAD_POD_NAME`: the head Pod's name has no random part (RC-15).
    pub deterministic_head_pod_name: bool,
    /// `ENABLE_LOGIN_SHELL`: generated commands run in a login shell (RC-40).
    pub login_shell: bool,
    /// `CLUSTER_DOMAIN` (RC-16).
    pub cluster_domain: String,
    /// `RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV`: seconds between two looks at an unchanged RayCluster (RC-107).
    pub cluster_requeue_seconds: u64,
    /// `USE_INGRESS_ON_OPENSHIFT` (RC-140).
    pub ingress_on_openshift: bool,
    /// `DELETE_RAYJOB_CR_AFTER_JOB_FINISHES` (RJ-105).
    pub delete_ray_job_after_finish: bool,
    /// `RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS` (RJ-64).
    pub job_transition_grace_seconds: i64,
    /// `RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS` (RJ-65).
    pub job_status_check_timeout_seconds: i64,
    /// `ENABLE_ZERO_DOWNTIME`: RayServices may start a second cluster.
    pub zero_downtime: bool,
}

impl Default for Switches {
    fn default() -> Self {
        Self {
            init_container_injection: true,
            probes_injection: true,
            redis_cleanup: true,
            random_pod_delete: false,
            head_cluster_ip_service: false,
            deterministic_head_pod_name: false,
            login_shell: false,
            cluster_domain: "cluster.local".to_owned(),
            cluster_requeue_seconds: 300,
            ingress_on_openshift: false,
            delete_ray_job_after_finish: false,
            job_transition_grace_seconds: 300,
            job_status_check_timeout_seconds: 300,
            zero_downtime: true,
        }
    }
}

impl Switches {
    /// Reads the switches with `variable`, which answers with a variable's value if it is set.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let default = Self::default();
        let on = |name: &str| variable(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let not_off = |name: &str| !variable(name).is_some_and(|value| value.eq_ignore_ascii_case("false"));
        let number = |name: &str| variable(name).and_then(|value| value.trim().parse::<i64>().ok());
        Self {
            init_container_injection: not_off("ENABLE_INIT_CONTAINER_INJECTION"),
            probes_injection: not_off("ENABLE_PROBES_INJECTION"),
            redis_cleanup: not_off("ENABLE_GCS_FT_REDIS_CLEANUP"),
            random_pod_delete: on("ENABLE_RANDOM_POD_DELETE"),
            head_cluster_ip_service: on("ENABLE_RAY_HEAD_CLUSTER_IP_SERVICE"),
            deterministic_head_pod_name: on("ENABLE_DETERMINISTIC_HEAD_POD_NAME"),
            login_shell: on("ENABLE_LOGIN_SHELL"),
            cluster_domain: variable("CLUSTER_DOMAIN").filter(|value| !value.is_empty()).unwrap_or(default.cluster_domain),
            cluster_requeue_seconds: number("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV")
                .and_then(|seconds| u64::try_from(seconds).ok())
                .filter(|seconds| *seconds > 0)
                .unwrap_or(default.cluster_requeue_seconds),
            ingress_on_openshift: on("USE_INGRESS_ON_OPENSHIFT"),
            delete_ray_job_after_finish: on("DELETE_RAYJOB_CR_AFTER_JOB_FINISHES"),
            job_transition_grace_seconds: number("RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS")
                .unwrap_or(default.job_transition_grace_seconds),
            job_status_check_timeout_seconds: number("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS")
                .filter(|seconds| *seconds > 0)
                .unwrap_or(default.job_status_check_timeout_seconds),
            zero_downtime: not_off("ENABLE_ZERO_DOWNTIME"),
        }
    }
}

/// What the configuration file adds to every head and worker Pod (RC-241).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodDefaults {
    /// Containers added to head Pods.
    pub head_sidecars: Vec<Container>,
    /// Containers added to worker Pods.
    pub worker_sidecars: Vec<Container>,
    /// Environment of Ray containers, where the user has not set the same name.
    pub env: Vec<EnvVar>,
    /// Annotations, where the user has not set the same key.
    pub annotations: BTreeMap<String, String>,
    /// Labels, where neither the user nor the operator has set the same key.
    pub labels: BTreeMap<String, String>,
}

/// What was found of the Kubernetes cluster at start (RC-245).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Platform {
    /// The API server serves OpenShift's groups.
    pub openshift: bool,
    /// The API server serves cert-manager.
    pub cert_manager: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_variables_give_the_defaults() {
        assert_eq!(Switches::read(|_| None), Switches::default());
    }

    #[test]
    fn variables_are_read_as_kuberay_reads_them() {
        let read = |name: &'static str, value: &'static str| Switches::read(move |asked| (asked == name).then(|| value.to_owned()));
        assert!(!read("ENABLE_PROBES_INJECTION", "FALSE").probes_injection);
        assert!(read("ENABLE_PROBES_INJECTION", "no").probes_injection);
        assert!(read("ENABLE_LOGIN_SHELL", "True").login_shell);
        assert!(!read("ENABLE_LOGIN_SHELL", "1").login_shell);
        assert_eq!(read("CLUSTER_DOMAIN", "").cluster_domain, "cluster.local");
        assert_eq!(read("RAYCLUSTER_DEFAULT_REQUEUE_SECONDS_ENV", "17").cluster_requeue_seconds, 17);
        assert_eq!(read("RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS", "-1").job_status_check_timeout_seconds, 300);
        assert_eq!(read("RAYJOB_DEPLOYMENT_STATUS_TRANSITION_GRACE_PERIOD_SECONDS", "-1").job_transition_grace_seconds, -1);
    }
}

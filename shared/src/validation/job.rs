//! A job spec, in a RayJob or in the template of a RayCronJob (V-J-3..V-J-37, C-08..C-11, C-13, C-15, N-J-*).

use serde_json::Value;

use super::{
    ErrorType, Findings, Path, Subject, advice, clashes, cluster, embedded,
    groups::restart_policy,
    job_deletion,
    json::{Json, Shown},
    params, pods,
};
use crate::{
    features::Feature,
    labels::{container, label},
    version::RayVersion,
};

/// How a job gets to Ray (RJ-9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    K8sJob,
    Http,
    Interactive,
    Sidecar,
}

impl Mode {
    /// The mode of a job spec; absent is the CRD's default. `None` for a mode nobody knows.
    pub(crate) fn of(spec: &Value) -> Option<Self> {
        match spec.at("submissionMode").text() {
            None | Some("K8sJobMode") => Some(Self::K8sJob),
            Some("HTTPMode") => Some(Self::Http),
            Some("InteractiveMode") => Some(Self::Interactive),
            Some("SidecarMode") => Some(Self::Sidecar),
            Some(_) => None,
        }
    }
}

pub(super) fn examine_object(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    examine_spec(subject, subject.spec, path, out);
    let waiting = subject.object.at("status").at("jobDeploymentStatus").text() == Some("Waiting");
    if subject.stored && waiting && Mode::of(subject.spec) != Some(Mode::Interactive) {
        out.invalid(
            &path.field("submissionMode"),
            "V-J-37",
            "the job is Waiting for a user, which only happens in InteractiveMode: change it back",
        );
    }
}

pub(super) fn examine_spec(subject: &Subject<'_>, spec: &Value, path: &Path<'_>, out: &mut Findings) {
    let mode = Mode::of(spec);
    if mode.is_none() {
        let found = Shown(spec.at("submissionMode").text().unwrap_or_default());
        out.error(
            &path.field("submissionMode"),
            ErrorType::NotSupported,
            "C-11",
            format!("{found} is not a submission mode: use \"K8sJobMode\", \"HTTPMode\", \"InteractiveMode\" or \"SidecarMode\""),
        );
    }
    examine_end(spec, path, out);
    job_deletion::examine(subject, spec, path, out);
    examine_target(spec, mode, path, out);
    if mode == Some(Mode::Sidecar) {
        examine_sidecar(subject, spec, path, out);
    }
    examine_submission(spec, mode, path, out);
    examine_limits(spec, path, out);
    let cluster_spec = spec.at("rayClusterSpec");
    if cluster_spec.is_set() {
        let cluster_path = path.field("rayClusterSpec");
        if cluster_spec.at("authOptions").at("enableK8sTokenAuth").is_true() {
            let auth = cluster_path.field("authOptions");
            out.forbidden(
                &auth.field("enableK8sTokenAuth"),
                "V-J-31",
                "a job cannot submit with Kubernetes tokens: remove it, and use mode \"token\" with a Secret",
            );
        }
        cluster::examine_spec(subject, cluster_spec, &cluster_path, out);
    }
    if let Some(mode) = mode {
        advice::examine_job(subject, spec, mode, path, out);
    }
}

pub(crate) fn has_rules(spec: &Value) -> bool {
    !spec.at("deletionStrategy").at("deletionRules").items().is_empty()
}

/// What happens when the job is over or suspended (V-J-3..V-J-5, V-J-22, C-15).
fn examine_end(spec: &Value, path: &Path<'_>, out: &mut Findings) {
    let suspend = spec.at("suspend").is_true();
    let shutdown = spec.at("shutdownAfterJobFinishes").is_true();
    if suspend && spec.at("clusterSelector").has_entries() {
        out.forbidden(
            &path.field("suspend"),
            "V-J-22",
            "a job on a cluster of somebody else (clusterSelector) cannot be suspended, for that would delete the cluster: remove one of them",
        );
    } else if suspend && !shutdown {
        if has_rules(spec) {
            out.warn(
                &path.field("suspend"),
                "C-15",
                "suspend together with deletionStrategy.deletionRules is understood here, but the operator of KubeRay 1.7 refuses the job",
            );
        } else {
            out.invalid(
                &path.field("suspend"),
                "V-J-3",
                "suspending deletes the cluster, but shutdownAfterJobFinishes says to keep it: set shutdownAfterJobFinishes to true, or use deletionStrategy.deletionRules",
            );
        }
    }
    if let Some(ttl) = spec.at("ttlSecondsAfterFinished").int() {
        let path = path.field("ttlSecondsAfterFinished");
        if ttl < 0 {
            out.invalid(&path, "V-J-4", format!("{ttl} is negative: use 0 or more seconds"));
        } else if ttl > 0 && !shutdown {
            out.invalid(
                &path,
                "V-J-5",
                format!("nothing is deleted after {ttl} seconds while shutdownAfterJobFinishes is false: set that to true, or remove this"),
            );
        }
    }
}

/// Which cluster the job runs on (V-J-23..V-J-27).
fn examine_target(spec: &Value, mode: Option<Mode>, path: &Path<'_>, out: &mut Findings) {
    let selector = spec.at("clusterSelector");
    let retries = spec.at("backoffLimit").int().is_some_and(|limit| limit > 0);
    if !selector.has_entries() {
        if !spec.at("rayClusterSpec").is_set() {
            out.required(
                &path.field("rayClusterSpec"),
                "V-J-23",
                "there is no cluster to run on: describe one here, or name a running one with clusterSelector[ray.io/cluster]",
            );
        }
    } else {
        if selector.at(label::CLUSTER).filled().is_none() {
            out.required(
                &path.field("clusterSelector").key(label::CLUSTER),
                "V-J-24",
                "a running cluster is chosen by its name alone: write clusterSelector: {ray.io/cluster: <name of the RayCluster>}",
            );
        }
        if mode == Some(Mode::Sidecar) {
            out.invalid(
                &path.field("submissionMode"),
                "V-J-25",
                "SidecarMode adds a container to the head of the job's own cluster, but clusterSelector chooses a running one: use K8sJobMode or HTTPMode",
            );
        }
        if retries {
            out.invalid(
                &path.field("backoffLimit"),
                "V-J-26",
                "a retry needs a new cluster, but clusterSelector chooses a running one: use 0",
            );
        }
    }
    if mode == Some(Mode::Interactive) && retries {
        out.invalid(&path.field("backoffLimit"), "V-J-27", "a job that a user submits (InteractiveMode) is not retried: use 0");
    }
}

/// V-J-28..V-J-30, C-10.
fn examine_sidecar(subject: &Subject<'_>, spec: &Value, path: &Path<'_>, out: &mut Findings) {
    if spec.at("submitterPodTemplate").is_set() {
        out.forbidden(
            &path.field("submitterPodTemplate"),
            "V-J-28",
            "in SidecarMode the submitter is a container of the head, not a Pod: remove the template",
        );
    }
    if spec.at("submitterConfig").is_set() {
        let restarts = if subject.features.enabled(Feature::SidecarSubmitterRestart) {
            "the feature gate SidecarSubmitterRestart restarts it in place"
        } else {
            "it is not retried"
        };
        out.forbidden(
            &path.field("submitterConfig"),
            "V-J-29",
            format!("in SidecarMode the submitter is a container of the head, not a Job with retries ({restarts}): remove it"),
        );
    }
    let head = spec.at("rayClusterSpec").at("headGroupSpec");
    let cluster_path = path.field("rayClusterSpec");
    let head_path = cluster_path.field("headGroupSpec");
    if let Some(policy) = restart_policy(head) {
        cluster::at_pod(&head_path, |pod| {
            out.invalid(
                &pod.field("restartPolicy"),
                "V-J-30",
                format!("{policy} would restart the submitter in the head and submit the job again: use \"Never\", or leave it out"),
            );
        });
    }
    clashes::forbid_container(head, &head_path, container::SUBMITTER, "C-10", "to the head in SidecarMode", out);
}

/// Ray takes metadata over its command line since this release (RJ-117).
const METADATA_SINCE: RayVersion = RayVersion::new(2, 6, 0);

/// What is submitted and by whom (V-J-33, C-08, C-09, C-49, N-J-1..N-J-5).
fn examine_submission(spec: &Value, mode: Option<Mode>, path: &Path<'_>, out: &mut Findings) {
    let own_command = !spec.at("submitterPodTemplate").at("spec").at("containers").first().at("command").items().is_empty();
    let needs_entrypoint = match mode {
        Some(Mode::K8sJob) => !own_command,
        Some(Mode::Http | Mode::Sidecar) => true,
        Some(Mode::Interactive) | None => false,
    };
    if needs_entrypoint && spec.at("entrypoint").text().unwrap_or_default().trim().is_empty() {
        out.required(
            &path.field("entrypoint"),
            "N-J-1",
            "there is nothing to run: give the command that Ray is to start, like \"python main.py\"",
        );
    }
    if mode == Some(Mode::K8sJob) {
        examine_submitter(spec, path, out);
    }
    embedded::examine_runtime_env(spec.at("runtimeEnvYAML"), &path.field("runtimeEnvYAML"), out);
    if let Some(text) = spec.at("entrypointResources").filled()
        && let Some(problem) = params::problem_of(text)
    {
        out.invalid(&path.field("entrypointResources"), "N-J-2", format!("{} {problem}: write it like {{\"name\": 1}}", Shown(text)));
    }
    for field in ["entrypointNumCpus", "entrypointNumGpus"] {
        if let Some(number) = spec.at(field).as_f64()
            && number < 0.0
        {
            out.invalid(&path.field(field), "N-J-3", format!("{number} is negative: use 0 or more"));
        }
    }
    if let Some(id) = spec.at("jobId").filled()
        && !is_safe_job_id(id)
    {
        out.invalid(
            &path.field("jobId"),
            "C-49",
            format!("{} would be read as more than a name by the submitter's shell or in Ray's URLs: use letters, digits, \"-\", \"_\", \".\" and \":\" only, and begin with a letter or digit", Shown(id)),
        );
    }
    let version = spec.at("rayClusterSpec").at("rayVersion");
    if matches!(mode, Some(Mode::K8sJob | Mode::Sidecar))
        && spec.at("metadata").has_entries()
        && let Some(text) = version.filled()
        && RayVersion::parse(text).is_none_or(|version| version < METADATA_SINCE)
    {
        out.invalid(
            &path.field("metadata"),
            "N-J-4",
            format!("metadata can be submitted since Ray {METADATA_SINCE}, but rayClusterSpec.rayVersion is {}: correct the version, or remove the metadata", Shown(text)),
        );
    }
}

fn is_safe_job_id(id: &str) -> bool {
    id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':'))
        && id.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
}

/// C-08, C-09.
fn examine_submitter(spec: &Value, path: &Path<'_>, out: &mut Findings) {
    let template = spec.at("submitterPodTemplate");
    if template.is_set() {
        let pod = template.at("spec");
        let template_path = path.field("submitterPodTemplate");
        let pod_path = template_path.field("spec");
        if pod.at("containers").items().is_empty() {
            out.required(
                &pod_path.field("containers"),
                "C-08",
                "the template has no container, and the first one is to submit the job: add one, or remove the template",
            );
        }
        pods::examine_contents(template, &template_path, out);
        if let Some(policy) = pod.at("restartPolicy").filled()
            && !matches!(policy, "Never" | "OnFailure")
        {
            out.error(
                &pod_path.field("restartPolicy"),
                ErrorType::NotSupported,
                "C-09",
                format!("the submitter is a Kubernetes Job, which refuses {}: use \"Never\" or \"OnFailure\"", Shown(policy)),
            );
        }
    }
    if let Some(limit) = spec.at("submitterConfig").at("backoffLimit").int()
        && limit < 0
    {
        out.invalid(&path.field("submitterConfig").field("backoffLimit"), "N-J-5", format!("{limit} is negative: use 0 or more retries"));
    }
}

/// V-J-34..V-J-36.
fn examine_limits(spec: &Value, path: &Path<'_>, out: &mut Findings) {
    for (field, rule) in [("activeDeadlineSeconds", "V-J-34"), ("preRunningDeadlineSeconds", "V-J-35")] {
        if let Some(seconds) = spec.at(field).int()
            && seconds <= 0
        {
            out.invalid(&path.field(field), rule, format!("{seconds} seconds would fail the job at once: use 1 or more, or leave it out"));
        }
    }
    if let Some(limit) = spec.at("backoffLimit").int()
        && limit < 0
    {
        out.invalid(&path.field("backoffLimit"), "V-J-36", format!("{limit} is negative: use 0 or more retries"));
    }
}

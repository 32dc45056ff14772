//! The submitter: the container that hands a RayJob's job to Ray and shows its logs (RJ-110..RJ-119, RJ-140, RJ-145).
//!
//! What the user wrote never meets a shell. The script below is the same for every job; entrypoint, runtime environment, metadata
//! and resources travel as JSON in one environment variable and go to Ray through its own Python client, so that they arrive byte
//! for byte (C-48, C-49). KubeRay's contract with custom submitters stays: container name, `RAY_DASHBOARD_ADDRESS`,
//! `RAY_JOB_SUBMISSION_ID`, and a container with a command of its own keeps command and arguments.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{Container, EnvVar, PodSecurityContext, PodSpec, PodTemplateSpec, ResourceRequirements};
use kube::core::ObjectMeta;
use serde_json::{Map, Number, Value};
use shared::api::rayjob::{RayJobSpec, SubmissionMode};
use shared::api::{RayCluster, RayJob};
use shared::labels::{OPERATOR_NAME, SUBMITTER_GROUP, container::SUBMITTER, env, label, port};
use shared::quantity::Quantity as Amount;

use super::container::{ContainerExt as _, amounts};
use super::env::value;
use super::scheduling::{self, Parent};
use super::{auth, owner_reference, resources, security, shell};
use crate::dashboard::SubmitRequest;
use crate::settings::Settings;

/// Variable with the whole request to Ray, as JSON.
pub const REQUEST: &str = "RAY_JOB_SUBMISSION_REQUEST";
/// How often a submitter is tried again when the user says nothing (RJ-111).
pub const DEFAULT_BACKOFF_LIMIT: i32 = 2;

/// The program that submits. It holds neither a dollar sign nor a single quote.
const PROGRAM: &str = include_str!("submitter.py");
/// The script around it.
const SCRIPT: &str = include_str!("submitter.sh");
/// Linux takes no variable longer than 128 KiB.
const MAX_REQUEST: usize = 120 << 10;

/// Why a job cannot be handed to Ray. The text names the field to change.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The runtime environment is no YAML mapping (V-J-24).
    #[error("spec.runtimeEnvYAML: {0}")]
    RuntimeEnv(String),
    /// The resources are no JSON object of numbers (RJ-123).
    #[error("spec.entrypointResources: {0}")]
    Resources(String),
    /// The request does not fit into a variable of a container.
    #[error(
        "entrypoint, runtime environment and metadata are {0} bytes of JSON together, and a container can be given {MAX_REQUEST} at most; \
         use submissionMode HTTPMode, or keep large parts in the image or a volume"
    )]
    TooLong(usize),
    /// The template of the submitter has no container (WEAK-11).
    #[error(
        "spec.submitterPodTemplate.spec.containers: at least one container is needed; the first one, or the one named `{SUBMITTER}`, submits"
    )]
    NoContainers,
    /// The cluster has no Ray container whose image could be used (RC-202).
    #[error("the RayCluster's headGroupSpec.template.spec.containers is empty, so that there is no image to submit with")]
    NoImage,
    /// There is no cluster to make (V-J-8).
    #[error("spec.rayClusterSpec: a RayJob without clusterSelector needs one")]
    NoClusterSpec,
}

/// What Ray is asked to run (RJ-123). The same in every mode, as the user wrote it.
///
/// # Errors
/// When the runtime environment or the resources cannot be read.
pub fn request(spec: &RayJobSpec, job_id: &str) -> Result<SubmitRequest, SubmitError> {
    let positive = |amount: Option<f64>| amount.filter(|amount| *amount > 0.0);
    Ok(SubmitRequest {
        entrypoint: spec.entrypoint.clone().unwrap_or_default(),
        submission_id: job_id.to_owned(),
        runtime_env: spec.runtime_env_yaml.as_deref().map(runtime_env).transpose()?.filter(|env| !env.is_empty()),
        metadata: spec.metadata.clone().filter(|metadata| !metadata.is_empty()),
        entrypoint_num_cpus: positive(spec.entrypoint_num_cpus),
        entrypoint_num_gpus: positive(spec.entrypoint_num_gpus),
        entrypoint_resources: spec.entrypoint_resources.as_deref().map(resources).transpose()?.filter(|all| !all.is_empty()),
    })
}

fn runtime_env(text: &str) -> Result<Map<String, Value>, SubmitError> {
    match shared::yaml::parse_str(text).map_err(|error| SubmitError::RuntimeEnv(error.to_string()))? {
        Value::Object(env) => Ok(env),
        Value::Null => Ok(Map::new()),
        _ => Err(SubmitError::RuntimeEnv("it must be a mapping such as `pip: [requests]`".to_owned())),
    }
}

fn resources(text: &str) -> Result<BTreeMap<String, Number>, SubmitError> {
    if text.trim().is_empty() {
        return Ok(BTreeMap::new());
    }
    serde_json::from_str(text).map_err(|error| SubmitError::Resources(format!("it must be a JSON object of numbers: {error}")))
}

/// The Job whose Pod submits in K8sJobMode (RJ-110..RJ-116). `cluster` is the cluster that the job runs on, `address` the value of
/// `status.dashboardURL`.
///
/// # Errors
/// When the spec cannot be turned into a request or has no container to submit with.
pub fn job(job: &RayJob, cluster: &RayCluster, address: &str, job_id: &str, settings: &Settings) -> Result<Job, SubmitError> {
    let name = job.metadata.name.clone().unwrap_or_default();
    let labels: BTreeMap<String, String> =
        [(label::ORIGINATED_FROM_CR_NAME, name.as_str()), (label::ORIGINATED_FROM_CRD, "RayJob"), (label::K8S_CREATED_BY, OPERATOR_NAME)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
    let mut template = template(job, cluster, address, job_id, settings)?;
    let metadata = template.metadata.get_or_insert_default();
    metadata.labels.get_or_insert_default().extend(labels.clone());
    scheduling::mark_pod(metadata, template.spec.get_or_insert_default(), Parent::Job(job), SUBMITTER_GROUP, settings);
    let backoff_limit = job.spec.submitter_config.as_ref().and_then(|config| config.backoff_limit);
    Ok(Job {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: job.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![owner_reference(job)]),
            ..ObjectMeta::default()
        },
        spec: Some(JobSpec { backoff_limit: Some(backoff_limit.unwrap_or(DEFAULT_BACKOFF_LIMIT).max(0)), template, ..JobSpec::default() }),
        status: None,
    })
}

/// The user's template, completed where it says nothing (RJ-112..RJ-115, C-09).
fn template(job: &RayJob, cluster: &RayCluster, address: &str, job_id: &str, settings: &Settings) -> Result<PodTemplateSpec, SubmitError> {
    let default = default_container(cluster)?;
    let mut template = job.spec.submitter_pod_template.clone().unwrap_or_default();
    let given = job.spec.submitter_pod_template.is_some();
    let head = cluster.spec.head_group_spec.template.spec.as_ref();
    let pod = template.spec.get_or_insert_default();
    if !given {
        pod.containers.push(Container { name: SUBMITTER.to_owned(), ..Container::default() });
    }
    let container = submitting(&mut pod.containers).ok_or(SubmitError::NoContainers)?;
    complete(container, default);
    let own_command = container.command.as_ref().is_some_and(|command| !command.is_empty());
    let mut variables = Variables { address, job_id, request: None };
    if !own_command {
        let request = request(&job.spec, job_id)?;
        variables.request = Some(encode(&request)?);
        container.command = Some(shell(settings, true));
        container.args = Some(vec![script(false)]);
    }
    variables.add_to(container);
    auth::add_to_container(container, cluster);
    auth::add_volume(pod, cluster);
    if pod.restart_policy.as_deref().is_none_or(str::is_empty) {
        pod.restart_policy = Some("Never".to_owned());
    }
    if pod.image_pull_secrets.is_none() {
        pod.image_pull_secrets = head.and_then(|head| head.image_pull_secrets.clone());
    }
    if pod.security_context.is_none() {
        pod.security_context = head.and_then(restrictions_of_pod);
    }
    Ok(template)
}

/// The container that submits from the head Pod in SidecarMode (RJ-140, RJ-145). `cluster` is the cluster about to be made.
///
/// # Errors
/// When the spec cannot be turned into a request, or the cluster has no Ray container.
pub fn sidecar(job: &RayJob, cluster: &RayCluster, job_id: &str, restarts: bool, settings: &Settings) -> Result<Container, SubmitError> {
    let mut container = Container { name: SUBMITTER.to_owned(), ..Container::default() };
    complete(&mut container, default_container(cluster)?);
    let address = format!("127.0.0.1:{}", dashboard_port(cluster));
    let request = encode(&request(&job.spec, job_id)?)?;
    container.command = Some(shell(settings, true));
    // Without restarts the container's exit code is all that is left of it, so it tells how the job ended (RJ-144).
    container.args = Some(vec![script(!restarts)]);
    container.restart_policy = restarts.then(|| "OnFailure".to_owned());
    Variables { address: &address, job_id, request: Some(request) }.add_to(&mut container);
    auth::add_to_container(&mut container, cluster);
    Ok(container)
}

/// Whether a mode puts the submitter into the head Pod.
pub fn in_head(mode: SubmissionMode) -> bool {
    mode == SubmissionMode::Sidecar
}

/// Port on which the dashboard listens in the head Pod.
fn dashboard_port(cluster: &RayCluster) -> i32 {
    ray_container(cluster).and_then(|ray| ray.port_named(port::DASHBOARD_NAME)).unwrap_or(port::DASHBOARD)
}

fn ray_container(cluster: &RayCluster) -> Option<&Container> {
    cluster.spec.head_group_spec.template.spec.as_ref()?.containers.first()
}

/// The template of the Pod that submits, as far as a scheduler has to know it before there is a cluster: where it may run, and what it
/// asks for (BS-14, BS-33).
pub fn outline(job: &RayJob) -> PodTemplateSpec {
    let mut template = job.spec.submitter_pod_template.clone().unwrap_or_default();
    let pod = template.spec.get_or_insert_default();
    if job.spec.submitter_pod_template.is_none() {
        pod.containers.push(Container { name: SUBMITTER.to_owned(), ..Container::default() });
    }
    if let Some(container) = submitting(&mut pod.containers)
        && asks_for_nothing(container)
    {
        container.resources = Some(default_resources());
    }
    template
}

/// What a submitter asks for, by name, unless the user says otherwise.
pub fn default_amounts() -> BTreeMap<String, Amount> {
    default_resources().requests.into_iter().flatten().map(|(name, amount)| (name, resources::amount(Some(&amount)))).collect()
}

/// The container that submits.
fn submitting(containers: &mut [Container]) -> Option<&mut Container> {
    let at = containers.iter().position(|container| container.name == SUBMITTER).unwrap_or_default();
    containers.get_mut(at)
}

fn asks_for_nothing(container: &Container) -> bool {
    container.resources.as_ref().is_none_or(|resources| *resources == ResourceRequirements::default())
}

fn default_resources() -> ResourceRequirements {
    ResourceRequirements { limits: Some(amounts("1", "1Gi")), requests: Some(amounts("500m", "200Mi")), claims: None }
}

/// What a submitter is unless the user says otherwise (RJ-113).
fn default_container(cluster: &RayCluster) -> Result<Container, SubmitError> {
    let ray = ray_container(cluster).ok_or(SubmitError::NoImage)?;
    Ok(Container {
        name: SUBMITTER.to_owned(),
        image: ray.image.clone(),
        image_pull_policy: ray.image_pull_policy.clone(),
        resources: Some(default_resources()),
        security_context: security::restrictions_of(ray),
        ..Container::default()
    })
}

/// Fills what `container` leaves open. A different image is not pulled by the policy of the head's.
fn complete(container: &mut Container, default: Container) {
    if container.image.as_deref().is_none_or(str::is_empty) {
        container.image = default.image;
        container.image_pull_policy = container.image_pull_policy.take().or(default.image_pull_policy);
    }
    if asks_for_nothing(container) {
        container.resources = default.resources;
    }
    if container.security_context.is_none() {
        container.security_context = default.security_context;
    }
}

/// The parts of the head Pod's security context that take rights away (C-37).
fn restrictions_of_pod(head: &PodSpec) -> Option<PodSecurityContext> {
    let context = head.security_context.as_ref()?;
    let restrictions = PodSecurityContext {
        run_as_non_root: context.run_as_non_root,
        run_as_user: context.run_as_user,
        run_as_group: context.run_as_group,
        seccomp_profile: context.seccomp_profile.clone(),
        ..PodSecurityContext::default()
    };
    (restrictions != PodSecurityContext::default()).then_some(restrictions)
}

struct Variables<'a> {
    address: &'a str,
    job_id: &'a str,
    request: Option<String>,
}

impl Variables<'_> {
    /// Sets the variables that every submitter gets; values of the user under these names give way, as in KubeRay, where the last of
    /// two equal names wins (RJ-115). Whether Python buffers is the user's choice.
    fn add_to(self, container: &mut Container) {
        let ours = [
            Some(value(env::RAY_DASHBOARD_ADDRESS, escaped(self.address))),
            Some(value(env::RAY_JOB_SUBMISSION_ID, escaped(self.job_id))),
            self.request.map(|request| value(REQUEST, request)),
        ];
        let ours: Vec<EnvVar> = ours.into_iter().flatten().collect();
        let variables = container.env.get_or_insert_default();
        variables.retain(|variable| !ours.iter().any(|our| our.name == variable.name));
        container.env_if_absent(value(env::PYTHONUNBUFFERED, "1"));
        container.push_envs(ours);
    }
}

/// A text that Kubernetes gives to the container as it is: it takes `$(NAME)` for a variable and `$$` for a dollar sign.
fn escaped(text: &str) -> String {
    text.replace('$', "$$")
}

/// The request as JSON of nothing but printable ASCII without dollar signs: neither Kubernetes nor a locale can change it.
fn encode(request: &SubmitRequest) -> Result<String, SubmitError> {
    let json = serde_json::to_string(request).map_err(|error| SubmitError::RuntimeEnv(error.to_string()))?;
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        // Outside of strings JSON holds no such characters, and inside them it may write any character as a number.
        if character.is_ascii() && character != '$' && character != '\u{7f}' {
            text.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    if text.len() > MAX_REQUEST { Err(SubmitError::TooLong(text.len())) } else { Ok(text) }
}

/// The script, with the program in it.
fn script(strict: bool) -> String {
    let strict = if strict { "strict" } else { "" };
    format!("program={}\nstrict={}\n{SCRIPT}", quoted(PROGRAM), quoted(strict))
}

/// A text as one word for a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
#[path = "submitter_tests.rs"]
mod tests;

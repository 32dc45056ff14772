//! Resources of Pods and clusters: totals for the status and for gang schedulers (RC-463, RC-464, BS-7).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use shared::api::RayClusterSpec;
use shared::api::raycluster::WorkerGroupSpec;
use shared::quantity::Quantity as Amount;

/// Resource of TPUs on GKE.
pub const TPU: &str = "google.com/tpu";
/// Resource of AWS Neuron cores.
pub const NEURON_CORE: &str = "aws.amazon.com/neuroncore";

/// What a cluster asks for in all (RC-464).
#[derive(Clone, Debug, PartialEq)]
pub struct Totals {
    /// CPUs.
    pub cpu: Quantity,
    /// Bytes of memory.
    pub memory: Quantity,
    /// GPUs of every maker, whole or in slices.
    pub gpu: Quantity,
    /// TPUs.
    pub tpu: Quantity,
}

/// What the Pods of a cluster ask for in all: the head and every worker that the spec wants. Suspended groups want none, a
/// container counts with its request or else its limit, init containers and what the operator adds do not count.
pub fn desired_resources(spec: &RayClusterSpec) -> Totals {
    let all = desired_amounts(spec);
    let of = |name: &str| Quantity(all.get(name).copied().unwrap_or_default().to_string());
    let gpu: Amount = all.iter().filter(|(name, _)| is_gpu(name)).map(|(_, amount)| *amount).sum();
    Totals { cpu: of("cpu"), memory: of("memory"), gpu: Quantity(gpu.to_string()), tpu: of(TPU) }
}

/// Every resource that the Pods of a cluster ask for in all, by name.
pub fn desired_amounts(spec: &RayClusterSpec) -> BTreeMap<String, Amount> {
    amounts_for(spec, desired_pods)
}

/// What the head and so many workers of each group ask for in all.
pub fn amounts_for(spec: &RayClusterSpec, workers: impl Fn(&WorkerGroupSpec) -> i32) -> BTreeMap<String, Amount> {
    let mut total = template_amounts(&spec.head_group_spec.template);
    for group in spec.worker_groups() {
        add(&mut total, &template_amounts(&group.template), i64::from(workers(group)));
    }
    total
}

/// What one Pod of this template asks for, by name: for each container the request, or else the limit.
pub fn template_amounts(template: &PodTemplateSpec) -> BTreeMap<String, Amount> {
    let mut total = BTreeMap::new();
    let containers = template.spec.as_ref().map_or(&[][..], |spec: &PodSpec| &spec.containers);
    for container in containers {
        add(&mut total, &container_amounts(container), 1);
    }
    total
}

/// Adds `times` as much of each resource.
pub fn add(total: &mut BTreeMap<String, Amount>, more: &BTreeMap<String, Amount>, times: i64) {
    for (name, amount) in more {
        let sum = total.entry(name.clone()).or_default();
        *sum = *sum + amount.times(times);
    }
}

/// Reads an entry of a resource list; what is absent or cannot be read counts as nothing.
pub fn amount(quantity: Option<&Quantity>) -> Amount {
    quantity.and_then(|quantity| Amount::parse(&quantity.0).ok()).unwrap_or_default()
}

fn container_amounts(container: &Container) -> BTreeMap<String, Amount> {
    let mut amounts = BTreeMap::new();
    let resources = container.resources.as_ref();
    for (name, quantity) in resources.and_then(|r| r.limits.as_ref()).into_iter().flatten() {
        amounts.insert(name.clone(), amount(Some(quantity)));
    }
    for (name, quantity) in resources.and_then(|r| r.requests.as_ref()).into_iter().flatten() {
        amounts.insert(name.clone(), amount(Some(quantity)));
    }
    amounts
}

/// Hosts that make up one replica of the group: at least one, whatever an older definition of the kind stored (RC-176).
pub fn hosts_per_replica(group: &WorkerGroupSpec) -> i32 {
    group.num_of_hosts.unwrap_or(1).max(1)
}

/// Replicas that the group wants: `replicas` within its bounds, none while it is suspended (RC-176).
pub fn desired_replicas(group: &WorkerGroupSpec) -> i32 {
    if group.suspend == Some(true) {
        return 0;
    }
    let low = group.min_replicas.unwrap_or(0);
    let high = group.max_replicas.unwrap_or(i32::MAX);
    // A value below the lower bound is raised first, then the upper bound holds: this order decides when the bounds are crossed.
    group.replicas.unwrap_or(low).max(low).min(high).max(0)
}

/// Pods that the group wants (RC-176).
pub fn desired_pods(group: &WorkerGroupSpec) -> i32 {
    desired_replicas(group).saturating_mul(hosts_per_replica(group))
}

/// Pods that the group has at least, however an autoscaler scales it: none while it is suspended (BS-8).
pub fn least_pods(group: &WorkerGroupSpec) -> i32 {
    if group.suspend == Some(true) {
        return 0;
    }
    group.min_replicas.unwrap_or(0).max(0).saturating_mul(hosts_per_replica(group))
}

/// Whether a resource name stands for GPUs: whole ones of any maker, or NVIDIA's MIG slices (RC-47).
pub fn is_gpu(resource: &str) -> bool {
    resource.ends_with("gpu") || is_mig_slice(resource)
}

/// `…nvidia.com/mig-<digits>g.<digits>gb`.
fn is_mig_slice(resource: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    resource
        .rsplit_once("nvidia.com/mig-")
        .and_then(|(_, profile)| profile.strip_suffix("gb"))
        .and_then(|profile| profile.split_once("g."))
        .is_some_and(|(compute, memory)| digits(compute) && digits(memory))
}

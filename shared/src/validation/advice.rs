//! Warnings about a cluster spec: legal, but probably not what is wanted (W-C-*).
//!
//! Each is worth its line in the terminal: it names a consequence that shows late, and never repeats a default.

mod kinds;

use std::collections::HashSet;

use serde_json::Value;

pub(super) use self::kinds::{examine_cronjob, examine_job, examine_service};
use super::{
    Findings, Kind, Path, Subject,
    cluster::{Cluster, at_pod, at_ray_container, ray_container},
    json::{Json, Shown, named},
};
use crate::{
    labels::{annotation, env, gang},
    names,
    version::RayVersion,
};

pub(super) fn examine_cluster(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    let (head, groups) = (path.field("headGroupSpec"), path.field("workerGroupSpecs"));
    examine_version(cluster, path, out);
    examine_group(cluster, cluster.head, &head, None, out);
    for (index, group) in cluster.groups().iter().enumerate() {
        examine_group(cluster, group, &groups.index(index), Some(cluster.head), out);
    }
    warn_of_equal_pod_names(cluster, &groups, out);
    if cluster.spec.at("autoscalerOptions").has_entries() && !cluster.autoscaling {
        out.warn(
            &path.field("autoscalerOptions"),
            "W-C-7",
            "without enableInTreeAutoscaling there is no autoscaler, so these options do nothing",
        );
    }
    examine_topology(cluster.subject, out);
    let annotations = Path::root("metadata");
    let annotations = annotations.field("annotations");
    if cluster.subject.annotation(annotation::FT_ENABLED).eq_ignore_ascii_case("true")
        && !cluster.spec.at("gcsFaultToleranceOptions").is_set()
    {
        out.warn(
            &annotations.key(annotation::FT_ENABLED),
            "W-C-12",
            "this annotation is the older way of fault tolerance: gcsFaultToleranceOptions takes the address and the password in one place",
        );
    }
}

/// A label that only Volcano reads, so that nothing says here whether anybody does (BS-16).
fn examine_topology(subject: &Subject<'_>, out: &mut Findings) {
    let labels = subject.object.at("metadata").at("labels");
    let text = |key: &str| labels.at(key).filled();
    if !matches!(subject.kind, Kind::RayCluster | Kind::RayJob) || text(gang::VOLCANO_TOPOLOGY_MODE).is_none() {
        return;
    }
    if let Some(tier) = text(gang::VOLCANO_TOPOLOGY_TIER).filter(|tier| tier.parse::<i64>().is_err()) {
        out.warn(
            &Path::root("metadata").field("labels").key(gang::VOLCANO_TOPOLOGY_TIER),
            "W-C-13",
            format!("{} is not a whole number such as 1: with Volcano no Pod is made", Shown(tier)),
        );
    }
}

/// `rayVersion` against the tag of the head's image.
fn examine_version(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    let image = cluster.head_container.at("image").text().unwrap_or_default();
    let of_image = RayVersion::of_image(image);
    let path = path.field("rayVersion");
    match (cluster.spec.at("rayVersion").filled(), of_image) {
        (None, None) if !image.is_empty() => {
            out.warn(
                &path,
                "W-C-2",
                "the version cannot be read from the image's tag: set it, because probes and newer features depend on it",
            );
        }
        (Some(text), of_image) => match (RayVersion::parse(text), of_image) {
            (None, _) => out.warn(
                &path,
                "W-C-3",
                format!("{} is not a version, so features of newer Ray stay off: write it like \"2.53.0\"", Shown(text)),
            ),
            (Some(version), Some((tag, tag_text))) if version != tag => out.warn(
                &path,
                "W-C-1",
                format!("{} differs from the head's image {}, which holds Ray {tag_text}: make them equal", Shown(text), Shown(image)),
            ),
            _ => {}
        },
        _ => {}
    }
}

/// What Kubernetes or the operator would stumble over, or silently change, in a group's Pods.
fn examine_group(cluster: &Cluster<'_>, group: &Value, path: &Path<'_>, head: Option<&Value>, out: &mut Findings) {
    let pod = group.at("template").at("spec");
    if pod.at("containers").items().is_empty() {
        return;
    }
    examine_resources(group, path, head.is_none(), out);
    if let Some(head) = head {
        compare_images(group, head, path, out);
    }
    let volumes = volume_names(pod);
    for list in ["containers", "initContainers"] {
        for (index, container) in pod.at(list).items().iter().enumerate() {
            if list == "containers" && container.at("image").filled().is_none() {
                at_pod(path, |pod| {
                    out.warn(&pod.field(list).index(index), "W-C-10", "the container has no image, and Kubernetes refuses such a Pod");
                });
            }
            warn_of_missing_volumes(container, &volumes, path, (list, index), cluster, out);
        }
    }
    warn_of_overwritten_variables(group, path, head.is_some(), out);
}

/// Volumes that the operator adds by itself.
const ADDED_VOLUMES: [&str; 5] = ["shared-mem", "ray-logs", "ray-tls", "ray-token", "gcs-storage"];

/// Names of a Pod's volumes: an empty set allocates nothing.
fn volume_names(pod: &Value) -> HashSet<&str> {
    pod.at("volumes").items().iter().filter_map(|volume| volume.at("name").text()).collect()
}

fn warn_of_missing_volumes(
    container: &Value,
    volumes: &HashSet<&str>,
    path: &Path<'_>,
    place: (&str, usize),
    cluster: &Cluster<'_>,
    out: &mut Findings,
) {
    let (list, index) = place;
    for (mount_index, mount) in container.at("volumeMounts").items().iter().enumerate() {
        let Some(name) = mount.at("name").filled() else { continue };
        // The log volume only comes with the autoscaler or the history collector.
        let added = ADDED_VOLUMES.contains(&name)
            && (name != "ray-logs" || cluster.autoscaling || cluster.spec.at("historyServerOptions").is_set());
        if !volumes.contains(name) && !added {
            at_pod(path, |pod| {
                let containers = pod.field(list);
                let container = containers.index(index);
                out.warn(
                    &container.field("volumeMounts").index(mount_index).field("name"),
                    "W-C-8",
                    format!("the Pod has no volume {}, and Kubernetes refuses such a Pod", Shown(name)),
                );
            });
        }
    }
}

/// The share of a node that Ray believes to have: without a figure it takes all cores of the node for its own.
fn examine_resources(group: &Value, path: &Path<'_>, is_head: bool, out: &mut Findings) {
    let container = ray_container(group);
    let resources = container.at("resources");
    let (limits, requests) = (resources.at("limits"), resources.at("requests"));
    let told = group.at("rayStartParams").at("num-cpus").filled().is_some()
        || group.at("resources").entries().any(|(name, _)| name.eq_ignore_ascii_case("cpu"));
    if !told && !limits.at("cpu").is_set() && (is_head || !requests.at("cpu").is_set()) {
        let message = if requests.at("cpu").is_set() {
            "there is no CPU limit: Ray uses the request as its number of CPUs, and a busy head can slow down the whole node"
        } else {
            "there is neither a CPU limit nor a CPU request: Ray believes that it has all CPUs of the node"
        };
        at_ray_container(path, |container| out.warn(&container.field("resources"), "W-C-6", message));
    }
    let told = group.at("rayStartParams").at("memory").filled().is_some()
        || group.at("resources").entries().any(|(name, _)| name.eq_ignore_ascii_case("memory"));
    if !told && !limits.at("memory").is_set() {
        at_ray_container(path, |container| {
            out.warn(&container.field("resources"), "W-C-5", "there is no memory limit: Ray believes that it has all memory of the node");
        });
    }
}

/// Ray refuses to join nodes of two versions.
fn compare_images(group: &Value, head: &Value, path: &Path<'_>, out: &mut Findings) {
    let version =
        |group: &Value| ray_container(group).at("image").text().and_then(|image| RayVersion::of_image(image).map(|(version, _)| version));
    if let (Some(own), Some(head)) = (version(group), version(head))
        && own != head
    {
        at_ray_container(path, |container| {
            out.warn(
                &container.field("image"),
                "W-C-4",
                format!("the tag says Ray {own}, the head's says {head}, and Ray does not let different versions join one cluster"),
            );
        });
    }
}

/// Variables that the operator appends whatever the user wrote; the last of two equal names wins.
const OVERWRITTEN: [&str; 5] = [
    env::RAY_CLUSTER_NAME,
    env::RAY_CLUSTER_NAMESPACE,
    env::RAY_CLOUD_INSTANCE_ID,
    env::RAY_NODE_TYPE_NAME,
    env::KUBERAY_GEN_RAY_START_CMD,
];

fn warn_of_overwritten_variables(group: &Value, path: &Path<'_>, is_worker: bool, out: &mut Findings) {
    for (index, variable) in ray_container(group).at("env").items().iter().enumerate() {
        let Some(name) = variable.at("name").text() else { continue };
        let worker_only = is_worker && matches!(name, env::FQ_RAY_IP | env::RAY_IP);
        let head_only = !is_worker && name == env::RAY_USAGE_STATS_EXTRA_TAGS;
        if OVERWRITTEN.contains(&name) || worker_only || head_only {
            at_ray_container(path, |container| {
                let variables = container.field("env");
                out.warn(
                    &variables.index(index).field("name"),
                    "W-C-9",
                    format!("the operator sets {name} itself, so this value is not used"),
                );
            });
        }
    }
}

/// Groups whose Pods cannot be told apart by name, because the names are cut to 50 characters (RC-12).
fn warn_of_equal_pod_names(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    let groups = cluster.groups();
    // The clusters of other kinds get `-` and five random characters behind the parent's name.
    let own = if cluster.is_own() { cluster.subject.name.to_owned() } else { format!("{}-xxxxx", cluster.subject.name) };
    let room = 50_usize.saturating_sub(own.len() + 1);
    // Short names are never cut; with very many groups this is no advice worth its time.
    if groups.len() > 64 {
        return;
    }
    let prefix =
        |group: &Value| group.at("groupName").text().filter(|name| name.len() > room).map(|name| names::worker_pod_prefix(&own, name));
    for (index, group) in groups.iter().enumerate() {
        let Some(own) = prefix(group) else { continue };
        let twin =
            groups.iter().take(index).find(|other| other.at("groupName") != group.at("groupName") && prefix(other).as_ref() == Some(&own));
        if let Some(twin) = twin {
            let twin = Shown(twin.at("groupName").text().unwrap_or_default());
            out.warn(
                &path.index(index).field("groupName"),
                "W-C-11",
                format!("Pods of this group and of {twin} are both called {own}…, because names are cut to 50 characters: a shorter name tells them apart"),
            );
        }
    }
}

/// Whether a container lists ports without one of this name: the operator then knows no such port.
pub(super) fn lacks_port(container: &Value, wanted: impl Fn(&str) -> bool) -> bool {
    let ports = container.at("ports");
    !ports.items().is_empty() && !ports.items().iter().any(|port| port.at("name").text().is_some_and(&wanted))
}

/// Whether a container has a variable of this name.
pub(super) fn has_variable(container: &Value, name: &str) -> bool {
    named(container.at("env"), name).is_some()
}

//! What mutation fills in, on raw JSON: fields nobody mentions survive, and doing it twice changes nothing.
//!
//! Two sorts of defaults: those that every user wants to see (an empty `rayStartParams`, the Ray version of the image, the
//! gaps of a submitter template), and fleet defaults from a configuration ([`FleetDefaults`]). What the user wrote always wins.
//!
//! On CREATE, and for parts that an UPDATE adds, defaults are filled in. On parts that exist already a default is only *kept*:
//! when a client sends the object again without a value that was filled in before, the value stays. Nothing is introduced, so
//! that no Pod template changes and no RayService upgrade starts because of a default.

mod fleet;
mod merge;

use std::collections::{HashMap, VecDeque};

pub use fleet::{FleetDefaults, FleetError, Settings};
use serde_json::{Map, Value, json};

use self::merge::Place;
use crate::{
    labels::{annotation, container},
    validation::{
        Kind,
        json::{Json, named},
    },
    version::RayVersion,
};

/// Fills in the defaults. `old` is the stored object on an UPDATE; `fleet` the settings for the object's namespace.
///
/// Objects that are being deleted stay as they are, and so do children that an operator of this API group made: their parents
/// got the defaults, and the operator compares the children with them.
pub fn apply(kind: Kind, object: &mut Value, old: Option<&Value>, fleet: &Settings) {
    let metadata = object.at("metadata");
    if metadata.at("deletionTimestamp").is_set() || is_owned(metadata) {
        return;
    }
    if let Some(settings) = fleet.object() {
        merge::metadata(object, settings, old.map_or(Place::New, Place::Existing));
    }
    if old.is_some_and(|old| old.at("spec") == object.at("spec")) {
        return;
    }
    let (job_path, cluster_path): (&[&str], &[&str]) = match kind {
        Kind::RayCluster => (&[], &["spec"]),
        Kind::RayService => (&[], &["spec", "rayClusterConfig"]),
        Kind::RayJob => (&["spec"], &["spec", "rayClusterSpec"]),
        Kind::RayCronJob => (&["spec", "jobTemplate"], &["spec", "jobTemplate", "rayClusterSpec"]),
    };
    let applied_version =
        AppliedVersion { object: object.at("metadata").at("annotations").at(annotation::LAST_APPLIED).text(), path: cluster_path };
    let follow_image = old.is_some_and(|old| applied_version.follows_image(old, object));
    if let Some(cluster) = at_mut(object, cluster_path) {
        fill_cluster(cluster, place(old, cluster_path), follow_image, fleet);
    }
    if !job_path.is_empty()
        && let Some(job) = at_mut(object, job_path)
    {
        fill_submitter(job, place(old, job_path), fleet);
    }
}

/// Whether the object is the child of another object of this API group.
fn is_owned(metadata: &Value) -> bool {
    metadata.at("ownerReferences").items().iter().any(|owner| {
        owner.at("controller").is_true() && owner.at("apiVersion").text().is_some_and(|version| version.starts_with("ray.io/"))
    })
}

/// The part at `path` of the stored object, or a new place if there is no stored object or it lacks the part.
fn place<'a>(old: Option<&'a Value>, path: &[&str]) -> Place<'a> {
    old.map(|old| part(old, path)).filter(|value| value.is_set()).map_or(Place::New, Place::Existing)
}

fn part<'a>(object: &'a Value, path: &[&str]) -> &'a Value {
    path.iter().fold(object, |value, key| value.at(key))
}

fn at_mut<'a>(object: &'a mut Value, path: &[&str]) -> Option<&'a mut Value> {
    path.iter().try_fold(object, |value, key| value.get_mut(*key)).filter(|value| value.is_object())
}

fn fill_cluster(cluster: &mut Value, old: Place<'_>, follow_image: bool, fleet: &Settings) {
    fill_version(cluster, old, follow_image);
    fill_injected_resources(cluster, old, fleet);
    if let Some(head) = at_mut(cluster, &["headGroupSpec"]) {
        fill_group(head, old.field("headGroupSpec"), fleet, merge::Role::Head);
    }
    if let Some(groups) = cluster.get_mut("workerGroupSpecs").and_then(Value::as_array_mut) {
        let mut stored = old.groups();
        for group in groups.iter_mut().filter(|group| group.is_object()) {
            let before = stored.get_mut(group.at("groupName").text().unwrap_or_default()).and_then(VecDeque::pop_front);
            fill_group(group, before.map_or(Place::New, Place::Existing), fleet, merge::Role::Worker);
        }
    }
}

/// `rayStartParams` and the fleet's part of a group.
fn fill_group(group: &mut Value, old: Place<'_>, fleet: &Settings, role: merge::Role) {
    let missing = !group.at("rayStartParams").is_set();
    let empty = match old {
        Place::New => true,
        Place::Existing(old) => old.at("rayStartParams").as_object().is_some_and(Map::is_empty),
    };
    if missing && empty {
        set(group, "rayStartParams", json!({}));
    }
    merge::template(group, "template", fleet, role, old);
}

/// `rayVersion` from the tag of the head's image. Where a rule makes the version a condition (authentication, priorities), it is
/// not guessed: there the user must state it.
fn fill_version(cluster: &mut Value, old: Place<'_>, follow_image: bool) {
    let conditional = cluster.at("authOptions").at("mode").text() == Some("token")
        || cluster.at("workerGroupSpecs").items().iter().any(|group| group.at("priority").int().is_some_and(|priority| priority != 0));
    if conditional || (cluster.at("rayVersion").is_set() && !follow_image) {
        return;
    }
    let derived = match old {
        Place::New => true,
        Place::Existing(old) => old.at("rayVersion").is_set() && old.at("rayVersion").text() == head_version(old),
    };
    if derived && let Some(version) = head_version(cluster).map(str::to_owned) {
        set(cluster, "rayVersion", Value::String(version));
    }
}

fn head_image(cluster: &Value) -> Option<&str> {
    cluster.at("headGroupSpec").at("template").at("spec").at("containers").first().at("image").filled()
}

fn head_version(cluster: &Value) -> Option<&str> {
    RayVersion::of_image(head_image(cluster)?).map(|(_, text)| text)
}

/// What `kubectl apply` recorded about `rayVersion`.
struct AppliedVersion<'a> {
    object: Option<&'a str>,
    path: &'a [&'a str],
}

impl AppliedVersion<'_> {
    /// Whether `rayVersion` is one that we filled in and the user now changes the image: `kubectl apply` carries the old version
    /// along, but the record of what the user wrote does not have it.
    fn follows_image(&self, old: &Value, new: &Value) -> bool {
        let (before, after) = (part(old, self.path), part(new, self.path));
        let Some(version) = after.at("rayVersion").text() else { return false };
        if before.at("rayVersion").text() != Some(version)
            || head_version(before) != Some(version)
            || head_image(before) == head_image(after)
        {
            return false;
        }
        let written = self.object.and_then(|text| serde_json::from_str::<Value>(text).ok()).unwrap_or_default();
        let written = part(&written, self.path);
        written.is_object() && !written.at("rayVersion").is_set()
    }
}

/// Resources of containers that the operator adds to the Pods of a cluster.
fn fill_injected_resources(cluster: &mut Value, old: Place<'_>, fleet: &Settings) {
    if let Some(resources) = fleet.autoscaler_resources()
        && cluster.at("enableInTreeAutoscaling").is_true()
    {
        let old = old.field_if_set("autoscalerOptions", "enableInTreeAutoscaling");
        merge::field(cluster, "autoscalerOptions", "resources", resources, old);
    }
    if let Some(resources) = fleet.collector_resources()
        && cluster.at("historyServerOptions").at("collectorOptions").is_object()
        && let Some(history) = at_mut(cluster, &["historyServerOptions"])
    {
        merge::field(history, "collectorOptions", "resources", resources, old.field("historyServerOptions").field("collectorOptions"));
    }
}

/// Resources that the operator gives to its own submitter (RJ-113).
fn submitter_resources() -> Value {
    json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "200Mi"}})
}

/// C-09: a submitter template is completed, so that the Job made from it is legal whichever operator makes it.
fn fill_submitter(job: &mut Value, old: Place<'_>, fleet: &Settings) {
    if !matches!(job.at("submissionMode").text(), None | Some("K8sJobMode")) {
        return;
    }
    let image = head_image(job.at("rayClusterSpec")).map(str::to_owned);
    let resources = fleet.submitter_resources().cloned();
    let wanted = resources.is_some() || fleet.shapes(merge::Role::Submitter);
    if !job.at("submitterPodTemplate").is_set() {
        // A template can only carry fleet defaults if the image is known, which it is not for a cluster of somebody else.
        let made_here = |old: &Value| named(old.at("submitterPodTemplate").at("spec").at("containers"), container::SUBMITTER).is_some();
        let may_make = wanted && old.value().is_none_or(made_here) && !job.at("clusterSelector").has_entries();
        let Some(image) = image.as_ref().filter(|_| may_make) else { return };
        let submitter =
            json!({"name": container::SUBMITTER, "image": image, "resources": resources.clone().unwrap_or_else(submitter_resources)});
        set(job, "submitterPodTemplate", json!({"spec": {"restartPolicy": "Never", "containers": [submitter]}}));
    }
    let old_image = old.value().and_then(|old| head_image(old.at("rayClusterSpec")));
    let old = old.field("submitterPodTemplate");
    if let Some(pod) = at_mut(job, &["submitterPodTemplate", "spec"]) {
        fill_pod(pod, old.field("spec"), image, old_image, resources);
    }
    merge::template(job, "submitterPodTemplate", fleet, merge::Role::Submitter, old);
}

fn fill_pod(pod: &mut Value, old: Place<'_>, image: Option<String>, old_image: Option<&str>, resources: Option<Value>) {
    let old_container = match old {
        Place::New => Place::New,
        Place::Existing(old) => Place::Existing(old.at("containers").first()),
    };
    let never = Value::from("Never");
    let Some(submitter) =
        pod.get_mut("containers").and_then(Value::as_array_mut).and_then(|list| list.first_mut()).filter(|value| value.is_object())
    else {
        return;
    };
    if !submitter.at("image").is_set()
        && let Some(image) = image
        && old_container.had("image", old_image.map(Value::from).as_ref())
    {
        set(submitter, "image", Value::String(image));
    }
    let resources = resources.unwrap_or_else(submitter_resources);
    let given = submitter.at("resources");
    let none = !given.is_set() || (given.is_object() && !given.has_entries());
    if none && old_container.had("resources", Some(&resources)) {
        set(submitter, "resources", resources);
    }
    if !pod.at("restartPolicy").is_set() && old.had("restartPolicy", Some(&never)) {
        set(pod, "restartPolicy", never);
    }
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(map) = object.as_object_mut() {
        map.insert(key.to_owned(), value);
    }
}

impl<'a> Place<'a> {
    /// The stored worker groups by name: their order has no meaning. Several of one name, which only an object from before the
    /// rules can have, go in order.
    fn groups(self) -> HashMap<&'a str, VecDeque<&'a Value>> {
        let mut by_name: HashMap<_, VecDeque<_>> = HashMap::new();
        if let Self::Existing(cluster) = self {
            for group in cluster.at("workerGroupSpecs").items().iter().filter(|group| group.is_object()) {
                by_name.entry(group.at("groupName").text().unwrap_or_default()).or_default().push_back(group);
            }
        }
        by_name
    }
}

#[cfg(test)]
#[allow(clippy::needless_pass_by_value)] // tables read better without `&`
mod tests;

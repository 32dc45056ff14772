//! A cluster spec, on its own or inside a RayJob, RayService or RayCronJob (V-C-3..V-C-70).

use serde_json::Value;

use super::{
    ErrorType, Findings, Kind, Path, Subject, clashes, fault_tolerance, groups,
    json::{Json, Shown, named, position},
    options,
};
use crate::{labels::env, version::RayVersion};

/// A cluster spec with what several rules ask about it.
pub(crate) struct Cluster<'a> {
    pub(crate) subject: &'a Subject<'a>,
    pub(crate) spec: &'a Value,
    pub(crate) head: &'a Value,
    /// The Ray container of the head: container 0 (Null when there is none).
    pub(crate) head_container: &'a Value,
    pub(crate) autoscaling: bool,
    /// `autoscalerOptions.version`, empty when unset.
    pub(crate) autoscaler_version: &'a str,
    /// Whether autoscaler v2 is asked for, by the option or by the head's environment.
    pub(crate) v2: bool,
}

impl<'a> Cluster<'a> {
    pub(crate) fn of(subject: &'a Subject<'a>, spec: &'a Value) -> Self {
        let head = spec.at("headGroupSpec");
        let head_container = ray_container(head);
        let autoscaler_version = spec.at("autoscalerOptions").at("version").text().unwrap_or_default();
        let v2 = autoscaler_version == "v2" || v2_variable(head_container);
        let autoscaling = spec.at("enableInTreeAutoscaling").is_true();
        Self { subject, spec, head, head_container, autoscaling, autoscaler_version, v2 }
    }

    pub(crate) fn groups(&self) -> &'a [Value] {
        self.spec.at("workerGroupSpecs").items()
    }

    /// Whether this is the spec of a RayCluster, not of a template inside another kind.
    pub(crate) fn is_own(&self) -> bool {
        self.subject.kind == Kind::RayCluster
    }

    /// Judges `rayVersion` against the version that `what` needs: `None` when it is high enough, else what is wrong and what to
    /// do.
    pub(crate) fn version_problem(&self, what: &str, needed: RayVersion) -> Option<String> {
        let image = self.head_container.at("image").text().unwrap_or_default();
        let hint = RayVersion::of_image(image).map(|(_, tag)| format!(" (the head's image says {tag})")).unwrap_or_default();
        match self.spec.at("rayVersion").filled() {
            None => {
                Some(format!("{what} needs Ray {needed} or later, but rayVersion is not set: set it to the version in the image{hint}"))
            }
            Some(text) => match RayVersion::parse(text) {
                None => Some(format!(
                    "{what} needs Ray {needed} or later, and {} is not a version: write it like \"{needed}\"{hint}",
                    Shown(text)
                )),
                Some(version) if version < needed => {
                    Some(format!("{what} needs Ray {needed} or later, but rayVersion is {}: use a newer Ray{hint}", Shown(text)))
                }
                Some(_) => None,
            },
        }
    }
}

/// Container 0 of a group's template, which runs Ray.
pub(crate) fn ray_container(group: &Value) -> &Value {
    group.at("template").at("spec").at("containers").first()
}

/// Whether a container's environment switches autoscaler v2 on. Other spellings than these two are not understood by Ray's
/// operator contract and do not count.
fn v2_variable(container: &Value) -> bool {
    named(container.at("env"), env::RAY_ENABLE_AUTOSCALER_V2)
        .is_some_and(|variable| matches!(variable.at("value").text(), Some("1" | "true")))
}

/// Position of a variable in a container's `env`. What `envFrom` brings is unknown here.
pub(crate) fn variable(container: &Value, name: &str) -> Option<usize> {
    position(container.at("env"), name)
}

/// Reports at container 0 of the template of `group`.
pub(crate) fn at_ray_container(group: &Path<'_>, report: impl FnOnce(&Path<'_>)) {
    at_pod(group, |pod| report(&pod.field("containers").index(0)));
}

/// Reports at the Pod spec in the template of `group`.
pub(crate) fn at_pod(group: &Path<'_>, report: impl FnOnce(&Path<'_>)) {
    report(&group.field("template").field("spec"));
}

/// The RayCluster kind: its spec, its own upgrade strategy, its status.
pub(super) fn examine_object(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    examine_spec(subject, subject.spec, path, out);
    examine_own_strategy(subject, path, out);
    if subject.stored {
        examine_status(subject, out);
    }
}

/// Every rule about a cluster spec, wherever it stands.
pub(super) fn examine_spec(subject: &Subject<'_>, spec: &Value, path: &Path<'_>, out: &mut Findings) {
    let cluster = Cluster::of(subject, spec);
    groups::examine_head(&cluster, &path.field("headGroupSpec"), out);
    groups::examine_workers(&cluster, &path.field("workerGroupSpecs"), out);
    fault_tolerance::examine(&cluster, path, out);
    options::examine(&cluster, path, out);
    clashes::examine(&cluster, path, out);
    if !cluster.is_own() {
        let strategy = path.field("upgradeStrategy");
        if spec.at("upgradeStrategy").at("type").is_set() {
            let instead =
                if subject.kind == Kind::RayService { "; a RayService has spec.upgradeStrategy for its own upgrades" } else { "" };
            out.forbidden(
                &strategy.field("type"),
                "C-13",
                format!(
                    "only a RayCluster made by hand may have an upgrade strategy, not the cluster of a {}: remove it{instead}",
                    subject.kind
                ),
            );
        }
    }
    super::advice::examine_cluster(&cluster, path, out);
}

/// V-C-3, V-C-4.
fn examine_own_strategy(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let Some(strategy) = subject.spec.at("upgradeStrategy").at("type").text() else { return };
    let parent = path.field("upgradeStrategy");
    let path = parent.field("type");
    let creator = subject.object.at("metadata").at("labels").at(crate::labels::label::ORIGINATED_FROM_CRD).text();
    if let Some(creator @ ("RayJob" | "RayService")) = creator {
        out.forbidden(
            &path,
            "V-C-4",
            format!("this cluster was made by a {creator}, which decides about upgrades itself: remove the strategy"),
        );
    } else if !matches!(strategy, "Recreate" | "None") {
        out.error(
            &path,
            ErrorType::NotSupported,
            "V-C-3",
            format!("{} is not an upgrade strategy of a RayCluster: use \"Recreate\" or \"None\"", Shown(strategy)),
        );
    }
}

/// V-C-5.
fn examine_status(subject: &Subject<'_>, out: &mut Findings) {
    let conditions = subject.object.at("status").at("conditions").items();
    let holds = |name: &str| {
        conditions.iter().any(|condition| condition.at("type").text() == Some(name) && condition.at("status").text() == Some("True"))
    };
    if holds("RayClusterSuspending") && holds("RayClusterSuspended") {
        out.invalid(
            &Path::root("status").field("conditions"),
            "V-C-5",
            "RayClusterSuspending and RayClusterSuspended are both True, which cannot be: set the one that is wrong to False",
        );
    }
}

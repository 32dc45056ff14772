//! Which problems refuse an UPDATE (C-19).
//!
//! An object that was stored before the rules were in force must stay usable. The parts of an object are its name, each
//! annotation the rules read, and the spec as a whole. A part the update does not touch is never held against it; whoever
//! edits the spec answers for all of it. Two edits are exempt from that, because a machine makes them on a running system and
//! cannot repair anything: a queue's change of `suspend` (with where the Pods are to run), and the autoscaler's `replicas` and
//! `workersToDelete`. There, only new problems refuse.

use std::collections::HashSet;

use serde_json::Value;

use super::{FieldError, FieldWarning, Findings, Kind, Report, Request, Subject, json::Json, metadata::VALIDATED_ANNOTATIONS, transition};

pub(super) fn examine(request: &Request<'_>, old: &Value) -> Findings {
    let (before, after) = (Subject::of(request.kind, old, *request.features), Subject::of(request.kind, request.object, *request.features));
    let spec_changed = before.spec != after.spec;
    if !spec_changed && VALIDATED_ANNOTATIONS.iter().all(|key| before.annotation(key) == after.annotation(key)) {
        return Findings::default();
    }
    let by_machine = spec_changed && is_machine_edit(request.kind, before.spec, after.spec);
    let mut found = super::examine(&after);
    if by_machine {
        found.report.warnings.clear();
    }
    if !found.report.allowed() {
        let excused = |error: &FieldError| !spec_changed || by_machine || error.path.starts_with("metadata.");
        excuse_old(&mut found.report, &super::examine(&before).report, excused);
    }
    if spec_changed {
        transition::examine(&before, &after, &mut found);
    }
    found
}

/// Turns errors that the stored object already has, at the same place and for the same reason, into warnings.
fn excuse_old(report: &mut Report, old: &Report, excused: impl Fn(&FieldError) -> bool) {
    let known: HashSet<(&str, &str, &str)> = old.errors.iter().map(identity).collect();
    let (excused, rest) =
        std::mem::take(&mut report.errors).into_iter().partition(|error| excused(error) && known.contains(&identity(error)));
    report.errors = rest;
    report.omitted = report.omitted.saturating_sub(old.omitted);
    let excused: Vec<FieldError> = excused;
    report.warnings.extend(excused.into_iter().map(|FieldError { path, message, rule, .. }| FieldWarning {
        path,
        message: format!("{message} (admitted because this update does not cause it)"),
        rule,
    }));
}

fn identity(error: &FieldError) -> (&str, &str, &str) {
    (error.rule, &error.path, &error.message)
}

/// Whether the two specs differ in nothing but what queue controllers and autoscalers write.
fn is_machine_edit(kind: Kind, old: &Value, new: &Value) -> bool {
    if old.at("suspend") == new.at("suspend") {
        return kind == Kind::RayCluster && old.at("enableInTreeAutoscaling").is_true() && only_scaled(old, new);
    }
    match kind {
        Kind::RayCluster => only_placed(old, new, &["suspend"]),
        Kind::RayJob => {
            equal_except(old, new, &["suspend", "rayClusterSpec"]) && only_placed(old.at("rayClusterSpec"), new.at("rayClusterSpec"), &[])
        }
        Kind::RayService => {
            equal_except(old, new, &["suspend", "rayClusterConfig"])
                && only_placed(old.at("rayClusterConfig"), new.at("rayClusterConfig"), &[])
        }
        Kind::RayCronJob => equal_except(old, new, &["suspend"]),
    }
}

/// The autoscaler's edit: how many workers, and which of them go.
fn only_scaled(old: &Value, new: &Value) -> bool {
    equal_except(old, new, &["workerGroupSpecs"])
        && same_length(old, new)
        && groups(old).zip(groups(new)).all(|(old, new)| equal_except(old, new, &["replicas", "scaleStrategy"]))
}

/// A queue's edit when it lets an object start or stop: where the Pods are to run.
fn only_placed(old: &Value, new: &Value, ignored: &[&str]) -> bool {
    if old == new {
        return true;
    }
    let placed = |old: &Value, new: &Value| {
        let (before, after) = (old.at("template"), new.at("template"));
        equal_except(old, new, &["template"])
            && equal_except(before, after, &["metadata", "spec"])
            && equal_except(before.at("metadata"), after.at("metadata"), &["labels", "annotations"])
            && equal_except(before.at("spec"), after.at("spec"), &["nodeSelector", "tolerations", "schedulingGates"])
    };
    let ignored: Vec<&str> = ignored.iter().copied().chain(["headGroupSpec", "workerGroupSpecs"]).collect();
    equal_except(old, new, &ignored)
        && same_length(old, new)
        && placed(old.at("headGroupSpec"), new.at("headGroupSpec"))
        && groups(old).zip(groups(new)).all(|(old, new)| placed(old, new))
}

fn groups(cluster: &Value) -> impl Iterator<Item = &Value> {
    cluster.at("workerGroupSpecs").items().iter()
}

fn same_length(old: &Value, new: &Value) -> bool {
    groups(old).count() == groups(new).count()
}

/// Whether two maps have the same entries, apart from some keys.
fn equal_except(old: &Value, new: &Value, ignored: &[&str]) -> bool {
    let kept = |(key, _): &(&String, &Value)| !ignored.contains(&key.as_str());
    old.entries().filter(kept).eq(new.entries().filter(kept))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn machine_edits_are_told_from_other_edits() {
        let group = |replicas: i32, max: i32| json!([{"groupName": "a", "replicas": replicas, "maxReplicas": max}]);
        let scaled = |replicas| json!({"enableInTreeAutoscaling": true, "workerGroupSpecs": group(replicas, 9)});
        let placed = |pod: Value| json!({"headGroupSpec": {"template": {"spec": pod}}, "workerGroupSpecs": group(1, 9)});
        let table = [
            (Kind::RayCluster, scaled(1), scaled(2), true),
            (Kind::RayCluster, json!({"workerGroupSpecs": group(1, 9)}), json!({"workerGroupSpecs": group(2, 9)}), false),
            (Kind::RayCluster, scaled(1), json!({"enableInTreeAutoscaling": true, "workerGroupSpecs": group(1, 8)}), false),
            (Kind::RayCluster, scaled(1), json!({"enableInTreeAutoscaling": false, "workerGroupSpecs": group(2, 9)}), false),
            (Kind::RayJob, json!({"suspend": true, "entrypoint": "e"}), json!({"suspend": false, "entrypoint": "e"}), true),
            (Kind::RayJob, json!({"entrypoint": "e"}), json!({"suspend": true, "entrypoint": "e"}), true),
            (Kind::RayJob, json!({"suspend": true, "entrypoint": "e"}), json!({"suspend": false, "entrypoint": "f"}), false),
            (Kind::RayCronJob, json!({"suspend": true, "schedule": "x"}), json!({"suspend": false, "schedule": "x"}), true),
            (
                Kind::RayJob,
                json!({"suspend": true, "rayClusterSpec": placed(json!({}))}),
                json!({"suspend": false, "rayClusterSpec": placed(json!({"nodeSelector": {"a": "b"}, "tolerations": [{}]}))}),
                true,
            ),
            (
                Kind::RayCluster,
                json!({"suspend": true, "headGroupSpec": placed(json!({}))["headGroupSpec"]}),
                json!({"suspend": false, "headGroupSpec": placed(json!({"nodeSelector": {"a": "b"}}))["headGroupSpec"]}),
                true,
            ),
            (
                Kind::RayJob,
                json!({"suspend": true, "rayClusterSpec": placed(json!({}))}),
                json!({"suspend": false, "rayClusterSpec": placed(json!({"containers": []}))}),
                false,
            ),
            (Kind::RayService, json!({"serveConfigV2": "a"}), json!({"serveConfigV2": "b"}), false),
        ];
        for (kind, old, new, wanted) in table {
            assert_eq!(is_machine_edit(kind, &old, &new), wanted, "{kind}: {old} -> {new}");
        }
    }
}

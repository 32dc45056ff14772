//! What an UPDATE may not change, and what it changes without effect (V-X-1, V-J-37, N-J-6, N-J-7, C-05, W-U-*).

use std::collections::HashMap;

use serde_json::Value;

use super::{
    Findings, Kind, Path, Subject,
    job::Mode,
    json::{Json, Shown},
};
use crate::labels::label;

/// Compares the stored object with what it is to become. The specs are known to differ.
pub(super) fn examine(old: &Subject<'_>, new: &Subject<'_>, out: &mut Findings) {
    let spec = Path::root("spec");
    examine_manager(old, new, &spec, out);
    match new.kind {
        Kind::RayCluster => {
            examine_backend(old.spec, new.spec, &spec, out);
            examine_cluster(old, new, &spec, out);
        }
        Kind::RayJob => {
            examine_backend(old.spec.at("rayClusterSpec"), new.spec.at("rayClusterSpec"), &spec.field("rayClusterSpec"), out);
            examine_job(old, new, &spec, out);
        }
        Kind::RayService => {
            examine_backend(old.spec.at("rayClusterConfig"), new.spec.at("rayClusterConfig"), &spec.field("rayClusterConfig"), out);
            examine_service(old, new, &spec, out);
        }
        Kind::RayCronJob => {
            // Runs that exist already keep their cluster; the next one gets the new template. The schema still holds the
            // backend fixed where both are spelled out.
        }
    }
}

const DEFAULT_MANAGER: &str = "ray.io/kuberay-operator";

/// The schema keeps a value from changing, but not from appearing or going away (V-X-1). What counts is who works on the object.
fn examine_manager(old: &Subject<'_>, new: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let manager = |spec: &Value| spec.at("managedBy").text().unwrap_or(DEFAULT_MANAGER).to_owned();
    let (before, after) = (manager(old.spec), manager(new.spec));
    if before != after {
        out.invalid(
            &path.field("managedBy"),
            "V-X-1",
            format!("{} works on this object, and it cannot be handed over to {}: create a new one", Shown(&before), Shown(&after)),
        );
    }
}

/// The state of the head lives in the backend; another one would start empty. An absent backend means redis.
fn examine_backend(old: &Value, new: &Value, path: &Path<'_>, out: &mut Findings) {
    let (old, new) = (old.at("gcsFaultToleranceOptions"), new.at("gcsFaultToleranceOptions"));
    if !old.is_set() || !new.is_set() {
        return;
    }
    let backend = |options: &Value| options.at("backend").filled().unwrap_or("redis").to_owned();
    let (before, after) = (backend(old), backend(new));
    if before != after {
        let options = path.field("gcsFaultToleranceOptions");
        out.invalid(
            &options.field("backend"),
            "V-X-1",
            format!("the head keeps its state in {}, and would lose it in {}: create a new cluster", Shown(&before), Shown(&after)),
        );
    }
}

/// How far a job has come, as far as edits are concerned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing has been made for this attempt, or everything is over.
    Free,
    /// The cluster is being made.
    Starting,
    /// The cluster waits for the user to submit.
    Waiting,
    /// The job has been submitted.
    Running,
    /// The job is over.
    Finished,
}

fn phase(old: &Subject<'_>, new: &Subject<'_>) -> Phase {
    // The status sub-resource is written apart; a file given to `check` may lack the status of the new object.
    let status = |object: &Value| object.at("status").at("jobDeploymentStatus").filled().map(str::to_owned);
    match status(new.object).or_else(|| status(old.object)).as_deref() {
        Some("Initializing") => Phase::Starting,
        Some("Waiting") => Phase::Waiting,
        Some("Running") => Phase::Running,
        Some("Complete" | "Failed") => Phase::Finished,
        _ => Phase::Free,
    }
}

fn examine_job(old: &Subject<'_>, new: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let phase = phase(old, new);
    let in_progress = matches!(phase, Phase::Starting | Phase::Waiting | Phase::Running);
    examine_mode(old, new, phase, &path.field("submissionMode"), out);
    let selected = |spec: &Value| spec.at("clusterSelector").at(label::CLUSTER).filled().map(str::to_owned);
    if in_progress && selected(old.spec) != selected(new.spec) {
        out.invalid(
            &path.field("clusterSelector"),
            "N-J-7",
            "the job has its cluster already, and changing to another would leave it behind: create a new job, or suspend this one first",
        );
    }
    if in_progress && old.spec.at("rayClusterSpec") != new.spec.at("rayClusterSpec") {
        out.warn(
            &path.field("rayClusterSpec"),
            "W-U-1",
            "the cluster of this attempt exists already; the change counts from the next attempt or after a suspension",
        );
    }
    if phase == Phase::Running {
        for field in ["entrypoint", "runtimeEnvYAML", "metadata", "entrypointNumCpus", "entrypointNumGpus", "entrypointResources"] {
            if old.spec.at(field) != new.spec.at(field) {
                out.warn(
                    &path.field(field),
                    "W-U-2",
                    "the job has been submitted already; the change counts from the next attempt or after a suspension",
                );
            }
        }
    }
    if phase == Phase::Finished && new.spec.at("suspend").is_true() && !old.spec.at("suspend").is_true() {
        out.warn(&path.field("suspend"), "W-U-3", "the job is over, so there is nothing to suspend");
    }
}

fn examine_mode(old: &Subject<'_>, new: &Subject<'_>, phase: Phase, path: &Path<'_>, out: &mut Findings) {
    let (Some(before), Some(after)) = (Mode::of(old.spec), Mode::of(new.spec)) else { return };
    if before == after {
        return;
    }
    match phase {
        Phase::Waiting if after != Mode::Interactive => {
            out.invalid(path, "V-J-37", "the job is Waiting for a user, which only happens in InteractiveMode: submit it, or suspend the job before changing the mode");
        }
        Phase::Running => {
            out.invalid(
                path,
                "N-J-6",
                "the job has been submitted in the present mode and is followed that way: create a new job, or suspend this one first",
            );
        }
        Phase::Starting if before == Mode::Sidecar || after == Mode::Sidecar => {
            out.invalid(
                path,
                "N-J-6",
                "the head of this job is being made with or without the submitter in it: create a new job, or suspend this one first",
            );
        }
        _ => {}
    }
}

fn examine_cluster(old: &Subject<'_>, new: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let (before, after) = (old.spec.at("workerGroupSpecs").items(), new.spec.at("workerGroupSpecs").items());
    let groups = path.field("workerGroupSpecs");
    let recreate = new.spec.at("upgradeStrategy").at("type").text() == Some("Recreate");
    let kept = "Pods that run keep the old template until they are deleted; upgradeStrategy.type \"Recreate\" would replace them";
    if !recreate && old.spec.at("headGroupSpec").at("template") != new.spec.at("headGroupSpec").at("template") {
        out.warn(&path.field("headGroupSpec").field("template"), "W-U-4", kept);
    }
    let by_name: HashMap<&str, usize> =
        after.iter().enumerate().filter_map(|(index, group)| Some((group.at("groupName").text()?, index))).collect();
    for group in before {
        let name = group.at("groupName").text().unwrap_or_default();
        let Some((index, successor)) = by_name.get(name).and_then(|index| Some((*index, after.get(*index)?))) else {
            let pods = group.at("replicas").int().unwrap_or(0).max(0).saturating_mul(group.at("numOfHosts").int().unwrap_or(1).max(1));
            let count = if pods == 1 { "1 Pod".to_owned() } else { format!("{pods} Pods") };
            out.warn(&groups, "C-05", format!("the group {} is removed, so its workers ({count} wanted now) are deleted", Shown(name)));
            continue;
        };
        if !recreate && group.at("template") != successor.at("template") {
            out.warn(&groups.index(index).field("template"), "W-U-4", kept);
        }
    }
}

/// RS-44.
fn examine_service(old: &Subject<'_>, new: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    if new.spec.at("upgradeStrategy").at("type").text() == Some("None")
        && old.spec.at("rayClusterConfig") != new.spec.at("rayClusterConfig")
    {
        out.warn(
            &path.field("rayClusterConfig"),
            "W-U-5",
            "upgradeStrategy.type is None, so the running cluster stays as it is, apart from new worker groups at the end of the list",
        );
    }
}

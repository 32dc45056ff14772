//! The RayService kind (V-S-4..V-S-15, C-07, C-13, C-16).

use serde_json::Value;

use super::{
    ErrorType, Findings, Path, Subject, advice, clashes, cluster, embedded,
    json::{Json, Shown},
};
use crate::{features::Feature, names};

/// The upgrade type that shifts traffic step by step.
pub(super) const INCREMENTAL: &str = "NewClusterWithIncrementalUpgrade";

pub(super) fn examine(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let spec = subject.spec;
    examine_upgrade(subject, path, out);
    if let Some(delay) = spec.at("rayClusterDeletionDelaySeconds").int()
        && delay < 0
    {
        out.invalid(&path.field("rayClusterDeletionDelaySeconds"), "V-S-8", format!("{delay} is negative: use 0 or more seconds"));
    }
    embedded::examine_serve_config(spec.at("serveConfigV2"), &path.field("serveConfigV2"), out);
    examine_services(subject, path, out);
    let cluster_path = path.field("rayClusterConfig");
    let config = spec.at("rayClusterConfig");
    if !config.is_set() {
        return out.required(&cluster_path, "V-S-5", "a service needs a cluster: describe it here");
    }
    if config.at("authOptions").at("enableK8sTokenAuth").is_true() {
        let auth = cluster_path.field("authOptions");
        out.forbidden(
            &auth.field("enableK8sTokenAuth"),
            "V-S-4",
            "the operator cannot reach Serve with Kubernetes tokens: remove it, and use mode \"token\" with a Secret",
        );
    }
    cluster::examine_spec(subject, config, &cluster_path, out);
    advice::examine_service(subject, path, out);
}

/// Names of Services (V-S-6, N-S-1).
fn examine_services(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let service = subject.spec.at("rayClusterConfig").at("headGroupSpec").at("headService");
    if let Some(name) = service.at("metadata").at("name").filled() {
        let (cluster, head);
        let service = {
            cluster = path.field("rayClusterConfig");
            head = cluster.field("headGroupSpec");
            head.field("headService")
        };
        let metadata = service.field("metadata");
        out.forbidden(
            &metadata.field("name"),
            "V-S-6",
            format!(
                "during an upgrade two clusters run side by side and cannot share the head Service {}: remove the name; clients use {}, which follows the active cluster",
                Shown(name),
                names::head_service(subject.name)
            ),
        );
    }
    let Some(name) = subject.spec.at("serveService").at("metadata").at("name").filled() else { return };
    let service = path.field("serveService");
    let metadata = service.field("metadata");
    clashes::examine_service_name(name, &metadata.field("name"), out);
    if name == names::head_service(subject.name) {
        out.error(
            &metadata.field("name"),
            ErrorType::Duplicate,
            "N-S-1",
            format!("{} is the Service of the head: choose another name", Shown(name)),
        );
    }
}

/// V-S-7, V-S-9..V-S-15, C-16.
fn examine_upgrade(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let strategy = subject.spec.at("upgradeStrategy");
    let strategy_path = path.field("upgradeStrategy");
    let Some(kind) = strategy.at("type").text() else { return };
    if !matches!(kind, "NewCluster" | "None" | INCREMENTAL) {
        return out.error(
            &strategy_path.field("type"),
            ErrorType::NotSupported,
            "V-S-7",
            format!("{} is not an upgrade strategy of a RayService: use \"NewCluster\", \"{INCREMENTAL}\" or \"None\"", Shown(kind)),
        );
    }
    if kind != INCREMENTAL || !subject.features.enabled(Feature::RayServiceIncrementalUpgrade) {
        return;
    }
    if !subject.spec.at("rayClusterConfig").at("enableInTreeAutoscaling").is_true() {
        let cluster = path.field("rayClusterConfig");
        out.invalid(
            &cluster.field("enableInTreeAutoscaling"),
            "V-S-9",
            format!("{INCREMENTAL} shifts load between clusters that grow and shrink with it: set this to true, or use NewCluster"),
        );
    }
    let options = strategy.at("clusterUpgradeOptions");
    let options_path = strategy_path.field("clusterUpgradeOptions");
    if !options.is_set() {
        return out.required(
            &options_path,
            "V-S-10",
            "an incremental upgrade needs stepSizePercent, intervalSeconds and gatewayClassName: give them here",
        );
    }
    examine_pace(options, &options_path, out);
    match options.at("intervalSeconds").int() {
        None => out.required(&options_path.field("intervalSeconds"), "V-S-14", "the time between two steps is missing: give it in seconds"),
        Some(seconds) if seconds <= 0 => {
            out.invalid(&options_path.field("intervalSeconds"), "V-S-14", format!("{seconds} is not above zero: use 1 or more seconds"));
        }
        Some(_) => {}
    }
    if options.at("gatewayClassName").filled().is_none() {
        out.required(&options_path.field("gatewayClassName"), "V-S-15", "the traffic is shifted by a Gateway: name the class of one");
    }
}

/// Size of the steps (V-S-11..V-S-13, C-16).
fn examine_pace(options: &Value, path: &Path<'_>, out: &mut Findings) {
    let surge = options.at("maxSurgePercent").int().unwrap_or(100);
    let surge_is_sound = (1..=100).contains(&surge);
    if !surge_is_sound {
        let (rule, what) =
            if surge == 0 { ("C-16", "leaves the new cluster no room, so the upgrade never ends") } else { ("V-S-11", "is not a share") };
        out.invalid(&path.field("maxSurgePercent"), rule, format!("{surge} percent {what}: use 1 to 100"));
    }
    let path = path.field("stepSizePercent");
    match options.at("stepSizePercent").int() {
        None => out.required(&path, "V-S-12", "the share of traffic moved in one step is missing: use 1 to 100 percent"),
        Some(0) => out.invalid(&path, "C-16", "0 percent a step moves no traffic, so the upgrade never ends: use 1 to 100"),
        Some(step) if !(0..=100).contains(&step) => out.invalid(&path, "V-S-12", format!("{step} percent is not a share: use 1 to 100")),
        Some(step) if surge_is_sound && step > surge => {
            out.invalid(
                &path,
                "V-S-13",
                format!("{step} percent is more than maxSurgePercent ({surge}) gives the new cluster: use at most that"),
            );
        }
        Some(_) => {}
    }
}

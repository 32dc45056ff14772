//! Optional parts of a cluster: autoscaler, history server, authentication, network policy, TLS (V-C-39, V-C-41, V-C-44..V-C-67).

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Findings, Path,
    cluster::{Cluster, at_pod, at_ray_container, ray_container, variable},
    json::{Json, Shown, position},
    pods::examine_limits,
};
use crate::{
    features::Feature,
    labels::{container, env},
    version::RayVersion,
};

pub(super) fn examine(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    examine_autoscaler(cluster, path, out);
    if cluster.spec.at("historyServerOptions").is_set() {
        examine_history(cluster, path, out);
    }
    if cluster.spec.at("authOptions").is_set() {
        examine_auth(cluster, path, out);
    }
    if cluster.spec.at("networkPolicy").is_set() {
        examine_network(cluster, &path.field("networkPolicy"), out);
    }
    if cluster.spec.at("tlsOptions").is_set() {
        examine_tls(cluster, path, out);
    }
}

fn examine_autoscaler(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    let (options, options_path) = (cluster.spec.at("autoscalerOptions"), path.field("autoscalerOptions"));
    if let Some(index) = variable(cluster.head_container, env::RAY_ENABLE_AUTOSCALER_V2) {
        let head = path.field("headGroupSpec");
        let problem = if cluster.autoscaling {
            (!cluster.autoscaler_version.is_empty())
                .then_some(("V-C-41", "autoscalerOptions.version decides about the version already: remove this variable"))
        } else {
            let literal = cluster.head_container.at("env").items().get(index).and_then(|variable| variable.at("value").text());
            matches!(literal, Some("1" | "true")).then_some((
                "V-C-39",
                "there is no autoscaler to switch to v2: set enableInTreeAutoscaling to true, or remove this variable",
            ))
        };
        if let Some((rule, message)) = problem {
            at_ray_container(&head, |container| {
                let variables = container.field("env");
                out.forbidden(&variables.index(index).field("name"), rule, format!("{}: {message}", env::RAY_ENABLE_AUTOSCALER_V2));
            });
        }
    }
    examine_limits(options.at("resources"), &options_path.field("resources"), out);
    if let Some(idle) = options.at("idleTimeoutSeconds").int()
        && idle < 0
    {
        out.invalid(&options_path.field("idleTimeoutSeconds"), "V-C-44", format!("{idle} is negative: use 0 or more seconds"));
    }
    if let Some(index) = position(options.at("env"), env::KUBERAY_GEN_AUTOSCALER_START_CMD) {
        let variables = options_path.field("env");
        out.forbidden(
            &variables.index(index).field("name"),
            "V-C-45",
            "the operator sets KUBERAY_GEN_AUTOSCALER_START_CMD, for use in command and args: remove it here",
        );
    }
}

/// Variables that the operator gives to the collector.
const COLLECTOR_VARIABLES: [&str; 8] =
    ["POD_IP", "FQ_RAY_IP", "RAY_CLUSTER_NAME", "RAY_CLUSTER_NAMESPACE", "RAY_ROLE", "OWNER_KIND", "OWNER_NAME", "EVENTS_PORT"];

fn examine_history(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    let history = path.field("historyServerOptions");
    if !cluster.subject.features.enabled(Feature::RayClusterHistoryServer) {
        return out.forbidden(
            &history,
            "V-C-46",
            "the history server is behind the feature gate RayClusterHistoryServer, which is off: switch it on, or remove this",
        );
    }
    forbid_collector_container(cluster.head, &path.field("headGroupSpec"), "V-C-55", out);
    let groups = path.field("workerGroupSpecs");
    for (index, group) in cluster.groups().iter().enumerate() {
        forbid_collector_container(group, &groups.index(index), "V-C-56", out);
    }
    let (collector, collector_path) = (cluster.spec.at("historyServerOptions").at("collectorOptions"), history.field("collectorOptions"));
    if !collector.is_set() {
        return out.required(&collector_path, "V-C-47", "the history server is fed by a collector: describe it here");
    }
    examine_limits(collector.at("resources"), &collector_path.field("resources"), out);
    if collector.at("image").filled().is_none() {
        out.required(&collector_path.field("image"), "V-C-48", "the collector has no default image: name one");
    }
    let variables = collector_path.field("env");
    for (index, variable) in collector.at("env").items().iter().enumerate() {
        if let Some(name) = variable.at("name").text()
            && COLLECTOR_VARIABLES.contains(&name)
        {
            out.forbidden(
                &variables.index(index).field("name"),
                "V-C-49",
                format!("the operator sets {name} for the collector: remove it"),
            );
        }
    }
    examine_backend(collector.at("env"), &variables, out);
}

fn forbid_collector_container(group: &Value, path: &Path<'_>, rule: &'static str, out: &mut Findings) {
    if let Some(index) = position(group.at("template").at("spec").at("containers"), container::HISTORY_COLLECTOR) {
        at_pod(path, |pod| {
            out.forbidden(
                &pod.field("containers").index(index).field("name"),
                rule,
                format!("the operator adds a container {} of its own: choose another name", container::HISTORY_COLLECTOR),
            );
        });
    }
}

/// V-C-50..V-C-54: what the storage of the history needs.
fn examine_backend(variables: &Value, path: &Path<'_>, out: &mut Findings) {
    // Kubernetes lets the last of several equal names win.
    let last = |name: &str| variables.items().iter().rev().find(|variable| variable.at("name").text() == Some(name));
    let literal = |name: &str| last(name).and_then(|variable| variable.at("value").filled());
    let given = |name: &str| literal(name).is_some() || last(name).is_some_and(|variable| variable.at("valueFrom").is_set());
    let Some(backend) = literal("STORAGE_BACKEND") else {
        return out.required(
            path,
            "V-C-50",
            "STORAGE_BACKEND is missing, or not a literal value: set it to GCS, S3, AzureBlob or AliyunOSS",
        );
    };
    let require = |rule: &'static str, names: &[&str], out: &mut Findings| {
        for name in names.iter().filter(|name| !given(name)) {
            out.required(path, rule, format!("{name} is missing, which the storage backend {} needs: add it", Shown(backend)));
        }
    };
    match backend.to_ascii_uppercase().as_str() {
        "GCS" => require("V-C-51", &["GCS_BUCKET"], out),
        "S3" => require("V-C-52", &["S3_REGION"], out),
        "ALIYUNOSS" => require("V-C-54", &["OSS_BUCKET", "OSS_ENDPOINT", "OSS_REGION"], out),
        "AZUREBLOB" => {
            let (connection, account) = ("AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_URL");
            match literal("AZURE_STORAGE_AUTH_MODE").unwrap_or_default().trim().to_ascii_lowercase().as_str() {
                "connection_string" => require("V-C-53", &[connection], out),
                "workload_identity" | "default" => require("V-C-53", &[account], out),
                _ if !given(connection) && !given(account) => {
                    out.required(
                        path,
                        "V-C-53",
                        format!("neither {connection} nor {account} is there, and AzureBlob needs one of them: add it"),
                    );
                }
                _ => {}
            }
        }
        _ => {}
    }
}

/// Earliest Ray with token authentication, and with Kubernetes' own tokens (V-C-57, V-C-58).
const TOKEN_SINCE: RayVersion = RayVersion::new(2, 52, 0);
const K8S_TOKEN_SINCE: RayVersion = RayVersion::new(2, 55, 0);

fn examine_auth(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    let (auth, auth_path) = (cluster.spec.at("authOptions"), path.field("authOptions"));
    let kubernetes = auth.at("enableK8sTokenAuth").is_true();
    if auth.at("mode").text() != Some("token") {
        if kubernetes {
            out.invalid(
                &auth_path.field("mode"),
                "V-C-59",
                "enableK8sTokenAuth only works with mode \"token\", which must be spelled out: set it",
            );
        }
        return;
    }
    forbid_other_mode(cluster.head_container, &path.field("headGroupSpec"), out);
    let groups = path.field("workerGroupSpecs");
    for (index, group) in cluster.groups().iter().enumerate() {
        forbid_other_mode(ray_container(group), &groups.index(index), out);
    }
    let (what, needed, rule) = if kubernetes && cluster.subject.kind == super::Kind::RayCluster {
        ("authentication with Kubernetes tokens", K8S_TOKEN_SINCE, "V-C-58")
    } else {
        ("token authentication", TOKEN_SINCE, "V-C-57")
    };
    if let Some(problem) = cluster.version_problem(what, needed) {
        out.invalid(&path.field("rayVersion"), rule, problem);
    }
    if kubernetes && auth.at("secretName").filled().is_some() {
        out.forbidden(&auth_path.field("secretName"), "V-C-58", "Kubernetes tokens need no Secret: remove it, or enableK8sTokenAuth");
    }
}

/// N-C-8: the operator leaves a variable alone that is there, so one node would talk without tokens.
fn forbid_other_mode(container: &Value, group: &Path<'_>, out: &mut Findings) {
    let Some(index) = variable(container, env::RAY_AUTH_MODE) else { return };
    let literal = container.at("env").items().get(index).and_then(|variable| variable.at("value").text());
    if literal.is_some_and(|mode| mode != "token") {
        at_ray_container(group, |container| {
            out.forbidden(
                &container.field("env").index(index).field("name"),
                "N-C-8",
                format!("{} contradicts authOptions.mode \"token\", and the variable wins: remove it", env::RAY_AUTH_MODE),
            );
        });
    }
}

fn examine_network(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    if !cluster.subject.features.enabled(Feature::RayClusterNetworkPolicy) {
        return out.forbidden(
            path,
            "V-C-60",
            "network policies are behind the feature gate RayClusterNetworkPolicy, which is off: switch it on, or remove this",
        );
    }
    let policy = cluster.spec.at("networkPolicy");
    let open = match policy.at("mode").text() {
        Some("DenyAllEgress") => Some(("ingressRules", "V-C-61", "DenyAllEgress leaves ingress open")),
        Some("DenyAllIngress") => Some(("egressRules", "V-C-62", "DenyAllIngress leaves egress open")),
        _ => None,
    };
    if let Some((field, rule, why)) = open {
        let message = || format!("mode {why}, so these rules would have no effect: remove them, or use DenyAll");
        for side in ["head", "worker"] {
            if !policy.at(side).at(field).items().is_empty() {
                out.forbidden(&path.field(side).field(field), rule, message());
            }
        }
        let groups = path.field("workerGroups");
        for (index, group) in policy.at("workerGroups").items().iter().enumerate() {
            if !group.at(field).items().is_empty() {
                out.forbidden(&groups.index(index).field(field), rule, message());
            }
        }
    }
    let known: HashSet<&str> = cluster.groups().iter().filter_map(|group| group.at("groupName").text()).collect();
    let groups = path.field("workerGroups");
    for (index, group) in policy.at("workerGroups").items().iter().enumerate() {
        let name = group.at("groupName").text().unwrap_or_default();
        if !known.contains(name) {
            out.invalid(
                &groups.index(index).field("groupName"),
                "V-C-64",
                format!("there is no worker group {}: name one of workerGroupSpecs", Shown(name)),
            );
        }
    }
}

const TLS_VARIABLES: [&str; 4] = [env::RAY_USE_TLS, env::RAY_TLS_SERVER_CERT, env::RAY_TLS_SERVER_KEY, env::RAY_TLS_CA_CERT];
const TLS_VOLUME: &str = "ray-tls";
const TLS_PATH: &str = "/etc/ray/tls";

fn examine_tls(cluster: &Cluster<'_>, path: &Path<'_>, out: &mut Findings) {
    if !cluster.subject.features.enabled(Feature::RayClusterMTLS) {
        return out.forbidden(
            &path.field("tlsOptions"),
            "V-C-65",
            "TLS is behind the feature gate RayClusterMTLS, which is off: switch it on, or remove this (even with enabled: false)",
        );
    }
    if !cluster.spec.at("tlsOptions").at("enabled").is_true() {
        return;
    }
    forbid_tls_volume(cluster.head, &path.field("headGroupSpec"), out);
    at_ray_container(&path.field("headGroupSpec"), |container| forbid_tls_parts(cluster.head_container, container, out));
    let groups = path.field("workerGroupSpecs");
    for (index, group) in cluster.groups().iter().enumerate() {
        forbid_tls_volume(group, &groups.index(index), out);
        at_ray_container(&groups.index(index), |container| forbid_tls_parts(ray_container(group), container, out));
    }
    forbid_tls_parts(cluster.spec.at("autoscalerOptions"), &path.field("autoscalerOptions"), out);
}

/// N-C-4: a volume of the managed name would be used in place of the operator's. If it is mounted under that name, too, V-C-67
/// says so.
fn forbid_tls_volume(group: &Value, path: &Path<'_>, out: &mut Findings) {
    let pod = group.at("template").at("spec");
    if position(ray_container(group).at("volumeMounts"), TLS_VOLUME).is_some() {
        return;
    }
    if let Some(index) = position(pod.at("volumes"), TLS_VOLUME) {
        at_pod(path, |pod| {
            out.forbidden(
                &pod.field("volumes").index(index).field("name"),
                "N-C-4",
                format!("with tlsOptions the operator adds the volume {TLS_VOLUME}: choose another name"),
            );
        });
    }
}

/// V-C-66, V-C-67, for a container or the options of one.
fn forbid_tls_parts(container: &Value, path: &Path<'_>, out: &mut Findings) {
    let variables = path.field("env");
    for (index, variable) in container.at("env").items().iter().enumerate() {
        if let Some(name) = variable.at("name").text()
            && TLS_VARIABLES.contains(&name)
        {
            out.forbidden(&variables.index(index).field("name"), "V-C-66", format!("with tlsOptions the operator sets {name}: remove it"));
        }
    }
    let mounts = path.field("volumeMounts");
    for (index, mount) in container.at("volumeMounts").items().iter().enumerate() {
        let field = if mount.at("name").text() == Some(TLS_VOLUME) {
            "name"
        } else if mount.at("mountPath").text().is_some_and(|path| path.trim_end_matches('/') == TLS_PATH) {
            "mountPath"
        } else {
            continue;
        };
        out.forbidden(
            &mounts.index(index).field(field),
            "V-C-67",
            format!("with tlsOptions the operator mounts the volume {TLS_VOLUME} at {TLS_PATH}: use another one"),
        );
    }
}

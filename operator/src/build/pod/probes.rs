//! Probes of the Ray container (RC-60..RC-64). A probe that the user gave is never touched.

use k8s_openapi::api::core::v1::{ExecAction, HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use shared::labels::port;
use shared::version::RayVersion;

use super::Node;
use super::draft::Draft;
use crate::build::container::ContainerExt;
use crate::build::context::{Context, Creator};
use crate::build::ray_start::Params;

/// First version whose dashboard agent answers for the whole node, so that no program is needed in the image.
const HTTP_PROBES_SINCE: RayVersion = RayVersion::new(2, 53, 0);

pub(super) fn add(pod: &mut Draft, node: Node, params: &Params, cx: &Context<'_>) {
    if !cx.settings.switches.probes_injection {
        return;
    }
    let action = action(node, params, cx);
    let timeout_seconds = Some(if node == Node::Head { 5 } else { 2 });
    if pod.ray.liveness_probe.is_none() {
        pod.ray.liveness_probe =
            Some(Probe { initial_delay_seconds: Some(30), failure_threshold: Some(120), timeout_seconds, ..periodic(action.clone()) });
    }
    if pod.ray.readiness_probe.is_none() {
        let serves = node == Node::Worker && cx.creator == Creator::RayService;
        let (action, failure_threshold) = if serves {
            // Traffic must leave a worker whose proxy stopped answering at once (RC-64).
            let serve_port = pod.ray.port_named(port::SERVE_NAME).unwrap_or(port::SERVE);
            let checks = [raylet_check(params), wget(10, serve_port, "-/healthz")];
            (exec(&checks), 1)
        } else {
            (action, 10)
        };
        pod.ray.readiness_probe = Some(Probe {
            initial_delay_seconds: Some(10),
            failure_threshold: Some(failure_threshold),
            timeout_seconds,
            ..periodic(action)
        });
    }
}

fn periodic(action: Probe) -> Probe {
    Probe { period_seconds: Some(5), success_threshold: Some(1), ..action }
}

fn action(node: Node, params: &Params, cx: &Context<'_>) -> Probe {
    let version = cx.cluster.spec.ray_version.as_deref().and_then(RayVersion::parse);
    if version.is_some_and(|version| version >= HTTP_PROBES_SINCE) {
        let http_get =
            HTTPGetAction { path: Some("/api/healthz".to_owned()), port: IntOrString::Int(agent_port(params)), ..HTTPGetAction::default() };
        return Probe { http_get: Some(http_get), ..Probe::default() };
    }
    match node {
        Node::Head => {
            let dashboard = port_param(params, "dashboard-port").unwrap_or(port::DASHBOARD);
            exec(&[raylet_check(params), wget(10, dashboard, "api/gcs_healthz")])
        }
        Node::Worker => exec(&[raylet_check(params)]),
    }
}

fn exec(checks: &[String]) -> Probe {
    let command = vec!["bash".to_owned(), "-c".to_owned(), checks.join(" && ")];
    Probe { exec: Some(ExecAction { command: Some(command) }), ..Probe::default() }
}

fn raylet_check(params: &Params) -> String {
    wget(2, agent_port(params), "api/local_raylet_healthz")
}

fn wget(timeout_seconds: u32, port: i32, path: &str) -> String {
    format!("wget --tries 1 -T {timeout_seconds} -q -O- http://localhost:{port}/{path} | grep success")
}

fn agent_port(params: &Params) -> i32 {
    port_param(params, "dashboard-agent-listen-port").unwrap_or(port::DASHBOARD_AGENT)
}

/// A port among the options; what is no number falls back to the default (RC-63).
fn port_param(params: &Params, name: &str) -> Option<i32> {
    params.get(name)?.parse().ok()
}

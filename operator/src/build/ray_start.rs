//! Options of `ray start` and the text of the command (RC-43..RC-52).
//!
//! Precedence, strongest first: the group's top-level `resources` and `labels`, its `rayStartParams`, the limits of the Ray
//! container, its CPU request (RC-51).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Container;
use serde_json::{Map, Value};
use shared::labels::port;
use shared::quantity::Quantity;

use super::container::ContainerExt;
use super::pod::Node;
use super::resources::{NEURON_CORE, TPU, amount, is_gpu};

/// Options by name, without the leading dashes.
pub type Params = BTreeMap<String, String>;

/// Kubernetes resources that Ray knows under names of its own (RC-48).
const ACCELERATORS: [(&str, &str); 2] = [(NEURON_CORE, "neuron_cores"), (TPU, "TPU")];

/// Options that are written with their value even when that is `true` or `false` (RC-43).
const ALWAYS_WITH_VALUE: [&str; 3] = ["log-color", "include-dashboard", "include-log-monitor"];

/// The options of a group before any default: `rayStartParams` with the top-level `resources` and `labels` folded in.
pub fn group_params(params: Option<&Params>, resources: Option<&Params>, labels: Option<&Params>) -> Params {
    let mut folded = params.cloned().unwrap_or_default();
    if let Some(resources) = resources {
        fold_resources(&mut folded, resources);
    }
    if let Some(labels) = labels.filter(|labels| !labels.is_empty()) {
        let pairs: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        folded.insert("labels".to_owned(), pairs.join(","));
    }
    folded
}

/// RC-50: quantities that cannot be read are left out; what is neither CPU, memory nor GPU replaces `resources`.
fn fold_resources(params: &mut Params, resources: &Params) {
    let mut custom = Map::new();
    for (name, quantity) in resources {
        let Ok(amount) = Quantity::parse(quantity) else { continue };
        let lower = name.to_ascii_lowercase();
        let option = match lower.as_str() {
            "cpu" => "num-cpus",
            "memory" => "memory",
            other if is_gpu(other) => "num-gpus",
            _ => {
                custom.insert(name.clone(), number(amount.as_f64()));
                continue;
            }
        };
        params.insert(option.to_owned(), amount.ceil().to_string());
    }
    if !custom.is_empty() {
        params.insert("resources".to_owned(), quoted_json(custom));
    }
}

/// RC-45: what a head gets when the user did not say otherwise. `block` is not the user's to choose: without it the container ends.
pub fn add_head_defaults(params: &mut Params) {
    add_default(params, "dashboard-host", "0.0.0.0");
    add_node_defaults(params);
}

/// RC-45: what a worker gets when the user did not say otherwise; `gcs` is `host:port` of the head.
pub fn add_worker_defaults(params: &mut Params, gcs: &str) {
    add_default(params, "address", gcs);
    add_node_defaults(params);
}

fn add_node_defaults(params: &mut Params) {
    add_default(params, "metrics-export-port", &port::METRICS.to_string());
    add_default(params, "dashboard-agent-listen-port", &port::DASHBOARD_AGENT.to_string());
    params.insert("block".to_owned(), "true".to_owned());
}

fn add_default(params: &mut Params, name: &str, value: &str) {
    params.entry(name.to_owned()).or_insert_with(|| value.to_owned());
}

/// RC-46..RC-49: what follows from the resources of the Ray container, for options that are still open.
pub fn add_container_resources(params: &mut Params, ray: &Container) {
    let cpu = [ray.limit("cpu"), ray.request("cpu")].into_iter().map(amount).find(|cpu| !cpu.is_zero());
    if let Some(cpu) = cpu {
        add_default(params, "num-cpus", &cpu.ceil().to_string());
    }
    let memory = amount(ray.limit("memory"));
    if !memory.is_zero() {
        add_default(params, "memory", &memory.ceil().to_string());
    }
    add_accelerators(params, ray);
}

fn add_accelerators(params: &mut Params, ray: &Container) {
    let Some(limits) = ray.resources.as_ref().and_then(|resources| resources.limits.as_ref()) else { return };
    let Some(mut custom) = params.get("resources").map_or_else(|| Some(Map::new()), |text| parse_resources(text)) else { return };
    let mut accelerator_open = !ACCELERATORS.iter().any(|(_, ray_name)| custom.contains_key(*ray_name));
    for (name, quantity) in limits {
        let amount = amount(Some(quantity));
        if amount.is_zero() {
            continue;
        }
        if is_gpu(name) {
            add_default(params, "num-gpus", &amount.ceil().to_string());
        } else if let Some((_, ray_name)) = ACCELERATORS.iter().find(|(kubernetes_name, _)| kubernetes_name == name)
            && accelerator_open
        {
            accelerator_open = false;
            custom.insert((*ray_name).to_owned(), amount.ceil().into());
            params.insert("resources".to_owned(), quoted_json(custom.clone()));
        }
    }
}

/// The `resources` option as users write it, in any of the usual quotes; `None` if it is not a JSON object of numbers (RC-49).
fn parse_resources(text: &str) -> Option<Map<String, Value>> {
    let bare = text.trim_matches(['\'', '"', '`', ' ']);
    let object: Map<String, Value> = serde_json::from_str(bare).ok()?;
    object.into_iter().map(|(name, value)| Some((name, number(value.as_f64()?)))).collect()
}

/// A number as JSON with no more digits than needed: `4`, not `4.0`.
#[allow(clippy::cast_possible_truncation)] // only whole numbers that fit are converted
fn number(value: f64) -> Value {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() < EXACT { Value::from(value as i64) } else { Value::from(value) }
}

/// Compact JSON with sorted keys between single quotes. A single quote inside is written as an escape of JSON's, so that the text
/// stays one word of the shell whatever the names are.
fn quoted_json(object: Map<String, Value>) -> String {
    let sorted: BTreeMap<String, Value> = object.into_iter().collect();
    let fields: Vec<String> = sorted.iter().map(|(name, value)| format!("{}:{value}", Value::from(name.as_str()))).collect();
    format!("'{{{}}}'", fields.join(",").replace('\'', "\\u0027"))
}

/// The command line (RC-43). Values are written as they are, so that users may refer to environment variables in them.
pub fn command(node: Node, params: &Params) -> String {
    let mut text = match node {
        Node::Head => "ray start --head ".to_owned(),
        Node::Worker => "ray start ".to_owned(),
    };
    for (name, value) in params {
        let switch = !ALWAYS_WITH_VALUE.contains(&name.as_str());
        if switch && value.eq_ignore_ascii_case("true") {
            text.push_str(&format!(" --{name} "));
        } else if !(switch && value.eq_ignore_ascii_case("false")) {
            text.push_str(&format!(" --{name}={value} "));
        }
    }
    text
}

/// The user's command and arguments as one text; empty when there are none (RC-41).
fn user_command(ray: &Container) -> String {
    let words = ray.command.iter().flatten().chain(ray.args.iter().flatten());
    words.map(|word| format!(" {word} ")).collect()
}

/// The shell text that runs `start` after the user's own command (RC-42); `None` where the user starts Ray himself.
pub fn shell_text(ray: &Container, start: &str) -> Option<String> {
    const OPEN_FILES: &str = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}";
    let own = user_command(ray);
    if own.contains("ray start") {
        return None;
    }
    Some(if own.is_empty() { format!("{OPEN_FILES}; {start}") } else { format!("{own} && {OPEN_FILES}; {start}") })
}

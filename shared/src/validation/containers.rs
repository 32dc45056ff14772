//! What Kubernetes refuses of a container (N-C-14, N-C-15): it would show as a Pod that never comes.

use serde_json::Value;

use super::{
    ErrorType, Findings, Path,
    json::{Json, Shown},
    names::is_qualified_name,
    pods::shown_json,
};
use crate::quantity::Quantity;

/// Longest name of a port.
const MAX_PORT_NAME: usize = 15;

/// N-C-15: image, ports, variables and mounts.
pub(super) fn examine(container: &Value, path: &Path<'_>, out: &mut Findings) {
    if let Some(image) = container.at("image").text()
        && image.trim() != image
    {
        out.invalid(&path.field("image"), "N-C-15", format!("{} has blanks around it: remove them", Shown(image)));
    }
    if let Some(policy) = container.at("imagePullPolicy").filled()
        && !matches!(policy, "Always" | "IfNotPresent" | "Never")
    {
        let text = format!("{} is not a pull policy: use \"Always\", \"IfNotPresent\" or \"Never\"", Shown(policy));
        out.error(&path.field("imagePullPolicy"), ErrorType::NotSupported, "N-C-15", text);
    }
    let ports = path.field("ports");
    for (index, port) in container.at("ports").items().iter().enumerate() {
        examine_port(port, &ports.index(index), out);
    }
    let variables = path.field("env");
    for (index, variable) in container.at("env").items().iter().enumerate() {
        examine_variable(variable, &variables.index(index), out);
    }
    let mounts = path.field("volumeMounts");
    for (index, mount) in container.at("volumeMounts").items().iter().enumerate() {
        let at = mounts.index(index);
        match mount.at("mountPath").text() {
            Some("") => out.invalid(&at.field("mountPath"), "N-C-15", "is empty: give the directory to mount at"),
            Some(place) if place.contains(':') => {
                out.invalid(
                    &at.field("mountPath"),
                    "N-C-15",
                    format!("{} has a \":\" in it, which Kubernetes does not take: mount elsewhere", Shown(place)),
                );
            }
            _ => {}
        }
    }
}

fn examine_port(port: &Value, path: &Path<'_>, out: &mut Findings) {
    for (field, least) in [("containerPort", 1), ("hostPort", 0)] {
        if let Some(number) = port.at(field).int()
            && !(least..=65_535).contains(&number)
        {
            out.invalid(&path.field(field), "N-C-15", format!("{number} is not a port: use 1 to 65535"));
        }
    }
    if let Some(protocol) = port.at("protocol").filled()
        && !matches!(protocol, "TCP" | "UDP" | "SCTP")
    {
        let text = format!("{} is not a protocol of ports: use \"TCP\", \"UDP\" or \"SCTP\"", Shown(protocol));
        out.error(&path.field("protocol"), ErrorType::NotSupported, "N-C-15", text);
    }
    if let Some(name) = port.at("name").filled()
        && !is_port_name(name)
    {
        let text = format!(
            "{} cannot be the name of a port: use at most {MAX_PORT_NAME} lower-case letters, digits and single \"-\", at least one letter",
            Shown(name)
        );
        out.invalid(&path.field("name"), "N-C-15", text);
    }
}

fn examine_variable(variable: &Value, path: &Path<'_>, out: &mut Findings) {
    if let Some(name) = variable.at("name").text()
        && (name.is_empty() || name.contains('='))
    {
        out.invalid(
            &path.field("name"),
            "N-C-15",
            format!("{} cannot be the name of a variable: use letters, digits and \"_\"", Shown(name)),
        );
    }
    examine_source(variable, path, out);
}

/// A value that is given, or taken from somewhere: of variables, and of what becomes one.
pub(super) fn examine_source(owner: &Value, path: &Path<'_>, out: &mut Findings) {
    if owner.at("value").filled().is_some() && owner.at("valueFrom").is_set() {
        out.invalid(&path.field("valueFrom"), "N-C-15", "there is a value already, and only one of the two can count: remove one");
    }
}

/// IANA's rule for service names.
fn is_port_name(name: &str) -> bool {
    name.len() <= MAX_PORT_NAME
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
        && name.bytes().any(|byte| byte.is_ascii_lowercase())
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--")
}

/// N-C-14: a resource by its name, and what holds of devices, of which a Pod gets whole ones or none.
pub(super) fn examine_resource(name: &str, quantity: Quantity, path: &Path<'_>, out: &mut Findings) {
    let standard = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    let extended = name.contains('/') && is_qualified_name(name);
    if !(standard || extended) {
        let text = format!(
            "Kubernetes knows no resource {}: use \"cpu\", \"memory\", \"ephemeral-storage\" or a name with a domain like \"nvidia.com/gpu\"",
            Shown(name)
        );
        out.invalid(path, "N-C-14", text);
    } else if is_device(name) && quantity != Quantity::units(quantity.ceil()) {
        out.invalid(path, "N-C-14", format!("{} is handed out in whole units: use a whole number", Shown(name)));
    }
}

/// N-C-14: devices are not shared, so request and limit are the same.
pub(super) fn examine_request(name: &str, request: (&Value, Quantity), limit: &Value, path: &Path<'_>, out: &mut Findings) {
    if !is_device(name) {
        return;
    }
    match Quantity::of_json(limit) {
        Some(limit) if limit == request.1 => {}
        Some(_) => {
            let text = format!(
                "{} differs from the limit of {}, which devices do not allow: make both the same",
                shown_json(request.0),
                shown_json(limit)
            );
            out.invalid(path, "N-C-14", text);
        }
        None if limit.is_set() => {}
        None => out.invalid(path, "N-C-14", format!("a request for {} needs a limit of the same size: add it to limits", Shown(name))),
    }
}

/// Whether a resource is an extended one or huge pages.
fn is_device(name: &str) -> bool {
    (name.contains('/') && !name.contains("kubernetes.io/")) || name.starts_with("hugepages-")
}

//! Pod templates that Kubernetes would refuse once Pods are made from them (V-C-10, V-C-14, C-14, N-C-6, N-C-10, N-C-12 to N-C-15).
//!
//! The API server only looks at the structure of a template inside another object. What is wrong with its contents would show as
//! a Pod that never comes. Checked are the mistakes that people make; the rest is Kubernetes' own business.

use serde_json::Value;

use super::{
    ErrorType, Findings, Path, containers,
    json::{Json, Shown},
    names::{MAX_LABEL, is_dns1123_label, is_label_value, is_qualified_name},
};
use crate::quantity::Quantity;

/// The Pod template of a group, whose first container runs Ray. `rule` is the one about the missing container.
pub(super) fn examine_template(group: &Value, path: &Path<'_>, rule: &'static str, out: &mut Findings) {
    let template = path.field("template");
    let spec = template.field("spec");
    let pod = group.at("template").at("spec");
    if let Some(policy) = pod.at("restartPolicy").filled()
        && !matches!(policy, "Always" | "OnFailure" | "Never")
    {
        out.error(
            &spec.field("restartPolicy"),
            ErrorType::NotSupported,
            "N-C-10",
            format!("{} is not a restart policy: use \"Always\", \"OnFailure\" or \"Never\"", Shown(policy)),
        );
    }
    if pod.at("containers").items().is_empty() {
        out.required(&spec.field("containers"), rule, "the template has no container, and the first one is to run Ray: add one");
    }
    examine_contents(group.at("template"), &template, out);
}

/// What holds in every Pod template, whatever it is for.
pub(super) fn examine_contents(template: &Value, path: &Path<'_>, out: &mut Findings) {
    let metadata = path.field("metadata");
    examine_labels(template.at("metadata").at("labels"), &metadata.field("labels"), "N-C-13", out);
    let (pod, path) = (template.at("spec"), path.field("spec"));
    examine_labels(pod.at("nodeSelector"), &path.field("nodeSelector"), "N-C-13", out);
    for list in ["containers", "initContainers"] {
        let containers = path.field(list);
        for (index, container) in pod.at(list).items().iter().enumerate() {
            let path = containers.index(index);
            examine_name(container, &path, "a container", out);
            examine_limits(container.at("resources"), &path.field("resources"), out);
            containers::examine(container, &path, out);
        }
    }
    let volumes = path.field("volumes");
    for (index, volume) in pod.at("volumes").items().iter().enumerate() {
        examine_name(volume, &volumes.index(index), "a volume", out);
    }
}

/// N-C-12. A missing name is the schema's business.
fn examine_name(owner: &Value, path: &Path<'_>, what: &str, out: &mut Findings) {
    if let Some(name) = owner.at("name").text()
        && !is_dns1123_label(name)
    {
        out.invalid(
            &path.field("name"),
            "N-C-12",
            format!("{} cannot be the name of {what}: use at most {MAX_LABEL} lower-case letters, digits and \"-\", with a letter or digit at both ends", Shown(name)),
        );
    }
}

/// Labels, or what selects by them.
pub(super) fn examine_labels(labels: &Value, path: &Path<'_>, rule: &'static str, out: &mut Findings) {
    for (key, value) in labels.entries() {
        if !is_qualified_name(key) {
            out.invalid(
                &path.key(key),
                rule,
                format!(
                    "{} is not a label key: write \"name\" or \"domain/name\", the name of at most {MAX_LABEL} letters, digits, \"-\", \"_\" and \".\"",
                    Shown(key)
                ),
            );
        }
        if let Some(value) = value.text()
            && !is_label_value(value)
        {
            out.invalid(
                &path.key(key),
                rule,
                format!(
                    "{} is not a label value: use at most {MAX_LABEL} letters, digits, \"-\", \"_\" and \".\", with a letter or digit at both ends",
                    Shown(value)
                ),
            );
        }
    }
}

/// C-14, N-C-6, N-C-14: requests and limits of a container.
pub(super) fn examine_limits(resources: &Value, path: &Path<'_>, out: &mut Findings) {
    let limits = resources.at("limits");
    for (section, values) in [("limits", limits), ("requests", resources.at("requests"))] {
        let path = path.field(section);
        for (name, value) in values.entries() {
            let Some(quantity) = Quantity::of_json(value) else {
                out.invalid(
                    &path.key(name),
                    "C-14",
                    format!("{} is not a quantity: write it like \"500m\", \"2\" or \"4Gi\"", shown_json(value)),
                );
                continue;
            };
            let (at, limit) = (path.key(name), limits.at(name));
            if quantity.is_negative() {
                out.invalid(&at, "C-14", format!("{} is negative: use zero or more", shown_json(value)));
                continue;
            }
            containers::examine_resource(name, quantity, &at, out);
            if section == "limits" {
                continue;
            }
            if Quantity::of_json(limit).is_some_and(|limit| quantity > limit) {
                out.invalid(
                    &at,
                    "N-C-6",
                    format!(
                        "the request of {} is above the limit of {}, so Kubernetes refuses the Pod: lower it",
                        shown_json(value),
                        shown_json(limit)
                    ),
                );
            } else {
                containers::examine_request(name, (value, quantity), limit, &at, out);
            }
        }
    }
}

/// A value as it is shown in a message.
pub(super) fn shown_json(value: &Value) -> String {
    match value {
        Value::String(text) => Shown(text).to_string(),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
        plain => plain.to_string(),
    }
}

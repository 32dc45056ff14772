//! YAML texts inside fields: `runtimeEnvYAML` (V-J-33) and `serveConfigV2` (C-07, W-S-11).
//!
//! Their contents belong to Ray. Only what Ray could never work with is refused: text that is not YAML, the wrong shape at the
//! top, applications that Ray itself would refuse for sharing a name or a route.

mod application;
mod plain;

use std::collections::HashMap;

use serde_json::Value;

use super::{
    Findings, Path,
    json::{Json, Shown},
};
use crate::yaml::{self, Document, Step};

/// V-J-33.
pub(super) fn examine_runtime_env(field: &Value, path: &Path<'_>, out: &mut Findings) {
    let Some(text) = field.filled() else { return };
    if plain::is_surely_fine(text, &mut plain::AnyMapping) {
        return;
    }
    read_runtime_env(text, path, out);
}

fn read_runtime_env(text: &str, path: &Path<'_>, out: &mut Findings) {
    match yaml::parse_document(text) {
        Err(error) => out.invalid(path, "V-J-33", format!("the text is not YAML ({error}): correct it")),
        Ok(None) => {}
        Ok(Some(document)) => {
            if !matches!(document.value, Value::Object(_) | Value::Null) {
                out.invalid(
                    path,
                    "V-J-33",
                    format!(
                        "a runtime environment is a mapping, but this is {}: write it like \"pip: [requests]\"",
                        shape(&document.value)
                    ),
                );
            }
            warn_of_duplicates(&document, path, "W-J-1", out);
        }
    }
}

/// Keys of a RayService that end up in the text when it is indented too far.
const SWALLOWED: [&str; 9] = [
    "rayClusterConfig",
    "rayVersion",
    "headGroupSpec",
    "workerGroupSpecs",
    "rayStartParams",
    "upgradeStrategy",
    "serveService",
    "volumes",
    "template",
];

/// Deployment settings that Ray has renamed, with their present names.
const RENAMED: [(&str, &str); 5] = [
    ("max_concurrent_queries", "max_ongoing_requests"),
    ("target_num_ongoing_requests_per_replica", "target_ongoing_requests"),
    ("smoothing_factor", "upscaling_factor and downscaling_factor"),
    ("upscale_smoothing_factor", "upscaling_factor"),
    ("downscale_smoothing_factor", "downscaling_factor"),
];

/// C-07.
pub(super) fn examine_serve_config(field: &Value, path: &Path<'_>, out: &mut Findings) {
    let Some(text) = field.filled() else {
        if !field.is_set() || field.text() == Some("") {
            out.warn(path, "C-07", NOTHING);
        }
        return;
    };
    let mut applications = plain::Applications::default();
    if plain::is_surely_fine(text, &mut applications) && applications.are_fine() {
        return;
    }
    read_serve_config(text, path, out);
}

const NOTHING: &str = "there is no application, so nothing will be served: list some under \"applications:\"";

fn read_serve_config(text: &str, path: &Path<'_>, out: &mut Findings) {
    let document = match yaml::parse_document(text) {
        Err(error) => return out.invalid(path, "C-07", format!("the text is not YAML ({error}): correct it")),
        Ok(None) => return out.warn(path, "C-07", NOTHING),
        Ok(Some(document)) => document,
    };
    let config = &document.value;
    match config {
        Value::Null => return out.warn(path, "C-07", NOTHING),
        Value::Object(_) => {}
        other => {
            return out.invalid(
                path,
                "C-07",
                format!("a Serve configuration is a mapping, but this is {}: write \"applications:\" and list them below", shape(other)),
            );
        }
    }
    match config.at("applications") {
        Value::Null => out.warn(path, "C-07", NOTHING),
        Value::Array(list) if list.is_empty() => out.warn(path, "C-07", NOTHING),
        Value::Array(list) => examine_applications(list, &document, path, out),
        other => out.invalid(
            path,
            "C-07",
            format!(
                "{}applications is a list, but this is {}: write one entry an application, each beginning with \"-\"",
                line_of(&document, "applications"),
                shape(other)
            ),
        ),
    }
    for key in SWALLOWED.iter().filter(|key| config.at(key).is_set()) {
        out.warn(
            path,
            "W-S-1",
            format!(
                "{}{key} stands inside the text, where Kubernetes does not see it: end the text above it by indenting it less",
                line_of(&document, key)
            ),
        );
    }
    warn_of_duplicates(&document, path, "W-S-2", out);
}

fn examine_applications(list: &[Value], document: &Document, path: &Path<'_>, out: &mut Findings) {
    let (mut names, mut routes) = (HashMap::new(), HashMap::new());
    let mut renamed = Vec::new();
    for (index, application) in list.iter().enumerate() {
        let place = |field: &str| line_of(document, &format!("applications[{index}]{field}"));
        if !application.is_object() {
            out.invalid(
                path,
                "C-07",
                format!(
                    "{}applications[{index}] is a mapping, but this is {}: give it a name and an import_path",
                    place(""),
                    shape(application)
                ),
            );
            continue;
        }
        // Ray's own defaults; a route of null means that the application has none.
        let name = application.as_object().and_then(|map| map.get("name")).map_or(Some("default"), Value::as_str);
        let route = application.as_object().and_then(|map| map.get("route_prefix")).map_or(Some("/"), Value::as_str);
        if let Some(name) = name
            && let Some(first) = names.insert(name, index)
        {
            out.invalid(
                path,
                "C-07",
                format!(
                    "{}applications[{first}] and [{index}] are both called {}: give each a name of its own",
                    place(".name"),
                    Shown(name)
                ),
            );
        }
        if let Some(route) = route
            && let Some(first) = routes.insert(route, index)
        {
            out.invalid(
                path,
                "C-07",
                format!(
                    "{}applications[{first}] and [{index}] both serve the route_prefix {}: give each a route of its own",
                    place(".route_prefix"),
                    Shown(route)
                ),
            );
        }
        for application::Refused { field, text } in application::refused(application) {
            let line = place(&format!(".{field}"));
            out.warn(path, "W-S-11", format!("{line}applications[{index}].{field} {text}"));
        }
        collect_renamed(application, &mut renamed, 0);
    }
    for (old, new) in RENAMED.iter().filter(|(old, _)| renamed.contains(old)) {
        out.warn(path, "W-S-3", format!("newer Ray does not know {old} any more: use {new}"));
    }
}

/// Old keys anywhere in an application's deployments.
fn collect_renamed(value: &Value, found: &mut Vec<&'static str>, depth: usize) {
    match value {
        Value::Object(map) if depth < 8 => {
            for (key, value) in map {
                if let Some((old, _)) = RENAMED.iter().find(|(old, _)| old == key)
                    && !found.contains(old)
                {
                    found.push(old);
                }
                collect_renamed(value, found, depth + 1);
            }
        }
        Value::Array(list) if depth < 8 => list.iter().for_each(|value| collect_renamed(value, found, depth + 1)),
        _ => {}
    }
}

fn warn_of_duplicates(document: &Document, path: &Path<'_>, rule: &'static str, out: &mut Findings) {
    for duplicate in document.duplicates.iter().take(8) {
        out.warn(
            path,
            rule,
            format!(
                "line {}: {} was given in line {} already, and only the later one counts",
                duplicate.again.line,
                Step::join(&duplicate.path),
                duplicate.first.line
            ),
        );
    }
}

fn line_of(document: &Document, path: &str) -> String {
    let found = document.place.find(&Step::parse(path));
    format!("line {}: ", found.pos.line)
}

fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "empty",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "plain text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a mapping",
    }
}

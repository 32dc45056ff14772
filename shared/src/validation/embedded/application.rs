//! What Ray refuses of a Serve application before it has looked at any code (W-S-11).
//!
//! Ray checks the whole configuration when it is handed over, and takes all of it or nothing: one application that is written wrong
//! keeps the others from being served. These are Ray's rules, which another version may change, so they only warn.

use serde_json::Value;

use crate::validation::json::{Json, Shown};

/// Settings of the HTTP proxy, which all applications share.
pub(super) const SHARED: [&str; 2] = ["host", "port"];

/// Something that Ray refuses: the field inside the application, and what to do about it.
pub(super) struct Refused {
    pub(super) field: String,
    pub(super) text: String,
}

/// What Ray would refuse of an application.
pub(super) fn refused(application: &Value) -> Vec<Refused> {
    let mut out = Vec::new();
    let mut say = |field: &str, text: String| out.push(Refused { field: field.to_owned(), text });
    match application.at("import_path") {
        Value::String(path) if is_import_path(path) => {}
        Value::String(path) if !path.is_empty() => {
            say("import_path", format!("{} does not name something in a module: write it like \"module:app\"", Shown(path)));
        }
        Value::Null | Value::String(_) => {
            say("import_path", "is missing, so Ray does not know what to run: write it like \"module:app\"".to_owned());
        }
        _ => say("import_path", "is plain text: write it like \"module:app\"".to_owned()),
    }
    if application.at("name").text() == Some("") {
        say("name", "is empty: give the application a name, or leave this out".to_owned());
    }
    if let Some(route) = application.at("route_prefix").text()
        && !is_route(route)
    {
        say("route_prefix", format!("{} is not a path: begin it with \"/\"", Shown(route)));
    }
    for key in SHARED.into_iter().filter(|key| application.at(key).is_set()) {
        say(key, format!("is the same for all applications: move it to http_options.{key}"));
    }
    environment("runtime_env", application.at("runtime_env"), &mut say);
    for (index, deployment) in application.at("deployments").items().iter().enumerate() {
        let at = |field: &str| format!("deployments[{index}]{field}");
        if deployment.is_object() && deployment.at("name").filled().is_none() {
            say(&at(".name"), "is missing: name the deployment whose settings these are".to_owned());
        }
        let replicas = deployment.at("num_replicas");
        if replicas.is_set() && !(replicas.as_i64().is_some_and(|count| count > 0) || replicas.text() == Some("auto")) {
            say(&at(".num_replicas"), "is a number above zero, or \"auto\": correct it".to_owned());
        } else if replicas.is_i64() && deployment.at("autoscaling_config").is_set() {
            let text = "is fixed, but autoscaling_config lets Ray choose: remove one of them, or write \"auto\"";
            say(&at(".num_replicas"), text.to_owned());
        }
        environment(&at(".ray_actor_options.runtime_env"), deployment.at("ray_actor_options").at("runtime_env"), &mut say);
    }
    out
}

/// Nobody uploads anything for a RayService, so a runtime environment can only name what the cluster can fetch.
fn environment(at: &str, environment: &Value, say: &mut impl FnMut(&str, String)) {
    let mut local = |field: String, place: &Value| {
        if let Some(place) = place.filled()
            && !is_uri(place)
        {
            say(&field, format!("{} is a path, which the Pods do not have: give a URI like \"https://…\" or \"s3://…\"", Shown(place)));
        }
    };
    local(format!("{at}.working_dir"), environment.at("working_dir"));
    for (index, module) in environment.at("py_modules").items().iter().enumerate() {
        local(format!("{at}.py_modules[{index}]"), module);
    }
}

/// Whether Ray reads this as a module and a name in it: `module:name` or `module.name`.
pub(super) fn is_import_path(text: &str) -> bool {
    match text.split_once(':') {
        Some((module, name)) => !module.is_empty() && !name.is_empty() && !name.contains(':'),
        None => text.rsplit_once('.').is_some_and(|(module, name)| !module.is_empty() && !name.is_empty()),
    }
}

/// Whether Ray serves under this prefix.
pub(super) fn is_route(text: &str) -> bool {
    text.starts_with('/')
}

/// Whether this names something to fetch.
pub(super) fn is_uri(text: &str) -> bool {
    text.contains("://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn import_paths_are_read_as_ray_reads_them() {
        for fine in ["m:app", "a.b:app", "a.b.app", "m:a.b", "a..b"] {
            assert!(is_import_path(fine), "{fine}");
        }
        for wrong in ["", "m", "m:", ":app", "m:a:b", "m.", ".app"] {
            assert!(!is_import_path(wrong), "{wrong}");
        }
    }
}

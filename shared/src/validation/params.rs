//! Values of `rayStartParams` that Ray cannot read (C-14, N-C-7), and names that it does not know (W-C-15).

use serde_json::Value;

use super::{
    Findings, Path,
    json::{Json, Shown},
};
use crate::nearest::nearest;

pub(super) fn examine(params: &Value, path: &Path<'_>, out: &mut Findings) {
    for (name, value) in params.entries() {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')) {
            out.invalid(
                &path.key(name),
                "N-C-11",
                format!(
                    "{} cannot be an option of \"ray start\": write its name without the leading \"--\", like \"num-cpus\"",
                    Shown(name)
                ),
            );
            continue;
        }
        let Some(text) = value.filled() else { continue };
        // The values go through a shell, so that people compute some of them: only what the shell leaves alone is judged.
        if text.contains(['$', '`']) {
            continue;
        }
        match name.as_str() {
            "resources" => examine_resources(text, &path.key(name), out),
            "num-cpus" | "num-gpus" => {
                if unquoted(text).parse::<f64>().is_ok_and(|number| number >= 0.0 && number.is_finite()) {
                    continue;
                }
                out.invalid(
                    &path.key(name),
                    "N-C-7",
                    format!("{} is not a number, so Ray would not start: write a plain one like \"4\"", Shown(text)),
                );
            }
            "memory" | "object-store-memory" | "min-worker-port" | "max-worker-port" => {
                if unquoted(text).parse::<f64>().is_ok_and(|number| number >= 0.0 && number.is_finite()) {
                    continue;
                }
                let unit = if name.ends_with("memory") { " of bytes" } else { "" };
                out.invalid(
                    &path.key(name),
                    "N-C-7",
                    format!("{} is not a number{unit}, so Ray would not start: write a plain one", Shown(text)),
                );
            }
            "port" | "dashboard-port" | "ray-client-server-port" | "metrics-export-port" | "dashboard-agent-listen-port" => {
                if unquoted(text).parse::<u16>().is_ok() {
                    continue;
                }
                out.invalid(&path.key(name), "N-C-7", format!("{} is not a port: use a number up to 65535", Shown(text)));
            }
            other => warn_of_misspelling(other, &path.key(name), out),
        }
    }
}

/// Options of `ray start` over the versions of Ray in use.
const OPTIONS: [&str; 57] = [
    "address",
    "autoscaling-config",
    "block",
    "cgroup-path",
    "dashboard-agent-grpc-port",
    "dashboard-agent-listen-port",
    "dashboard-grpc-port",
    "dashboard-host",
    "dashboard-port",
    "disable-usage-stats",
    "enable-object-reconstruction",
    "enable-resource-isolation",
    "gcs-server-port",
    "head",
    "include-dashboard",
    "include-log-monitor",
    "labels",
    "labels-file",
    "log-color",
    "log-style",
    "max-worker-port",
    "memory",
    "metrics-export-port",
    "min-worker-port",
    "no-monitor",
    "no-redirect-output",
    "node-ip-address",
    "node-manager-port",
    "node-name",
    "num-cpus",
    "num-gpus",
    "object-manager-port",
    "object-spilling-directory",
    "object-store-memory",
    "plasma-directory",
    "plasma-store-socket-name",
    "port",
    "proxy-server-url",
    "ray-client-server-port",
    "ray-debugger-external",
    "raylet-socket-name",
    "redis-max-memory",
    "redis-password",
    "redis-port",
    "redis-shard-ports",
    "redis-username",
    "resources",
    "runtime-env-agent-port",
    "storage",
    "system-config",
    "system-reserved-cpu",
    "system-reserved-memory",
    "temp-dir",
    "tracing-startup-hook",
    "verbose",
    "worker-port-list",
    "worker-setup-hook",
];

/// W-C-15. A name that is like none may be an option of a newer Ray.
fn warn_of_misspelling(name: &str, path: &Path<'_>, out: &mut Findings) {
    if OPTIONS.contains(&name) {
        return;
    }
    if let Some(meant) = nearest(name, OPTIONS.into_iter()) {
        out.warn(path, "W-C-15", format!("\"ray start\" has no option \"{name}\" and would not start: \"{meant}\" may be meant"));
    }
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['\'', '"', ' '])
}

/// C-14: custom resources are a JSON object of numbers, written so that it survives the shell of the container.
fn examine_resources(text: &str, path: &Path<'_>, out: &mut Findings) {
    let wanted = r#"write a JSON object of numbers in single quotes, like '{"name": 1}'"#;
    if let Some(problem) = shell_word(text).as_deref().map(problem_of) {
        let Some(problem) = problem else { return };
        // KubeRay itself strips quotes and reads the rest as JSON; such text is understood although the shell would spoil it.
        match problem_of(text.trim_matches(['\'', '"', '`', ' '])) {
            None => out.warn(path, "C-14", format!("the shell that starts Ray takes the double quotes away: {wanted}")),
            Some(_) => out.invalid(path, "C-14", format!("{} {problem}: {wanted}", Shown(text))),
        }
    } else {
        match problem_of(text.trim_matches(['\'', '"', '`', ' '])) {
            None => out.warn(path, "C-14", format!("a shell does not read this as one word: {wanted}")),
            Some(problem) => out.invalid(path, "C-14", format!("{} {problem}: {wanted}", Shown(text))),
        }
    }
}

/// What keeps the text from being a JSON object of non-negative numbers.
pub(super) fn problem_of(text: &str) -> Option<&'static str> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) if map.values().all(|value| value.as_f64().is_some_and(|number| number >= 0.0)) => None,
        Ok(Value::Object(_)) => Some("has a value that is not a number of at least 0"),
        Ok(_) => Some("is not a JSON object"),
        Err(_) => Some("is not JSON"),
    }
}

/// What a POSIX shell makes of the text, if it is one word without expansions.
fn shell_word(text: &str) -> Option<String> {
    let mut word = String::with_capacity(text.len());
    let mut chars = text.trim().chars();
    while let Some(c) = chars.next() {
        match c {
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    quoted => word.push(quoted),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break,
                    '\\' => match chars.next()? {
                        escaped @ ('"' | '\\') => word.push(escaped),
                        other => word.extend(['\\', other]),
                    },
                    quoted => word.push(quoted),
                }
            },
            '\\' => word.push(chars.next()?),
            c if c.is_whitespace() || matches!(c, ';' | '&' | '|' | '<' | '>' | '(' | ')') => return None,
            c => word.push(c),
        }
    }
    Some(word)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// (errors, warnings) for one parameter.
    fn judge(name: &str, value: &str) -> (usize, usize) {
        let mut out = Findings::default();
        examine(&json!({ name: value }), &Path::root("p"), &mut out);
        (out.report.errors.len(), out.report.warnings.len())
    }

    #[test]
    fn custom_resources_must_reach_ray_as_json_numbers() {
        let table = [
            (r#"'{"lane": 4}'"#, (0, 0)),
            (r#""{\"lane\": 4, \"disk-ssd\": 0.5}""#, (0, 0)),
            (r#"{\"lane\":4}"#, (0, 0)),
            (r#"'{}'"#, (0, 0)),
            ("", (0, 0)),
            ("$RESOURCES", (0, 0)),
            (r#"{"lane":4}"#, (0, 1)),
            (r#"{"lane": 4}"#, (0, 1)),
            (r#"'{lane: 4}'"#, (1, 0)),
            ("{lane: 4}", (1, 0)),
            (r#"'{"lane": "4"}'"#, (1, 0)),
            (r#"'{"lane": -1}'"#, (1, 0)),
            (r#"'[1]'"#, (1, 0)),
            (r#"'{"lane": 4}"#, (0, 1)),
            ("4", (1, 0)),
        ];
        for (value, wanted) in table {
            assert_eq!(judge("resources", value), wanted, "{value}");
        }
    }

    #[test]
    fn numbers_and_ports_must_be_some() {
        let table = [
            ("num-cpus", "0", 0),
            ("num-cpus", "", 0),
            ("num-cpus", "1.5", 0),
            ("num-cpus", "$(nproc)", 0),
            ("num-cpus", "two", 1),
            ("num-cpus", "500m", 1),
            ("num-cpus", "-1", 1),
            ("num-gpus", "NaN", 1),
            ("memory", "1000000000", 0),
            ("memory", "6Gi", 1),
            ("object-store-memory", "1e9", 0),
            ("port", "6379", 0),
            ("port", "65536", 1),
            ("dashboard-port", "http", 1),
            ("dashboard-host", "0.0.0.0", 0),
            ("block", "true", 0),
        ];
        for (name, value, errors) in table {
            assert_eq!(judge(name, value), (errors, 0), "{name}={value}");
        }
    }
}

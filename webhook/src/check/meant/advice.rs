//! Things that are legal, and surely not meant.

use serde_json::{Map, Value};
use shared::validation::{FieldWarning, Kind};
use shared::yaml::{Place, Step};

use super::{source, value_at};

/// A word about one field.
pub(in crate::check) struct Advice {
    pub(in crate::check) path: String,
    pub(in crate::check) message: String,
    /// Its line, when it is another than the field's.
    pub(in crate::check) line: Option<u32>,
}

/// Keys that belong to Kubernetes and end up in a text by a slip of indentation.
const SWALLOWED: &[&str] = &[
    "rayClusterConfig",
    "rayClusterSpec",
    "headGroupSpec",
    "workerGroupSpecs",
    "rayStartParams",
    "serveService",
    "upgradeStrategy",
    "volumes",
];

/// Texts of which templates of all sorts are made on purpose: commands, and what Ray reads.
const FREE_TEXTS: &[&str] = &[
    "args",
    "command",
    "entrypoint",
    "env",
    "annotations",
    "serveConfigV2",
    "runtimeEnvYAML",
    "entrypointResources",
    "metadata",
    "rayStartParams",
    "lifecycle",
];

/// Placeholders of one object that are reported.
const MAX_PLACEHOLDERS: usize = 50;

/// Everything of this sort in an object that the rules have not said already.
pub(in crate::check) fn advice(kind: Kind, object: &Value, place: &Place, source: &str, said: &[FieldWarning]) -> Vec<Advice> {
    let mut found = Vec::new();
    if kind == Kind::RayService {
        found.extend(swallowed(object, place, source, said));
    }
    for part in ["metadata", "spec"] {
        if let Some(Value::Object(map)) = object.get(part) {
            let mut path = vec![Step::Key(part.to_owned())];
            let free: &[&str] = if part == "metadata" { &["annotations", "managedFields"] } else { FREE_TEXTS };
            placeholders(map, free, &mut path, &mut found);
        }
    }
    found
}

/// A key of a cluster inside the Serve configuration: the first, as others are inside it or beside it for the same reason. The
/// rules see such a key at the top of a text that can be read; others are in a text that is broken by it, or too far right.
fn swallowed(object: &Value, place: &Place, source: &str, said: &[FieldWarning]) -> Option<Advice> {
    let steps = [Step::Key("spec".to_owned()), Step::Key("serveConfigV2".to_owned())];
    let text = value_at(object, &steps).and_then(Value::as_str)?;
    let (line, key) = lines_of_keys(text).find(|(_, key)| SWALLOWED.contains(key))?;
    let path = Step::join(&steps);
    if said.iter().any(|warning| warning.path == path && warning.message.contains(key)) {
        return None;
    }
    let written = place.find(&steps);
    Some(Advice {
        path,
        message: format!("`{key}` is inside this text, so Kubernetes does not see it: indent it like serveConfigV2 itself"),
        line: Some(source::line_before_content(source, written.pos.line, written.place) + line),
    })
}

/// The keys in a YAML text with their lines, counted from 1; also of a text that cannot be read.
pub(super) fn lines_of_keys(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1..).zip(text.lines()).filter_map(|(number, line)| {
        let (key, _) = line.trim_start_matches(['-', ' ']).split_once(':')?;
        (!key.is_empty() && key.bytes().all(|b| b.is_ascii_alphanumeric())).then_some((number, key))
    })
}

fn placeholders(map: &Map<String, Value>, free: &[&str], path: &mut Vec<Step>, found: &mut Vec<Advice>) {
    for (key, value) in map {
        if free.contains(&key.as_str()) {
            continue;
        }
        visit(value, free, path, &|| Step::Key(key.clone()), found);
    }
}

fn visit(value: &Value, free: &[&str], path: &mut Vec<Step>, step: &dyn Fn() -> Step, found: &mut Vec<Advice>) {
    match value {
        Value::String(text) => {
            if let Some(what) = placeholder(text).filter(|_| found.len() < MAX_PLACEHOLDERS) {
                path.push(step());
                found.push(Advice {
                    path: Step::join(path),
                    message: format!("{text:?} looks like {what} that nobody filled in"),
                    line: None,
                });
                path.pop();
            }
        }
        Value::Object(map) => {
            path.push(step());
            placeholders(map, free, path, found);
            path.pop();
        }
        Value::Array(items) => {
            path.push(step());
            for (index, item) in items.iter().enumerate() {
                visit(item, free, path, &|| Step::Index(index), found);
            }
            path.pop();
        }
        _ => {}
    }
}

/// What sort of placeholder a value is.
fn placeholder(text: &str) -> Option<&'static str> {
    // Nearly all values have none of these characters.
    if !text.contains(['{', '<', '$', '_', 'C', 'T', 'F']) {
        return None;
    }
    let inside = |open, close| text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b' ' | b'.'));
    if text.contains("{{") && text.contains("}}") {
        return Some("a template expression");
    }
    if inside("<", ">").is_some_and(is_name) {
        return Some("a placeholder");
    }
    if inside("${", "}").is_some_and(is_name) || text.contains("${") && !text.contains(char::is_whitespace) && text.contains('}') {
        return Some("a variable");
    }
    let filler = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| {
        matches!(word, "CHANGEME" | "CHANGE_ME" | "REPLACEME" | "REPLACE_ME" | "TODO" | "FIXME" | "PLACEHOLDER")
            || word.starts_with("YOUR_")
    });
    filler.then_some("a placeholder")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::yaml::parse_document;

    use super::*;

    #[test]
    fn placeholders_are_told_from_values() {
        for text in [
            "{{ .Values.image }}",
            "<your-image>",
            "<BUCKET NAME>",
            "${IMAGE}",
            "repo/${NAME}:latest",
            "YOUR_REGISTRY/ray",
            "x/CHANGEME:1",
            "TODO",
        ] {
            assert!(placeholder(text).is_some(), "{text}");
        }
        for text in [
            "",
            "rayproject/ray:2.52.0",
            "a<b",
            "<a",
            "$HOME",
            "cost in $ {x}",
            "My_Image",
            "TODOS",
            "CPU",
            "{\"a\": 1}",
            "Never",
            "${",
            "Custom",
        ] {
            assert!(placeholder(text).is_none(), "{text}");
        }
    }

    #[test]
    fn commands_may_contain_what_looks_like_a_placeholder() {
        let object = json!({"metadata": {"name": "a", "annotations": {"x": "{{ y }}"}}, "spec": {
            "entrypoint": "echo ${X}", "rayClusterSpec": {"headGroupSpec": {"template": {"spec": {"containers": [
                {"name": "h", "image": "<image>", "args": ["${A}"], "env": [{"name": "A", "value": "${B}"}]}]}}}}}});
        let found = advice(Kind::RayJob, &object, &Place::default(), "", &[]);
        let paths: Vec<_> = found.iter().map(|advice| &*advice.path).collect();
        assert_eq!(paths, ["spec.rayClusterSpec.headGroupSpec.template.spec.containers[0].image"]);
    }

    #[test]
    fn swallowed_keys_are_named_with_their_line() {
        let source = "kind: RayService\nspec:\n  serveConfigV2: |\n    applications:\n    - name: a\n    rayClusterConfig:\n      headGroupSpec:\n        x: 1\n";
        let document = parse_document(source).unwrap().unwrap();
        let told = |said: &[FieldWarning]| -> Vec<(Option<u32>, String)> {
            let found = advice(Kind::RayService, &document.value, &document.place, source, said);
            found.iter().map(|advice| (advice.line, advice.message.split('`').nth(1).unwrap().to_owned())).collect()
        };
        assert_eq!(told(&[]), [(Some(6), "rayClusterConfig".to_owned())]);
        let said =
            FieldWarning { path: "spec.serveConfigV2".to_owned(), message: "rayClusterConfig stands inside".to_owned(), rule: "W-S-1" };
        assert_eq!(told(&[said]), []);
    }
}

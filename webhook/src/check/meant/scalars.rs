//! Remarks on values: unquoted words and numbers, a mapping where a text belongs, something missing that is written elsewhere.

use serde_json::Value;
use shared::schema::{Field, Schema, ValueType};
use shared::validation::{ErrorType, FieldError};
use shared::yaml::{Place, Step, parse_str};

use super::{holds_yaml, source, value_at};

/// What to add to the message of a structural error; empty when nothing is known.
pub(in crate::check) fn remark(schema: &Schema, error: &FieldError, object: &Value, place: &Place, source: &str) -> String {
    let steps = Step::parse(&error.path);
    match error.kind {
        ErrorType::TypeInvalid => {
            let (Some(field), Some(value)) = (field_at(schema.root(), &steps), value_at(object, &steps)) else { return String::new() };
            let found = place.find(&steps);
            let written = if found.depth == steps.len() { source::plain_scalar(source, found.place.pos) } else { "" };
            wrong_type(field.kind_of_value(), value, &steps, written)
        }
        ErrorType::Required => missing(object, &steps),
        _ => String::new(),
    }
}

/// The schema of a field of an object.
fn field_at<'s>(root: Field<'s>, steps: &[Step]) -> Option<Field<'s>> {
    steps.iter().try_fold(root, |field, step| match step {
        Step::Index(_) if field.kind_of_value() == ValueType::Array => field.items(),
        step => {
            let name = step.to_string();
            field.property(&name).or_else(|| field.values())
        }
    })
}

fn wrong_type(wanted: ValueType, value: &Value, steps: &[Step], written: &str) -> String {
    let name = match steps.last() {
        Some(Step::Key(name)) => name.as_str(),
        _ => "",
    };
    match (wanted, value) {
        (ValueType::String, Value::Object(_) | Value::Array(_)) if holds_yaml(name) => {
            format!("; it is a text that holds YAML: write `{name}: |`, and the lines below stay as they are")
        }
        (ValueType::String, Value::Object(_)) if in_map(steps, &["labels", "annotations", "nodeSelector", "rayStartParams"]) => {
            "; entries have no entries of their own: write `key: value`".to_owned()
        }
        (ValueType::String, Value::Object(_)) if in_map(steps, &["resources"]) => {
            "; these are resources as Ray counts them; what a container gets belongs in template.spec.containers[].resources".to_owned()
        }
        (ValueType::String, Value::Bool(_) | Value::Number(_)) => {
            let read = value.to_string();
            let text = if written.is_empty() { &read } else { written };
            let reading = if text == read { String::new() } else { format!(" (YAML reads {text} as {read})") };
            format!("{reading}; put it in quotes: \"{text}\"")
        }
        (ValueType::IntOrString, Value::Number(number)) => {
            let thousandths = match (name, number.as_f64()) {
                ("cpu", Some(cores)) => format!(", or in thousandths of a core: \"{:.0}m\"", cores * 1000.0),
                _ => String::new(),
            };
            format!("; put it in quotes: \"{}\"{thousandths}", if written.is_empty() { number.to_string() } else { written.to_owned() })
        }
        (ValueType::Integer | ValueType::Number, Value::String(text)) if parse_str(text).is_ok_and(|value| value.is_number()) => {
            format!("; leave out the quotes: {}", text.trim())
        }
        (ValueType::Boolean, Value::String(text)) => match parse_str(text) {
            Ok(Value::Bool(value)) => format!("; leave out the quotes: {value}"),
            _ => String::new(),
        },
        (ValueType::Array, Value::Object(_)) => "; begin each entry with `- `".to_owned(),
        (ValueType::Array, Value::String(_)) => format!("; write `{name}: [{}]`", if written.is_empty() { "…" } else { written }),
        (ValueType::Object, Value::Array(_)) => "; leave out the `- `".to_owned(),
        _ => String::new(),
    }
}

/// Whether the path leads into a map of one of these names.
fn in_map(steps: &[Step], names: &[&str]) -> bool {
    matches!(steps.iter().rev().nth(1), Some(Step::Key(name)) if names.contains(&name.as_str()))
}

/// Where a missing field may have gone.
fn missing(object: &Value, steps: &[Step]) -> String {
    let Some(Step::Key(name)) = steps.last() else { return String::new() };
    let config = object.pointer("/spec/serveConfigV2").and_then(Value::as_str);
    if config.is_some_and(|text| super::advice::lines_of_keys(text).any(|(_, key)| key == name)) {
        return format!(
            "; it is written inside the serveConfigV2 text, where Kubernetes does not see it: indent `{name}` like serveConfigV2 itself"
        );
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_of_the_wrong_type_get_a_remedy() {
        use ValueType::{Array, Boolean, IntOrString, Integer, Object, String};
        let table = [
            (String, json!(8), "spec.nodeSelector[gpu]", "8", "; put it in quotes: \"8\""),
            (String, json!(true), "spec.env[0].value", "yes", " (YAML reads yes as true); put it in quotes: \"yes\""),
            (String, json!(8), "spec.x", "010", " (YAML reads 010 as 8); put it in quotes: \"010\""),
            (
                String,
                json!({}),
                "spec.serveConfigV2",
                "",
                "; it is a text that holds YAML: write `serveConfigV2: |`, and the lines below stay as they are",
            ),
            (String, json!({"a": 1}), "metadata.labels[app]", "", "; entries have no entries of their own: write `key: value`"),
            (
                String,
                json!({"cpu": 1}),
                "spec.headGroupSpec.resources[limits]",
                "",
                "; these are resources as Ray counts them; what a container gets belongs in template.spec.containers[].resources",
            ),
            (IntOrString, json!(0.5), "limits[cpu]", "0.50", "; put it in quotes: \"0.50\", or in thousandths of a core: \"500m\""),
            (IntOrString, json!(0.5), "limits[memory]", "", "; put it in quotes: \"0.5\""),
            (Integer, json!("2"), "spec.replicas", "", "; leave out the quotes: 2"),
            (Integer, json!("two"), "spec.replicas", "", ""),
            (Boolean, json!("true"), "spec.suspend", "", "; leave out the quotes: true"),
            (Boolean, json!("maybe"), "spec.suspend", "", ""),
            (Array, json!({"name": "a"}), "spec.containers", "", "; begin each entry with `- `"),
            (Array, json!("python"), "spec.command", "python", "; write `command: [python]`"),
            (Object, json!([]), "spec.headGroupSpec", "", "; leave out the `- `"),
        ];
        for (wanted, value, path, written, remark) in table {
            assert_eq!(wrong_type(wanted, &value, &Step::parse(path), written), remark, "{path}");
        }
    }

    #[test]
    fn what_was_swallowed_is_not_just_missing() {
        let object = json!({"spec": {"serveConfigV2": "applications: []\nrayClusterConfig:\n  x: 1\n"}});
        assert!(missing(&object, &Step::parse("spec.rayClusterConfig")).contains("inside the serveConfigV2 text"));
        assert_eq!(missing(&object, &Step::parse("spec.other")), "");
    }
}

//! JSON in and out: JSON documents among YAML ones, and the JSON text that Ray gets for a `runtimeEnvYAML`.

use std::fmt::Write as _;

use serde_json::{Number, Value};

use super::load::Loader;
use super::places::{Place, Pos};
use super::{Document, MAX_DEPTH, YamlError, parse_str, scalar};

/// The documents of a chunk that is one JSON object or several in a row; `None` when it is something else.
pub(super) fn json_documents(chunk: &str, lines_before: usize) -> Option<Vec<Document>> {
    if !chunk.trim_start().starts_with('{') {
        return None;
    }
    let mut stream = serde_json::Deserializer::from_str(chunk).into_iter::<Value>();
    let mut documents = Vec::new();
    let mut start = 0;
    while let Some(value) = stream.next() {
        let mut value = value.ok()?;
        whole_numbers(&mut value);
        let end = stream.byte_offset();
        let before = chunk.get(..start)?.matches('\n').count() + lines_before;
        // JSON is nearly a part of YAML, so the YAML reader knows the lines. Where it does not follow, the start must do.
        let read = Loader::new(chunk.get(start..end)?, before).next_document().ok().flatten();
        let (place, duplicates) = match read {
            Some(document) => (document.place, document.duplicates),
            None => (Place::at(Pos { line: u32::try_from(before + 1).unwrap_or(u32::MAX), column: 1 }), Vec::new()),
        };
        documents.push(Document { value, place, duplicates });
        start = end;
    }
    Some(documents)
}

fn whole_numbers(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            if let Some(float) = number.as_f64() {
                *value = scalar::from_f64(float);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(whole_numbers),
        Value::Object(map) => map.values_mut().for_each(whole_numbers),
        _ => {}
    }
}

/// The JSON that stands for a YAML text, as [`to_json`] writes it (`RJ-118`).
///
/// # Errors
/// As [`parse_str`].
pub fn yaml_to_json(text: &str) -> Result<String, YamlError> {
    parse_str(text).map(|value| to_json(&value))
}

/// Writes a value the way KubeRay's submitter command has it, so that a job submitted by either is the same to Ray: keys sorted,
/// no white space, `<`, `>`, `&` and the two Unicode line separators escaped (`RJ-118`).
#[must_use]
pub fn to_json(value: &Value) -> String {
    let mut text = String::new();
    write_value(&mut text, value, MAX_DEPTH);
    text
}

fn write_value(out: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        // A value that was read here is never that deep; one built by hand ends instead of exhausting the stack.
        Value::Array(_) | Value::Object(_) if depth == 0 => out.push_str("null"),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_value(out, item, depth - 1);
            }
            out.push(']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, value)) in entries.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(out, key);
                out.push(':');
                write_value(out, value, depth - 1);
            }
            out.push('}');
        }
    }
}

/// Floats beyond 1e21 and below 1e-6 get an exponent with its sign, others are written out, all in the fewest digits that read back
/// as the same number.
fn write_number(out: &mut String, number: &Number) {
    match number.as_f64() {
        Some(float) if number.is_f64() => {
            let size = float.abs();
            if size != 0.0 && !(1e-6..1e21).contains(&size) {
                let text = format!("{float:e}");
                match text.split_once('e') {
                    Some((digits, exponent)) if !exponent.starts_with('-') => {
                        let _ = write!(out, "{digits}e+{exponent}");
                    }
                    _ => out.push_str(&text),
                }
            } else {
                let _ = write!(out, "{float}");
            }
        }
        _ => {
            let _ = write!(out, "{number}");
        }
    }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

//! Types, bounds and rules of the schema.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::{Bounds, ListType, Node, NodeId, ROOT, Rule, Schema, ValueType, below};
use crate::validation::{ErrorType, FieldError, Path, json::Shown};

/// Evaluates rules in the Common Expression Language.
pub trait RuleEngine {
    /// The message of a rule that is broken, `None` for one that holds. `old` is there for an UPDATE.
    fn broken(&self, rule: &Rule, this: &Value, old: Option<&Value>) -> Option<String>;
}

/// Takes every rule as kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRules;

impl RuleEngine for NoRules {
    fn broken(&self, _: &Rule, _: &Value, _: Option<&Value>) -> Option<String> {
        None
    }
}

/// Errors kept of one object.
const MAX_ERRORS: usize = 500;
/// Lists up to this length are compared pairwise for duplicates, without allocating.
const SHORT_LIST: usize = 48;

impl Schema {
    /// Everything the schema has against an object that went through [`Schema::settle`]. With `old`, parts that the update leaves
    /// as they are stored are not held against it, as the API server has it (validation ratcheting). `status` is not looked at:
    /// it is written by its own subresource.
    #[must_use]
    pub fn check(&self, object: &Value, old: Option<&Value>, engine: &dyn RuleEngine) -> Vec<FieldError> {
        let mut walk = Walk { schema: self, engine, errors: Vec::new() };
        walk.value(ROOT, None, object, old);
        walk.errors
    }
}

struct Walk<'s, 'e> {
    schema: &'s Schema,
    engine: &'e dyn RuleEngine,
    errors: Vec<FieldError>,
}

impl Walk<'_, '_> {
    fn value(&mut self, id: NodeId, path: Option<&Path<'_>>, value: &Value, old: Option<&Value>) {
        if old == Some(value) {
            return;
        }
        let node = self.schema.node(id);
        if value.is_null() && node.nullable {
            return;
        }
        if !has_type(node.value_type, value) {
            let message = format!("must be {}, found {}", node.value_type.in_words(), in_words(value));
            return self.error(path, ErrorType::TypeInvalid, "schema", message);
        }
        self.bounds(node, path, value);
        match value {
            Value::Object(map) => self.object(node, path, map, old),
            Value::Array(items) => self.list(node, path, items, old),
            Value::String(text) => self.text(node, path, text),
            _ => {}
        }
        for rule in &node.rules {
            if rule.transition && old.is_none() {
                continue;
            }
            if let Some(message) = self.engine.broken(rule, value, old) {
                let place = path.map_or_else(String::new, ToString::to_string) + &rule.field_path;
                self.push(place.trim_start_matches('.').to_owned(), rule.reason, "CEL", message);
            }
        }
    }

    fn object(&mut self, node: &Node, path: Option<&Path<'_>>, map: &Map<String, Value>, old: Option<&Value>) {
        for name in &node.required {
            if !map.contains_key(&**name) {
                self.error(Some(&below(path, name)), ErrorType::Required, "schema", "is required, and missing".to_owned());
            }
        }
        for (name, value) in map {
            if path.is_none() && name == "status" {
                continue;
            }
            let old = old.and_then(|old| old.get(name));
            match (node.property(name), node.values, path) {
                (Some(child), _, _) => self.value(child, Some(&below(path, name)), value, old),
                (None, Some(child), Some(path)) => self.value(child, Some(&path.key(name)), value, old),
                _ => {}
            }
        }
    }

    fn list(&mut self, node: &Node, path: Option<&Path<'_>>, items: &[Value], old: Option<&Value>) {
        let (Some(inner), Some(path)) = (node.items, path) else { return };
        let before = old.and_then(Value::as_array).map_or(&[] as &[Value], Vec::as_slice);
        for (index, item) in items.iter().enumerate() {
            // Only elements with keys are known to be the same element as before.
            let old = match &node.list {
                ListType::Map(keys) => before.iter().find(|old| same_keys(keys, old, item)),
                ListType::Atomic | ListType::Set => None,
            };
            self.value(inner, Some(&path.index(index)), item, old);
        }
        match &node.list {
            ListType::Atomic => {}
            ListType::Set => self.duplicates(path, items, |one, other| one == other, |item| format!("{} is", brief(item))),
            ListType::Map(keys) => self.duplicates(
                path,
                items,
                |one, other| same_keys(keys, one, other),
                |item| format!("an entry with {} is", shown_keys(keys, item)),
            ),
        }
    }

    fn duplicates(&mut self, path: &Path<'_>, items: &[Value], same: impl Fn(&Value, &Value) -> bool, say: impl Fn(&Value) -> String) {
        let again: Vec<usize> = if items.len() <= SHORT_LIST {
            let repeats = |(index, item): &(usize, &Value)| items.iter().take(*index).any(|earlier| same(earlier, item));
            items.iter().enumerate().filter(repeats).map(|(index, _)| index).collect()
        } else {
            let mut seen = HashSet::new();
            items.iter().enumerate().filter(|(_, item)| same(item, item) && !seen.insert(say(item))).map(|(index, _)| index).collect()
        };
        for index in again {
            if let Some(item) = items.get(index) {
                self.error(Some(&path.index(index)), ErrorType::Duplicate, "schema", format!("{} in this list already", say(item)));
            }
        }
    }

    fn text(&mut self, node: &Node, path: Option<&Path<'_>>, text: &str) {
        if let Some(pattern) = node.pattern.and_then(|id| self.schema.patterns.get(id as usize))
            && !pattern.matches(text)
        {
            let wanted = if pattern.is_quantity() {
                "is not a quantity: write it like \"500m\", \"2\" or \"4Gi\"".to_owned()
            } else {
                format!("does not match {}", pattern.text)
            };
            self.error(path, ErrorType::Invalid, "schema", format!("{} {wanted}", Shown(text)));
        }
        if node.date_time && text.parse::<jiff::Timestamp>().is_err() {
            let message = format!("{} is not a date and time: write it like \"2026-01-31T12:00:00Z\"", Shown(text));
            self.error(path, ErrorType::Invalid, "schema", message);
        }
    }

    fn bounds(&mut self, node: &Node, path: Option<&Path<'_>>, value: &Value) {
        if !node.allowed.is_empty() && !node.allowed.contains(value) {
            let allowed = node.allowed.iter().map(brief).collect::<Vec<_>>().join(", ");
            self.error(path, ErrorType::NotSupported, "schema", format!("{} is not supported: use one of {allowed}", brief(value)));
        }
        if node.int32 && value.as_f64().is_some_and(|number| !(f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&number)) {
            let message = format!("{value} does not fit in 32 bits: use a number from {} to {}", i32::MIN, i32::MAX);
            self.error(path, ErrorType::Invalid, "schema", message);
        }
        if let Some(bounds) = &node.bounds
            && let Some((kind, message)) = out_of_bounds(bounds, value)
        {
            self.error(path, kind, "schema", message);
        }
    }

    fn error(&mut self, path: Option<&Path<'_>>, kind: ErrorType, rule: &'static str, message: String) {
        self.push(path.map_or_else(String::new, ToString::to_string), kind, rule, message);
    }

    fn push(&mut self, path: String, kind: ErrorType, rule: &'static str, message: String) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(FieldError { path, kind, message, rule });
        }
    }
}

fn has_type(wanted: ValueType, value: &Value) -> bool {
    match wanted {
        ValueType::Any => true,
        ValueType::Object => value.is_object(),
        ValueType::Array => value.is_array(),
        ValueType::String => value.is_string(),
        ValueType::Boolean => value.is_boolean(),
        ValueType::Number => value.is_number(),
        ValueType::Integer => is_whole(value),
        ValueType::IntOrString => value.is_string() || is_whole(value),
    }
}

fn is_whole(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn out_of_bounds(bounds: &Bounds, value: &Value) -> Option<(ErrorType, String)> {
    let invalid = |message: String| Some((ErrorType::Invalid, message));
    match value {
        Value::Number(number) => {
            let size = number.as_f64()?;
            if let Some(minimum) = bounds.minimum
                && (size < minimum || bounds.above && size <= minimum)
            {
                return invalid(format!("{number} is too small: use {} {minimum}", if bounds.above { "more than" } else { "at least" }));
            }
            if let Some(maximum) = bounds.maximum
                && (size > maximum || bounds.below && size >= maximum)
            {
                return invalid(format!("{number} is too large: use {} {maximum}", if bounds.below { "less than" } else { "at most" }));
            }
            None
        }
        Value::String(text) => {
            let length = text.chars().count();
            if let Some(most) = bounds.max_length.filter(|most| length > *most) {
                return Some((ErrorType::TooLong, format!("has {length} characters: use at most {most}")));
            }
            match bounds.min_length.filter(|least| length < *least)? {
                1 => invalid("must not be empty".to_owned()),
                least => invalid(format!("has {length} characters: use at least {least}")),
            }
        }
        Value::Array(items) => counted(items.len(), bounds.min_items, bounds.max_items),
        Value::Object(map) => counted(map.len(), bounds.min_properties, bounds.max_properties),
        Value::Null | Value::Bool(_) => None,
    }
}

fn counted(count: usize, least: Option<usize>, most: Option<usize>) -> Option<(ErrorType, String)> {
    if let Some(least) = least.filter(|least| count < *least) {
        return Some((ErrorType::Invalid, format!("has {count} entries: give at least {least}")));
    }
    most.filter(|most| count > *most).map(|most| (ErrorType::Invalid, format!("has {count} entries: give at most {most}")))
}

/// Whether two elements have all keys, and the same ones.
fn same_keys(keys: &[Box<str>], one: &Value, other: &Value) -> bool {
    !keys.is_empty() && keys.iter().all(|key| one.get(&**key).is_some_and(|value| other.get(&**key) == Some(value)))
}

fn shown_keys(keys: &[Box<str>], item: &Value) -> String {
    let mut text = String::new();
    for key in keys {
        if let Some(value) = item.get(&**key) {
            let _ = write!(text, "{}{key} {}", if text.is_empty() { "" } else { " and " }, brief(value));
        }
    }
    text
}

/// A value in a message: short, on one line.
fn brief(value: &Value) -> String {
    match value {
        Value::String(text) => Shown(text).to_string(),
        Value::Array(_) => "the list".to_owned(),
        Value::Object(_) => "the mapping".to_owned(),
        other => other.to_string(),
    }
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Null => "nothing (null)".to_owned(),
        Value::Bool(_) => format!("the boolean {value}"),
        Value::Number(_) => format!("the number {value}"),
        Value::String(text) => format!("the string {}", Shown(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "a mapping".to_owned(),
    }
}

//! From the JSON of an `openAPIV3Schema` to the flat tree.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use serde_json::{Map, Value};

use super::{Bounds, ListType, Node, NodeId, Pattern, Rule, Schema, ValueType};
use crate::validation::ErrorType;

/// A keyword that the compiler does not know, hence does not check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Where it stands, as a chain of names.
    pub path: String,
    /// The keyword.
    pub keyword: String,
}

/// Keywords that change nothing for a value that is checked.
const SILENT: &[&str] = &["description", "title", "example", "externalDocs", "x-kubernetes-map-type"];

impl Schema {
    /// Compiles a structural schema. Total: what is not understood is listed by [`Schema::unsupported`] and left unchecked.
    #[must_use]
    pub fn compile(source: &Value) -> Schema {
        let schema = Schema { nodes: Vec::new(), patterns: Vec::new(), unsupported: Vec::new() };
        let mut compiler = Compiler { schema, patterns: HashMap::new() };
        compiler.node(source, "");
        compiler.schema
    }
}

static EMPTY: LazyLock<Value> = LazyLock::new(|| Value::Object(Map::new()));

struct Compiler<'a> {
    schema: Schema,
    patterns: HashMap<&'a str, u32>,
}

impl<'a> Compiler<'a> {
    fn node(&mut self, source: &'a Value, path: &str) -> NodeId {
        let id = NodeId(u32::try_from(self.schema.nodes.len()).unwrap_or(u32::MAX));
        // The slot is taken before the children, so that the root is node 0.
        self.schema.nodes.push(Node::open());
        let node = match source.as_object() {
            Some(source) => self.keywords(source, path),
            None => Node::open(),
        };
        if let Some(slot) = self.schema.nodes.get_mut(id.0 as usize) {
            *slot = node;
        }
        id
    }

    fn keywords(&mut self, source: &'a Map<String, Value>, path: &str) -> Node {
        let mut node = Node { nullable: false, open: false, ..Node::open() };
        let mut bounds = Bounds::default();
        let mut bounded = false;
        for (keyword, value) in source {
            let number = || value.as_f64();
            let size = || value.as_u64().and_then(|size| usize::try_from(size).ok());
            match keyword.as_str() {
                "type" => node.value_type = value_type(value),
                "nullable" => node.nullable = is_true(value),
                "format" => match value.as_str() {
                    Some("int32") => node.int32 = true,
                    Some("date-time") => node.date_time = true,
                    // Implied by the type, or not enforced by the API server either.
                    Some("int64" | "double" | "float" | "byte" | "password") => {}
                    _ => self.unsupported(path, &format!("format {value}")),
                },
                "properties" => {
                    node.properties = self.properties(value, path);
                    node.defaults = defaults(value);
                }
                "required" => node.required = texts(value),
                "items" => node.items = Some(self.node(value, &format!("{path}[]"))),
                "additionalProperties" => match value {
                    Value::Bool(false) => {}
                    // Any value, but without fields: the API server takes out what is inside.
                    Value::Bool(true) => node.values = Some(self.node(&EMPTY, path)),
                    _ => node.values = Some(self.node(value, &format!("{path}{{}}"))),
                },
                // Filled in by the object that has the field.
                "default" => {}
                "enum" => node.allowed = value.as_array().cloned().unwrap_or_default(),
                "pattern" => node.pattern = value.as_str().map(|text| self.pattern(text)),
                "minimum" => bounds.minimum = number(),
                "maximum" => bounds.maximum = number(),
                "exclusiveMinimum" => bounds.above = is_true(value),
                "exclusiveMaximum" => bounds.below = is_true(value),
                "minLength" => bounds.min_length = size(),
                "maxLength" => bounds.max_length = size(),
                "minItems" => bounds.min_items = size(),
                "maxItems" => bounds.max_items = size(),
                "minProperties" => bounds.min_properties = size(),
                "maxProperties" => bounds.max_properties = size(),
                "x-kubernetes-int-or-string" if is_true(value) => node.value_type = ValueType::IntOrString,
                "x-kubernetes-preserve-unknown-fields" => node.open |= is_true(value),
                "x-kubernetes-list-type" => match value.as_str() {
                    Some("set") => node.list = ListType::Set,
                    Some("map") => node.list = ListType::Map(texts(source.get("x-kubernetes-list-map-keys").unwrap_or(&Value::Null))),
                    _ => {}
                },
                "x-kubernetes-list-map-keys" => {}
                "x-kubernetes-validations" => node.rules = value.as_array().into_iter().flatten().filter_map(rule).collect(),
                // The only use that structural schemas of Kubernetes types make of it; the type says the same.
                "anyOf" if source.get("x-kubernetes-int-or-string").is_some_and(is_true) => {}
                other if SILENT.contains(&other) => {}
                other => self.unsupported(path, other),
            }
            bounded |= keyword.starts_with("min") || keyword.starts_with("max") || keyword.starts_with("exclusive");
        }
        node.bounds = bounded.then(|| Box::new(bounds));
        node
    }

    fn properties(&mut self, source: &'a Value, path: &str) -> Vec<(Box<str>, NodeId)> {
        let mut properties: Vec<_> = source
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, child)| (name.as_str().into(), self.node(child, &format!("{path}.{name}"))))
            .collect();
        properties.sort_unstable_by(|(one, _): &(Box<str>, _), (other, _)| one.cmp(other));
        properties
    }

    fn pattern(&mut self, text: &'a str) -> u32 {
        if let Some(known) = self.patterns.get(text) {
            return *known;
        }
        let id = u32::try_from(self.schema.patterns.len()).unwrap_or(u32::MAX);
        self.patterns.insert(text, id);
        self.schema.patterns.push(Pattern { text: text.into(), regex: OnceLock::new() });
        id
    }

    fn unsupported(&mut self, path: &str, keyword: &str) {
        self.schema.unsupported.push(Unsupported { path: path.to_owned(), keyword: keyword.to_owned() });
    }
}

fn defaults(properties: &Value) -> Vec<(Box<str>, Value)> {
    let properties = properties.as_object().into_iter().flatten();
    properties.filter_map(|(name, child)| child.get("default").map(|default| (name.as_str().into(), default.clone()))).collect()
}

fn is_true(value: &Value) -> bool {
    value.as_bool() == Some(true)
}

fn texts(value: &Value) -> Vec<Box<str>> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(Into::into).collect()
}

fn value_type(value: &Value) -> ValueType {
    match value.as_str() {
        Some("object") => ValueType::Object,
        Some("array") => ValueType::Array,
        Some("string") => ValueType::String,
        Some("integer") => ValueType::Integer,
        Some("number") => ValueType::Number,
        Some("boolean") => ValueType::Boolean,
        _ => ValueType::Any,
    }
}

fn rule(source: &Value) -> Option<Rule> {
    let text = |name: &str| source.get(name).and_then(Value::as_str);
    let expression = text("rule")?;
    Some(Rule {
        expression: expression.into(),
        message: text("message").map_or_else(|| format!("must satisfy {expression}").into(), |message| message.trim().into()),
        message_expression: text("messageExpression").map(Into::into),
        transition: expression.contains("oldSelf"),
        reason: match text("reason") {
            Some("FieldValueForbidden") => ErrorType::Forbidden,
            Some("FieldValueRequired") => ErrorType::Required,
            Some("FieldValueDuplicate") => ErrorType::Duplicate,
            _ => ErrorType::Invalid,
        },
        field_path: text("fieldPath").unwrap_or_default().into(),
    })
}

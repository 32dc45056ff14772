//! Unknown fields, nulls and defaults, as the API server treats them when it reads an object.

use serde_json::{Map, Value};

use super::{Field, Node, NodeId, ROOT, Schema, ValueType, below};
use crate::validation::Path;

/// A field that the schema does not have. `kubectl` refuses it; other clients lose it silently.
#[derive(Clone, Debug)]
pub struct UnknownField<'s> {
    /// Where it stands.
    pub path: String,
    /// Its last step.
    pub name: String,
    /// What was taken out.
    pub value: Value,
    /// The object that does not have such a field.
    pub parent: Field<'s>,
}

impl Schema {
    /// Takes out fields that the schema does not have and nulls that it does not allow, and fills in defaults. Names what was
    /// unknown, in the order of the fields.
    pub fn settle(&self, object: &mut Value) -> Vec<UnknownField<'_>> {
        let mut walk = Walk { schema: self, unknown: Vec::new() };
        walk.value(ROOT, None, object);
        walk.unknown
    }
}

struct Walk<'s> {
    schema: &'s Schema,
    unknown: Vec<UnknownField<'s>>,
}

impl Walk<'_> {
    /// Ends with the schema: what has no node is not followed.
    fn value(&mut self, id: NodeId, path: Option<&Path<'_>>, value: &mut Value) {
        let node = self.schema.node(id);
        match value {
            // A mapping where something else belongs is an error of type; its keys say nothing.
            Value::Object(map) if matches!(node.value_type, ValueType::Object | ValueType::Any) => {
                fill(node, map);
                map.retain(|name, value| self.entry(id, node, path, name, value));
            }
            Value::Array(items) => {
                if let (Some(inner), Some(path)) = (node.items, path) {
                    for (index, item) in items.iter_mut().enumerate() {
                        self.value(inner, Some(&path.index(index)), item);
                    }
                }
            }
            _ => {}
        }
    }

    /// Whether the entry stays.
    fn entry(&mut self, parent: NodeId, node: &Node, path: Option<&Path<'_>>, name: &str, value: &mut Value) -> bool {
        let (child, here) = match (node.property(name), node.values, path) {
            (Some(child), _, _) => (child, below(path, name)),
            (None, Some(child), Some(path)) => (child, path.key(name)),
            (None, Some(child), None) => (child, Path::root(name)),
            (None, None, _) if node.open => return true,
            (None, None, _) => {
                let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') && !name.is_empty();
                let here = match path {
                    Some(path) if !plain => path.key(name),
                    _ => below(path, name),
                };
                self.unknown.push(UnknownField {
                    path: here.to_string(),
                    name: name.to_owned(),
                    value: value.take(),
                    parent: Field { schema: self.schema, id: parent },
                });
                return false;
            }
        };
        if value.is_null() {
            return self.schema.node(child).nullable;
        }
        self.value(child, Some(&here), value);
        true
    }
}

/// Defaults of absent fields, and of those that are null and may not be.
fn fill(node: &Node, map: &mut Map<String, Value>) {
    for (name, default) in &node.defaults {
        if map.get(&**name).is_none_or(Value::is_null) {
            map.insert((**name).to_owned(), default.clone());
        }
    }
}

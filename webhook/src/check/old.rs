//! The stored objects that `--old` gives.

use std::collections::HashMap;

use serde_json::Value;
use shared::validation::Kind;
use shared::yaml::{self, YamlError};

use super::objects::{Identity, identify, metadata, objects};

/// Objects as they are stored now, by kind, namespace and name.
#[derive(Debug, Default)]
pub(super) struct Stored {
    objects: HashMap<(Kind, String, String), Value>,
}

impl Stored {
    /// Reads all objects of our kinds in a file.
    pub(super) fn parse(text: &str) -> Result<Self, YamlError> {
        let mut stored = Stored::default();
        for document in yaml::documents(text) {
            for object in objects(&mut document?) {
                if let Identity::Ray(kind, schema) = identify(&object.value) {
                    let mut value = object.value;
                    schema.settle(&mut value);
                    stored.objects.insert(key(kind, &value), value);
                }
            }
        }
        Ok(stored)
    }

    /// The stored state of an object.
    pub(super) fn of(&self, kind: Kind, object: &Value) -> Option<&Value> {
        if self.objects.is_empty() { None } else { self.objects.get(&key(kind, object)) }
    }
}

/// An object without a namespace goes to the one that the client is set to; two such objects are taken for the same place, and
/// `default` for that place.
fn key(kind: Kind, object: &Value) -> (Kind, String, String) {
    let namespace = Some(metadata(object, "namespace")).filter(|namespace| !namespace.is_empty()).unwrap_or("default");
    (kind, namespace.to_owned(), metadata(object, "name").to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_paired_by_kind_namespace_and_name() {
        let stored = Stored::parse(
            "apiVersion: ray.io/v1\nkind: RayJob\nmetadata: {name: a}\nspec: {entrypoint: x, nothing: 1}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: a}\n",
        )
        .unwrap();
        let named = |namespace: Value, name: &str| json!({"metadata": {"namespace": namespace, "name": name}});
        let found = stored.of(Kind::RayJob, &named(json!("default"), "a")).unwrap();
        assert_eq!(found["spec"].get("nothing"), None, "what the API server would not have stored is gone");
        assert!(stored.of(Kind::RayJob, &named(Value::Null, "a")).is_some());
        assert!(stored.of(Kind::RayJob, &named(json!("other"), "a")).is_none());
        assert!(stored.of(Kind::RayCluster, &named(Value::Null, "a")).is_none());
        assert!(stored.of(Kind::RayJob, &named(Value::Null, "b")).is_none());
        assert!(Stored::parse("a: [").is_err());
    }
}

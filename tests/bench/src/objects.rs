//! What the objects that benchmarks create have in common.

use serde_json::{Value, json};

/// A Pod template such as people write, without anything special.
pub(crate) fn template(container: &str) -> Value {
    json!({"spec": {"containers": [{
        "name": container,
        "image": "rayproject/ray:2.56.0",
        "resources": {"limits": {"cpu": "1", "memory": "2Gi"}, "requests": {"cpu": "1", "memory": "2Gi"}},
    }]}})
}

//! Differences of two JSON values, field by field.

use std::fmt;

use serde_json::Value;

/// One field that differs; a missing field is null.
pub(crate) struct Difference {
    /// Where, from the kind on; items of lists of named things are addressed by name.
    pub(crate) path: String,
    /// What KubeRay made.
    pub(crate) theirs: Value,
    /// What is built here.
    pub(crate) ours: Value,
}

impl Difference {
    pub(crate) fn is(&self, theirs: &str, ours: &str) -> bool {
        self.theirs == theirs && self.ours == ours
    }

    pub(crate) fn theirs_text(&self) -> &str {
        self.theirs.as_str().unwrap_or_default()
    }

    pub(crate) fn ours_text(&self) -> &str {
        self.ours.as_str().unwrap_or_default()
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n    theirs: {}\n    ours:   {}", self.path, self.theirs, self.ours)
    }
}

/// Every field in which the two differ.
pub(crate) fn differences(path: &str, theirs: &Value, ours: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    collect(path.to_owned(), theirs, ours, &mut found);
    found
}

fn collect(path: String, theirs: &Value, ours: &Value, found: &mut Vec<Difference>) {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                collect(format!("{path}.{key}"), value, b.get(key).unwrap_or(&Value::Null), found);
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                collect(format!("{path}.{key}"), &Value::Null, value, found);
            }
        }
        // The order of lists counts: containers, variables and mounts have one.
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                let address = a["name"].as_str().filter(|name| b["name"] == *name).map_or_else(|| index.to_string(), str::to_owned);
                collect(format!("{path}[{address}]"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(Difference { path, theirs: a.clone(), ours: b.clone() }),
    }
}

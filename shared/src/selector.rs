//! Choosing namespaces by name and by label, for settings of the webhook that differ between teams.

use std::collections::BTreeMap;

use serde::Deserialize;

/// Which namespaces an entry of a configuration is for. All conditions must hold; without any, every namespace is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Names; a `*` stands for any characters. One of them must fit.
    #[serde(default)]
    pub names: Vec<String>,
    /// Labels that the namespace must have.
    #[serde(default)]
    pub match_labels: BTreeMap<String, String>,
    /// Conditions on labels, as in any Kubernetes label selector.
    #[serde(default)]
    pub match_expressions: Vec<Requirement>,
}

/// One condition on a label.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// How it is compared.
    pub operator: Operator,
    /// What it is compared with; only for `In` and `NotIn`.
    #[serde(default)]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Operator {
    /// The label is there and has one of the values.
    In,
    /// The label is not there or has none of the values.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is not there.
    DoesNotExist,
}

/// The label by which Kubernetes lets namespaces be chosen by name.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

impl NamespaceSelector {
    /// Whether a namespace is chosen. `labels` are its labels as far as they are known.
    pub fn matches(&self, name: &str, labels: &BTreeMap<String, String>) -> bool {
        let value = |key: &str| labels.get(key).map(String::as_str).or_else(|| (key == NAME_LABEL).then_some(name));
        (self.names.is_empty() || self.names.iter().any(|pattern| fits(pattern, name)))
            && self.match_labels.iter().all(|(key, wanted)| value(key) == Some(wanted))
            && self.match_expressions.iter().all(|requirement| requirement.holds(value(&requirement.key)))
    }

    /// Whether a decision needs more than the namespace's name.
    pub fn reads_labels(&self) -> bool {
        let by_label = |key: &str| key != NAME_LABEL;
        self.match_labels.keys().any(|key| by_label(key)) || self.match_expressions.iter().any(|requirement| by_label(&requirement.key))
    }
}

impl Requirement {
    fn holds(&self, value: Option<&str>) -> bool {
        let listed = value.is_some_and(|value| self.values.iter().any(|wanted| wanted == value));
        match self.operator {
            Operator::In => listed,
            Operator::NotIn => !listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

/// Whether a name fits a pattern with `*`.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut left) = name.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    // The last part must stand at the end; the ones between are taken where they first occur.
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patterns_fit_whole_names() {
        let table = [
            ("a", "a", true),
            ("a", "ab", false),
            ("*", "", true),
            ("ml-*", "ml-", true),
            ("ml-*", "ml-prod", true),
            ("ml-*", "xml-prod", false),
            ("*-prod", "ml-prod", true),
            ("*-prod", "ml-prod-2", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxcyyb", false),
            ("ab*ba", "aba", false),
        ];
        for (pattern, name, wanted) in table {
            assert_eq!(fits(pattern, name), wanted, "{pattern} {name}");
        }
    }

    #[test]
    fn all_conditions_must_hold() {
        let selector = |value| serde_json::from_value::<NamespaceSelector>(value).unwrap();
        let labels = BTreeMap::from([("team".to_owned(), "vision".to_owned())]);
        let table = [
            (json!({}), true),
            (json!({"names": ["b", "a"]}), true),
            (json!({"names": ["b"]}), false),
            (json!({"matchLabels": {"team": "vision"}}), true),
            (json!({"matchLabels": {"team": "nlp"}}), false),
            (json!({"matchLabels": {"kubernetes.io/metadata.name": "a"}}), true),
            (json!({"names": ["a"], "matchLabels": {"team": "nlp"}}), false),
            (json!({"matchExpressions": [{"key": "team", "operator": "In", "values": ["nlp", "vision"]}]}), true),
            (json!({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["vision"]}]}), false),
            (json!({"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}]}), true),
            (json!({"matchExpressions": [{"key": "team", "operator": "Exists"}]}), true),
            (json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}), false),
        ];
        for (value, wanted) in table {
            assert_eq!(selector(value.clone()).matches("a", &labels), wanted, "{value}");
        }
        assert!(selector(json!({"matchLabels": {"team": "x"}})).reads_labels());
        assert!(!selector(json!({"names": ["x"]})).reads_labels());
        assert!(serde_json::from_value::<NamespaceSelector>(json!({"name": ["x"]})).is_err());
    }
}

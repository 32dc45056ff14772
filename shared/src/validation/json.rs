//! Reading raw JSON without panics: a missing or null field reads as `Null`, a value of the wrong type as absent. Types are
//! the business of the CRD's schema; a rule only speaks about values it understands.

use std::fmt;

use serde_json::Value;

/// Reading helpers on raw JSON.
pub(crate) trait Json {
    /// The field `key`, or `Null`.
    fn at(&self, key: &str) -> &Value;
    /// The value as text.
    fn text(&self) -> Option<&str>;
    /// The text if it is there and not empty.
    fn filled(&self) -> Option<&str>;
    /// The value as a whole number.
    fn int(&self) -> Option<i64>;
    /// Whether the value is the boolean `true`.
    fn is_true(&self) -> bool;
    /// The elements of a list; empty for anything else.
    fn items(&self) -> &[Value];
    /// The first element of a list, or `Null`.
    fn first(&self) -> &Value;
    /// The entries of a map; none for anything else.
    fn entries(&self) -> impl Iterator<Item = (&String, &Value)>;
    /// Whether the field is there (null counts as absent).
    fn is_set(&self) -> bool;
    /// Whether it is a map with at least one entry.
    fn has_entries(&self) -> bool;
}

static NULL: Value = Value::Null;

impl Json for Value {
    fn at(&self, key: &str) -> &Value {
        self.as_object().and_then(|map| map.get(key)).unwrap_or(&NULL)
    }

    fn text(&self) -> Option<&str> {
        self.as_str()
    }

    fn filled(&self) -> Option<&str> {
        self.as_str().filter(|text| !text.is_empty())
    }

    fn int(&self) -> Option<i64> {
        // The API server reads 3.0 as the whole number 3.
        self.as_i64().or_else(|| self.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15).map(|number| number as i64))
    }

    fn is_true(&self) -> bool {
        self.as_bool() == Some(true)
    }

    fn items(&self) -> &[Value] {
        self.as_array().map_or(&[], Vec::as_slice)
    }

    fn first(&self) -> &Value {
        self.items().first().unwrap_or(&NULL)
    }

    fn entries(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.as_object().into_iter().flatten()
    }

    fn is_set(&self) -> bool {
        !self.is_null()
    }

    fn has_entries(&self) -> bool {
        self.as_object().is_some_and(|map| !map.is_empty())
    }
}

/// Position of the named element in a list of `{name: …}` objects (env, containers, volumes, volumeMounts, ports).
pub(crate) fn position(list: &Value, name: &str) -> Option<usize> {
    list.items().iter().position(|item| item.at("name").text() == Some(name))
}

/// The named element of such a list.
pub(crate) fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    list.items().iter().find(|item| item.at("name").text() == Some(name))
}

/// Text as it is shown in a message: quoted, control characters escaped, at most 60 characters.
pub(crate) struct Shown<'a>(pub(crate) &'a str);

const MAX_SHOWN: usize = 60;

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(MAX_SHOWN) {
            Some((end, _)) => write!(f, "{:?}… ({} characters)", self.0.get(..end).unwrap_or_default(), self.0.chars().count()),
            None => write!(f, "{:?}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_missing_or_of_another_type_reads_as_absent() {
        let value = json!({"a": {"b": 1}, "n": null, "l": [{"name": "x"}]});
        assert_eq!(value.at("a").at("b").int(), Some(1));
        assert_eq!((json!(3.0).int(), json!(3.5).int(), json!("3").int(), json!(1e300).int()), (Some(3), None, None, None));
        assert_eq!(value.at("a").at("b").at("c").at("d"), &Value::Null);
        assert!(!value.at("n").is_set() && !value.at("zz").is_set());
        assert_eq!(value.at("a").items().len(), 0);
        assert_eq!(position(value.at("l"), "x"), Some(0));
        assert_eq!(position(value.at("a"), "x"), None);
    }

    #[test]
    fn long_text_is_cut_and_control_characters_are_escaped() {
        assert_eq!(Shown("a\"b\n").to_string(), r#""a\"b\n""#);
        let long = "ü".repeat(1000);
        assert_eq!(Shown(&long).to_string(), format!("\"{}\"… (1000 characters)", "ü".repeat(60)));
    }
}

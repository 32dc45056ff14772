use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::validation::{ErrorType, FieldError};

type Wanted = &'static [(&'static str, ErrorType)];

fn compile(spec: &Value) -> Schema {
    Schema::compile(&json!({"type": "object", "properties": {"spec": spec}}))
}

fn found(schema: &Schema, spec: &Value) -> Vec<(String, ErrorType)> {
    let mut object = json!({"spec": spec});
    schema.settle(&mut object);
    schema.check(&object, None, &NoRules).into_iter().map(|FieldError { path, kind, .. }| (path, kind)).collect()
}

#[test]
fn values_are_held_to_types_and_bounds() {
    use ErrorType::{Duplicate, Invalid, NotSupported, Required, TooLong, TypeInvalid};
    let text = json!({"type": "string"});
    let whole = json!({"type": "integer", "format": "int32", "minimum": 1, "maximum": 10, "exclusiveMaximum": true});
    let quantity = json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9]+m?$"});
    let by_name = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"],
        "items": {"type": "object", "required": ["name"], "properties": {"name": text, "port": {"type": "integer", "default": 80}}}});
    let set = json!({"type": "array", "x-kubernetes-list-type": "set", "items": text, "minItems": 1, "maxItems": 3});
    let table: Vec<(Value, Value, Wanted)> = vec![
        (text.clone(), json!("x"), &[]),
        (text.clone(), json!(1), &[("spec", TypeInvalid)]),
        (whole.clone(), json!(1), &[]),
        (whole.clone(), json!(9.0), &[]),
        (whole.clone(), json!(0), &[("spec", Invalid)]),
        (whole.clone(), json!(10), &[("spec", Invalid)]),
        (whole.clone(), json!(1.5), &[("spec", TypeInvalid)]),
        (whole.clone(), json!("1"), &[("spec", TypeInvalid)]),
        (json!({"type": "integer", "format": "int32"}), json!(5_000_000_000_i64), &[("spec", Invalid)]),
        (json!({"type": "integer", "format": "int32"}), json!(i32::MAX), &[]),
        (json!({"type": "integer", "format": "int64"}), json!(5_000_000_000_i64), &[]),
        (json!({"type": "number"}), json!(1.5), &[]),
        (json!({"type": "boolean"}), json!("true"), &[("spec", TypeInvalid)]),
        (quantity.clone(), json!(5), &[]),
        (quantity.clone(), json!("5m"), &[]),
        (quantity.clone(), json!("5x"), &[("spec", Invalid)]),
        (quantity.clone(), json!(0.5), &[("spec", TypeInvalid)]),
        (quantity, json!({"a": 1}), &[("spec", TypeInvalid)]),
        (json!({"type": "string", "enum": ["a", "b"]}), json!("c"), &[("spec", NotSupported)]),
        (json!({"type": "string", "minLength": 1, "maxLength": 3}), json!("üöä"), &[]),
        (json!({"type": "string", "minLength": 1, "maxLength": 3}), json!("abcd"), &[("spec", TooLong)]),
        (json!({"type": "string", "minLength": 1, "maxLength": 3}), json!(""), &[("spec", Invalid)]),
        (json!({"type": "string", "format": "date-time"}), json!("2026-01-31T12:00:00Z"), &[]),
        (json!({"type": "string", "format": "date-time"}), json!("yesterday"), &[("spec", Invalid)]),
        (set.clone(), json!(["a", "b"]), &[]),
        (set.clone(), json!(["a", "b", "a"]), &[("spec[2]", Duplicate)]),
        (set.clone(), json!([]), &[("spec", Invalid)]),
        (set.clone(), json!(["a", "b", "c", "d"]), &[("spec", Invalid)]),
        (set, json!(["a", null]), &[("spec[1]", TypeInvalid)]),
        (by_name.clone(), json!([{"name": "a"}, {"name": "a", "port": 81}]), &[]),
        (by_name.clone(), json!([{"name": "a"}, {"name": "a", "port": 80}]), &[("spec[1]", Duplicate)]),
        (by_name.clone(), json!([{}, {"port": 1}]), &[("spec[0].name", Required), ("spec[1].name", Required)]),
        (by_name.clone(), json!({}), &[("spec", TypeInvalid)]),
        (by_name.clone(), json!((0..100).map(|n| json!({"name": n.to_string()})).collect::<Vec<_>>()), &[]),
        (by_name, json!((0..100).map(|n| json!({"name": (n % 99).to_string()})).collect::<Vec<_>>()), &[("spec[99]", Duplicate)]),
        (json!({"type": "object", "additionalProperties": text, "maxProperties": 1}), json!({"a-b": 1}), &[("spec[a-b]", TypeInvalid)]),
        (json!({"type": "object", "additionalProperties": text, "maxProperties": 1}), json!({"a": "", "b": ""}), &[("spec", Invalid)]),
        (json!({"type": "object", "required": ["a"], "properties": {"a": text}}), json!({"a": null}), &[("spec.a", Required)]),
        (json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "nullable": true}}}), json!({"a": null}), &[]),
        (json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), json!({"a": [null, {"b": 1}]}), &[]),
    ];
    for (spec, value, wanted) in table {
        let schema = compile(&spec);
        assert_eq!(schema.unsupported(), [], "{spec}");
        let wanted: Vec<_> = wanted.iter().map(|(path, kind)| ((*path).to_owned(), *kind)).collect();
        assert_eq!(found(&schema, &value), wanted, "{spec} {value}");
    }
}

#[test]
fn unknown_fields_go_nulls_go_and_defaults_come() {
    let schema = compile(&json!({"type": "object", "properties": {
        "a": {"type": "integer", "default": 7},
        "deep": {"type": "object", "default": {}, "properties": {"b": {"type": "string", "default": "x"}}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "boolean", "default": false}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"d": {"type": "string"}}}},
        "any": {"type": "object", "additionalProperties": true},
        "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"e": {"type": "integer", "default": 1}}},
        "none": {"type": "string", "nullable": true},
    }}));
    let mut object = json!({"apiVersion": "x", "spec": {
        "a": null, "list": [{"c": true, "x": 1}, {}, null], "map": {"k": {"d": "1", "num-y": 2}, "n": null}, "any": {"k": {"lost": 1}},
        "open": {"kept": {"deep": null}}, "none": null, "left": 3,
    }});
    let unknown: Vec<_> = schema.settle(&mut object).into_iter().map(|field| (field.path, field.value)).collect();
    let wanted = [
        ("apiVersion", json!("x")),
        ("spec.any[k].lost", json!(1)),
        ("spec.left", json!(3)),
        ("spec.list[0].x", json!(1)),
        ("spec.map[k][num-y]", json!(2)),
    ];
    assert_eq!(unknown, wanted.map(|(path, value)| (path.to_owned(), value)));
    assert_eq!(
        object,
        json!({"spec": {
            "a": 7, "deep": {"b": "x"}, "list": [{"c": true}, {"c": false}, null], "map": {"k": {"d": "1"}}, "any": {"k": {}},
            "open": {"kept": {"deep": null}, "e": 1}, "none": null,
        }})
    );
    let before = object.clone();
    assert!(schema.settle(&mut object).is_empty());
    assert_eq!(object, before, "settling twice changes nothing");
}

#[test]
fn what_an_update_leaves_alone_is_not_held_against_it() {
    let schema = compile(&json!({"type": "object", "properties": {
        "a": {"type": "integer", "minimum": 1},
        "named": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer", "minimum": 1}, "m": {"type": "integer"}}}},
        "plain": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}, "m": {"type": "integer"}}}},
    }}));
    #[allow(clippy::needless_pass_by_value, reason = "called with literals")]
    let paths = |old: Value, new: Value| -> Vec<String> {
        schema.check(&json!({"spec": new}), Some(&json!({"spec": old})), &NoRules).into_iter().map(|error| error.path).collect()
    };
    assert_eq!(paths(json!({"a": 0}), json!({"a": 0, "plain": []})), [""; 0]);
    assert_eq!(paths(json!({"a": 0}), json!({"a": -1})), ["spec.a"]);
    let named = |n: i32, m: i32| json!({"named": [{"name": "x", "n": n, "m": m}]});
    assert_eq!(paths(named(0, 1), named(0, 2)), [""; 0]);
    assert_eq!(paths(named(1, 1), named(0, 1)), ["spec.named[0].n"]);
    let plain = |n: i32, m: i32| json!({"plain": [{"n": n, "m": m}]});
    assert_eq!(paths(plain(0, 1), plain(0, 2)), ["spec.plain[0].n"], "elements of a plain list are not known to be the same");
}

/// Knows one rule by its text: values must not be "bad", and must not change.
struct Engine;

impl RuleEngine for Engine {
    fn broken(&self, rule: &Rule, this: &Value, old: Option<&Value>) -> Option<String> {
        let holds = if rule.transition { old == Some(this) } else { this != "bad" };
        (!holds).then(|| rule.message.to_string())
    }
}

#[test]
fn rules_are_asked_where_they_apply() {
    let schema = compile(&json!({"type": "object", "properties": {"a": {"type": "string", "x-kubernetes-validations": [
        {"rule": "self != 'bad'", "message": "is bad", "reason": "FieldValueForbidden", "fieldPath": ".deep"},
        {"rule": "self == oldSelf"},
    ]}}}));
    let check = |old: Option<Value>, new: &str| -> Vec<(String, ErrorType, String)> {
        let errors = schema.check(&json!({"spec": {"a": new}}), old.as_ref(), &Engine);
        errors.into_iter().map(|FieldError { path, kind, message, .. }| (path, kind, message)).collect()
    };
    let old = |text: &str| Some(json!({"spec": {"a": text}}));
    assert_eq!(check(None, "good"), []);
    assert_eq!(check(None, "bad"), [("spec.a.deep".to_owned(), ErrorType::Forbidden, "is bad".to_owned())]);
    assert_eq!(check(Some(json!({"spec": {}})), "good"), [], "nothing to compare with");
    assert_eq!(check(old("good"), "good"), []);
    assert_eq!(check(old("x"), "good"), [("spec.a".to_owned(), ErrorType::Invalid, "must satisfy self == oldSelf".to_owned())]);
}

#[test]
fn our_definitions_use_only_what_is_checked() {
    for (kind, version) in Kind::ALL.into_iter().flat_map(|kind| [(kind, "v1"), (kind, "v1alpha1")]) {
        let Some(schema) = Schema::of(kind, version) else {
            assert_eq!((kind, version), (Kind::RayCronJob, "v1alpha1"));
            continue;
        };
        assert_eq!(schema.unsupported(), [], "{kind} {version}");
        assert!(schema.nodes.len() > 100);
        for pattern in &schema.patterns {
            assert!(Regex::new(&pattern.text).is_ok(), "{}", pattern.text);
        }
    }
    assert!(Schema::of(Kind::RayJob, "v2").is_none());
}

#[test]
fn metadata_is_held_to_the_rules_of_every_kind() {
    let long = "x".repeat(254);
    let table: Vec<(Value, Wanted)> = vec![
        (json!({"name": "a.b-c", "namespace": "ns"}), &[]),
        (json!({"generateName": "a-"}), &[]),
        (json!({"generateName": format!("{}-", "a".repeat(300))}), &[]),
        (json!({}), &[("metadata.name", ErrorType::Required)]),
        (json!({"name": ""}), &[("metadata.name", ErrorType::Required)]),
        (json!({"name": "A_b"}), &[("metadata.name", ErrorType::Invalid)]),
        (json!({"name": long}), &[("metadata.name", ErrorType::Invalid)]),
        (json!({"generateName": "A-"}), &[("metadata.generateName", ErrorType::Invalid)]),
        (json!({"name": "a", "namespace": "a.b"}), &[("metadata.namespace", ErrorType::Invalid)]),
        (
            json!({"name": "a", "labels": {"ok": "", "a/b/c": "x", "y": "-"}}),
            &[("metadata.labels[a/b/c]", ErrorType::Invalid), ("metadata.labels[y]", ErrorType::Invalid)],
        ),
        (json!({"name": "a", "annotations": {"Example.Com/X": "any thing", "-": ""}}), &[("metadata.annotations[-]", ErrorType::Invalid)]),
        (json!({"name": "a", "annotations": {"x": "y".repeat(300_000)}}), &[("metadata.annotations", ErrorType::TooLong)]),
        (json!({"name": "a", "finalizers": ["ray.io/x", "a b"]}), &[("metadata.finalizers[1]", ErrorType::Invalid)]),
    ];
    for (metadata, wanted) in table {
        let errors: Vec<_> = metadata::check(&json!({"metadata": metadata})).into_iter().map(|error| (error.path, error.kind)).collect();
        let wanted: Vec<_> = wanted.iter().map(|(path, kind)| ((*path).to_owned(), *kind)).collect();
        assert_eq!(errors, wanted, "{metadata}");
    }
    let schema = Schema::of(Kind::RayJob, "v1").unwrap();
    let mut object = json!({"metadata": {"name": 7, "labels": {"a": {"b": 1}, "c": 8, "n": null}, "creationTimestamp": null, "clusterNme": "x"}, "spec": {}});
    let unknown = schema.settle(&mut object);
    assert_eq!(unknown.iter().map(|field| &*field.path).collect::<Vec<_>>(), ["metadata.clusterNme"]);
    let wrong: Vec<_> = schema
        .check(&object, None, &NoRules)
        .into_iter()
        .filter(|error| error.kind == ErrorType::TypeInvalid)
        .map(|error| error.path)
        .collect();
    assert_eq!(wrong, ["metadata.labels[a]", "metadata.labels[c]", "metadata.name"]);
}

proptest! {
    #[test]
    fn no_object_panics_and_settling_is_final(object in arbitrary()) {
        for kind in Kind::ALL {
            let schema = Schema::of(kind, "v1").unwrap();
            let mut settled = object.clone();
            schema.settle(&mut settled);
            let once = settled.clone();
            prop_assert!(schema.settle(&mut settled).is_empty());
            prop_assert_eq!(&settled, &once);
            prop_assert!(schema.check(&settled, Some(&object), &NoRules).len() <= 500);
            let _ = metadata::check(&object);
        }
    }
}

/// JSON that uses names of our kinds in any place.
fn arbitrary() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~]{0,6}".prop_map(Value::from)
    ];
    let name = prop_oneof![
        Just("metadata"),
        Just("spec"),
        Just("status"),
        Just("name"),
        Just("labels"),
        Just("headGroupSpec"),
        Just("workerGroupSpecs"),
        Just("rayClusterSpec"),
        Just("rayClusterConfig"),
        Just("jobTemplate"),
        Just("template"),
        Just("containers"),
        Just("env"),
        Just("resources"),
        Just("limits"),
        Just("cpu"),
        Just("conditions"),
        Just("a-b"),
        Just(""),
    ];
    leaf.prop_recursive(8, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((name.clone(), inner), 0..5)
                .prop_map(|entries| { Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()) }),
        ]
    })
}

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn read(text: &str) -> Value {
    parse_str(text).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

#[test]
fn words_and_numbers_mean_what_kubernetes_tools_read() {
    let table = [
        ("yes", json!(true)),
        ("On", json!(true)),
        ("Y", json!(true)),
        ("TRUE", json!(true)),
        ("n", json!(false)),
        ("off", json!(false)),
        ("No", json!(false)),
        ("yEs", json!("yEs")),
        ("~", json!(null)),
        ("null", json!(null)),
        ("", json!(null)),
        ("nULL", json!("nULL")),
        ("010", json!(8)),
        ("0o17", json!(15)),
        ("0x1F", json!(31)),
        ("-0x1F", json!(-31)),
        ("0b101", json!(5)),
        ("-0b11", json!(-3)),
        ("08", json!(8)),
        ("+5", json!(5)),
        ("-5", json!(-5)),
        ("--5", json!("--5")),
        ("1_000", json!(1000)),
        ("1e3", json!(1000)),
        ("1.0", json!(1)),
        ("1.", json!(1)),
        (".5", json!(0.5)),
        ("-.5", json!(-0.5)),
        ("0.5e-1", json!(0.05)),
        ("1e999", json!("1e999")),
        ("1e", json!("1e")),
        (".", json!(".")),
        ("-", json!([null])),
        ("+", json!("+")),
        ("1:30", json!("1:30")),
        ("1.2.3", json!("1.2.3")),
        ("2024-01-01", json!("2024-01-01")),
        ("9223372036854775807", json!(i64::MAX)),
        ("18446744073709551615", json!(u64::MAX)),
        ("-9223372036854775808", json!(i64::MIN)),
        ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
        ("1Gi", json!("1Gi")),
        ("\"yes\"", json!("yes")),
        ("'010'", json!("010")),
        ("!!str 010", json!("010")),
        ("!!str", json!("")),
        ("!!int \"7\"", json!(7)),
        ("!!float 7", json!(7)),
        ("!!binary aGVsbG8=", json!("hello")),
        ("!mine yes", json!("yes")),
        ("! yes", json!("yes")),
    ];
    for (text, value) in table {
        assert_eq!(read(text), value, "{text:?}");
    }
}

#[test]
fn what_json_cannot_express_is_refused() {
    for text in [
        ".nan",
        "-.inf",
        "[.Inf]",
        "? [a]\n: b",
        "{a: 1}: b",
        "~: a",
        ": a",
        "!!int x",
        "!!bool 3",
        "!!null x",
        "!!binary ?",
        "a: {{ .Values.x }}",
    ] {
        assert!(parse_str(text).is_err(), "{text:?}");
    }
}

#[test]
fn keys_become_text() {
    assert_eq!(read("1: a\nyes: b\n1.5: c\n010: d\n0.0: e"), json!({"1": "a", "true": "b", "1.5": "c", "8": "d", "0": "e"}));
}

#[test]
fn anchors_and_merge_keys() {
    let text = "base: &b {x: 1, w: 2}\nmore: &m {x: 5, z: 3}\none: {<<: *b, w: 7}\nlate: {w: 7, <<: *b}\nlist: {<<: [*b, *m]}\nplain: {\"<<\": 1}\nagain: *b\n";
    let value = read(text);
    assert_eq!(value["one"], json!({"x": 1, "w": 7}));
    assert_eq!(value["late"], json!({"x": 1, "w": 2}), "a merge replaces what stands before it");
    assert_eq!(value["list"], json!({"x": 1, "w": 2, "z": 3}));
    assert_eq!(value["plain"], json!({"<<": 1}));
    assert_eq!(value["again"], json!({"x": 1, "w": 2}));
    for text in ["a: {<<: 1}", "a: {<<: [1]}", "a: *b", "a: &a [*a]"] {
        assert!(parse_str(text).is_err(), "{text:?}");
    }
}

#[test]
fn the_last_of_two_equal_keys_counts_and_both_places_are_told() {
    let document = parse_document("spec:\n  groups:\n  - name: a\n    size: 1\n  - name: b\n    size: 2\n    name: c\n").unwrap().unwrap();
    assert_eq!(document.value["spec"]["groups"][1], json!({"name": "c", "size": 2}));
    let [duplicate] = document.duplicates.as_slice() else { panic!("{:?}", document.duplicates) };
    assert_eq!(Step::join(&duplicate.path), "spec.groups[1].name");
    assert_eq!((duplicate.first.line, duplicate.again.line), (5, 7));
    assert_eq!(document.place.find(&Step::parse("spec.groups[1].name")).pos.line, 7);
}

#[test]
fn fields_are_found_by_path() {
    let text = "# head\napiVersion: v1\nspec:\n  params:\n    num-cpus: 1\n    a.b/c: 2\n    7: x\n  list:\n  -\n    name: x\n  - {name: y, deep: [1, 2]}\n";
    let document = parse_document(text).unwrap().unwrap();
    let line = |path: &str| {
        let steps = Step::parse(path);
        let found = document.place.find(&steps);
        (found.pos.line, found.depth == steps.len())
    };
    assert_eq!(line(""), (2, true));
    assert_eq!(line("spec"), (3, true));
    assert_eq!(line("spec.params[num-cpus]"), (5, true));
    assert_eq!(line("spec.params[a.b/c]"), (6, true));
    assert_eq!(line("spec.params[7]"), (7, true));
    assert_eq!(line("spec.list[0].name"), (10, true));
    assert_eq!(line("spec.list[1].deep[1]"), (11, true));
    assert_eq!(line("spec.list[2].name"), (8, false), "the nearest parent");
    assert_eq!(line("spec.missing.deeper"), (3, false));
    assert_eq!(line("status"), (2, false));
    let keys: Vec<_> = document.place.find(&Step::parse("spec.params")).place.keys().map(|(key, pos)| (key, pos.column)).collect();
    assert_eq!(keys, [("num-cpus", 5), ("a.b/c", 5), ("7", 5)]);
}

#[test]
fn paths_are_read_and_written() {
    for path in ["spec.workerGroupSpecs[1].groupName", "a[num-cpus].b[ray.io/x]", "x[0][1]"] {
        assert_eq!(Step::join(&Step::parse(path)), path);
    }
    assert_eq!(Step::parse("a[b"), [Step::Key("a".into()), Step::Key("[b".into())]);
    assert_eq!(Step::join(&[Step::Key(String::new()), Step::Key("é".into())]), "[][é]");
}

#[test]
fn streams_are_cut_at_separator_lines_and_one_bad_document_hides_no_other() {
    let text = "\u{feff}# licence\n---\n# only a comment\n---   # note\na: 1\n---\nb: [\n---\n%YAML 1.2\n---\nc: |\n  x\n  --- y\n...\n---\n{\"d\": 1.0, \"e\": \"\\ud83d\\ude00\"}\n{\"f\":\n 2}\n";
    let read: Vec<_> =
        documents(text).into_iter().map(|found| found.map(|d| (d.place.pos.line, d.value)).map_err(|error| error.line)).collect();
    assert_eq!(
        read,
        [
            Ok((5, json!({"a": 1}))),
            Err(8),
            Ok((11, json!({"c": "x\n--- y\n"}))),
            Ok((16, json!({"d": 1, "e": "\u{1f600}"}))),
            Ok((17, json!({"f": 2}))),
        ]
    );
    assert!(documents("").is_empty());
    assert!(documents("# nothing\n---\n").is_empty());
    assert_eq!(documents("a: 1\r\n---\r\nb: 2\r\n").len(), 2);
}

#[test]
fn json_fields_have_lines_and_duplicates() {
    let found = documents("{\n  \"a\": {\n    \"b\": 1,\n    \"b\": 2\n  }\n}\n");
    let [Ok(document)] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(document.value, json!({"a": {"b": 2}}));
    assert_eq!(document.place.find(&Step::parse("a.b")).pos.line, 4);
    assert_eq!(document.duplicates.len(), 1);
}

#[test]
fn a_syntax_error_after_the_content_is_seen() {
    let error = parse_str("a: 1\nb: c: d\n").unwrap_err();
    assert_eq!(error.line, 2);
    assert!(parse_str("a: [1]\n - b").is_err());
}

#[test]
fn depth_and_aliases_are_bounded() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse_str(&nested(MAX_DEPTH)).is_ok());
    assert!(parse_str(&nested(MAX_DEPTH + 1)).is_err());
    assert!(parse_str(&"[".repeat(1_000_000)).is_err());
    assert!(parse_str(&"- ".repeat(1_000_000)).is_err());
    let laughs: String = (1..30).fold("a0: &a0 [x, x, x]\n".to_owned(), |text, n| {
        let before = n - 1;
        format!("{text}a{n}: &a{n} [*a{before}, *a{before}, *a{before}]\n")
    });
    assert!(parse_str(&laughs).unwrap_err().message.contains("expand"));
    let chain: String = (1..200).fold("a0: &a0 [x]\n".to_owned(), |text, n| format!("{text}a{n}: &a{n} [*a{}]\n", n - 1));
    assert!(parse_str(&chain).unwrap_err().message.contains("deep"));
    let nest: String = format!("{}{}", (0..100).map(|n| format!("&a{n} [")).collect::<String>(), "x".repeat(100_000));
    assert!(parse_str(&nest).is_err());
}

#[test]
fn json_for_ray_is_sorted_and_escaped() {
    let table = [
        ("b: 1\na: {d: [1, 2.5, ~], c: yes}", r#"{"a":{"c":true,"d":[1,2.5,null]},"b":1}"#),
        ("x: \"<a> & \\\"q\\\" \\\\ \\n\\t\\u0001\"", r#"{"x":"\u003ca\u003e \u0026 \"q\" \\ \n\t\u0001"}"#),
        ("x: [1.0, 1e3, 1e30, 1.5e-7, 0.000001, 123456789.25, -0.0]", r#"{"x":[1,1000,1e+30,1.5e-7,0.000001,123456789.25,0]}"#),
        ("env_vars: {B: \"010\", A: 010, D: 2024-01-01, y: 1}", r#"{"env_vars":{"A":8,"B":"010","D":"2024-01-01","true":1}}"#),
        ("x: \"\u{2028}é😀\"", "{\"x\":\"\\u2028é😀\"}"),
        ("", "null"),
    ];
    for (yaml, json) in table {
        assert_eq!(yaml_to_json(yaml).unwrap(), json, "{yaml:?}");
    }
    assert!(yaml_to_json("a: [`").is_err());
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = documents(&text);
        let _ = yaml_to_json(&text);
    }

    #[test]
    fn no_yaml_like_text_panics(words in proptest::collection::vec(prop_oneof![
        Just("- "), Just("a"), Just(": "), Just("\n"), Just("  "), Just("? "), Just("&x "), Just("*x"), Just("<<: "), Just("{"), Just("}"),
        Just("["), Just("]"), Just(","), Just("|\n"), Just(">-\n"), Just("\""), Just("'"), Just("!!str "), Just("---\n"), Just("...\n"),
        Just("# c"), Just("\t"), Just("%YAML 1.2\n"), Just("\r\n"), Just("\u{feff}"), Just("\\"), Just("0"), Just("é"), Just("\u{0}"),
    ], 0..60)) {
        let text: String = words.concat();
        for document in documents(&text).into_iter().flatten() {
            for duplicate in &document.duplicates {
                prop_assert!(duplicate.first <= duplicate.again || text.contains('*'));
            }
            let json = to_json(&document.value);
            prop_assert_eq!(&serde_json::from_str::<Value>(&json).unwrap(), &document.value);
        }
    }

    #[test]
    fn what_is_written_as_json_reads_back_as_yaml(value in arbitrary()) {
        let mut normal = value.clone();
        whole(&mut normal);
        prop_assert_eq!(read(&to_json(&value)), normal.clone());
        let again = documents(&serde_json::to_string_pretty(&json!({"v": value})).unwrap());
        prop_assert_eq!(&again.first().unwrap().as_ref().unwrap().value["v"], &normal);
    }

    #[test]
    fn every_path_is_read(path in "\\PC*") {
        let steps = Step::parse(&path);
        let document = parse_document("a: [1, {b: 2}]").unwrap().unwrap();
        prop_assert!(document.place.find(&steps).depth <= steps.len());
    }
}

fn whole(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(whole),
        Value::Object(map) => map.values_mut().for_each(whole),
        Value::Number(n) if n.is_f64() && n.as_f64().unwrap().fract() == 0.0 && n.as_f64().unwrap().abs() < 9e18 => {
            *value = json!(n.as_f64().unwrap() as i64);
        }
        _ => {}
    }
}

fn arbitrary() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|n| Value::from(f64::from(n) / 64.0)),
        "[ -~é\n\t]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map("[a-z.\\-/]{1,6}", inner, 0..6).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

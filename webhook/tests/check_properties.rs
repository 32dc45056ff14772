//! What holds for `check` on any input: no panic, lines of the file, a patch that changes nothing when applied twice.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "a test")]

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use shared::yaml;
use webhook::check::{CheckedFile, Context, check_text};

const TEXTS: [&str; 4] = [
    include_str!("data/mistakes.yaml"),
    include_str!("data/broken.yaml"),
    include_str!("data/good.yaml"),
    include_str!("data/update.yaml"),
];

fn check(text: &str) -> CheckedFile {
    check_text(&Context::default().with_patches(true), "any", text)
}

fn lines_are_lines_of(text: &str, file: &CheckedFile) {
    let lines = u32::try_from(text.lines().count()).unwrap();
    for finding in file.objects.iter().flat_map(|object| object.errors.iter().chain(&object.warnings)) {
        // A syntax error may be at the end of the text, behind its last line.
        assert!((1..=lines + 1).contains(&finding.line), "{finding:?} of {lines} lines\n{text}");
    }
}

/// A change as a slip of the hand makes it: something is cut out, repeated elsewhere, or replaced.
#[derive(Clone, Debug)]
enum Slip {
    Cut(Index, u8),
    Move(Index, u8, Index),
    Put(Index, &'static str),
}

fn slip() -> impl Strategy<Value = Slip> {
    let piece = select(vec![
        "\n",
        " ",
        "  ",
        ": ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "'",
        "|\n",
        "&a ",
        "*a",
        "<<: *a\n",
        "#",
        "\t",
        "---\n",
        "yes",
        "null",
        "0.5",
        "!!int ",
        "{{ x }}",
        "spec:\n",
        "\u{0}",
        "é",
        "? ",
        "%",
        "...\n",
        "1e99",
        "metadata: []\n",
    ]);
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, length)| Slip::Cut(at, length)),
        (any::<Index>(), any::<u8>(), any::<Index>()).prop_map(|(from, length, to)| Slip::Move(from, length, to)),
        (any::<Index>(), piece).prop_map(|(at, piece)| Slip::Put(at, piece)),
    ]
}

fn slipped(text: &str, slips: &[Slip]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for slip in slips {
        if chars.is_empty() {
            break;
        }
        match slip {
            Slip::Cut(at, length) => {
                let start = at.index(chars.len());
                chars.drain(start..(start + usize::from(*length)).min(chars.len()));
            }
            Slip::Move(from, length, to) => {
                let start = from.index(chars.len());
                let piece = chars[start..(start + usize::from(*length)).min(chars.len())].to_vec();
                let to = to.index(chars.len());
                chars.splice(to..to, piece);
            }
            Slip::Put(at, piece) => {
                let at = at.index(chars.len());
                chars.splice(at..at, piece.chars());
            }
        }
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_gets_a_verdict(text in "\\PC{0,200}") {
        lines_are_lines_of(&text, &check(&text));
    }

    #[test]
    fn any_slip_gets_a_verdict(text in select(TEXTS.to_vec()), slips in proptest::collection::vec(slip(), 1..6)) {
        let text = slipped(text, &slips);
        lines_are_lines_of(&text, &check(&text));
    }

    #[test]
    fn any_object_of_our_kinds_gets_a_verdict(
        kind in select(vec!["RayCluster", "RayJob", "RayService", "RayCronJob"]),
        version in select(vec!["v1", "v1alpha1"]),
        metadata in any_value(),
        spec in any_value(),
        old in any_value(),
    ) {
        let object = |spec: &Value| json!({"apiVersion": format!("ray.io/{version}"), "kind": kind, "metadata": &metadata, "spec": spec}).to_string();
        let (text, old) = (object(&spec), object(&old));
        let created = check(&text);
        prop_assert_eq!(created.objects.len(), 1);
        lines_are_lines_of(&text, &created);
        let context = Context::default().with_stored(&old).unwrap();
        prop_assert_eq!(check_text(&context, "any", &text).objects.len(), 1);
    }

    #[test]
    fn what_is_filled_in_is_filled_in_once(text in select(TEXTS.to_vec()), slips in proptest::collection::vec(slip(), 0..3)) {
        let text = slipped(text, &slips);
        for (document, checked) in yaml::documents(&text).into_iter().zip(check(&text).objects) {
            // Lists have more objects than documents; their patches are for the items.
            let Ok(document) = document else { continue };
            // Of two objects in one document nothing but that is said.
            if document.duplicates.iter().any(|duplicate| duplicate.path.len() == 1) {
                continue;
            }
            if document.value["items"].is_array() || !document.value["kind"].as_str().unwrap_or_default().starts_with("Ray") {
                break;
            }
            let patch: json_patch::Patch = serde_json::from_value(checked.patch.clone()).unwrap();
            let mut object = document.value.clone();
            // The patch is for the object after defaults and without unknown fields, so that it may not fit what was written.
            if json_patch::patch(&mut object, &patch).is_err() {
                continue;
            }
            let again = check(&object.to_string());
            prop_assert_eq!(&again.objects[0].patch, &json!([]), "{}", object);
            // What was written twice is only once in what is left.
            prop_assert!(again.objects[0].allowed() || !checked.allowed());
        }
    }
}

/// JSON that uses names of our kinds in any place.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f32>().prop_map(|number| json!(f64::from(number))),
        "[ -~]{0,8}".prop_map(Value::from),
    ];
    let name = select(vec![
        "name",
        "generateName",
        "labels",
        "annotations",
        "headGroupSpec",
        "workerGroupSpecs",
        "rayClusterSpec",
        "rayClusterConfig",
        "jobTemplate",
        "template",
        "spec",
        "metadata",
        "containers",
        "env",
        "image",
        "resources",
        "limits",
        "cpu",
        "serveConfigV2",
        "entrypoint",
        "clusterSelector",
        "deletionStrategy",
        "deletionRules",
        "condition",
        "jobStatus",
        "rayStartParams",
        "managedBy",
        "groupName",
        "replicas",
        "minReplicas",
        "maxReplicas",
        "numOfHosts",
        "gcsFaultToleranceOptions",
        "autoscalerOptions",
        "schedule",
        "timeZone",
        "suspend",
        "submitterPodTemplate",
        "networkPolicy",
        "cpus",
        "a-b",
        "",
    ]);
    leaf.prop_recursive(8, 80, 8, move |inner| {
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => proptest::collection::vec((name.clone(), inner), 0..8)
                .prop_map(|entries| Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())),
        ]
    })
}

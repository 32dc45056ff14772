//! What must hold for any input. A property that does not hold panics.
//!
//! The unit tests of the webhook walk the corpus through the same functions.

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;
use shared::defaults::{self, FleetDefaults, Settings};
use shared::features::FeatureGates;
use shared::schema::Schema;
use shared::validation::{self, Kind, Report, Request};
use webhook::check::{Context, check_text};
use webhook::serve::Endpoint;

/// Largest answer, in bytes: an API server reads little more.
const MAX_ANSWER: usize = 256 << 10;
/// Most lines of a message, as `kubectl` shows it.
const MAX_LINES: usize = 34;

/// The body of a request to any of the webhook's paths.
pub fn review(body: &[u8]) {
    let gates = FeatureGates::default();
    for endpoint in Endpoint::all() {
        // A body that is no review is none on every path.
        let Ok(answer) = webhook::serve::answer(endpoint, gates, body) else { return };
        assert!(answer.len() <= MAX_ANSWER, "{} bytes", answer.len());
        let answer: Value = serde_json::from_slice(&answer).expect("an answer is JSON");
        // What is passed over need not be well-formed in all respects.
        let Ok(mut review) = serde_json::from_slice::<Value>(body) else { return };
        let response = &answer["response"];
        assert_eq!(answer["apiVersion"], review["apiVersion"]);
        assert_eq!(response["uid"], review["request"]["uid"]);
        if response["allowed"] != true {
            assert!(response["status"]["message"].as_str().is_some_and(|message| !message.is_empty()), "{response}");
        }
        for warning in response["warnings"].as_array().into_iter().flatten() {
            assert!(!warning.as_str().expect("a text").contains(char::is_control), "{warning}");
        }
        if let Some(patch) = response["patch"].as_str() {
            let patch = BASE64_STANDARD.decode(patch).expect("base64");
            let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("a patch");
            json_patch::patch(&mut review["request"]["object"], &patch).expect("it applies");
            let again = webhook::serve::answer(endpoint, gates, review.to_string().as_bytes()).expect("it is still a review");
            let again: Value = serde_json::from_slice(&again).expect("an answer is JSON");
            assert!(again["response"]["patch"].is_null(), "patched once more: {again}");
        }
    }
}

/// An object, or a list of two: what is stored and what replaces it.
pub fn object(kind: Kind, input: &[u8]) {
    let Ok(value) = serde_json::from_slice::<Value>(input) else { return };
    let (old, object) = match value {
        Value::Array(mut pair) if pair.len() == 2 => {
            (pair.pop().map(|new| (pair.remove(0), new))).map_or((None, Value::Null), |(old, new)| (Some(old), new))
        }
        object => (None, object),
    };
    walk(kind, &object, old.as_ref());
    // As an API server hands it on.
    let schema = Schema::of(kind, "v1").expect("v1 is served");
    let (mut settled, mut stored) = (object, old);
    schema.settle(&mut settled);
    stored.iter_mut().for_each(|old| drop(schema.settle(old)));
    walk(kind, &settled, stored.as_ref());
}

fn walk(kind: Kind, object: &Value, old: Option<&Value>) {
    for fleet in [Settings::default(), fleet(kind)] {
        let mut filled = object.clone();
        defaults::apply(kind, &mut filled, old, &fleet);

        let patch = serde_json::to_vec(&json_patch::diff(object, &filled)).expect("a patch can be written");
        let patch: json_patch::Patch = serde_json::from_slice(&patch).expect("and read");
        let mut patched = object.clone();
        json_patch::patch(&mut patched, &patch).expect("the patch applies");
        assert_eq!(patched, filled, "the patch makes what was filled in");

        defaults::apply(kind, &mut patched, old, &fleet);
        assert_eq!(patched, filled, "defaults are filled in once");
        assert!(survives(object, &filled, old.is_some()), "{object} became {filled}");

        for gates in [FeatureGates::default(), "AllAlpha=true".parse().expect("gates")] {
            let report = validate(kind, &filled, old, &gates);
            assert!(report.allowed() || !validate(kind, object, old, &gates).allowed(), "what was filled in is refused: {report:?}");
            assert!(validate(kind, &filled, Some(&filled), &gates).allowed(), "an update that changes nothing is refused");
            let stored = validation::validate_stored(kind, &filled, &gates);
            assert!(stored.warnings.is_empty());
        }
    }
}

fn validate(kind: Kind, object: &Value, old: Option<&Value>, gates: &FeatureGates) -> Report {
    let request = Request::create(kind, object, gates);
    let report = validation::validate(&old.map_or(request, |old| request.update(old)));
    for error in &report.errors {
        assert!(!error.path.is_empty() && !error.message.is_empty() && error.message.len() < 4096, "{error:?}");
        assert!(validation::rule(error.rule).is_some(), "{error:?}");
    }
    for warning in &report.warnings {
        assert!(!warning.path.is_empty() && !warning.message.is_empty() && warning.message.len() < 4096, "{warning:?}");
        assert!(validation::rule(warning.rule).is_some(), "{warning:?}");
    }
    let text = validation::render(&report, validation::SHOWN_ERRORS);
    assert_eq!(text.is_empty(), report.allowed());
    assert!(text.lines().count() <= MAX_LINES, "{text}");
    report
}

/// Fleet defaults that touch every part they can.
fn fleet(kind: Kind) -> Settings {
    const TEXT: &str = "
defaults:
- object: {labels: {queue: main}, annotations: {made-by: us}}
  pods:
    labels: {team: x}
    annotations: {note: why}
    nodeSelector: {pool: ray}
    tolerations: [{key: ray, operator: Exists}]
    imagePullSecrets: [{name: registry}]
    priorityClassName: high
    env: [{name: REGION, value: here}]
  resources: {autoscaler: {limits: {cpu: 1}}, submitter: {limits: {cpu: 1}}, historyCollector: {limits: {cpu: 1}}}
";
    FleetDefaults::parse(TEXT).expect("fleet defaults").settings(kind, "ns", &BTreeMap::new())
}

/// Whether everything in `before` is still in `after`: nulls may be filled, lists may get longer, and an update of the image brings its
/// version along.
fn survives(before: &Value, after: &Value, update: bool) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => before.iter().all(|(key, value)| {
            let follows = update && key == "rayVersion" && after.contains_key(key);
            value.is_null() || follows || after.get(key).is_some_and(|found| survives(value, found, update))
        }),
        (Value::Array(before), Value::Array(after)) => {
            before.len() <= after.len() && before.iter().zip(after).all(|(value, found)| value.is_null() || survives(value, found, update))
        }
        _ => before == after,
    }
}

/// Text that is checked without a cluster.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let file = check_text(&Context::default().with_patches(true), "any", text);
    // To YAML a carriage return alone ends a line, too.
    let lines = text.replace("\r\n", "\n").split(['\n', '\r']).count();
    let lines = u32::try_from(lines).expect("few lines");
    for finding in file.objects.iter().flat_map(|object| object.errors.iter().chain(&object.warnings)) {
        // A syntax error may be at the end of the text, behind its last line.
        assert!((1..=lines + 1).contains(&finding.line), "{finding:?} of {lines} lines");
        assert!(!finding.message.is_empty(), "{finding:?}");
    }
}

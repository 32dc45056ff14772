//! What must hold for every input: no panic, defaults that are filled in once and lose nothing, patches that say what was done.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::needless_pass_by_value)] // helpers of tests

use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};
use shared::{
    defaults::{self, FleetDefaults, Settings},
    features::FeatureGates,
    quantity::Quantity,
    validation::{self, Kind, Request},
};

/// Field names of the four kinds, so that random objects reach the rules.
const KEYS: &[&str] = &[
    "metadata",
    "name",
    "generateName",
    "annotations",
    "labels",
    "spec",
    "status",
    "headGroupSpec",
    "workerGroupSpecs",
    "template",
    "containers",
    "initContainers",
    "env",
    "image",
    "resources",
    "limits",
    "requests",
    "cpu",
    "memory",
    "volumeMounts",
    "volumes",
    "mountPath",
    "rayStartParams",
    "num-cpus",
    "groupName",
    "replicas",
    "minReplicas",
    "maxReplicas",
    "numOfHosts",
    "idleTimeoutSeconds",
    "priority",
    "suspend",
    "rayVersion",
    "enableInTreeAutoscaling",
    "autoscalerOptions",
    "version",
    "gcsFaultToleranceOptions",
    "backend",
    "storage",
    "claimName",
    "authOptions",
    "mode",
    "enableK8sTokenAuth",
    "networkPolicy",
    "tlsOptions",
    "enabled",
    "historyServerOptions",
    "collectorOptions",
    "upgradeStrategy",
    "type",
    "clusterUpgradeOptions",
    "stepSizePercent",
    "maxSurgePercent",
    "intervalSeconds",
    "serveConfigV2",
    "rayClusterConfig",
    "rayClusterSpec",
    "clusterSelector",
    "ray.io/cluster",
    "submissionMode",
    "submitterPodTemplate",
    "submitterConfig",
    "backoffLimit",
    "entrypoint",
    "runtimeEnvYAML",
    "deletionStrategy",
    "deletionRules",
    "onSuccess",
    "onFailure",
    "policy",
    "condition",
    "jobStatus",
    "ttlSeconds",
    "schedule",
    "timeZone",
    "jobTemplate",
    "restartPolicy",
    "ownerReferences",
    "deletionTimestamp",
    "ray.io/ft-enabled",
    "jobDeploymentStatus",
    "nodeSelector",
    "tolerations",
];
const TEXTS: &[&str] = &[
    "",
    "a",
    "headgroup",
    "token",
    "rocksdb",
    "redis",
    "v2",
    "v1",
    "true",
    "1",
    "Always",
    "Never",
    "Recreate",
    "SidecarMode",
    "HTTPMode",
    "InteractiveMode",
    "DeleteWorkers",
    "DeleteCluster",
    "SUCCEEDED",
    "Waiting",
    "Running",
    "rayproject/ray:2.53.0",
    "2.53.0",
    "500m",
    "9Gi",
    "applications: [{name: a}, {name: a}]",
    "a: [",
    "- b",
    "0 0 30 2 *",
    "@every 10s",
    "UTC",
    "Local",
    "autoscaler",
    "ray-job-submitter",
    "RAY_enable_autoscaler_v2",
    "NewClusterWithIncrementalUpgrade",
    "'{\"x\": 1}'",
    "{x",
    "é\u{202e}\0",
];

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        3 => proptest::sample::select(TEXTS).prop_map(|text| json!(text)),
        1 => any::<String>().prop_map(Value::from),
        2 => prop_oneof![Just(json!(0)), Just(json!(-1)), any::<i64>().prop_map(Value::from), any::<f64>().prop_map(|number| json!(number))],
        2 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(8, 96, 6, |inner| {
        let key = prop_oneof![9 => proptest::sample::select(KEYS).prop_map(str::to_owned), 1 => any::<String>()];
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            vec((key, inner), 0..6).prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A good object of any kind.
fn good(kind: Kind) -> Value {
    let container =
        json!({"name": "ray", "image": "rayproject/ray:2.53.0", "env": [{"name": "A", "value": "b"}], "ports": [{"name": "dashboard"}]});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container], "volumes": [{"name": "v"}]}});
    let cluster = json!({
        "enableInTreeAutoscaling": true, "autoscalerOptions": {"version": "v2"}, "authOptions": {}, "gcsFaultToleranceOptions": {"redisAddress": "r"},
        "headGroupSpec": {"template": template, "labels": {"x": "y"}},
        "workerGroupSpecs": [{"groupName": "a", "minReplicas": 0, "maxReplicas": 2, "replicas": 1, "template": template, "rayStartParams": {"num-cpus": "1"}}],
    });
    let job = json!({
        "entrypoint": "e", "rayClusterSpec": cluster, "submitterPodTemplate": {"spec": {"containers": [{"name": "s"}]}}, "runtimeEnvYAML": "a: b",
        "deletionStrategy": {"deletionRules": [{"policy": "DeleteSelf", "condition": {"jobStatus": "FAILED"}}]},
    });
    let spec = match kind {
        Kind::RayCluster => cluster,
        Kind::RayJob => job,
        Kind::RayService => {
            json!({"serveConfigV2": "applications: [{name: a}]", "rayClusterConfig": cluster, "upgradeStrategy": {"type": "None"}})
        }
        Kind::RayCronJob => json!({"schedule": "@daily", "jobTemplate": job}),
    };
    json!({"apiVersion": "ray.io/v1", "kind": kind.as_str(), "metadata": {"name": "x", "annotations": {"a": "b"}}, "spec": spec})
}

/// Every place in a value, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            map.iter().for_each(|(key, value)| places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found));
        }
        Value::Array(list) => list.iter().enumerate().for_each(|(index, value)| places(value, &format!("{at}/{index}"), found)),
        _ => {}
    }
}

/// A good object in which one place is replaced by anything.
fn damaged() -> impl Strategy<Value = (Kind, Value)> {
    let kind = proptest::sample::select(&Kind::ALL[..]);
    (kind, any::<proptest::sample::Index>(), json_value()).prop_map(|(kind, index, value)| {
        let mut object = good(kind);
        let mut all = Vec::new();
        places(&object, "", &mut all);
        let place = index.get(&all).clone();
        *object.pointer_mut(&place).expect("a place of the object") = value;
        (kind, object)
    })
}

fn fleet() -> Settings {
    let text = "defaults: [{object: {labels: {q: m}}, pods: {labels: {t: x}, annotations: {note: why}, nodeSelector: {p: r}, tolerations: [{key: k}],
        imagePullSecrets: [{name: s}], priorityClassName: c, env: [{name: E, value: v}]}, resources: {autoscaler: {limits: {cpu: 1}}, submitter: {limits: {cpu: 1}}}}]";
    FleetDefaults::parse(text).unwrap().settings(Kind::RayJob, "ns", &std::collections::BTreeMap::new())
}

fn gates() -> FeatureGates {
    "AllAlpha=true".parse().unwrap()
}

/// Everything that may be done with an object of a request.
fn walk(kind: Kind, object: &Value, old: Option<&Value>) {
    let mut filled = object.clone();
    defaults::apply(kind, &mut filled, old, &fleet());
    let once = filled.clone();
    defaults::apply(kind, &mut filled, old, &fleet());
    assert_eq!(filled, once, "defaults are filled in once");
    for gates in [FeatureGates::default(), gates()] {
        let mut request = Request::create(kind, &filled, &gates);
        if let Some(old) = old {
            request = request.update(old);
        }
        let report = validation::validate(&request);
        let text = validation::render(&report, 32);
        assert_eq!(text.is_empty(), report.allowed());
        assert!(text.lines().count() <= 34);
        let again = validation::validate(&request);
        assert_eq!(report, again, "the same input gets the same answer");
        let _ = validation::validate_stored(kind, &filled, &gates);
    }
}

/// Whether everything in `before` is still in `after`, except nulls and empty maps that were filled in.
fn survives(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            before.iter().all(|(key, value)| value.is_null() || after.get(key).is_some_and(|found| survives(value, found)))
        }
        (Value::Array(before), Value::Array(after)) => {
            before.len() <= after.len() && before.iter().zip(after).all(|(value, found)| value.is_null() || survives(value, found))
        }
        _ => before == after,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_json_gets_an_answer(kind in proptest::sample::select(&Kind::ALL[..]), object in json_value(), old in proptest::option::of(json_value())) {
        walk(kind, &object, old.as_ref());
    }

    #[test]
    fn a_good_object_with_any_damage_gets_an_answer((kind, object) in damaged()) {
        walk(kind, &object, None);
        walk(kind, &object, Some(&good(kind)));
        walk(kind, &good(kind), Some(&object));
    }

    #[test]
    fn what_the_user_wrote_survives_the_defaults((kind, object) in damaged()) {
        let mut filled = object.clone();
        defaults::apply(kind, &mut filled, None, &fleet());
        prop_assert!(survives(&object, &filled), "{} became {}", object, filled);
    }

    #[test]
    fn a_patch_turns_one_object_into_the_other((kind, object) in damaged(), other in json_value()) {
        let mut filled = object.clone();
        defaults::apply(kind, &mut filled, None, &fleet());
        for (from, to) in [(&object, &filled), (&object, &other)] {
            let mut patched = from.clone();
            json_patch::patch(&mut patched, &json_patch::diff(from, to)).unwrap();
            prop_assert_eq!(&patched, to);
        }
    }

    #[test]
    fn an_update_that_changes_nothing_is_never_refused((kind, object) in damaged(), label in "[a-z]{1,9}") {
        let mut labelled = object.clone();
        if let Some(Value::Object(metadata)) = labelled.get_mut("metadata") {
            metadata.insert("labels".to_owned(), json!({"l": label}));
        }
        let gates = gates();
        prop_assert!(validation::validate(&Request::create(kind, &labelled, &gates).update(&object)).allowed());
    }

    #[test]
    fn sending_an_object_again_changes_nothing_else((kind, object) in damaged()) {
        prop_assume!(object.get("spec").is_some_and(Value::is_object));
        let mut stored = object.clone();
        defaults::apply(kind, &mut stored, None, &fleet());
        let (mut again, mut wanted) = (object.clone(), stored.clone());
        again["spec"]["someday"] = json!(1);
        wanted["spec"]["someday"] = json!(1);
        defaults::apply(kind, &mut again, Some(&stored), &fleet());
        prop_assert!(again == wanted, "{} became {} instead of {}", object, again, wanted);
    }

    #[test]
    fn quantities_are_shown_as_they_can_be_read_again(text in "[+-]?[0-9]{1,30}(\\.[0-9]{0,20})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e-?[0-9]{1,2})?") {
        let quantity = Quantity::parse(&text).unwrap();
        let shown = quantity.to_string();
        prop_assert_eq!(Quantity::parse(&shown).unwrap(), quantity, "{} was shown as {}", text, shown);
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in "\\PC{0,40}") {
        let _ = Quantity::parse(&text);
        let _ = shared::version::RayVersion::parse(&text);
        let _ = shared::version::RayVersion::of_image(&text);
        let _ = shared::duration::seconds_or_duration(&text);
        let _ = FleetDefaults::parse(&text);
        let _ = validation::RuleConfig::parse(&text);
    }
}

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;

use super::*;

fn cluster(name: &str, groups: &[&str]) -> Value {
    let template = |name: &str| json!({"spec": {"containers": [{"name": name, "image": "rayproject/ray:2.54.1"}]}});
    let groups: Vec<Value> = groups
        .iter()
        .map(|group| {
            json!({"groupName": group, "replicas": 1, "minReplicas": 1, "maxReplicas": 2, "rayStartParams": {}, "template": template("worker")})
        })
        .collect();
    json!({
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name, "namespace": "team-a"},
        "spec": {
            "rayVersion": "2.54.1",
            "headGroupSpec": {"rayStartParams": {}, "template": template("ray-head")},
            "workerGroupSpecs": groups,
        },
    })
}

fn body(operation: &str, object: &Value, old: &Value, change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut review = json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "u-1",
            "kind": {"group": "ray.io", "version": "v1", "kind": "RayCluster"},
            "name": "demo",
            "namespace": "team-a",
            "operation": operation,
            "object": object,
            "oldObject": old,
        }
    });
    change(&mut review["request"]);
    serde_json::to_vec(&review).expect("JSON")
}

const VALIDATE: Endpoint = Endpoint { mode: Mode::Validate, kind: Kind::RayCluster };
const MUTATE: Endpoint = Endpoint { mode: Mode::Mutate, kind: Kind::RayCluster };

fn answer(endpoint: Endpoint, body: &[u8]) -> (Value, Facts) {
    let reviewed = review(endpoint, &Grounds::default(), body).expect("a review");
    let mut answer: Value = serde_json::from_slice(&reviewed.body).expect("JSON");
    assert_eq!(answer["response"]["uid"], "u-1");
    (answer["response"].take(), reviewed.facts)
}

#[test]
fn paths_are_the_documented_ones() {
    let mut paths: Vec<_> = Endpoint::all().map(Endpoint::path).collect();
    paths.sort();
    assert_eq!(
        paths,
        [
            "/mutate-ray-io-v1-raycluster",
            "/mutate-ray-io-v1-raycronjob",
            "/mutate-ray-io-v1-rayjob",
            "/mutate-ray-io-v1-rayservice",
            "/validate-ray-io-v1-raycluster",
            "/validate-ray-io-v1-raycronjob",
            "/validate-ray-io-v1-rayjob",
            "/validate-ray-io-v1-rayservice",
        ]
    );
}

#[test]
fn good_and_bad_objects() {
    let (response, facts) = answer(VALIDATE, &body("CREATE", &cluster("demo", &["a", "b"]), &Value::Null, |_| {}));
    assert_eq!(response["allowed"], true, "{response}");
    assert!(facts.allowed && facts.report.errors.is_empty());

    let (response, facts) =
        answer(VALIDATE, &body("CREATE", &cluster("demo", &["a", "a"]), &Value::Null, |request| request["dryRun"] = json!(true)));
    assert_eq!(response["allowed"], false);
    assert_eq!(response["status"]["details"]["causes"][0]["field"], "spec.workerGroupSpecs[1].groupName");
    assert_eq!(response["status"]["details"]["name"], "demo");
    assert_eq!((facts.operation, &*facts.namespace, &*facts.name, facts.dry_run, facts.allowed), ("CREATE", "team-a", "demo", true, false));
    assert!(facts.problem.is_none());
}

#[test]
fn a_stored_mistake_does_not_stop_other_updates() {
    let old = cluster("demo", &["a", "a"]);
    let mut new = old.clone();
    new["metadata"]["labels"] = json!({"x": "y"});
    let (response, _) = answer(VALIDATE, &body("UPDATE", &new, &old, |_| {}));
    assert_eq!(response["allowed"], true, "the spec did not change: {response}");
}

#[test]
fn what_is_let_through_unseen() {
    let bad = cluster("demo", &["a", "a"]);
    for endpoint in [VALIDATE, MUTATE] {
        for (name, body) in [
            ("delete", body("DELETE", &Value::Null, &bad, |_| {})),
            ("connect", body("CONNECT", &json!({"kind": "PodExecOptions"}), &Value::Null, |_| {})),
            ("an operation of tomorrow", body("REPLACE", &bad, &bad, |_| {})),
            ("status", body("UPDATE", &bad, &cluster("demo", &[]), |request| request["subResource"] = json!("status"))),
            ("scale", body("UPDATE", &json!({"kind": "Scale"}), &bad, |request| request["subResource"] = json!("scale"))),
        ] {
            let (response, _) = answer(endpoint, &body);
            assert_eq!(response, json!({"uid": "u-1", "allowed": true}), "{name}");
        }
    }
    assert_eq!((operation_label("DELETE"), operation_label("x\n")), ("DELETE", "OTHER"));
}

#[test]
fn requests_that_do_not_fit_are_refused_with_a_sentence() {
    let good = cluster("demo", &["a"]);
    for (name, body, wanted) in [
        (
            "another kind",
            body("CREATE", &good, &Value::Null, |request| request["kind"]["kind"] = json!("RayJob")),
            "reviews RayCluster.ray.io",
        ),
        ("another group", body("CREATE", &good, &Value::Null, |request| request["kind"]["group"] = json!("apps")), "RayCluster.apps"),
        ("endless kind", body("CREATE", &good, &Value::Null, |request| request["kind"]["kind"] = json!("K".repeat(100_000))), "KKK"),
        ("no object", body("CREATE", &Value::Null, &Value::Null, |_| {}), "CREATE request carries no object"),
        ("object is a list", body("CREATE", &json!([]), &Value::Null, |_| {}), "carries no object"),
        ("no old object", body("UPDATE", &good, &Value::Null, |_| {}), "carries no oldObject"),
    ] {
        for endpoint in [VALIDATE, MUTATE] {
            let (response, facts) = answer(endpoint, &body);
            assert_eq!((&response["allowed"], &response["status"]["code"]), (&json!(false), &json!(400)), "{name}");
            let message = response["status"]["message"].as_str().expect("a text");
            assert!(message.contains(wanted) && message.len() < 500, "{name}: {message}");
            assert!(facts.problem.is_some(), "{name}");
        }
    }
}

fn patch_of(response: &Value) -> json_patch::Patch {
    assert_eq!(response["patchType"], "JSONPatch", "{response}");
    let bytes = BASE64_STANDARD.decode(response["patch"].as_str().expect("a patch")).expect("base64");
    serde_json::from_slice(&bytes).expect("a JSON patch")
}

#[test]
fn mutation_fills_gaps_keeps_the_unknown_and_is_done_once() {
    let mut object = cluster("demo", &["a"]);
    object["spec"]["headGroupSpec"]["rayStartParams"] = Value::Null;
    object["spec"]["futureField"] = json!({"deep": [1, {"x/y~z": null}]});
    let (response, facts) = answer(MUTATE, &body("CREATE", &object, &Value::Null, |_| {}));
    assert!(facts.allowed);
    let mut patched = object.clone();
    json_patch::patch(&mut patched, &patch_of(&response)).expect("applies");
    assert_eq!(patched["spec"]["headGroupSpec"]["rayStartParams"], json!({}));
    assert_eq!(patched["spec"]["futureField"], object["spec"]["futureField"]);

    let (again, _) = answer(MUTATE, &body("CREATE", &patched, &Value::Null, |_| {}));
    assert_eq!(again, json!({"uid": "u-1", "allowed": true}), "nothing to change, no patch");
}

#[test]
fn names_come_from_wherever_they_are() {
    for (object, name, wanted) in [
        (json!({"metadata": {"name": "in-object"}}), "", "in-object"),
        (json!({"metadata": {"generateName": "prefix-"}}), "", "prefix-"),
        (json!({"metadata": {"name": "in-object"}}), "in-request", "in-request"),
        (json!({"metadata": 7}), "", ""),
    ] {
        let body = body("CREATE", &object, &Value::Null, |request| request["name"] = json!(name));
        let parsed = Review::parse(&body).expect("a review");
        assert_eq!(object_name(&parsed.request), wanted);
    }
}

#[test]
fn ten_thousand_groups_and_strings_of_a_megabyte_get_a_short_answer_in_bounded_time() {
    let names: Vec<String> = (0..10_000).map(|number| format!("g{}", number % 5_000)).collect();
    let many = cluster("demo", &names.iter().map(String::as_str).collect::<Vec<_>>());
    let mut long = cluster(&"n".repeat(1 << 20), &["a"]);
    long["spec"]["headGroupSpec"]["rayStartParams"] = json!({"x".repeat(1 << 20): "y".repeat(1 << 20)});
    for (name, object) in [("groups", many), ("strings", long)] {
        let start = std::time::Instant::now();
        let reviewed = review(VALIDATE, &Grounds::default(), &body("CREATE", &object, &Value::Null, |_| {})).expect("a review");
        assert!(!reviewed.facts.allowed, "{name}");
        assert!(reviewed.body.len() < 100_000, "{name}: the answer has {} bytes", reviewed.body.len());
        assert!(start.elapsed().as_secs() < 10, "{name}: {:?}", start.elapsed());
    }
}

fn grounds(defaults: &str, rules: &str) -> Grounds {
    let policy = Policy {
        fleet: Arc::new(defaults::FleetDefaults::parse(defaults).expect("defaults")),
        rules: Arc::new(validation::RuleConfig::parse(rules).expect("rules")),
    };
    Grounds { policy: Arc::new(policy), ..Grounds::default() }
}

#[test]
fn fleet_defaults_and_softened_rules_follow_the_namespace() {
    let grounds = grounds(
        "defaults: [{namespaces: {names: [team-a]}, pods: {nodeSelector: {pool: ray}}}]",
        "warnOnly: [{rules: [\"*\"], namespaces: {names: [team-a]}}]",
    );
    let in_namespace = |namespace: &str, endpoint| {
        let object = cluster("demo", &["a"]);
        let body = body("CREATE", &object, &Value::Null, |request| request["namespace"] = json!(namespace));
        let reviewed = review(endpoint, &grounds, &body).expect("a review");
        let answer: Value = serde_json::from_slice(&reviewed.body).expect("JSON");
        (object, answer["response"].clone())
    };
    let (mut object, response) = in_namespace("team-a", MUTATE);
    json_patch::patch(&mut object, &patch_of(&response)).expect("applies");
    assert_eq!(object["spec"]["headGroupSpec"]["template"]["spec"]["nodeSelector"], json!({"pool": "ray"}));
    let (_, response) = in_namespace("team-b", MUTATE);
    assert!(response.get("patch").is_none(), "{response}");

    // A mistake that only we refuse: a warning where it is softened.
    let judge = |namespace: &str| {
        let mut object = cluster("demo", &["headgroup"]);
        object["metadata"]["namespace"] = json!(namespace);
        let body = body("CREATE", &object, &Value::Null, |request| request["namespace"] = json!(namespace));
        review(VALIDATE, &grounds, &body).expect("a review").facts
    };
    let (soft, hard) = (judge("team-a"), judge("team-b"));
    assert!(soft.allowed && soft.report.warnings.iter().any(|warning| warning.path.contains("groupName")), "{:?}", soft.report);
    assert!(!hard.allowed && hard.report.errors.iter().any(|error| error.path.contains("groupName")), "{:?}", hard.report);
}

mod properties {
    use proptest::prelude::*;

    use super::*;

    /// Any JSON, not too deep.
    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,12}".prop_map(Value::from),
        ];
        // Names that the rules look for, so that they meet values of every wrong type.
        let key = prop_oneof![
            "[a-zA-Z/~.]{0,8}",
            proptest::sample::select(vec![
                "spec",
                "metadata",
                "name",
                "headGroupSpec",
                "workerGroupSpecs",
                "rayClusterSpec",
                "template",
                "containers",
                "rayStartParams",
                "autoscalerOptions",
                "submissionMode",
                "deletionStrategy",
                "serveConfigV2",
                "jobTemplate",
                "annotations",
                "resources",
            ])
            .prop_map(str::to_owned),
        ];
        leaf.prop_recursive(6, 80, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::btree_map(key.clone(), inner, 0..6).prop_map(|map| map.into_iter().collect()),
            ]
        })
    }

    fn endpoint() -> impl Strategy<Value = Endpoint> {
        proptest::sample::select(Endpoint::all().collect::<Vec<_>>())
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(endpoint in endpoint(), bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = review(endpoint, &Grounds::default(), &bytes);
        }

        #[test]
        fn a_damaged_review_gets_an_answer(endpoint in endpoint(), at in 0usize..700, byte in any::<u8>(), cut in 0usize..700) {
            let mut bytes = body("UPDATE", &cluster("demo", &["a"]), &cluster("demo", &["b"]), |_| {});
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            let _ = review(endpoint, &Grounds::default(), &bytes);
            bytes.truncate(cut);
            prop_assert!(review(endpoint, &Grounds::default(), &bytes).is_err());
        }

        #[test]
        fn any_object_is_answered_and_defaults_are_filled_in_once(
            endpoint in endpoint(), object in json(), old in json(), update in any::<bool>(),
        ) {
            let operation = if update { "UPDATE" } else { "CREATE" };
            let kind = endpoint.kind.as_str();
            let send = |object: &Value| {
                let body = body(operation, object, &old, |request| request["kind"]["kind"] = json!(kind));
                let reviewed = review(endpoint, &Grounds::default(), &body).expect("an answer");
                let mut answer: Value = serde_json::from_slice(&reviewed.body).expect("JSON");
                answer["response"].take()
            };
            let response = send(&object);
            prop_assert!(response["allowed"].is_boolean());
            if response.get("patch").is_some() {
                prop_assert_eq!(endpoint.mode, Mode::Mutate);
                let mut patched = object.clone();
                json_patch::patch(&mut patched, &patch_of(&response)).expect("applies");
                let again = send(&patched);
                prop_assert!(again.get("patch").is_none(), "{again}");
            }
        }
    }
}

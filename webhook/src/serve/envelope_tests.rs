use serde_json::json;
use shared::validation::ErrorType;

use super::*;

fn body(change: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut review = json!({
        "kind": "AdmissionReview",
        "apiVersion": "admission.k8s.io/v1",
        "request": {
            "uid": "705ab4f5",
            "kind": {"group": "ray.io", "version": "v1", "kind": "RayJob"},
            "resource": {"group": "ray.io", "version": "v1", "resource": "rayjobs"},
            "name": "job",
            "namespace": "team-a",
            "operation": "CREATE",
            "userInfo": {"username": "jane", "groups": ["a"]},
            "object": {"kind": "RayJob", "spec": {"entrypoint": "python \"x\".py"}},
            "oldObject": null,
            "dryRun": true,
            "options": {"kind": "CreateOptions"}
        }
    });
    change(&mut review);
    serde_json::to_vec(&review).expect("JSON")
}

#[test]
fn a_review_is_read_without_losing_anything_of_the_object() {
    let body = body(|review| review["request"]["object"]["spec"]["unknown"] = json!({"future": [1, 2.5, null]}));
    let Review { api_version, request } = Review::parse(&body).expect("a review");
    assert_eq!(api_version, "admission.k8s.io/v1");
    assert_eq!((&*request.uid, &*request.kind.group, &*request.kind.kind), ("705ab4f5", "ray.io", "RayJob"));
    assert_eq!((&*request.name, &*request.namespace, &*request.operation), ("job", "team-a", "CREATE"));
    assert_eq!((request.dry_run, &*request.sub_resource, &request.old_object), (Some(true), "", &Value::Null));
    assert_eq!(request.object["spec"], json!({"entrypoint": "python \"x\".py", "unknown": {"future": [1, 2.5, null]}}));
    assert!(matches!(request.uid, Cow::Borrowed(_)), "texts are not copied");
}

#[test]
fn what_is_no_review_is_named() {
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    let with = |change: fn(&mut Value)| body(change);
    let nested = with(|review| {
        let mut value = json!(1);
        for _ in 0..200 {
            value = json!({ "a": value });
        }
        review["request"]["object"] = value;
    });
    for (name, body, wanted) in [
        ("empty", vec![], "the body is empty"),
        ("not JSON", b"hello".to_vec(), "not JSON"),
        ("cut off", with(|_| {}).split_at(100).0.to_vec(), "not JSON"),
        ("not UTF-8", b"{\"kind\": \"\xff\"}".to_vec(), "not JSON"),
        ("brackets only", deep, "not an AdmissionReview"),
        ("object too deep", nested, "not JSON: recursion limit"),
        ("two documents", [with(|_| {}), with(|_| {})].concat(), "not JSON: trailing"),
        ("a number", b"7".to_vec(), "not an AdmissionReview"),
        ("no object", b"[]".to_vec(), "not an AdmissionReview"),
        ("another kind", with(|review| review["kind"] = json!("ConversionReview")), "its kind is \"ConversionReview\""),
        ("no version", with(|review| drop(review.as_object_mut().expect("a map").remove("apiVersion"))), "\"\" is not a version"),
        ("a later version", with(|review| review["apiVersion"] = json!("admission.k8s.io/v2")), "admissionReviewVersions: [\"v1\"]"),
        ("a response", with(|review| review["request"] = Value::Null), "has no request"),
        ("no uid", with(|review| drop(review["request"].as_object_mut().expect("a map").remove("uid"))), "missing field `uid`"),
        ("uid is a number", with(|review| review["request"]["uid"] = json!(7)), "not an AdmissionReview"),
        ("no kind", with(|review| review["request"]["kind"] = json!({})), "missing field `kind`"),
        ("long texts are cut", with(|review| review["kind"] = json!("x".repeat(1_000_000))), "…"),
    ] {
        let error = Review::parse(&body).expect_err(name).to_string();
        assert!(error.contains(wanted), "{name}: {error}");
        assert!(error.len() < 1_000, "{name}: {} characters", error.len());
    }
}

#[test]
fn answers_come_in_the_version_that_was_asked() {
    let body = body(|review| review["apiVersion"] = json!("admission.k8s.io/v1beta1"));
    let review = Review::parse(&body).expect("a review");
    let answer: Value =
        serde_json::from_slice(&Verdict::admitted().encode(review.api_version, &review.request.uid).expect("JSON")).expect("JSON");
    assert_eq!(
        answer,
        json!({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": {"uid": "705ab4f5", "allowed": true}})
    );
}

fn report(errors: usize) -> Report {
    let error = |n: usize| FieldError {
        path: format!("spec.workerGroupSpecs[{n}].groupName"),
        kind: ErrorType::Invalid,
        message: format!("message {n}"),
        rule: "V-C-70",
    };
    Report { errors: (0..errors).map(error).collect(), ..Report::default() }
}

#[test]
fn a_refusal_carries_what_clients_need() {
    let mut verdict = Verdict { refusal: Refusal::invalid(Kind::RayCluster, "raycluster", &report(2)), ..Verdict::default() };
    verdict.warnings = vec!["spec.x: y".into()];
    let answer: Value = serde_json::from_slice(&verdict.encode("admission.k8s.io/v1", "u").expect("JSON")).expect("JSON");
    let response = &answer["response"];
    assert_eq!((&response["uid"], &response["allowed"], &response["warnings"]), (&json!("u"), &json!(false), &json!(["spec.x: y"])));
    let status = &response["status"];
    assert_eq!((&status["status"], &status["code"], &status["reason"]), (&json!("Failure"), &json!(422), &json!("Invalid")));
    let details = json!({
        "group": "ray.io",
        "kind": "RayCluster",
        "name": "raycluster",
        "causes": [
            {"reason": "FieldValueInvalid", "message": "message 0", "field": "spec.workerGroupSpecs[0].groupName"},
            {"reason": "FieldValueInvalid", "message": "message 1", "field": "spec.workerGroupSpecs[1].groupName"},
        ],
    });
    assert_eq!(status["details"], details);
    let message = status["message"].as_str().expect("a text");
    assert!(message.contains("spec.workerGroupSpecs[1].groupName: message 1"), "{message}");
    assert!(Refusal::invalid(Kind::RayCluster, "x", &report(0)).is_none());
}

#[test]
fn long_lists_are_cut_and_counted() {
    let refusal = Refusal::invalid(Kind::RayCluster, "x", &report(100)).expect("refused");
    let causes = refusal.details.expect("details").causes;
    let last = causes.last().map(|cause| (cause.field.as_str(), cause.message.as_str()));
    assert_eq!((causes.len(), last), (SHOWN + 1, Some(("spec", "68 more problems are not shown"))));
    let complete = Refusal::invalid(Kind::RayCluster, "x", &report(SHOWN)).expect("refused").details.expect("details");
    assert_eq!(complete.causes.len(), SHOWN);
    assert!(refusal.message.contains("100") && refusal.message.contains("68"), "{}", refusal.message);

    let warning = |message: &str| FieldWarning { path: "spec".into(), message: message.into(), rule: "W" };
    assert_eq!(warning_lines(&[warning("two\nlines\u{7}")]), ["spec: two lines "], "headers cannot carry control characters");
    let many = warning_lines(&vec![warning("w"); 40]);
    assert_eq!((many.len(), many.last().map(String::as_str)), (SHOWN + 1, Some("… and 8 more warnings")));
}

use std::time::Duration;

use kube::core::Status;
use serde_json::{Value, json};

use super::{error::*, objects::adopt_created_fields, *};
use crate::runtime::{
    Failure as _, ObjectKey, Queues, Retry,
    cache::{Change, Lazy},
    pod_view::PodView,
    views::JobView,
};

#[test]
fn a_merge_patch_holds_the_differences() {
    let table = [
        (json!({"a": 1}), json!({"a": 1}), None),
        (json!({}), json!({"a": 1}), Some(json!({"a": 1}))),
        (json!({"a": 1, "b": 2}), json!({"a": 1}), Some(json!({"b": null}))),
        (json!({"a": {"x": 1, "y": 2}}), json!({"a": {"x": 1, "y": 3}}), Some(json!({"a": {"y": 3}}))),
        (json!({"a": [1, 2]}), json!({"a": [1]}), Some(json!({"a": [1]}))),
        (json!({"a": {"x": 1}}), json!({"a": 1}), Some(json!({"a": 1}))),
        (json!({"a": 1}), json!({"a": {"x": 1}}), Some(json!({"a": {"x": 1}}))),
        (json!({"a": {"x": 1}}), json!({"a": {}}), Some(json!({"a": {"x": null}}))),
    ];
    for (old, new, wanted) in table {
        assert_eq!(merge_diff(&old, &new), wanted, "{old} -> {new}");
        let mut merged = old.clone();
        merge(&mut merged, wanted.as_ref().unwrap_or(&json!({})));
        assert_eq!(merged, new, "what the API server makes of it");
    }
}

/// RFC 7386, for the test alone.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().unwrap();
    for (key, value) in patch {
        if value.is_null() {
            target.remove(key);
        } else {
            merge(target.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

fn refused(code: u16, reason: &str, retry: u32) -> ApiError {
    let details = (retry > 0).then(|| kube::core::response::StatusDetails {
        name: String::new(),
        group: String::new(),
        kind: String::new(),
        uid: String::new(),
        causes: Vec::new(),
        retry_after_seconds: retry,
    });
    let status = Status { code, reason: reason.to_owned(), message: format!("message {code}"), details, ..Status::default() };
    ApiError::new(("create", "Pod".into(), "ns".into(), "p".into()), kube::Error::Api(status.boxed()))
}

#[test]
fn errors_know_what_they_mean() {
    let back_off = Retry::BackOff;
    let later = |seconds| Retry::After(Duration::from_secs(seconds));
    let table = [
        (refused(409, "AlreadyExists", 0), "conflict", back_off, None, false),
        (refused(409, "Conflict", 0), "conflict", back_off, None, false),
        (refused(404, "NotFound", 0), "not-found", back_off, None, false),
        (refused(403, "Forbidden", 0), "forbidden", back_off, Some("message 403"), false),
        (refused(422, "Invalid", 0), "invalid", back_off, Some("message 422"), false),
        (refused(429, "TooManyRequests", 7), "throttled", later(7), None, false),
        (refused(500, "InternalError", 0), "api", later(2), None, true),
        (refused(504, "Timeout", 0), "api", later(2), None, true),
        (ApiError::timeout(("create", "Pod".into(), "ns".into(), "p".into()), Duration::from_secs(30)), "timeout", later(2), None, true),
    ];
    for (error, kind, retry, refusal, unknown) in table {
        assert_eq!((error.kind(), error.retry(), error.refusal(), error.is_outcome_unknown()), (kind, retry, refusal, unknown), "{error}");
    }
    assert!(refused(409, "AlreadyExists", 0).is_already_exists() && !refused(409, "AlreadyExists", 0).is_conflict());
    assert!(refused(409, "Conflict", 0).is_conflict());
    assert_eq!(refused(403, "Forbidden", 0).to_string(), "cannot create Pod ns/p: message 403");
}

#[test]
fn fields_of_a_create_are_handed_over_to_the_applier() {
    let entry = |manager: &str, operation: &str, fields: Value, sub: &str| json!({ "manager": manager, "operation": operation, "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields, "subresource": sub });
    let object = |entries: Vec<Value>| json!({ "metadata": { "resourceVersion": "7", "managedFields": entries } });
    let created = entry(FIELD_MANAGER, "Update", json!({"f:spec": {"f:type": {}, "f:old": {}}}), "");
    let applied = entry(FIELD_MANAGER, "Apply", json!({"f:spec": {"f:type": {}, "f:new": {}}}), "");
    let other = entry("kubectl-edit", "Update", json!({"f:spec": {"f:mine": {}}}), "");
    let status = entry(FIELD_MANAGER, "Update", json!({"f:status": {}}), "status");

    let patch = adopt_created_fields(&object(vec![other.clone(), created, applied.clone(), status.clone()])).unwrap();
    assert_eq!(patch["metadata"]["resourceVersion"], "7");
    let entries = patch["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 3);
    assert!(entries.contains(&other) && entries.contains(&status));
    let joined = entries.iter().find(|entry| entry["operation"] == "Apply").unwrap();
    assert_eq!(joined["fieldsV1"], json!({"f:spec": {"f:type": {}, "f:old": {}, "f:new": {}}}));

    assert_eq!(adopt_created_fields(&object(vec![other, applied, status])), None);
}

fn woken(queues: &Queues) -> Vec<(&'static str, usize)> {
    [("clusters", &queues.clusters), ("jobs", &queues.jobs), ("cron", &queues.cron_jobs)]
        .map(|(name, queue)| (name, queue.depth()))
        .to_vec()
}

fn owned_by(kind: &str, api_version: &str) -> Value {
    json!([{ "apiVersion": api_version, "kind": kind, "name": "owner", "uid": "u", "controller": true }])
}

#[tokio::test]
async fn changes_wake_those_whom_they_concern() {
    let pod: PodView =
        serde_json::from_value(json!({ "metadata": { "namespace": "ns", "name": "p", "labels": { "ray.io/cluster": "c" } } })).unwrap();
    let queues = Queues::default();
    <k8s_openapi::api::core::v1::Pod as Mirrored>::wake(&queues, &Change::Gone { old: pod.into() });
    assert_eq!(woken(&queues), [("clusters", 1), ("jobs", 0), ("cron", 0)]);
    assert_eq!(queues.clusters.next().await.0, ObjectKey::new("ns", "c"));

    for (kind, version, wanted) in [
        ("RayJob", "ray.io/v1", [0, 1, 0]),
        ("RayCluster", "ray.io/v1", [1, 0, 0]),
        ("RayCronJob", "ray.io/v1", [0, 0, 1]),
        ("RayJob", "other.io/v1", [0, 0, 0]),
        ("CronJob", "batch/v1", [0, 0, 0]),
    ] {
        let owners = owned_by(kind, version);
        let job: JobView =
            serde_json::from_value(json!({ "metadata": { "namespace": "ns", "name": "j", "ownerReferences": owners } })).unwrap();
        let queues = Queues::default();
        <k8s_openapi::api::batch::v1::Job as Mirrored>::wake(&queues, &Change::Set { old: None, new: job.into() });
        assert_eq!(woken(&queues).iter().map(|(_, depth)| *depth).collect::<Vec<_>>(), wanted, "{kind} {version}");
    }
}

#[tokio::test]
async fn a_status_wakes_the_owner_and_an_edit_both() {
    let version = |generation: i64, state: &str| -> std::sync::Arc<Lazy<shared::api::RayCluster>> {
        let object = json!({
            "metadata": { "namespace": "ns", "name": "c", "generation": generation, "ownerReferences": owned_by("RayJob", "ray.io/v1") },
            "spec": {}, "status": { "state": state },
        });
        serde_json::from_str::<Lazy<_>>(&object.to_string()).unwrap().into()
    };
    for (new, wanted) in [(version(1, "ready"), [0, 1]), (version(2, ""), [1, 1])] {
        let queues = Queues::default();
        <shared::api::RayCluster as Mirrored>::wake(&queues, &Change::Set { old: Some(version(1, "")), new });
        assert_eq!([queues.clusters.depth(), queues.jobs.depth()], wanted);
    }
}

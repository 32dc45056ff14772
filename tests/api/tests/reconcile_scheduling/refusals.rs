//! A scheduler that refuses something, played by an admission policy.

use std::time::Duration;

use api_tests::scene::{group, spec};
use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use operator::build::scheduling::pod_group::{PodGroup, Volcano};
use serde_json::{Value, json};
use shared::api::{RayCluster, RayJob};

use super::jobs::Play;
use super::*;

/// Refuses PodGroups of the namespace that do not satisfy `expression`, from now on.
async fn refuse(scene: &Scene, operation: &str, expression: &str) {
    let name = scene.namespace.as_str();
    let policy = json!({ "metadata": { "name": name }, "spec": {
        "failurePolicy": "Fail",
        "matchConstraints": { "resourceRules": [
            { "apiGroups": ["scheduling.volcano.sh"], "apiVersions": ["*"], "operations": [operation], "resources": ["podgroups"] },
        ]},
        "validations": [{ "expression": expression, "message": "the scheduler says no" }],
    }});
    let only = json!({ "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": name } } });
    let binding = json!({ "metadata": { "name": name }, "spec": {
        "policyName": name, "validationActions": ["Deny"], "matchResources": only,
    }});
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(scene.client.clone());
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(scene.client.clone());
    policies.create(&PostParams::default(), &serde_json::from_value(policy).unwrap()).await.unwrap();
    bindings.create(&PostParams::default(), &serde_json::from_value(binding).unwrap()).await.unwrap();
}

async fn allow(scene: &Scene) {
    let bindings: Api<ValidatingAdmissionPolicyBinding> = Api::all(scene.client.clone());
    bindings.delete(&scene.namespace, &DeleteParams::default()).await.unwrap();
}

/// Waits until a change of the group is refused, without making it.
async fn is_refused(scene: &Scene, name: &str, change: Value) {
    let (groups, dry) = (scene.api::<PodGroup<Volcano>>(), PatchParams { dry_run: true, ..PatchParams::default() });
    let probe = async || Ok(groups.patch(name, &dry, &Patch::Merge(&change)).await.err().map(|_| ()));
    scene.until("the refusal", probe).await.unwrap();
}

fn labelled(queue: &str) -> Value {
    let labels = json!({ "volcano.sh/queue-name": queue });
    json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": "c", "labels": labels }, "spec": spec(&[group("a", 1)], json!({})) })
}

/// BS-16: without its group no Pod is made, and the scheduler's words are shown.
#[tokio::test]
async fn reconcile_bs_16_a_group_that_is_refused_holds_the_pods_back() {
    let scene = scene("volcano", "closed").await;
    refuse(&scene, "CREATE", "object.spec.queue != 'closed'").await;
    let probe: PodGroup<Volcano> =
        serde_json::from_value(json!({ "metadata": { "name": "probe" }, "spec": { "minMember": 1, "queue": "closed" } })).unwrap();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let groups = scene.api::<PodGroup<Volcano>>();
    scene.until("the refusal", async || Ok(groups.create(&dry, &probe).await.err().map(|_| ()))).await.unwrap();
    scene.create::<RayCluster>(labelled("closed")).await.unwrap();
    let shown = scene.status("c", "the refusal", |status| status.reason.contains("the scheduler says no")).await.unwrap();
    let conditions = shown.status.unwrap().conditions;
    let failure = conditions.iter().find(|condition| condition.type_ == "ReplicaFailure").unwrap();
    assert_eq!((failure.status.as_str(), failure.reason.as_str()), ("True", "FailedCreatePodGroup"));
    assert!(scene.pods("c", "").await.unwrap().is_empty());
    scene.patch::<RayCluster>("c", json!({ "metadata": { "labels": { "volcano.sh/queue-name": "open" } } })).await.unwrap();
    scene.has_pods("c", 1, 1).await.unwrap();
    allow(&scene).await;
}

/// BS-17: a queue that cannot be changed stays, and the group's size follows all the same.
#[tokio::test]
async fn reconcile_bs_17_what_volcano_does_not_take_stays_as_it_is() {
    let scene = scene("volcano", "kept").await;
    scene.create::<RayCluster>(labelled("first")).await.unwrap();
    scene.has_pods("c", 1, 1).await.unwrap();
    refuse(&scene, "UPDATE", "object.spec.queue == oldObject.spec.queue").await;
    is_refused(&scene, "ray-c-pg", json!({ "spec": { "queue": "x" } })).await;
    scene.patch::<RayCluster>("c", json!({ "metadata": { "labels": { "volcano.sh/queue-name": "second" } } })).await.unwrap();
    scene.patch_group("c", "replicas", json!(2)).await.unwrap();
    assert_eq!(group_of::<Volcano>(&scene, "ray-c-pg", 3).await.spec.queue.as_deref(), Some("first"));
    scene.has_pods("c", 1, 2).await.unwrap();
    told_once(&scene, "c", "FailedToUpdatePodGroup").await;
    scene.run_to_ready("c").await.unwrap();
    allow(&scene).await;
}

/// BS-19, RJ-100: a group that cannot be changed after the end keeps nothing else from happening, and is changed when it can be.
#[tokio::test]
async fn reconcile_bs_19_a_clean_up_that_fails_holds_up_nothing() {
    let Some(play) = Play::new("volcano", "stuck").await else { return };
    play.job("HTTPMode", json!({}), json!({ "shutdownAfterJobFinishes": true })).await;
    let running = play.reaches("Running/RUNNING").await;
    group_of::<Volcano>(&play.scene, "ray-j-pg", 2).await;
    refuse(&play.scene, "UPDATE", "object.spec.minMember >= oldObject.spec.minMember").await;
    is_refused(&play.scene, "ray-j-pg", json!({ "spec": { "minMember": 0 } })).await;
    play.dashboard.job(&running.job_id, "SUCCEEDED");
    play.reaches("Complete/SUCCEEDED").await;
    let clusters = play.scene.api::<RayCluster>();
    let gone = async || Ok(clusters.get_opt(&running.ray_cluster_name).await?.is_none().then_some(()));
    play.scene.until("the cluster to go", gone).await.unwrap();
    let told_of_it = async || Ok((told(&play.scene, "j", "FailedToCleanupBatchScheduler").await > 0).then_some(()));
    play.scene.until("a word about it", told_of_it).await.unwrap();
    assert_eq!(play.scene.api::<PodGroup<Volcano>>().get("ray-j-pg").await.unwrap().spec.min_member, 2);
    // Nobody has to touch the RayJob: it is tried again.
    allow(&play.scene).await;
    group_of::<Volcano>(&play.scene, "ray-j-pg", 0).await;
    let resting = version(&play.scene.api::<RayJob>().get("j").await.unwrap());
    tokio::time::sleep(Duration::from_secs(6)).await;
    assert_eq!(version(&play.scene.api::<RayJob>().get("j").await.unwrap()), resting, "and then no more");
    assert!(play.scene.api::<Pod>().list(&ListParams::default()).await.unwrap().items.is_empty());
}

//! Services, Ingress, RBAC, Secret: made, repaired, removed, and never taken from others.

use api_tests::scene::{group, spec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt;
use serde_json::{Value, json};
use shared::api::RayCluster;

use super::{condition, scene};

fn head(more: Value) -> Value {
    let mut head = spec(&[], json!({}))["headGroupSpec"].clone();
    if let (Some(head), Value::Object(more)) = (head.as_object_mut(), more) {
        head.extend(more);
    }
    json!({ "headGroupSpec": head })
}

#[tokio::test]
async fn reconcile_c_32_the_head_service_follows_the_spec() {
    let scene = scene("service").await;
    scene.cluster("c", spec(&[], head(json!({ "serviceType": "NodePort" })))).await.unwrap();
    let services = scene.api::<Service>();
    let made = scene.until("the Service", async || Ok(services.get_opt("c-head-svc").await?)).await.unwrap();
    let address = made.spec.as_ref().unwrap().cluster_ip.clone();
    scene.patch::<Service>("c-head-svc", json!({ "metadata": { "annotations": { "other/team": "x" } } })).await.unwrap();
    let change =
        json!({ "spec": { "headServiceAnnotations": { "a": "1", "b": "2" }, "headGroupSpec": { "serviceType": "LoadBalancer" } } });
    scene.patch::<RayCluster>("c", change).await.unwrap();
    let is = async |kind: &str, wanted: &[&str]| {
        let probe = async || {
            let service = services.get("c-head-svc").await?;
            let keys: Vec<String> = service.annotations().keys().cloned().collect();
            let matches = service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some(kind) && keys == wanted;
            Ok(matches.then_some(service))
        };
        scene.until(&format!("a {kind} with {wanted:?}"), probe).await.unwrap()
    };
    is("LoadBalancer", &["a", "b", "other/team"]).await;
    // What is taken back goes, what others wrote stays.
    scene.patch::<RayCluster>("c", json!({ "spec": { "headServiceAnnotations": { "b": null } } })).await.unwrap();
    is("LoadBalancer", &["a", "other/team"]).await;
    scene.patch::<RayCluster>("c", json!({ "spec": { "headGroupSpec": { "serviceType": "ClusterIP" } } })).await.unwrap();
    let last = is("ClusterIP", &["a", "other/team"]).await;
    assert_eq!((last.uid(), last.spec.as_ref().unwrap().cluster_ip.clone()), (made.uid(), address), "made once, with one address");

    // Drift is repaired without anything else happening.
    scene.patch::<Service>("c-head-svc", json!({ "spec": { "selector": { "ray.io/cluster": "other" } } })).await.unwrap();
    let repaired = async || {
        Ok((services.get("c-head-svc").await?.spec.and_then(|spec| spec.selector).is_some_and(|s| s["ray.io/cluster"] == "c"))
            .then_some(()))
    };
    scene.until("the selector to be repaired", repaired).await.unwrap();
    scene.delete::<Service>("c-head-svc").await.unwrap();
    scene.until("the Service to return", async || Ok(services.get_opt("c-head-svc").await?)).await.unwrap();
}

#[tokio::test]
async fn reconcile_c_32_a_service_without_address_is_made_anew_for_a_type_that_needs_one() {
    let scene = scene("headless").await;
    scene.cluster("c", spec(&[], json!({}))).await.unwrap();
    scene.has_pods("c", 1, 0).await.unwrap();
    scene
        .patch::<RayCluster>(
            "c",
            head(json!({ "serviceType": "LoadBalancer" }))
                .pointer("/headGroupSpec")
                .map(|head| json!({ "spec": { "headGroupSpec": head } }))
                .unwrap(),
        )
        .await
        .unwrap();
    let services = scene.api::<Service>();
    let changed = async || {
        let spec = services.get_opt("c-head-svc").await?.and_then(|service| service.spec);
        Ok(spec.filter(|spec| spec.type_.as_deref() == Some("LoadBalancer") && spec.cluster_ip.as_deref() != Some("None")))
    };
    scene.until("a LoadBalancer", changed).await.unwrap();
}

#[tokio::test]
async fn reconcile_c_33_and_c_34_what_is_switched_off_goes() {
    let scene = scene("off").await;
    let on = |on: bool| {
        let mut spec = spec(&[group("a", 1)], head(json!({ "enableIngress": on })));
        spec["enableInTreeAutoscaling"] = json!(on);
        spec["workerGroupSpecs"][0]["numOfHosts"] = json!(if on { 2 } else { 1 });
        spec
    };
    let mut object = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": "c", "annotations": { "ray.io/enable-serve-service": "true" } }, "spec": on(true) });
    let cluster: RayCluster = scene.create(object.clone()).await.unwrap();
    let owned = async || {
        async fn count<K>(scene: &api_tests::Scene, uid: &str) -> anyhow::Result<usize>
        where
            K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
                + Clone
                + std::fmt::Debug
                + serde::de::DeserializeOwned,
        {
            let all = scene.api::<K>().list(&kube::api::ListParams::default()).await?;
            Ok(all.iter().filter(|object| object.owner_references().iter().any(|owner| owner.uid == uid)).count())
        }
        let uid = cluster.uid().unwrap_or_default();
        anyhow::Ok([
            count::<Service>(&scene, &uid).await?,
            count::<Ingress>(&scene, &uid).await?,
            count::<Role>(&scene, &uid).await?,
            count::<RoleBinding>(&scene, &uid).await?,
            count::<ServiceAccount>(&scene, &uid).await?,
        ])
    };
    scene.until("everything", async || Ok((owned().await? == [3, 1, 1, 1, 1]).then_some(()))).await.unwrap();

    // C-34: edits are taken back.
    scene.patch::<Role>("c", json!({ "rules": [] })).await.unwrap();
    scene.patch::<RoleBinding>("c", json!({ "subjects": [] })).await.unwrap();
    let repaired = async || {
        let rules = scene.api::<Role>().get("c").await?.rules.map_or(0, |rules| rules.len());
        let subjects = scene.api::<RoleBinding>().get("c").await?.subjects.map_or(0, |subjects| subjects.len());
        Ok(((rules, subjects) == (3, 1)).then_some(()))
    };
    scene.until("rights to be repaired", repaired).await.unwrap();

    object["spec"] = on(false);
    scene
        .patch::<RayCluster>("c", json!({ "metadata": { "annotations": { "ray.io/enable-serve-service": null } }, "spec": object["spec"] }))
        .await
        .unwrap();
    scene.until("nothing but the head's Service", async || Ok((owned().await? == [1, 0, 0, 0, 0]).then_some(()))).await.unwrap();
}

#[tokio::test]
async fn reconcile_x_10_objects_of_others_are_never_touched() {
    let scene = scene("foreign").await;
    let service = json!({ "metadata": { "name": "c-head-svc" }, "spec": { "selector": { "app": "other" }, "ports": [{ "port": 80 }] } });
    let role = json!({ "metadata": { "name": "d" }, "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }] });
    let backend = json!({ "service": { "name": "x", "port": { "number": 80 } } });
    let ingress = json!({ "metadata": { "name": "d-head-ingress" }, "spec": { "defaultBackend": backend } });
    let (service, role, ingress): (Service, Role, Ingress) =
        (scene.create(service).await.unwrap(), scene.create(role).await.unwrap(), scene.create(ingress).await.unwrap());
    scene.cluster("c", spec(&[], json!({}))).await.unwrap();
    let mut d = spec(&[], head(json!({ "enableIngress": true })));
    d["enableInTreeAutoscaling"] = json!(true);
    scene.cluster("d", d).await.unwrap();
    let shown = scene.status("c", "the conflict", |status| status.reason.contains("c-head-svc")).await.unwrap();
    assert_eq!(condition(&shown, "NameConflict"), Some(("True", "NameTaken")));
    assert!(scene.pods("c", "").await.unwrap().is_empty(), "workers would go to somebody else's Service");
    let shown = scene.status("d", "the conflict", |status| status.reason.starts_with("NameTaken")).await.unwrap();
    assert!(condition(&shown, "NameConflict").is_some());
    scene.has_pods("d", 1, 0).await.unwrap();
    assert!(scene.api::<RoleBinding>().get_opt("d").await.unwrap().is_none(), "nobody gets the rights of somebody else's Role");

    scene
        .patch::<RayCluster>("d", json!({ "spec": { "enableInTreeAutoscaling": false, "headGroupSpec": { "enableIngress": false } } }))
        .await
        .unwrap();
    scene.status("d", "the conflict to be over", |status| !status.conditions.iter().any(|c| c.type_ == "NameConflict")).await.unwrap();
    for cluster in ["c", "d"] {
        scene.delete::<RayCluster>(cluster).await.unwrap();
    }
    scene.has_pods("d", 0, 0).await.unwrap();
    let still = scene.api::<Service>().get("c-head-svc").await.unwrap();
    assert_eq!((still.resource_version(), still.spec), (service.resource_version(), service.spec));
    assert_eq!(scene.api::<Role>().get("d").await.unwrap().resource_version(), role.resource_version());
    assert_eq!(scene.api::<Ingress>().get("d-head-ingress").await.unwrap().resource_version(), ingress.resource_version());
}

#[tokio::test]
async fn reconcile_rc_126_the_token_is_drawn_once_and_stays_while_pods_use_it() {
    let scene = scene("token").await;
    scene.cluster("c", spec(&[], json!({ "authOptions": { "mode": "token" } }))).await.unwrap();
    scene.has_pods("c", 1, 0).await.unwrap();
    let secrets = scene.api::<Secret>();
    let token = |secret: &Secret| secret.data.as_ref().unwrap()["auth_token"].0.clone();
    let made = secrets.get("c").await.unwrap();
    assert_eq!(token(&made).len(), 44);
    scene.patch::<RayCluster>("c", json!({ "spec": { "authOptions": { "mode": "disabled" } } })).await.unwrap();
    scene.status("c", "the new generation", |status| status.observed_generation == 2).await.unwrap();
    assert_eq!(token(&secrets.get("c").await.unwrap()), token(&made));
    scene.patch::<RayCluster>("c", json!({ "spec": { "suspend": true } })).await.unwrap();
    scene.until("the Secret to go with the last Pod", async || Ok(secrets.get_opt("c").await?.is_none().then_some(()))).await.unwrap();
}

#[tokio::test]
async fn reconcile_rc_120_an_account_that_the_user_names_must_exist() {
    let scene = scene("account").await;
    let mut named = spec(&[group("a", 1)], json!({ "enableInTreeAutoscaling": true }));
    named["headGroupSpec"]["template"]["spec"]["serviceAccountName"] = json!("mine");
    scene.cluster("c", named).await.unwrap();
    let shown = scene.status("c", "what is missing", |status| status.reason.contains("ServiceAccount mine")).await.unwrap();
    assert_eq!(condition(&shown, "ReplicaFailure"), Some(("True", "FailedCreateHeadPod")));
    assert!(scene.pods("c", "").await.unwrap().is_empty());
    scene.create::<ServiceAccount>(json!({ "metadata": { "name": "mine" } })).await.unwrap();
    scene.has_pods("c", 1, 1).await.unwrap();
    let account = scene.api::<ServiceAccount>().get("mine").await.unwrap();
    assert!(account.owner_references().is_empty(), "it stays the user's");
}

#[tokio::test]
async fn reconcile_rc_147_a_claim_is_made_adopted_and_let_go_but_never_changed() {
    let mut scene = api_tests::Scene::without_operator(api_tests::server(), "claim").await.unwrap();
    scene.start_with(&["--feature-gates=GCSFaultToleranceEmbeddedStorage=true"]).await.unwrap();
    let storage = |policy: &str, size: &str| json!({ "gcsFaultToleranceOptions": { "backend": "rocksdb", "storage": { "deletionPolicy": policy, "size": size } } });
    let cluster = scene.cluster("c", spec(&[], storage("DeleteWithCluster", "1Gi"))).await.unwrap();
    let claims = scene.api::<PersistentVolumeClaim>();
    let owners = async |wanted: usize| {
        let probe = async || Ok(claims.get_opt("c-gcs-pvc").await?.filter(|claim| claim.owner_references().len() == wanted));
        scene.until(&format!("a claim with {wanted} owners"), probe).await.unwrap()
    };
    let made = owners(1).await;
    assert_eq!(Some(made.owner_references()[0].uid.clone()), cluster.uid());
    scene.patch::<RayCluster>("c", json!({ "spec": storage("Retain", "2Gi") })).await.unwrap();
    let kept = owners(0).await;
    let size = |claim: &PersistentVolumeClaim| {
        claim.spec.as_ref().unwrap().resources.as_ref().unwrap().requests.as_ref().unwrap()["storage"].0.clone()
    };
    assert_eq!((kept.uid(), size(&kept).as_str()), (made.uid(), "1Gi"));
    let told = async || Ok(super::event_reasons(&scene, "c").await.get("FailedToCreatePVC").copied());
    scene.until("a word about the size", told).await.unwrap();
    scene.patch::<RayCluster>("c", json!({ "spec": storage("DeleteWithCluster", "1Gi") })).await.unwrap();
    assert_eq!(owners(1).await.uid(), made.uid());
}

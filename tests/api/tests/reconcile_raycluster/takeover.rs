//! Clusters made by KubeRay 1.7 are taken over as they are (C-36).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use api_tests::{Scene, server};
use k8s_openapi::api::core::v1::{Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt;
use kube::api::{ListParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared::api::RayCluster;

fn upstream() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shared = std::env::var_os("KUBERAY_SHARED").map_or_else(|| root.join("../shared"), PathBuf::from);
    Some(shared.join("upstream")).filter(|folder| folder.join("golden").is_dir())
}

/// Documents of a YAML file.
fn documents(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    let read = shared::yaml::documents(&text);
    read.into_iter().filter_map(|document| document.ok().map(|document| document.value)).collect()
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

async fn create<K>(scene: &Scene, object: &Value)
where
    K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
        + serde::Serialize
        + DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    // KubeRay's client writes under this name, too.
    let params = PostParams { field_manager: Some("kuberay-operator".to_owned()), ..PostParams::default() };
    let object: K = serde_json::from_value(object.clone()).unwrap();
    scene.api::<K>().create(&params, &object).await.unwrap();
}

/// Identity of everything that a cluster owns: kind and name to uid, and the address of Services.
async fn owned(scene: &Scene, uid: &str) -> BTreeMap<String, (String, String)> {
    async fn list<K>(scene: &Scene, uid: &str, all: &mut BTreeMap<String, (String, String)>, address: impl Fn(&K) -> String)
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()> + DeserializeOwned + Clone + std::fmt::Debug,
    {
        for object in scene.api::<K>().list(&ListParams::default()).await.unwrap() {
            if object.owner_references().iter().any(|owner| owner.uid == uid) && object.meta().deletion_timestamp.is_none() {
                all.insert(format!("{} {}", K::kind(&()), object.name_any()), (object.uid().unwrap(), address(&object)));
            }
        }
    }
    let mut all = BTreeMap::new();
    list::<Pod>(scene, uid, &mut all, |_| String::new()).await;
    list::<Service>(scene, uid, &mut all, |service| service.spec.clone().and_then(|spec| spec.cluster_ip).unwrap_or_default()).await;
    list::<Secret>(scene, uid, &mut all, |_| String::new()).await;
    list::<ServiceAccount>(scene, uid, &mut all, |_| String::new()).await;
    list::<Role>(scene, uid, &mut all, |_| String::new()).await;
    list::<RoleBinding>(scene, uid, &mut all, |_| String::new()).await;
    all
}

/// Makes the sample's cluster and everything that KubeRay made for it, and lets the operator loose on it.
async fn take_over(folder: &Path, file: &str, recreate: bool) {
    let mut scene = Scene::without_operator(server(), "takeover").await.unwrap();
    let sample = documents(&folder.join("samples").join(file));
    let mut cluster = sample.into_iter().find(|object| kind(object) == "RayCluster").unwrap();
    cluster["metadata"]["namespace"] = json!(scene.namespace);
    if recreate {
        cluster["spec"]["upgradeStrategy"] = json!({ "type": "Recreate" });
    }
    let cluster: RayCluster = scene.create(cluster).await.unwrap();
    let (name, uid) = (cluster.name_any(), cluster.uid().unwrap());
    let mut made = documents(&folder.join("golden").join(file));
    // A Pod wants its ServiceAccount to be there.
    made.sort_by_key(|object| kind(object) == "Pod");
    for mut object in made {
        let is_owned = object["metadata"]["ownerReferences"][0]["kind"] == "RayCluster"
            && object["metadata"]["ownerReferences"][0]["name"] == json!(name);
        if !is_owned {
            continue;
        }
        object["metadata"]["ownerReferences"][0]["uid"] = json!(uid);
        object["metadata"]["namespace"] = json!(scene.namespace);
        match kind(&object) {
            "Pod" => {
                // Admission has filled these in already, and does so again.
                object["spec"].as_object_mut().unwrap().remove("priority");
                create::<Pod>(&scene, &object).await;
            }
            "Service" => create::<Service>(&scene, &object).await,
            "Secret" => {
                // The recorded object leaves the token out.
                object["data"] = json!({ "auth_token": "dG9rZW4=" });
                create::<Secret>(&scene, &object).await;
            }
            "ServiceAccount" => create::<ServiceAccount>(&scene, &object).await,
            "Role" => create::<Role>(&scene, &object).await,
            "RoleBinding" => {
                for subject in object["subjects"].as_array_mut().unwrap() {
                    subject["namespace"] = json!(scene.namespace);
                }
                create::<RoleBinding>(&scene, &object).await;
            }
            other => panic!("{file}: {other}"),
        }
    }
    let before = owned(&scene, &uid).await;
    assert!(before.keys().any(|name| name.starts_with("Pod ")) && before.keys().any(|name| name.starts_with("Service ")), "{file}");
    scene.start().await.unwrap();
    let ready = scene.run_to_ready(&name).await.unwrap_or_else(|error| panic!("{file}: {error:#}"));
    assert_eq!(owned(&scene, &uid).await, before, "{file}");
    assert!(ready.status.unwrap().reason.is_empty(), "{file}");
    let head = scene.pods(&name, "head").await.unwrap().remove(0);
    let version = head.annotations()["ray.io/kuberay-version"].clone();
    assert_eq!(version != "v1.7.0", recreate, "{file}: only a cluster that compares hashes needs its own");
}

#[tokio::test]
async fn reconcile_c_36_clusters_of_kuberay_are_taken_over_as_they_are() {
    let Some(folder) = upstream() else {
        println!("skipped: what KubeRay makes of its samples is not here (set KUBERAY_SHARED)");
        return;
    };
    let files = [
        "ray-cluster.sample.yaml",
        "ray-cluster.complete.yaml",
        "ray-cluster.autoscaler-v2.yaml",
        "ray-cluster.custom-head-service.yaml",
        "ray-cluster.tpu-v4-multihost.yaml",
        "ray-cluster.auth.yaml",
    ];
    for file in files {
        take_over(&folder, file, false).await;
    }
    take_over(&folder, "ray-cluster.complete.yaml", true).await;
}

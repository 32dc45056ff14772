//! What the operator builds, shown to a real API server by dry run: nothing may be refused, nor changed without a word.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests are tests

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use api_tests::server;
use k8s_openapi::api::core::v1::{Namespace, Pod, ServiceAccount};
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Client, Resource, ResourceExt};
use operator::build::pod::{self, Replica};
use operator::build::{GcsStore, gcs_store, ingress, pvc, rbac, redis_cleanup, secret, service};
use operator::settings::Settings;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use shared::api::RayCluster;
use shared::features::{Feature, FeatureGates};

/// Shows one object to the API server; the answer is the refusal, if any.
async fn show<T>(client: &Client, namespace: &str, object: &T) -> Option<String>
where
    T: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
{
    let api: Api<T> = Api::namespaced(client.clone(), namespace);
    let params = PostParams { dry_run: true, ..PostParams::default() };
    match api.create(&params, object).await {
        Ok(_) => None,
        Err(error) => Some(format!("{} of {}: {error}", T::kind(&()), object.meta().owner_references.as_ref().map_or("", |o| &o[0].name))),
    }
}

/// The namespace with the ServiceAccount that Pods get when they name none.
async fn namespace(client: &Client, prefix: &str, labels: Value) -> String {
    let name = api_tests::namespace(client, prefix).await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
    namespaces.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    account(client, &name, named("default")).await;
    name
}

/// Makes a ServiceAccount for real: a Pod that names one that does not exist is refused.
async fn account(client: &Client, namespace: &str, mut account: ServiceAccount) {
    // An owner that does not exist has its children collected.
    account.metadata.owner_references = None;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), namespace);
    match accounts.create(&PostParams::default(), &account).await {
        Err(kube::Error::Api(status)) if status.code == 409 => {}
        created => {
            created.unwrap();
        }
    }
}

fn named(name: &str) -> ServiceAccount {
    ServiceAccount { metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }, ..ServiceAccount::default() }
}

fn all_gates() -> Settings {
    let features = Feature::ALL.iter().fold(FeatureGates::default(), |gates, gate| gates.with(*gate, true));
    Settings { features, ..Settings::default() }
}

fn pods(cluster: &RayCluster, settings: &Settings) -> Vec<Pod> {
    let replica = Replica { index: 0, name: "r-bcdfg".to_owned(), host_index: 0 };
    let workers = cluster.spec.worker_groups().iter().map(|group| pod::worker(cluster, group, Some(&replica), settings).unwrap());
    std::iter::once(pod::head(cluster, settings).unwrap()).chain(workers).collect()
}

/// Everything that is built for a cluster; what is refused.
async fn refusals(client: &Client, namespace: &str, mut cluster: RayCluster) -> Vec<String> {
    cluster.metadata.namespace = Some(namespace.to_owned());
    cluster.metadata.uid = Some("5f3c9e1a-0000-4000-8000-000000000001".to_owned());
    let settings = all_gates();
    let mut refused = Vec::new();
    account(client, namespace, rbac::service_account(&cluster, &settings)).await;
    for pod in pods(&cluster, &settings) {
        if let Some(name) = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref()) {
            account(client, namespace, named(name)).await;
        }
        refused.push(show(client, namespace, &pod).await);
    }
    refused.push(show(client, namespace, &service::head(&cluster, &settings)).await);
    if service::needs_headless_workers(&cluster) {
        refused.push(show(client, namespace, &service::headless_workers(&cluster, &settings)).await);
    }
    if let Ok(serve) = service::serve(&cluster, &settings) {
        refused.push(show(client, namespace, &serve).await);
    }
    refused.push(show(client, namespace, &rbac::role(&cluster, &settings)).await);
    refused.push(show(client, namespace, &rbac::role_binding(&cluster, &settings)).await);
    refused.push(show(client, namespace, &ingress::ingress(&cluster, &settings)).await);
    refused.push(show(client, namespace, &secret::auth_token(&cluster, &[7; 32])).await);
    refused.push(show(client, namespace, &pvc::gcs(&cluster)).await);
    if gcs_store(&cluster) == Some(GcsStore::Redis) {
        refused.push(show(client, namespace, &redis_cleanup::job(&cluster, &settings).unwrap()).await);
    }
    refused.into_iter().flatten().collect()
}

fn cluster(edit: impl FnOnce(&mut Value)) -> RayCluster {
    let container = |name: &str| json!({"name": name, "image": "rayproject/ray:2.52.0"});
    let mut value = json!({
        "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "demo"},
        "spec": {
            "rayVersion": "2.52.0",
            "headGroupSpec": {"template": {"spec": {"containers": [container("ray-head")]}}},
            "workerGroupSpecs": [{"groupName": "cpu", "template": {"spec": {"containers": [container("ray-worker")]}}}],
        },
    });
    edit(&mut value);
    serde_json::from_value(value).unwrap()
}

/// Every option that adds a container.
fn everything(c: &mut Value) {
    c["spec"]["enableInTreeAutoscaling"] = true.into();
    c["spec"]["historyServerOptions"] = json!({"collectorOptions": {"image": "collector"}});
    c["spec"]["tlsOptions"] = json!({"enabled": true});
    c["spec"]["authOptions"] = json!({"mode": "token", "enableK8sTokenAuth": true});
    c["spec"]["gcsFaultToleranceOptions"] = json!({"redisAddress": "redis:6379", "redisPassword": {"value": "pw"}});
}

/// C-37: where the Ray container meets the level `restricted`, so does the Pod with all that is added to it.
#[tokio::test]
async fn built_pods_pass_pod_security_restricted() {
    let client = server().client().await.unwrap();
    let namespace = namespace(&client, "restricted", json!({"pod-security.kubernetes.io/enforce": "restricted"})).await;
    let strict = json!({
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 1000,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
    });
    let of_pod = json!({"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}});
    let of_container = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    for (pod, container) in [(json!({}), strict), (of_pod, of_container)] {
        let restricted = cluster(|c| {
            everything(c);
            for template in ["/spec/headGroupSpec/template/spec", "/spec/workerGroupSpecs/0/template/spec"] {
                let spec = c.pointer_mut(template).unwrap();
                spec["securityContext"] = pod.clone();
                spec["containers"][0]["securityContext"] = container.clone();
            }
        });
        let names: Vec<String> =
            pods(&restricted, &all_gates()).iter().map(|pod| pod.spec.as_ref().unwrap().containers.len().to_string()).collect();
        assert_eq!(names, ["3", "2"], "every option must be in the Pods that are shown");
        assert_eq!(refusals(&client, &namespace, restricted.clone()).await, Vec::<String>::new());

        let mut cleanup = redis_cleanup::job(&restricted, &all_gates()).unwrap().spec.unwrap().template;
        cleanup.metadata.get_or_insert_default().generate_name = Some("cleanup-".to_owned());
        let pod = Pod { metadata: cleanup.metadata.unwrap(), spec: cleanup.spec, status: None };
        assert_eq!(show(&client, &namespace, &pod).await, None);
    }
    // The namespace does enforce it.
    let refused = refusals(&client, &namespace, cluster(everything)).await;
    assert_eq!(refused.iter().filter(|text| text.starts_with("Pod of") && text.contains("restricted")).count(), 2, "{refused:?}");
}

/// Ports of the user that clash with the default ones, names at their limits.
#[tokio::test]
async fn built_objects_of_awkward_clusters_are_admitted() {
    let client = server().client().await.unwrap();
    let namespace = namespace(&client, "awkward", json!({})).await;
    let head = |c: &mut Value, key: &str, value: Value| c["spec"]["headGroupSpec"][key] = value;
    let ports = |value: Value| move |c: &mut Value| c["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["ports"] = value;
    let clusters = [
        cluster(everything),
        cluster(|c| head(c, "headService", json!({"spec": {"ports": [{"port": 443}]}}))),
        cluster(|c| head(c, "headService", json!({"spec": {"ports": [{"name": "dashboard", "port": 80}, {"name": "x", "port": 6379}]}}))),
        cluster(|c| {
            head(c, "headService", json!({"spec": {"type": "LoadBalancer", "ports": [{"name": "udp", "port": 8265, "protocol": "UDP"}]}}));
        }),
        cluster(ports(json!([{"containerPort": 8080, "name": "http"}, {"containerPort": 8081}]))),
        cluster(|c| {
            everything(c);
            c["metadata"]["name"] = format!("c{}", "x".repeat(52)).into();
            c["spec"]["workerGroupSpecs"][0]["groupName"] = "g".repeat(63).into();
            c["spec"]["workerGroupSpecs"][0]["numOfHosts"] = 2.into();
        }),
        cluster(|c| c["spec"]["gcsFaultToleranceOptions"] = json!({"backend": "rocksdb", "storage": {"size": "2Gi"}})),
    ];
    for cluster in clusters {
        let text = serde_json::to_string(&cluster.spec).unwrap();
        assert_eq!(refusals(&client, &namespace, cluster).await, Vec::<String>::new(), "{text}");
    }
}

#[tokio::test]
async fn built_objects_of_kuberays_samples_are_admitted() {
    let Some(samples) = samples() else {
        println!("skipped: KubeRay's samples are not here");
        return;
    };
    let client = server().client().await.unwrap();
    let namespace = namespace(&client, "samples", json!({})).await;
    let mut files: Vec<PathBuf> = std::fs::read_dir(samples).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let (mut shown, mut refused) = (0, Vec::new());
    for file in files {
        for document in shared::yaml::documents(&std::fs::read_to_string(&file).unwrap()) {
            let value = document.unwrap().value;
            if value["kind"] == "RayCluster" && value["apiVersion"] == "ray.io/v1" {
                let cluster: RayCluster = serde_json::from_value(value).unwrap();
                shown += 1;
                let name = format!("{}: {}", file.file_name().unwrap().display(), cluster.name_any());
                refused.extend(refusals(&client, &namespace, cluster).await.into_iter().map(|text| format!("{name}: {text}")));
            }
        }
    }
    assert!(shown > 40, "{shown} clusters");
    assert_eq!(refused, Vec::<String>::new());
}

fn samples() -> Option<PathBuf> {
    let shared = std::env::var_os("KUBERAY_SHARED").map(PathBuf::from);
    let shared = shared.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let samples = shared.join("upstream/samples");
    samples.is_dir().then_some(samples)
}

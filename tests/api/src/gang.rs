//! What gang schedulers bring along: definitions of their PodGroups, and somebody who binds Pods.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Binding, Pod};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ListParams, PostParams};
use kube::{Client, ResourceExt as _};
use serde_json::{Value, json};
use testcluster::wait;
use tokio::task::JoinHandle;

use crate::Server;
use crate::scene::PATIENCE;

/// Installs the PodGroups of Volcano and scheduler-plugins: the fields that the operator uses, with the defaults and bounds that they have
/// there. To do so again is no error.
///
/// # Errors
/// When the API server refuses them or does not serve them in time.
pub async fn install(server: &Server) -> Result<()> {
    let client = server.client().await?;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    for definition in [volcano(), plugins()] {
        let definition = serde_json::from_value(definition)?;
        match definitions.create(&PostParams::default(), &definition).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            other => drop(other?),
        }
    }
    for version in ["scheduling.volcano.sh/v1beta1", "scheduling.x-k8s.io/v1alpha1"] {
        let served = || async { Ok(client.list_api_group_resources(version).await.ok()) };
        wait::until(&format!("the kinds of {version}"), PATIENCE, served).await?;
    }
    Ok(())
}

fn volcano() -> Value {
    let spec = json!({
        "minMember": { "type": "integer", "format": "int32" },
        "minResources": amounts(),
        "queue": { "type": "string", "default": "default" },
        "priorityClassName": { "type": "string" },
        "networkTopology": { "type": "object", "properties": {
            "mode": { "type": "string", "enum": ["hard", "soft"], "default": "hard" },
            "highestTierAllowed": { "type": "integer", "default": 1 },
        }},
    });
    // Its status is part of the object.
    definition("scheduling.volcano.sh", "v1beta1", &spec, &json!({}))
}

fn plugins() -> Value {
    let spec = json!({
        "minMember": { "type": "integer", "format": "int32", "minimum": 1 },
        "minResources": amounts(),
        "scheduleTimeoutSeconds": { "type": "integer", "format": "int32" },
    });
    definition("scheduling.x-k8s.io", "v1alpha1", &spec, &json!({ "status": {} }))
}

fn amounts() -> Value {
    json!({ "type": "object", "additionalProperties": { "anyOf": [{ "type": "integer" }, { "type": "string" }], "x-kubernetes-int-or-string": true } })
}

fn definition(group: &str, version: &str, spec: &Value, subresources: &Value) -> Value {
    let schema = json!({ "type": "object", "properties": {
        "spec": { "type": "object", "properties": spec },
        "status": { "type": "object", "properties": { "phase": { "type": "string" } } },
    }});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        // Groups of k8s.io need it.
        "metadata": { "name": format!("podgroups.{group}"), "annotations": { "api-approved.kubernetes.io": "https://example.com/test" } },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "kind": "PodGroup", "listKind": "PodGroupList", "plural": "podgroups", "singular": "podgroup" },
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": subresources, "schema": { "openAPIV3Schema": schema },
            }],
        },
    })
}

/// Binds the Ray Pods of a namespace to a node, whatever scheduler they ask for, until it is dropped.
pub struct Binder {
    task: JoinHandle<()>,
    bound: Arc<Mutex<Vec<String>>>,
}

impl Binder {
    /// Binds to `node`.
    pub fn start(client: Client, namespace: &str, node: &str) -> Self {
        let pods: Api<Pod> = Api::namespaced(client, namespace);
        let (node, bound) = (node.to_owned(), Arc::new(Mutex::new(Vec::new())));
        let names = Arc::clone(&bound);
        let task = tokio::spawn(async move {
            loop {
                // What does not work now works at the next look.
                let _ = bind_all(&pods, &node, &names).await;
                tokio::time::sleep(Duration::from_millis(150)).await;
            }
        });
        Self { task, bound }
    }

    /// Names of the Pods that were bound.
    pub fn bound(&self) -> Vec<String> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Binder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn bind_all(pods: &Api<Pod>, node: &str, bound: &Mutex<Vec<String>>) -> Result<()> {
    for pod in pods.list(&ListParams::default().labels("ray.io/is-ray-node=yes").fields("spec.nodeName=")).await? {
        let name = pod.name_any();
        let binding: Binding = serde_json::from_value(
            json!({ "metadata": { "name": name }, "target": { "apiVersion": "v1", "kind": "Node", "name": node } }),
        )?;
        let _: Value = pods.create_subresource("binding", &name, &PostParams::default(), &binding).await?;
        bound.lock().unwrap_or_else(PoisonError::into_inner).push(name);
    }
    Ok(())
}

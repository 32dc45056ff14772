//! The chart's webhook in front of one namespace of a test, as a process with a log.

use anyhow::{Context, Result};
use certs::configurations::WANTED;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use testcluster::local::free_port;
use testcluster::wait;

use crate::chart::{self, Rendered, text};
use crate::scene::{PATIENCE, group, spec};
use crate::{Program, Scene, Server, rbac};

/// Name of the Service that leads to this machine.
const SERVICE: &str = "hook";

/// The chart for one namespace, under names of its own, with further values (`path=JSON`).
///
/// # Errors
/// What helm says.
pub fn chart_for(namespace: &str, values: &[&str]) -> Result<Rendered> {
    let name = format!(r#"fullnameOverride="{namespace}""#);
    let selector = format!(r#"webhook.namespaceSelector={{"matchLabels":{{"kubernetes.io/metadata.name":"{namespace}"}}}}"#);
    let values = [name.as_str(), selector.as_str()].into_iter().chain(values.iter().copied());
    let arguments: Vec<&str> = values.flat_map(|value| ["--set-json", value]).collect();
    chart::render("kuberay-operator", "ray", namespace, &arguments)
}

/// Starts the webhook for the scene's namespace with further flags, and has the API server call it. It is ready, trusted and called.
///
/// # Errors
/// When the API server refuses, or it does not start.
pub async fn start(server: &Server, scene: &Scene, rendered: &Rendered, flags: &[&str]) -> Result<Program> {
    start_in(server, scene, rendered, flags, &[]).await
}

/// As [`start`], with further environment variables.
///
/// # Errors
/// As [`start`].
pub async fn start_in(
    server: &Server,
    scene: &Scene,
    rendered: &Rendered,
    flags: &[&str],
    environment: &[(&str, &str)],
) -> Result<Program> {
    let port = free_port()?;
    configure(server, scene, rendered, port).await?;
    let namespace = &scene.namespace;
    let own = [
        format!("--port={port}"),
        format!("--namespace={namespace}"),
        format!("--service-name={SERVICE}"),
        format!("--webhook-configuration={namespace}-webhook-{namespace}"),
    ];
    let flags: Vec<&str> = own.iter().map(String::as_str).chain(flags.iter().copied()).collect();
    let webhook = Program::webhook_in(scene.folder(), &server.kubeconfig(), &flags, environment).await?;
    // API servers notice new webhooks a moment later.
    let asked = wait::until("the webhook in the way", PATIENCE, || async {
        let twice = spec(&[group("same", 1), group("same", 1)], json!({}));
        Ok(ask(scene, "probe", twice).await.err().filter(|error| error.to_string().contains("denied the request")))
    });
    asked.await.with_context(|| webhook.log())?;
    Ok(webhook)
}

/// Asks whether a RayCluster could be made.
///
/// # Errors
/// What the API server says if not.
pub async fn ask(scene: &Scene, name: &str, spec: Value) -> Result<()> {
    let object = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": name }, "spec": spec });
    let object: DynamicObject = serde_json::from_value(object)?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("ray.io", "v1", "RayCluster"));
    let api: Api<DynamicObject> = Api::namespaced_with(scene.client.clone(), &scene.namespace, &resource);
    api.create(&PostParams { dry_run: true, ..PostParams::default() }, &object).await?;
    Ok(())
}

/// The chart's webhook configurations, with a Service that leads to a port of this machine.
///
/// # Errors
/// When the API server refuses.
pub async fn configure(server: &Server, scene: &Scene, rendered: &Rendered, port: u16) -> Result<()> {
    let service = json!({ "metadata": { "name": SERVICE }, "spec": { "type": "ExternalName", "externalName": "localhost" } });
    scene.create::<Service>(service).await?;
    rbac::apply(server, &configurations(rendered, SERVICE, port)?).await
}

/// The chart's webhook configurations, calling a port of a Service.
///
/// # Errors
/// When they cannot be read.
pub fn configurations(rendered: &Rendered, service: &str, port: u16) -> Result<Vec<Value>> {
    let configurations = rendered.objects().iter().filter(|object| text(object, "/kind").ends_with("WebhookConfiguration"));
    let mut configurations: Vec<Value> = configurations.cloned().collect();
    for object in &mut configurations {
        let annotation = object.pointer_mut("/metadata/annotations").and_then(|all| all.get_mut(WANTED));
        if let Some(annotation) = annotation {
            let mut list = serde_json::from_str(annotation.as_str().unwrap_or_default())?;
            redirect(&mut list, service, port);
            *annotation = json!(list.to_string());
        }
        if let Some(list) = object.get_mut("webhooks") {
            redirect(list, service, port);
        }
    }
    Ok(configurations)
}

fn redirect(webhooks: &mut Value, service: &str, port: u16) {
    for webhook in webhooks.as_array_mut().into_iter().flatten() {
        webhook["clientConfig"]["service"]["name"] = json!(service);
        webhook["clientConfig"]["service"]["port"] = json!(port);
    }
}

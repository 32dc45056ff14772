//! Objects that a usable cluster has and no program makes: the Service in front of the DNS server that runs outside of it.

use anyhow::{Context, Result};
use k8s_openapi::api::{core::v1::Service, discovery::v1::EndpointSlice};
use kube::{Api, Client, api::PostParams};
use serde_json::json;

use super::layout::{DNS_ADDRESS, NODE_ADDRESS};

/// Creates the Service `kube-dns` and its endpoints.
pub(super) async fn create(client: &Client) -> Result<()> {
    let ports = json!([{ "name": "dns", "port": 53, "protocol": "UDP" }, { "name": "dns-tcp", "port": 53, "protocol": "TCP" }]);
    let service: Service = serde_json::from_value(json!({
        "metadata": { "name": "kube-dns", "labels": { "k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS" } },
        "spec": { "clusterIP": DNS_ADDRESS, "ports": ports },
    }))?;
    let slice: EndpointSlice = serde_json::from_value(json!({
        "metadata": { "name": "kube-dns", "labels": { "kubernetes.io/service-name": "kube-dns" } },
        "addressType": "IPv4",
        "endpoints": [{ "addresses": [NODE_ADDRESS], "conditions": { "ready": true } }],
        "ports": ports,
    }))?;
    let namespace = "kube-system";
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    services.create(&PostParams::default(), &service).await.context("creating the Service kube-dns")?;
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
    slices.create(&PostParams::default(), &slice).await.context("creating the endpoints of kube-dns")?;
    Ok(())
}

//! Nodes that do not exist, and Pods that say they run there.

use std::time::Duration;

use anyhow::{Context, Result};
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, Client,
    api::{ListParams, PostParams},
};

use super::Instance;
use crate::{control_plane::Starting, fetch, wait};

/// Fake nodes of one size.
#[derive(Clone, Debug)]
pub struct FakeNodes {
    /// How many.
    pub count: u32,
    /// What each can give, as in a node's `status.allocatable`.
    pub resources: Vec<(String, String)>,
    /// Addresses of the fake Pods.
    pub pod_cidr: String,
    /// Makes every fake Pod's address an address of this machine, so that one server bound to `0.0.0.0` answers for all of them. Needs root,
    /// and a `pod_cidr` that no other instance uses.
    pub local_pods: bool,
}

impl Default for FakeNodes {
    fn default() -> Self {
        let resources = [("cpu", "1000"), ("memory", "4000Gi"), ("pods", "5000")];
        Self {
            count: 4,
            resources: resources.map(|(name, amount)| (name.to_owned(), amount.to_owned())).to_vec(),
            pod_cidr: "10.95.0.0/16".to_owned(),
            local_pods: false,
        }
    }
}

/// Creates the nodes, starts KWOK and waits until all are ready.
pub(super) async fn start(
    starting: &mut Starting,
    options: &FakeNodes,
    kwok: &fetch::Kwok,
    client: &Client,
    instance: &Instance,
) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for number in 1..=options.count {
        let node = node(&format!("fake{number}"), &options.resources)?;
        nodes.create(&PostParams::default(), &node).await.context("creating a fake node")?;
    }
    if options.local_pods {
        instance.add_local_route(&options.pod_cidr)?;
    }
    let arguments = vec![
        format!("--kubeconfig={}", starting.layout.kubeconfig().display()),
        format!("--config={}", kwok.stages.display()),
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake".to_owned(),
        // With longer leases the controller-manager takes the nodes for lost.
        "--node-lease-duration-seconds=40".to_owned(),
        format!("--cidr={}", options.pod_cidr),
    ];
    starting.spawn("kwok", &kwok.program, arguments)?;
    let daemons = &mut starting.daemons;
    wait::until("the fake nodes' readiness", Duration::from_secs(60), || {
        let running = daemons.iter_mut().try_for_each(crate::process::Daemon::check);
        let nodes = &nodes;
        async move {
            running?;
            let list = nodes.list(&ListParams::default()).await?;
            Ok(list.items.iter().all(ready).then_some(()))
        }
    })
    .await
}

/// Whether a node's condition `Ready` is true.
pub(crate) fn ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|list| list.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"))
}

fn node(name: &str, resources: &[(String, String)]) -> Result<Node> {
    let resources: serde_json::Map<String, serde_json::Value> =
        resources.iter().map(|(name, amount)| (name.clone(), amount.as_str().into())).collect();
    Ok(serde_json::from_value(serde_json::json!({
        "metadata": {
            "name": name,
            "annotations": { "kwok.x-k8s.io/node": "fake" },
            "labels": { "kubernetes.io/hostname": name },
        },
        "status": { "allocatable": resources, "capacity": resources },
    }))?)
}

//! The node's programs beside containerd: their configuration files and how they start.

use std::{ffi::OsStr, fs, path::Path};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::process::Command;

use super::{
    layout::{CGROUP, CONTAINERD_SOCKET, DNS_ADDRESS, NODE_ADDRESS, NODE_NAME, NODE_POD_CIDR, POD_CIDR, Paths},
    namespaces::Namespaces,
};
use crate::{
    control_plane::Starting,
    fetch,
    kubeconfig::{self, Credentials},
    pki::write_secret,
    process::Daemon,
};

/// A program in the node, with the path that its helpers (`runc`, `iptables`, `mount`) are found on and a folder for temporary files.
pub(super) fn in_node(paths: &Paths, namespaces: &Namespaces, program: impl AsRef<OsStr>) -> Command {
    let mut command = namespaces.command(program);
    command.env("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin").env("TMPDIR", paths.dir.join("tmp"));
    command
}

/// Writes keys and configuration files.
pub(super) fn prepare(paths: &Paths, control_plane: &Starting) -> Result<()> {
    let (pki, url) = (&control_plane.pki, control_plane.layout.url());
    pki.write("kubelet", &pki.server("kubelet", &[NODE_ADDRESS.to_string(), NODE_NAME.to_owned()])?)?;
    let node_user = format!("system:node:{NODE_NAME}");
    for (program, user, group) in [("kubelet", node_user.as_str(), Some("system:nodes")), ("kube-proxy", "system:kube-proxy", None)] {
        let pair = pki.client(user, group)?;
        let text = kubeconfig::render(&url, &pki.ca(), &Credentials::Certificate(&pair));
        write_secret(&paths.config(&format!("{program}.kubeconfig")), &text)?;
    }
    fs::create_dir_all(paths.config("cni")).context("creating the folder of the network configuration")?;
    for (file, text) in [
        ("cni/testbed.conflist", json_text(&pod_network())),
        ("kubelet.json", json_text(&kubelet(paths))),
        ("kube-proxy.json", json_text(&kube_proxy(paths))),
        ("Corefile", corefile(paths)),
        // Pods that ask for the node's own resolver get the cluster's, the only one here.
        ("resolv.conf", format!("nameserver {NODE_ADDRESS}\n")),
    ] {
        let path = paths.config(file);
        fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// Starts kubelet, kube-proxy and CoreDNS.
pub(super) fn start(paths: &Paths, namespaces: &Namespaces, programs: &fetch::NodePrograms) -> Result<Vec<Daemon>> {
    let config = |file: &str| paths.config(file).display().to_string();
    let spawn = |name: &str, program: &Path, arguments: Vec<String>| {
        let mut command = in_node(paths, namespaces, program);
        command.args(arguments);
        Daemon::spawn(&paths.dir, name, command)
    };
    let kubelet = vec![
        format!("--config={}", config("kubelet.json")),
        format!("--kubeconfig={}", config("kubelet.kubeconfig")),
        format!("--root-dir={}", paths.dir.join("kubelet").display()),
        format!("--hostname-override={NODE_NAME}"),
        format!("--node-ip={NODE_ADDRESS}"),
    ];
    Ok(vec![
        spawn("kubelet", &programs.kubelet, kubelet)?,
        spawn("kube-proxy", &programs.proxy, vec![format!("--config={}", config("kube-proxy.json"))])?,
        spawn("coredns", &programs.coredns, vec![format!("-conf={}", config("Corefile"))])?,
    ])
}

fn json_text(value: &serde_json::Value) -> String {
    format!("{value:#}\n")
}

/// Every Pod gets a cable of its own to the node, and the node routes: no bridge, so translated Service addresses find their way back.
fn pod_network() -> serde_json::Value {
    json!({
        "cniVersion": "0.4.0",
        "name": "testbed",
        "plugins": [
            {
                "type": "ptp",
                "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "dataDir": "/run/cni-ipam",
                    "ranges": [[{ "subnet": NODE_POD_CIDR }]],
                    "routes": [{ "dst": "0.0.0.0/0" }],
                },
            },
            { "type": "portmap", "capabilities": { "portMappings": true } },
        ],
    })
}

fn kubelet(paths: &Paths) -> serde_json::Value {
    let pki = |file: &str| paths.dir.join("pki").join(file);
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": NODE_ADDRESS,
        "port": 10250,
        "readOnlyPort": 0,
        "healthzPort": 0,
        "tlsCertFile": pki("kubelet.crt"),
        "tlsPrivateKeyFile": pki("kubelet.key"),
        "authentication": { "anonymous": { "enabled": false }, "webhook": { "enabled": false }, "x509": { "clientCAFile": pki("ca.crt") } },
        "authorization": { "mode": "AlwaysAllow" },
        "containerRuntimeEndpoint": format!("unix://{CONTAINERD_SOCKET}"),
        "clusterDNS": [DNS_ADDRESS],
        "clusterDomain": "cluster.local",
        "resolvConf": paths.config("resolv.conf"),
        "podLogsDir": paths.dir.join("pod-logs"),
        "volumePluginDir": paths.dir.join("volume-plugins"),
        // One group that we make and remove, on machines with either version of control groups.
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{CGROUP}"),
        "cgroupsPerQOS": true,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        "localStorageCapacityIsolation": false,
        // No registry would bring back an image that was collected.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": { "memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
        "serializeImagePulls": false,
    })
}

fn kube_proxy(paths: &Paths) -> serde_json::Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "iptables",
        "clusterCIDR": POD_CIDR,
        "hostnameOverride": NODE_NAME,
        "clientConnection": { "kubeconfig": paths.config("kube-proxy.kubeconfig") },
        "healthzBindAddress": "127.0.0.1:10256",
        "metricsBindAddress": "127.0.0.1:10249",
        // The tables of connections belong to the machine; leave their size alone.
        "conntrack": { "maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s" },
    })
}

fn corefile(paths: &Paths) -> String {
    let kubeconfig = paths.kubeconfig();
    format!(
        ".:53 {{\n    errors\n    kubernetes cluster.local in-addr.arpa ip6.arpa {{\n        kubeconfig {}\n        pods insecure\n        ttl 5\n    }}\n}}\n",
        kubeconfig.display()
    )
}

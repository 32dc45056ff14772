//! Where everything of the node is: folders, addresses, names. One node a machine, so they are fixed.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
};

use anyhow::{Context, Result};

use crate::{cache::Cache, control_plane::Layout};

/// The machine's end of the cable; the API server listens here.
pub(super) const HOST_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 213, 255, 1);
/// The node's end of the cable, and the node's address in the cluster.
pub(super) const NODE_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 213, 255, 2);
/// The cable's network length.
pub(super) const LINK_PREFIX: u8 = 30;
/// Names of the cable's ends.
pub(super) const HOST_LINK: &str = "krtestbed0";
pub(super) const NODE_LINK: &str = "krtestbed1";
/// Addresses of Pods.
pub(super) const POD_CIDR: &str = "10.213.0.0/17";
/// The part of them that the one node gives out.
pub(super) const NODE_POD_CIDR: &str = "10.213.0.0/24";
/// Addresses of Services.
pub(super) const SERVICE_CIDR: &str = "10.214.0.0/16";
/// The Service of the cluster's DNS.
pub(super) const DNS_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 214, 0, 10);
/// The node's name in the cluster.
pub(super) const NODE_NAME: &str = "testbed";
/// Folder of the node's control groups, below each controller.
pub(super) const CGROUP: &str = "kuberay-testbed";
/// Where the node's containerd listens, inside the node.
pub(super) const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";
/// Folders outside its own that programs of the node insist on; inside the node they are empty folders of its own.
pub(super) const PRIVATE_FOLDERS: [&str; 3] = ["/var/lib/kubelet", "/var/lib/cni", "/var/log/containers"];

/// The folders of one cache's node.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    /// Everything that goes with the node.
    pub(super) dir: PathBuf,
    /// containerd's images, which stay for the next node.
    pub(super) images: PathBuf,
}

impl Paths {
    pub(super) fn new(cache: &Cache) -> Self {
        Self { dir: cache.root().join("node"), images: cache.root().join("node-images") }
    }

    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    pub(super) fn config(&self, file: &str) -> PathBuf {
        self.dir.join("config").join(file)
    }

    /// Exists when everything has come up.
    pub(super) fn up_mark(&self) -> PathBuf {
        self.dir.join("up")
    }

    pub(super) fn create(&self) -> Result<()> {
        for dir in [self.dir.clone(), self.dir.join("config"), self.dir.join("tmp"), self.dir.join("private"), self.images.clone()] {
            fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        }
        // Keys and Secrets lie in it.
        fs::set_permissions(&self.dir, fs::Permissions::from_mode(0o700)).context("closing the node's folder")
    }
}

/// The machine's CPUs, and at least four: see [`super::Options::cpus`].
pub(super) fn default_cpus() -> u32 {
    let machine = std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(u32::MAX));
    machine.max(4)
}

/// The control plane of a node.
pub(super) fn control_plane(paths: &Paths, etcd_client: u16, etcd_peer: u16) -> Layout {
    let pki = |file: &str| paths.dir.join("pki").join(file).display().to_string();
    Layout {
        dir: paths.dir.clone(),
        address: IpAddr::V4(HOST_ADDRESS),
        api_port: 6443,
        etcd_ports: (etcd_client, etcd_peer),
        service_cidr: SERVICE_CIDR.to_owned(),
        pod_cidr: Some(POD_CIDR.to_owned()),
        api_arguments: vec![
            // The node's name resolves nowhere.
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            format!("--kubelet-client-certificate={}", pki("admin.crt")),
            format!("--kubelet-client-key={}", pki("admin.key")),
            format!("--kubelet-certificate-authority={}", pki("ca.crt")),
        ],
    }
}

//! *Node profile*: a whole cluster with one real node, on which containers run.
//!
//! The control plane runs on the machine itself, at the machine's end of a virtual cable (`layout.rs`). The node (containerd, kubelet,
//! kube-proxy, CoreDNS, every container) lives in namespaces of its own for processes, mounts and network (`namespaces.rs`). So its bridge
//! of rules, mounts and processes ends with one process, whatever happens to the program that started it, and the machine's own
//! firewall, mounts and `/var/lib` stay as they were. Left for [`down`] are a folder, control groups, kernel settings that the kubelet
//! changes for the whole machine, and the control plane's processes; all of them are written down before they come to be.

mod cgroups;
mod cleanup;
mod cluster_objects;
mod components;
mod containerd;
mod layout;
mod namespaces;
mod network;
mod record;

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, bail};
use k8s_openapi::api::core::v1::Node as NodeObject;
use kube::{Api, Client, api::ListParams};
use tokio::process::Command;

use crate::{
    cache::Cache,
    control_plane::{self, Starting},
    fetch, image, platform,
    ports::Port,
    process::{self, Daemon},
    progress::Progress,
    wait,
};
use layout::Paths;
use namespaces::Namespaces;

pub use cleanup::leftovers;

/// Name of the lock that lets one process at a time bring the node up or down.
const LOCK: &str = "node";

/// What to start.
#[derive(Clone, Debug)]
pub struct Options {
    /// CPUs that the node says it has; more than the machine has makes the scheduler put more on it. `None` is the machine's number, and
    /// at least four: the guide's head, worker and submitter ask for two and a half, and our programs for some more.
    pub cpus: Option<u32>,
    /// Image archives to load besides Ray and pause.
    pub images: Vec<PathBuf>,
    /// Loads the Ray image.
    pub ray: bool,
    /// Where built things are. `None` is the cache that the environment names.
    pub cache: Option<Cache>,
    /// Where progress goes.
    pub progress: Progress,
}

impl Default for Options {
    fn default() -> Self {
        Self { cpus: None, images: Vec::new(), ray: true, cache: None, progress: Progress::stderr() }
    }
}

/// A running cluster with its node. It runs on when this value is dropped; [`down`] ends it.
pub struct Node {
    paths: Paths,
    namespaces: Namespaces,
    tools: fetch::KubectlTools,
}

/// Brings the node up, after making what is missing for it and clearing away what an earlier one left. A running node is kept and gets
/// the images.
///
/// # Errors
/// Where this is not Linux as root, when another process is at it, or when a part does not come up: everything is taken down again then
/// (with `KUBERAY_TESTBED_KEEP` set, the logs stay).
pub async fn up(options: Options) -> Result<Node> {
    platform::require_linux_root()?;
    let cache = options.cache.clone().map_or_else(Cache::from_env, Ok)?;
    let progress = &options.progress;
    let _lock = cache.lock(LOCK, progress).await?;
    if let Ok(node) = attach_in(&cache, progress).await {
        for archive in &options.images {
            node.load_image(archive).await?;
        }
        return Ok(node);
    }
    let parts = Parts::collect(&cache, &options).await?;
    let paths = Paths::new(&cache);
    progress.step("clearing away an earlier node", cleanup::clear(&paths)).await?;
    let what = if containerd::has_images(&paths, &parts.images)? { "starting the node" } else { "importing images and starting the node" };
    let started = progress.step(what, start(&paths, &parts, &options)).await;
    match started {
        Ok(namespaces) => Ok(Node { paths, namespaces, tools: parts.kubectl }),
        Err(error) if std::env::var_os(crate::api::KEEP_VARIABLE).is_some() => {
            Err(error.context(format!("kept what runs and {}; `testcluster down` removes it", paths.dir.display())))
        }
        Err(error) => {
            let logs = cleanup::keep_logs(&paths)?;
            cleanup::clear(&paths).await?;
            Err(error.context(format!("the node did not start; its logs are in {}", logs.display())))
        }
    }
}

/// Ends the node and removes everything that belongs to it. Nothing happens where there is none.
///
/// # Errors
/// When something cannot be removed.
pub async fn down(progress: &Progress) -> Result<()> {
    platform::require_linux_root()?;
    let cache = Cache::from_env()?;
    let _lock = cache.lock(LOCK, progress).await?;
    progress.step("taking the node down", cleanup::clear(&Paths::new(&cache))).await
}

/// The node that runs already.
///
/// # Errors
/// When there is none, or a part of it has ended.
pub async fn attach() -> Result<Node> {
    attach_in(&Cache::from_env()?, &Progress::quiet()).await
}

async fn attach_in(cache: &Cache, progress: &Progress) -> Result<Node> {
    let paths = Paths::new(cache);
    let processes = current_processes(&paths);
    if processes.is_empty() || !paths.up_mark().exists() {
        bail!("no node is up; `testcluster up` starts one");
    }
    if let Some((_, name)) = processes.iter().find(|(process, _)| !process.alive()) {
        bail!("the node's {name} has ended; `testcluster up` starts the node anew");
    }
    let namespaces = Namespaces::of(&processes).context("the node's first process has ended; `testcluster up` starts the node anew")?;
    Ok(Node { paths, namespaces, tools: fetch::kubectl(cache, progress).await? })
}

/// The recorded processes. containerd is started twice when it imports images; the later one counts.
fn current_processes(paths: &Paths) -> Vec<(process::Identity, String)> {
    let all = process::recorded(&paths.dir);
    let is_latest = |index: usize, name: &String| !all.iter().skip(index + 1).any(|(_, later)| later == name);
    all.iter().enumerate().filter(|(index, (_, name))| is_latest(*index, name)).map(|(_, entry)| entry.clone()).collect()
}

/// Everything that a node is made of.
struct Parts {
    control_plane: fetch::ControlPlane,
    programs: fetch::NodePrograms,
    kubectl: fetch::KubectlTools,
    /// What the store of images keeps from node to node.
    images: Vec<PathBuf>,
    cache: Cache,
}

impl Parts {
    async fn collect(cache: &Cache, options: &Options) -> Result<Self> {
        let progress = &options.progress;
        fetch::ensure_tools(fetch::NODE_TOOLS, cache, progress).await?;
        let mut images = vec![image::pause(cache, progress).await?];
        if options.ray {
            images.push(image::ray(cache, progress).await?);
        }
        Ok(Self {
            control_plane: fetch::control_plane(cache, progress).await?,
            programs: fetch::node_programs(cache, progress).await?,
            kubectl: fetch::kubectl(cache, progress).await?,
            images,
            cache: cache.clone(),
        })
    }
}

/// The order of things: namespaces and cable first, then control plane and containerd, then what needs both.
async fn start(paths: &Paths, parts: &Parts, options: &Options) -> Result<Namespaces> {
    paths.create()?;
    record::write(paths)?;
    let (mut init, namespaces) = Namespaces::create(paths, &parts.programs.pause).await?;
    network::connect(&namespaces).await?;
    namespaces::lay_out(paths, &namespaces, options.cpus.unwrap_or_else(layout::default_cpus)).await?;
    cgroups::create()?;
    init.check()?;

    let ports = [Port::reserve(&parts.cache)?, Port::reserve(&parts.cache)?];
    let mut starting = Starting::prepare(layout::control_plane(paths, ports[0].number(), ports[1].number()))?;
    components::prepare(paths, &starting)?;
    let control_plane = async {
        let client = starting.api(&parts.control_plane).await?;
        starting.controller_manager(&parts.control_plane, &client).await?;
        starting.scheduler(&parts.control_plane)?;
        Ok::<_, anyhow::Error>(client)
    };
    let runtime = containerd::start_with_images(paths, &namespaces, &parts.images, &options.progress);
    let (client, mut runtime) = tokio::try_join!(control_plane, runtime)?;

    let mut daemons = components::start(paths, &namespaces, &parts.programs)?;
    cluster_objects::create(&client).await?;
    let all = || -> Result<()> {
        runtime.check()?;
        daemons.iter_mut().try_for_each(Daemon::check)?;
        starting.daemons.iter_mut().try_for_each(Daemon::check)
    };
    wait_until_ready(&client, all).await?;
    for archive in &options.images {
        containerd::import(&namespaces, archive).await?;
    }
    fs::write(paths.up_mark(), "").context("marking the node as up")?;
    Ok(namespaces)
}

/// The node is ready when the kubelet says so and the cluster's DNS answers.
async fn wait_until_ready(client: &Client, mut check: impl FnMut() -> Result<()>) -> Result<()> {
    let nodes: Api<NodeObject> = Api::all(client.clone());
    wait::until("the node's readiness", Duration::from_secs(90), || {
        let running = check();
        let nodes = &nodes;
        async move {
            running?;
            let list = nodes.list(&ListParams::default()).await?;
            Ok(list.items.first().is_some_and(crate::api::node_ready).then_some(()))
        }
    })
    .await?;
    wait::until("an answer of the cluster's DNS", Duration::from_secs(30), || {
        let running = check();
        async move {
            running?;
            Ok(network::dns_answers().await.then_some(()))
        }
    })
    .await
}

impl Node {
    /// The administrator's kubeconfig.
    pub fn kubeconfig_path(&self) -> PathBuf {
        self.paths.kubeconfig()
    }

    /// The folder of logs and state; it goes with the node.
    pub fn dir(&self) -> &Path {
        &self.paths.dir
    }

    /// An administrator's client.
    ///
    /// # Errors
    /// When the kubeconfig cannot be read.
    pub async fn client(&self) -> Result<Client> {
        control_plane::client(&self.kubeconfig_path()).await
    }

    /// The programs `kubectl` and `helm`.
    pub fn tools(&self) -> &fetch::KubectlTools {
        &self.tools
    }

    /// `kubectl` as the administrator, arguments still to come.
    pub fn kubectl(&self) -> Command {
        self.tool(&self.tools.kubectl)
    }

    /// `helm` as the administrator, arguments still to come.
    pub fn helm(&self) -> Command {
        self.tool(&self.tools.helm)
    }

    /// A program inside the node's namespaces, where `ctr`, `runc` and addresses of Pods and Services work.
    pub fn command(&self, program: &str) -> Command {
        self.namespaces.command(program)
    }

    /// Loads an image archive, so that Pods can use it under the names it carries.
    ///
    /// # Errors
    /// When containerd does not take it.
    pub async fn load_image(&self, archive: &Path) -> Result<()> {
        containerd::import(&self.namespaces, archive).await
    }

    /// Kills a container the way a container runtime stops one: SIGKILL to its first process. The id may carry `containerd://`.
    ///
    /// # Errors
    /// When containerd knows no running container of this id.
    pub async fn stop_container(&self, id: &str) -> Result<()> {
        containerd::kill(&self.namespaces, id).await
    }

    /// Names of the running programs with their numbers.
    pub fn processes(&self) -> Vec<(String, process::Identity)> {
        current_processes(&self.paths).into_iter().map(|(process, name)| (name, process)).collect()
    }

    fn tool(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("KUBECONFIG", self.kubeconfig_path());
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_processes_with_one_name_the_later_counts() {
        let dir = tempfile::tempdir().unwrap();
        let paths = Paths::new(&Cache::at(dir.path().to_owned()));
        fs::create_dir_all(&paths.dir).unwrap();
        fs::write(paths.dir.join("processes"), "1 10 containerd\n2 20 kubelet\n3 30 containerd\n4 cut").unwrap();
        let names: Vec<_> = current_processes(&paths).into_iter().map(|(process, name)| (process.pid, name)).collect();
        assert_eq!(names, [(2, "kubelet".to_owned()), (3, "containerd".to_owned())]);
    }
}

//! A Kubernetes cluster for tests and demos, made of programs that package registries serve.
//!
//! * [`api`]: etcd, API server and controller-manager; many side by side; a few seconds each.
//! * [`node`]: these and one real node with containers, Services and DNS; one a machine.
//! * [`dashboard`]: Ray dashboards that behave as told, behind the head Pods of fake nodes.
//!
//! What has to be built or downloaded goes into a cache outside the work tree, see [`cache`].

pub mod api;
pub mod cache;
mod control_plane;
pub mod dashboard;
pub mod fetch;
pub mod image;
mod kubeconfig;
pub mod local;
pub mod node;
pub mod pki;
pub mod platform;
mod ports;
pub mod process;
pub mod progress;
pub mod versions;
pub mod wait;

pub use control_plane::{client, config};

/// Ends when the process is asked to stop: Ctrl-C, SIGTERM or the terminal's end.
///
/// # Errors
/// When the signals cannot be watched.
pub async fn interrupted() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result?,
        _ = terminate.recv() => {}
        _ = hang_up.recv() => {}
    }
    Ok(())
}

/// The root of the work tree that this library was built from.
pub fn work_tree() -> std::path::PathBuf {
    let here = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or(here.clone(), std::path::PathBuf::from)
}

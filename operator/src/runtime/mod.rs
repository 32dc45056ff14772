//! Watches and caches, queues, leader lease, events, metrics, health: everything between the Kubernetes API and the controllers.
//!
//! Nothing here knows what a RayCluster needs. A controller gets a [`Context`], implements [`Reconciler`], and is run by
//! [`run_controller`].

pub mod api;
pub mod cache;
pub mod client;
pub mod clock;
mod context;
pub mod controller;
pub mod crds;
pub mod events;
pub mod health;
pub mod key;
pub mod lease;
pub mod logging;
pub mod metrics;
mod pod_groups;
pub mod pod_view;
pub mod queue;
pub mod rate;
mod run;
pub mod softening;
pub mod start;
pub mod traces;
mod trim;
pub mod unreadable;
pub mod views;
pub mod watch;

pub use context::{Context, DashboardAccess, Owned, Parts, Queued, Queues};
pub use controller::{Failure, Next, Reconciler, Retry, run_controller};
pub use key::ObjectKey;
pub use pod_groups::PodGroups;
pub use run::run;

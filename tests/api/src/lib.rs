//! What API-level tests share: one API server a test binary, a namespace a test, the programs as processes of this machine.
//!
//! The programs are those of the last `cargo build`; `make test-api` builds them first.

pub mod admission;
pub mod chart;
pub mod gang;
pub mod hook;
pub mod kuberay;
pub mod modules;
pub mod picture;
pub mod program;
pub mod proxy;
pub mod rbac;
pub mod scene;
pub mod server;

pub use program::Program;
pub use proxy::Proxy;
pub use scene::Scene;
pub use server::{Server, namespace, server};
pub use testcluster::dashboard::{self, Dashboard, Mood};

//! The SidecarSubmitterRestart guide on a real node with real Ray: `make demo` shows it, the end-to-end tests check it.

pub mod guide;
pub mod install;
pub mod show;

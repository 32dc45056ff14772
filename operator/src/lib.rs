//! The operator: reconciles RayClusters, RayJobs, RayServices and RayCronJobs.
//!
//! `build` and each controller's `plan` are pure; `runtime`, `dashboard` and each controller's `observe` and `apply` do I/O.

pub mod build;
pub mod cli;
pub mod config;
pub mod controllers;
pub mod dashboard;
pub mod runtime;
pub mod settings;

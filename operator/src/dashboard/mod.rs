//! Ray's dashboard: where it answers, what it says, and who asks it when.
//!
//! [`reply`], [`job`] and [`agenda`] are pure; [`transport`], [`client`], [`token`] and [`inquirer`] do the talking. Nothing here
//! decides what becomes of a RayJob.

mod agenda;
#[cfg(test)]
mod agenda_tests;
pub mod client;
pub mod inquirer;
#[cfg(test)]
mod inquirer_tests;
pub mod inquiry;
pub mod job;
pub mod reply;
mod token;
pub mod transport;

pub use client::Dashboards;
pub use inquirer::Inquirer;
pub use inquiry::{Answer, Inquiry, Occasion, Purpose, Reply};
pub use job::{Endpoint, JobInfo, SubmitRequest};
pub use reply::DashboardError;
pub use transport::{Call, Transport};

//! What is kept of the objects that the operator makes: enough to know that they are there, whose they are and how they do.

mod condition;
mod job;
mod meta;
mod service;

pub use condition::Condition;
pub use job::{JOB_SELECTOR, JobFacts, JobState, JobView};
pub use meta::Meta;
pub use service::{ServiceFacts, ServicePort, ServiceView};

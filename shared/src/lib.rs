//! What the webhook and the operator must agree on: the API types, the rules, the names.
//!
//! Invariant: nothing here does I/O, reads a clock, is async or talks to a cluster.

pub mod api;
pub mod crd;
pub mod cron;
pub mod defaults;
pub mod duration;
pub mod features;
pub mod labels;
pub mod names;
pub mod nearest;
pub mod quantity;
pub mod schema;
pub mod selector;
pub mod validation;
pub mod version;
pub mod yaml;

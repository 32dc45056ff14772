//! One folder a kind: `observe` reads, `plan` decides, `apply` writes.

mod gang;
pub mod raycluster;
pub mod raycronjob;
pub mod rayjob;

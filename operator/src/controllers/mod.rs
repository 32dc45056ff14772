//! One folder a kind: `observe` reads, `plan` decides, `apply` writes.

pub mod raycluster;
pub mod raycronjob;
pub mod rayjob;

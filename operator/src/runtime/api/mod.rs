//! Writes to the API server, and the few reads that caches cannot answer.
//!
//! Every call has a deadline and is counted. What a write returns goes into the cache of its kind at once, so that the next
//! reconcile never rests on a state from before it.

mod calls;
mod error;
mod mirrored;
mod objects;
mod ownership;
mod status;
#[cfg(test)]
mod tests;
mod wake;

pub use calls::Calls;
pub use error::ApiError;
pub use mirrored::Mirrored;
pub use objects::{Created, Deleted, Ensured};
pub use ownership::{controller_of, is_controlled_by};
pub use status::{StatusWrite, merge_diff};

/// Field manager of everything that the operator writes. The same as KubeRay's, so that objects made by it are taken over.
pub const FIELD_MANAGER: &str = shared::labels::OPERATOR_NAME;

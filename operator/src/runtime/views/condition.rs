//! Conditions as Pods and Jobs have them.

use jiff::Timestamp;
use serde::Deserialize;

/// A condition of a Pod or a Job.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Such as `Ready` or `Complete`.
    #[serde(rename = "type")]
    pub type_: Box<str>,
    /// `True`, `False` or `Unknown`.
    pub status: Box<str>,
    /// One word that says why.
    pub reason: Box<str>,
    /// Text to `reason`.
    pub message: Box<str>,
    /// When `status` last changed.
    pub last_transition_time: Option<Timestamp>,
}

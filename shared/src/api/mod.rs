//! The four kinds of `ray.io/v1`, spec and status. Doc comments of fields are what `kubectl explain` shows.
//!
//! Optional fields stay `Option`, so that "absent" and "zero" are never confused: a value that an older
//! CustomResourceDefinition pruned must not be read as an order to delete something.

#![allow(unreachable_pub)] // kube-derive repeats each struct inside a function to make its schema
#![allow(clippy::duplicated_attributes)] // printer columns share arguments, which the lint takes for a mistake

pub mod raycluster;
pub mod raycronjob;
pub mod rayjob;
pub mod rayservice;

pub use raycluster::{RayCluster, RayClusterSpec, RayClusterStatus};
pub use raycronjob::{RayCronJob, RayCronJobSpec, RayCronJobStatus};
pub use rayjob::{RayJob, RayJobSpec, RayJobStatus};
pub use rayservice::{RayService, RayServiceSpec, RayServiceStatus};

/// `spec.managedBy` value that means this operator (RC-101). Absent means the same.
pub const MANAGED_BY_OPERATOR: &str = "ray.io/kuberay-operator";
/// `spec.managedBy` value for Kueue's MultiKueue, which owns the object then.
pub const MANAGED_BY_MULTIKUEUE: &str = "kueue.x-k8s.io/multikueue";

/// Whether another controller owns an object with this `spec.managedBy` (RC-101, RJ-21).
pub fn managed_elsewhere(managed_by: Option<&str>) -> bool {
    managed_by.is_some_and(|name| !name.is_empty() && name != MANAGED_BY_OPERATOR)
}

/// Rule of `spec.managedBy` that it never changes.
pub(crate) const MANAGED_BY_IMMUTABLE: &str = "self == oldSelf";
/// Rule of `spec.managedBy` that only two values exist.
pub(crate) const MANAGED_BY_VALUES: &str = "self in ['ray.io/kuberay-operator', 'kueue.x-k8s.io/multikueue']";

/// serde helper: keeps `false`, zero and empty values of a status out of what is written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

//! What a cluster needs at once (BS-7, BS-8).

use std::collections::BTreeMap;

use shared::api::RayClusterSpec;
use shared::api::raycluster::WorkerGroupSpec;
use shared::quantity::Quantity as Amount;

use crate::build::resources::{add, amounts_for, desired_pods, least_pods};

/// Pods that are to start together, and what they ask for in all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// Number of Pods.
    pub members: i32,
    /// Resources by name.
    pub resources: BTreeMap<String, Amount>,
}

impl Demand {
    /// The head and every wanted worker; with autoscaling, the head and the workers that are always there (BS-13). Members and
    /// resources are those of the same Pods (BS-8).
    pub fn of(spec: &RayClusterSpec) -> Self {
        let pods: fn(&WorkerGroupSpec) -> i32 = if spec.autoscaling() { least_pods } else { desired_pods };
        Self { members: spec.worker_groups().iter().map(pods).fold(1, i32::saturating_add), resources: amounts_for(spec, pods) }
    }

    /// The same with more resources, but no more members.
    #[must_use]
    pub fn and(mut self, more: &BTreeMap<String, Amount>) -> Self {
        add(&mut self.resources, more, 1);
        self
    }
}

//! What is kept of PodGroups. They are watched only where a gang scheduler was chosen that has them (BS-20), and only those that the
//! operator has made: schedulers make many more.

use super::{
    cache::{Cache, Kept, Scope},
    trim,
};
use crate::build::scheduling::pod_group::{Family, Plugins, PodGroup, Volcano};

/// PodGroups by family; at most one of the caches is filled.
#[derive(Clone)]
pub struct PodGroups {
    /// Volcano's.
    pub volcano: Cache<PodGroup<Volcano>>,
    /// Those of scheduler-plugins.
    pub plugins: Cache<PodGroup<Plugins>>,
}

impl PodGroups {
    /// Empty caches.
    pub(super) fn new(scopes: &[Scope]) -> Self {
        Self { volcano: Cache::new(|_| None, scopes), plugins: Cache::new(|_| None, scopes) }
    }
}

impl<F: Family> Kept for PodGroup<F> {
    fn trim(&mut self) {
        trim::to_identity(&mut self.metadata);
        self.metadata.managed_fields = None;
    }

    /// Schedulers write down all the time how a group fares; that is nothing to the operator.
    fn differs(&self, older: &Self) -> bool {
        self.spec != older.spec || trim::metadata_differs(&self.metadata, &older.metadata)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bs_20_only_what_a_group_asks_for_wakes_anybody() {
        let read = |version: &str, members: i32, phase: &str| {
            let mut group: PodGroup<Volcano> = serde_json::from_value(json!({
                "metadata": { "name": "g", "namespace": "n", "uid": "u", "resourceVersion": version, "labels": { "a": "b" },
                              "managedFields": [{ "manager": "m" }] },
                "spec": { "minMember": members }, "status": { "phase": phase },
            }))
            .unwrap();
            group.trim();
            group
        };
        let known = read("1", 3, "Pending");
        assert!(known.metadata.labels.is_none() && known.metadata.managed_fields.is_none());
        assert!(!read("2", 3, "Running").differs(&known));
        assert!(read("2", 4, "Pending").differs(&known));
    }
}

//! The coscheduling plugin of scheduler-plugins (BS-50..BS-54): a cluster that asks for it has a PodGroup of its own name, also one that
//! a RayJob made.

use shared::api::RayCluster;
use shared::labels::gang;

use super::marks::{Marks, Parent};
use super::pod_group::{Group, PodGroup};
use super::{Demand, Gang};
use crate::build::owner_reference;

/// BS-52. A submitter is in no group: it comes when the others run already.
pub(super) fn marks(parent: Parent<'_>) -> Marks {
    let mut marks = Marks::default();
    if let Parent::Cluster(cluster) = parent
        && parent.wants_gang()
    {
        marks.label(gang::PLUGINS_GROUP, name(cluster));
    }
    marks
}

/// BS-51. The kind takes no group of nobody, so one that is not needed goes.
pub(super) fn of_cluster(cluster: &RayCluster, wants_pods: bool) -> Gang {
    if !wants_pods || !Parent::Cluster(cluster).wants_gang() {
        return Gang::Remove { name: name(cluster).to_owned() };
    }
    let group = PodGroup::new(name(cluster).to_owned(), &cluster.metadata, owner_reference(cluster), Demand::of(&cluster.spec));
    Gang::Hold(Box::new(Group::Plugins(group)))
}

fn name(cluster: &RayCluster) -> &str {
    cluster.metadata.name.as_deref().unwrap_or_default()
}

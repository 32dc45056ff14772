//! Where the head keeps its state (RC-80).

use shared::api::RayCluster;
use shared::api::raycluster::GcsBackend;
use shared::labels::annotation;

/// A store outside the head's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GcsStore {
    /// A Redis server.
    Redis,
    /// A database on a volume of the head.
    Embedded,
}

/// The store of the cluster's head; `None` if its state is lost with the head.
pub fn gcs_store(cluster: &RayCluster) -> Option<GcsStore> {
    let annotated = cluster.metadata.annotations.as_ref().and_then(|annotations| annotations.get(annotation::FT_ENABLED));
    let options = cluster.spec.gcs_fault_tolerance_options.as_ref();
    if options.is_some_and(|options| options.backend == Some(GcsBackend::RocksDb)) {
        return Some(GcsStore::Embedded);
    }
    (options.is_some() || annotated.is_some_and(|value| value.eq_ignore_ascii_case("true"))).then_some(GcsStore::Redis)
}

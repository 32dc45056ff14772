//! RayCluster.

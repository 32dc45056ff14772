//! RayJob.

//! Client of the Ray dashboard (jobs and Serve).

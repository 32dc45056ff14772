//! End to end: both programs on a real node with real Ray. `make demo` shows the SidecarSubmitterRestart guide; the tests check it, and what
//! becomes of RayClusters.

pub mod guide;
pub mod install;
pub mod scenario;
pub mod show;

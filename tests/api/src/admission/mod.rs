//! The webhook in front of a real API server, with the webhook configurations of the chart.
//!
//! Everything here panics when it cannot be done, because no test can go on then.

mod load;
mod replica;
mod service;
mod world;

pub use load::{Failure, Load, handshake};
pub use replica::{Place, Program, Replica, quick_settling, short_lives};
pub use service::Service;
pub use world::{PATIENCE, SECRET, Scene, raycluster, until, with_namespace};

//! Container images without a container engine: archives that `ctr images import`, Docker and Podman load.

mod archive;
mod debian;
mod pause;
mod programs;
mod ray;
mod redis;

pub use archive::{Config, Entry, Image, Layer};
pub use pause::{PAUSE_IMAGE, pause};
pub use programs::{Program, debug_program, package, program};
pub use ray::{RAY_IMAGE, ray};
pub use redis::{REDIS_IMAGE, redis};

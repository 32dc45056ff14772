//! Container images without a container engine: archives that `ctr images import`, Docker and Podman load.

mod archive;
mod pause;
mod programs;
mod ray;

pub use archive::{Config, Entry, Image, Layer};
pub use pause::{PAUSE_IMAGE, pause};
pub use programs::{Program, package, program};
pub use ray::{RAY_IMAGE, ray};

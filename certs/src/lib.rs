//! Serving certificates for the admission webhook: made, renewed, rotated and swapped without losing a request.
//!
//! Two sources, both long-running loops that feed a [`Resolver`] and report a [`Status`]:
//! - [`authority::Authority`]: a CA of our own in a Secret, shared by all replicas, injected into the webhook configurations;
//! - [`directory::Directory`]: two mounted files that somebody else keeps (cert-manager, a person).
//!
//! Decisions are pure ([`decide`], [`bundle`], [`configurations`]); only `authority` talks to an API server. The crate knows nothing
//! of Ray, of the operator, or of who is being served.
//!
//! Private keys never reach a log, an error text or `Debug` output.

pub mod authority;
pub mod bundle;
mod clock;
pub mod configurations;
pub mod decide;
pub mod directory;
mod lifetimes;
mod pace;
mod resolver;
pub mod secret;
mod status;
#[cfg(test)]
mod testing;
mod x509;

pub use clock::Clock;
pub use lifetimes::Lifetimes;
pub use resolver::{Resolver, server_config};
pub use status::Status;
pub use x509::{Certificate, CertificateAuthority, Leaf, X509Error, read_pair};

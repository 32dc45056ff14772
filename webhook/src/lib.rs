//! The admission webhook of KubeRay's four kinds: [`serve`] answers an API server, [`check`] says the same about files.

pub mod check;
pub mod cli;
pub mod serve;

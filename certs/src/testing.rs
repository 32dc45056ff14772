//! Fixtures of this crate's tests: a time line in seconds and certificates on it.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::lifetimes::Lifetimes;
use crate::x509::{Certificate, CertificateAuthority};

pub(crate) const IDENTITY: &str = "ray-system/kuberay-webhook-ca";

/// Lives short enough to write tables with.
pub(crate) fn lifetimes() -> Lifetimes {
    Lifetimes {
        authority: SignedDuration::from_secs(900),
        leaf: SignedDuration::from_secs(90),
        backdate: SignedDuration::from_secs(0),
        settle: SignedDuration::from_secs(10),
        check: SignedDuration::from_secs(60),
    }
}

/// A point on the tests' time line.
pub(crate) fn second(offset: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + offset).expect("in range")
}

/// A CA of ours, made at `offset`, valid for 900 s.
pub(crate) fn authority_at(offset: i64) -> Arc<CertificateAuthority> {
    Arc::new(CertificateAuthority::generate(IDENTITY, &lifetimes(), second(offset)).expect("P-256 keys can be made"))
}

/// A CA certificate of somebody else.
pub(crate) fn foreign_at(offset: i64) -> Certificate {
    CertificateAuthority::generate("somebody else", &lifetimes(), second(offset)).expect("P-256 keys can be made").certificate().clone()
}

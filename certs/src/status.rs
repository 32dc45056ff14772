//! What a source of certificates reports about itself: for readiness, metrics and logs.

use jiff::Timestamp;

/// A snapshot of a certificate source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// End of the serving certificate's life; `None` while there is no certificate.
    pub not_after: Option<Timestamp>,
    /// End of its CA's life, where the CA is ours.
    pub authority_not_after: Option<Timestamp>,
    /// What is missing before clients can connect, one sentence each. Empty: they can.
    pub waiting: Vec<String>,
    /// What keeps some clients from connecting, one sentence each, although no other replica would serve them better.
    pub troubles: Vec<String>,
}

impl Status {
    /// The state before anything was read.
    pub fn starting() -> Self {
        Self { waiting: vec!["the serving certificate has not been loaded yet".to_owned()], ..Self::default() }
    }

    /// Why clients cannot connect at `now`; empty if they can.
    pub fn problems(&self, now: Timestamp) -> Vec<String> {
        let mut problems = self.waiting.clone();
        match self.not_after {
            None if problems.is_empty() => problems.push("there is no serving certificate".to_owned()),
            Some(end) if end <= now => problems.push(format!("the serving certificate expired at {end}")),
            _ => {}
        }
        problems
    }
}

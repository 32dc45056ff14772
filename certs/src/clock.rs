//! The one place of this crate that knows what time it is.
//!
//! Decisions take `now` as an argument; loops read it from a [`Clock`], which tests replace.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

/// A source of wall-clock time. Cheap to clone.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The clock of this machine.
    pub fn system() -> Self {
        #[allow(clippy::disallowed_methods, reason = "this is the clock that everything else takes time from")]
        Self(Arc::new(Timestamp::now))
    }

    /// A clock that asks `source`, for tests.
    pub fn from_fn(source: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// `time` plus `by`, clamped to the range that timestamps have.
pub(crate) fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    let clamp = if by.is_negative() { Timestamp::MIN } else { Timestamp::MAX };
    time.checked_add(by).unwrap_or(clamp)
}

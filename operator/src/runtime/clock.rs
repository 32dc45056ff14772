//! The one place that reads the wall clock.

use std::sync::{
    Arc,
    atomic::{AtomicI64, Ordering},
};

use jiff::Timestamp;

/// Tells the time, to the second where a status field holds it. Pure code gets the time as an argument; the shells around it ask
/// their clock.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Seconds since 1970 of a clock that stands still; the system's clock if absent.
    fixed: Option<Arc<AtomicI64>>,
}

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self::default()
    }

    /// A clock that stands still until it is [set](Clock::set).
    pub fn fixed(at: Timestamp) -> Self {
        Self { fixed: Some(Arc::new(AtomicI64::new(at.as_second()))) }
    }

    /// Sets a fixed clock. The system's clock goes its own way.
    pub fn set(&self, at: Timestamp) {
        if let Some(fixed) = &self.fixed {
            fixed.store(at.as_second(), Ordering::Relaxed);
        }
    }

    /// The time now.
    #[allow(clippy::disallowed_methods)] // this is the shell that everybody else asks
    pub fn now(&self) -> Timestamp {
        match &self.fixed {
            Some(fixed) => Timestamp::from_second(fixed.load(Ordering::Relaxed)).unwrap_or_default(),
            None => Timestamp::now(),
        }
    }
}

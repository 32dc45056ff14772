//! Keeps a level-triggered writer from running hot: when a write fails, or when somebody else undoes it again and again.

use std::time::Duration;

const BURST: u32 = 10;
const REFILL: Duration = Duration::from_secs(2);
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(15);

/// A token bucket with a back-off on errors. Time is the duration since any fixed start.
#[derive(Debug)]
pub(crate) struct Pace {
    tokens: u32,
    refilled: Duration,
    failures: u32,
    held_until: Duration,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { tokens: BURST, refilled: Duration::ZERO, failures: 0, held_until: Duration::ZERO }
    }

    /// How long to wait before the next write; zero takes a token.
    pub(crate) fn take(&mut self, now: Duration) -> Duration {
        if now < self.held_until {
            return self.held_until - now;
        }
        while self.tokens < BURST && now >= self.refilled + REFILL {
            self.tokens += 1;
            self.refilled += REFILL;
        }
        if self.tokens == BURST {
            self.refilled = now;
        }
        if self.tokens == 0 {
            return self.refilled + REFILL - now;
        }
        self.tokens -= 1;
        Duration::ZERO
    }

    /// A write went through.
    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// A write failed: the next one waits, longer each time.
    pub(crate) fn failed(&mut self, now: Duration) {
        self.held_until = now + LONGEST_DELAY.min(FIRST_DELAY * 2u32.saturating_pow(self.failures.min(8)));
        self.failures += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn bursts_are_fast_and_fights_are_slow() {
        let mut pace = Pace::new();
        for _ in 0..10 {
            assert_eq!(pace.take(at(100)), Duration::ZERO);
        }
        assert_eq!(pace.take(at(100)), REFILL, "the burst is used up");
        assert_eq!(pace.take(at(1_600)), at(500));
        assert_eq!(pace.take(at(2_100)), Duration::ZERO);
        assert_eq!(pace.take(at(2_200)), at(1_900));
        for _ in 0..10 {
            assert_eq!(pace.take(at(60_000)), Duration::ZERO, "a quiet minute refills it");
        }
        assert_ne!(pace.take(at(60_000)), Duration::ZERO);
    }

    #[test]
    fn failures_back_off_and_success_forgets_them() {
        let mut pace = Pace::new();
        let mut waits = vec![];
        for _ in 0..7 {
            pace.failed(at(1_000));
            waits.push(pace.take(at(1_000)).as_millis());
        }
        assert_eq!(waits, [500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
        pace.succeeded();
        pace.failed(at(20_000));
        assert_eq!(pace.take(at(20_000)), at(500));
        assert_eq!(pace.take(at(20_600)), Duration::ZERO);
    }
}

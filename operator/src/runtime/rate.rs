//! How fast requests may be made (`--qps`, `--burst`; RC-253). No I/O; time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// A bucket that fills with a constant rate; each request takes one token, if need be one that is not there yet.
#[derive(Clone, Debug)]
pub struct Bucket {
    rate: f64,
    capacity: f64,
    tokens: f64,
    at: Instant,
}

impl Bucket {
    /// A full bucket. `rate` in tokens a second must be above 0; a `burst` of 0 means 1.
    pub fn new(rate: f64, burst: u32, now: Instant) -> Self {
        let capacity = f64::from(burst.max(1));
        Self { rate, capacity, tokens: capacity, at: now }
    }

    /// Takes a token and tells from when on it may be used.
    pub fn take(&mut self, now: Instant) -> Instant {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.tokens = (self.tokens + passed * self.rate).min(self.capacity) - 1.0;
        self.at = now;
        let missing = Duration::try_from_secs_f64((-self.tokens).max(0.0) / self.rate).unwrap_or(Duration::MAX);
        now.checked_add(missing).unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_free_and_then_the_rate_counts() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10.0, 3, start);
        let waits: Vec<u128> = (0..6).map(|_| (bucket.take(start) - start).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200, 300]);
    }

    #[test]
    fn an_idle_bucket_fills_up_to_its_burst() {
        let start = Instant::now();
        let mut bucket = Bucket::new(10.0, 2, start);
        for _ in 0..4 {
            bucket.take(start);
        }
        let later = start + Duration::from_secs(3600);
        let waits: Vec<u128> = (0..3).map(|_| (bucket.take(later) - later).as_millis()).collect();
        assert_eq!(waits, [0, 0, 100]);
    }

    #[test]
    fn no_burst_means_one_at_a_time() {
        let start = Instant::now();
        let mut bucket = Bucket::new(4.0, 0, start);
        assert_eq!(bucket.take(start), start);
        assert_eq!(bucket.take(start), start + Duration::from_millis(250));
    }
}

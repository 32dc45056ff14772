//! When to speak of a collector that cannot be reached: once when it begins, once when it is over. Pure.

/// Whether the last try worked.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    failed: u64,
}

impl Outage {
    /// A try has failed. `true` if that is news.
    pub(crate) fn failed(&mut self) -> bool {
        self.failed += 1;
        self.failed == 1
    }

    /// A try has worked. How many had failed before it, if any had.
    pub(crate) fn worked(&mut self) -> Option<u64> {
        Some(std::mem::take(&mut self.failed)).filter(|failed| *failed > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_are_news_and_nothing_between() {
        let mut outage = Outage::default();
        assert_eq!(outage.worked(), None);
        assert_eq!([outage.failed(), outage.failed(), outage.failed()], [true, false, false]);
        assert_eq!([outage.worked(), outage.worked()], [Some(3), None]);
        assert!(outage.failed(), "the next one is news again");
    }
}

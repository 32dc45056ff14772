//! Ports that several instances, in several processes, never give out twice.

use std::{fs::File, net::TcpListener};

use anyhow::{Result, bail};

use crate::cache::Cache;

/// Below the range from which the kernel takes ports for outgoing connections (32768 and up), so that none of those gets in between.
const FIRST: u16 = 21_000;
const LAST: u16 = 29_999;

/// A port of the loopback address that stays reserved until this is dropped, or its process ends.
#[derive(Debug)]
pub(crate) struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// A port that nobody listens on and no other instance has reserved.
    ///
    /// # Errors
    /// When all of them are taken, or the cache folder cannot be written.
    pub(crate) fn reserve(cache: &Cache) -> Result<Self> {
        // Spread the starting points, so that processes do not walk over each other's ports one by one.
        let start = u16::try_from(std::process::id() % 450)? * 20;
        let count = LAST - FIRST + 1;
        for step in 0..count {
            let number = FIRST + (start + step) % count;
            if let Some(lock) = cache.try_lock(&format!("port-{number}"))?
                && TcpListener::bind(("127.0.0.1", number)).is_ok()
            {
                return Ok(Self { number, _lock: lock });
            }
        }
        bail!("no free port between {FIRST} and {LAST} on the loopback address")
    }

    /// The number.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_differ_while_reserved_and_skip_those_in_use() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().to_owned());
        let first = Port::reserve(&cache).unwrap();
        let second = Port::reserve(&cache).unwrap();
        assert_ne!(first.number(), second.number());
        let number = first.number();
        let listener = TcpListener::bind(("127.0.0.1", number)).unwrap();
        drop(first);
        let third = Port::reserve(&cache).unwrap();
        assert_ne!(third.number(), number, "somebody listens there");
        drop(listener);
    }
}

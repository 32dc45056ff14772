//! A process that can be told apart from a later one with the same number.

use std::{fmt, fs, str::FromStr};

use anyhow::{Context, Result};
use rustix::process::Pid;

/// A process number together with the time of its start, so that a number used again is never taken for the old process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The process's number.
    pub pid: i32,
    /// When it started, in clock ticks since boot.
    pub start: u64,
}

/// What is needed of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    parent: i32,
    start: u64,
}

impl Identity {
    /// The process that has this number now, if there is one.
    pub fn of(pid: i32) -> Option<Self> {
        stat(pid).map(|stat| Self { pid, start: stat.start })
    }

    /// This very process.
    ///
    /// # Errors
    /// Where `/proc` is not mounted.
    pub fn current() -> Result<Self> {
        let pid = i32::try_from(std::process::id())?;
        Self::of(pid).context("/proc does not show this process: the test cluster needs Linux with /proc mounted")
    }

    /// Whether it still runs. A process that ended and that nobody has waited for yet does not.
    pub fn alive(&self) -> bool {
        stat(self.pid).is_some_and(|stat| stat.start == self.start && !matches!(stat.state, 'Z' | 'X'))
    }

    pub(crate) fn as_pid(self) -> Option<Pid> {
        Pid::from_raw(self.pid)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pid, self.start)
    }
}

impl FromStr for Identity {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (pid, start) = text.trim().split_once(' ').context("a process is recorded as `PID START`")?;
        Ok(Self { pid: pid.parse()?, start: start.parse()? })
    }
}

/// Reads `/proc/PID/stat`.
fn stat(pid: i32) -> Option<Stat> {
    fs::read_to_string(format!("/proc/{pid}/stat")).ok().as_deref().and_then(parse_stat)
}

/// The children of a process, those of all its threads.
pub(crate) fn children_of(parent: i32) -> Vec<Identity> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| stat(pid).filter(|stat| stat.parent == parent).map(|stat| Identity { pid, start: stat.start })).collect()
}

/// The fields after the program's name, which may itself hold spaces and parentheses.
fn parse_stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let start = fields.nth(17)?.parse().ok()?;
    Some(Stat { state, parent, start })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_is_read_past_a_nasty_name() {
        let line = "42 (a) b (c) S 7 42 42 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 98765 1000 10 18446744073709551615";
        assert_eq!(parse_stat(line), Some(Stat { state: 'S', parent: 7, start: 98765 }));
        assert_eq!(parse_stat("42 (x) S 7"), None);
    }

    #[test]
    fn an_identity_survives_being_written_down() {
        let me = Identity::current().unwrap();
        assert!(me.alive());
        assert_eq!(me.to_string().parse::<Identity>().unwrap(), me);
        assert!(!Identity { pid: me.pid, start: me.start + 1 }.alive(), "same number, another process");
        assert!("17".parse::<Identity>().is_err());
    }
}

//! What a candidate does about the lease it sees. No I/O; time is an argument.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use tokio::time::Instant;

use super::{DURATION, RETRY};

/// What a lease says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Record {
    /// Who leads; empty if nobody does.
    pub(super) holder: String,
    /// How long the lease is good after it was renewed, as its holder says.
    pub(super) duration: Duration,
    /// Since when the holder leads.
    pub(super) acquired: Option<Timestamp>,
    /// When the lease was last renewed, by the holder's clock.
    pub(super) renewed: Option<Timestamp>,
    /// How often the holder has changed.
    pub(super) transitions: i32,
}

impl From<Lease> for Record {
    fn from(lease: Lease) -> Self {
        let spec = lease.spec.unwrap_or_default();
        Self {
            holder: spec.holder_identity.unwrap_or_default(),
            duration: spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok()).map_or(DURATION, Duration::from_secs),
            acquired: spec.acquire_time.map(|time| time.0),
            renewed: spec.renew_time.map(|time| time.0),
            transitions: spec.lease_transitions.unwrap_or_default(),
        }
    }
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    /// Somebody else leads: look again after this time.
    Wait(Duration),
    /// Take or renew the lease by writing this.
    Write(Record),
}

/// Decides what candidate `me` does about the lease. `seen` is what it says and when this process saw it change for the last time;
/// absent if there is no lease. `now` is the local monotonic time, `wall` the wall clock, which is only written, never compared.
pub(super) fn decide(seen: Option<(&Record, Instant)>, now: Instant, wall: Timestamp, me: &str) -> Action {
    let mine = |acquired: Option<Timestamp>, transitions| {
        Action::Write(Record {
            holder: me.to_owned(),
            duration: DURATION,
            acquired: Some(acquired.unwrap_or(wall)),
            renewed: Some(wall),
            transitions,
        })
    };
    match seen {
        None => mine(None, 0),
        Some((record, _)) if record.holder == me => mine(record.acquired, record.transitions),
        Some((record, at)) => {
            let left = (at + record.duration).saturating_duration_since(now);
            if record.holder.is_empty() || left.is_zero() {
                mine(None, record.transitions.saturating_add(1))
            } else {
                Action::Wait(left.min(RETRY))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(holder: &str) -> Record {
        Record { holder: holder.to_owned(), duration: DURATION, acquired: Some(wall(100)), renewed: Some(wall(200)), transitions: 3 }
    }

    fn wall(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn mine(acquired: i64, transitions: i32) -> Action {
        Action::Write(Record {
            holder: "me".to_owned(),
            duration: DURATION,
            acquired: Some(wall(acquired)),
            renewed: Some(wall(900)),
            transitions,
        })
    }

    #[test]
    fn what_a_candidate_does() {
        let second = Duration::from_secs(1);
        let short = Record { duration: second, ..record("other") };
        let table: Vec<(&str, Option<Record>, Duration, Action)> = vec![
            ("no lease", None, Duration::ZERO, mine(900, 0)),
            ("own lease is renewed and keeps its beginning", Some(record("me")), second, mine(100, 3)),
            ("own lease that ran out while this process slept", Some(record("me")), second * 100, mine(100, 3)),
            ("given back", Some(record("")), Duration::ZERO, mine(900, 4)),
            ("just seen", Some(record("other")), Duration::ZERO, Action::Wait(RETRY)),
            ("nearly run out", Some(record("other")), second * 14, Action::Wait(second)),
            ("run out", Some(record("other")), second * 15, mine(900, 4)),
            ("the holder's own duration counts", Some(short), second, mine(900, 4)),
        ];
        let start = Instant::now();
        for (case, seen, passed, wanted) in table {
            let seen = seen.as_ref().map(|record| (record, start));
            assert_eq!(decide(seen, start + passed, wall(900), "me"), wanted, "{case}");
        }
    }

    #[test]
    fn wall_clocks_do_not_matter() {
        // The holder's clock is an hour behind, or an hour ahead: what counts is how long the lease has been seen unchanged.
        let start = Instant::now();
        for renewed in [wall(900 - 3600), wall(900 + 3600)] {
            let record = Record { renewed: Some(renewed), ..record("other") };
            assert_eq!(decide(Some((&record, start)), start + RETRY, wall(900), "me"), Action::Wait(RETRY));
        }
    }

    #[test]
    fn an_old_lease_is_not_taken_at_first_sight() {
        // A process that has just started cannot know whether a lease renewed long ago by somebody else's clock is still alive.
        let record = Record { renewed: Some(wall(1)), ..record("other") };
        let now = Instant::now();
        assert_eq!(decide(Some((&record, now)), now, wall(900), "me"), Action::Wait(RETRY));
    }

    #[test]
    fn a_lease_without_fields_belongs_to_nobody() {
        let empty = Record::from(Lease::default());
        assert_eq!(empty.holder, "");
        assert_eq!(empty.duration, DURATION);
    }
}

//! Cron schedules as KubeRay understands them (RCJ-12, RCJ-13), evaluated in a time zone.
//!
//! Five fields (minute, hour, day of month, month, day of week), the descriptors `@hourly` … `@yearly`, and
//! `@every <duration>`. Daylight saving time: a wall time that is skipped in spring is not run that day, one that occurs twice
//! in autumn is run twice. The clock is an argument; the time zone database is part of the program.

mod parse;
mod search;

use std::sync::LazyLock;

use jiff::{
    Timestamp,
    tz::{TimeZone, TimeZoneDatabase},
};

/// A parsed schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// At the wall times that match all fields.
    Fields(Fields),
    /// Again and again after the same time, counted from whatever the caller counts from.
    Every {
        /// Distance of two runs in seconds, at least 1.
        seconds: i64,
    },
}

/// The times that match: bit n of a set stands for the value n.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether the day of the month is open (`*` or `?`): then both day fields must match, otherwise one of them.
    any_day: bool,
    /// Whether the day of the week is open.
    any_weekday: bool,
}

/// Why a schedule cannot be read; worded for the one who wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScheduleError(String);

/// Why a time zone cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZoneError {
    /// The name is empty.
    #[error("the name of the time zone is empty")]
    Empty,
    /// `Local` is whatever the operator's machine says.
    #[error("the time zone Local depends on the machine")]
    Local,
    /// No such name in the IANA database; upper and lower case count.
    #[error("there is no such time zone")]
    Unknown,
}

/// The time zone of this name, from the database inside the program.
///
/// # Errors
/// See [`ZoneError`].
pub fn zone(name: &str) -> Result<TimeZone, ZoneError> {
    static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);
    match name {
        "" => Err(ZoneError::Empty),
        "Local" => Err(ZoneError::Local),
        "UTC" => Ok(TimeZone::UTC),
        // The library's stand-in for an unknown zone; the IANA database has no such zone.
        "Etc/Unknown" => Err(ZoneError::Unknown),
        _ => {
            let zone = DATABASE.get(name).map_err(|_| ZoneError::Unknown)?;
            if zone.iana_name() == Some(name) { Ok(zone) } else { Err(ZoneError::Unknown) }
        }
    }
}

impl Schedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// If the text is neither five fields nor a known descriptor. A schedule without any time that matches is no error here, see
    /// [`Schedule::ever_fires`].
    pub fn parse(text: &str) -> Result<Self, ScheduleError> {
        parse::schedule(text)
    }

    /// Whether there is any date that matches. `0 0 30 2 *` has none.
    pub fn ever_fires(&self) -> bool {
        match self {
            Self::Fields(fields) => fields.ever_match(),
            Self::Every { .. } => true,
        }
    }

    /// The first activation strictly after an instant. `None` if there is none (or it lies beyond the calendar).
    pub fn next_after(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Fields(fields) => search::next_after(fields, after, zone),
            Self::Every { seconds } => Timestamp::from_second(after.as_second().checked_add(*seconds)?).ok(),
        }
    }

    /// The last activation that is not after `now` and lies strictly after `since`: of several missed runs, the one to make
    /// up for. `@every` counts from `since`.
    pub fn latest_at_or_before(&self, now: Timestamp, since: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Fields(fields) => search::latest_at_or_before(fields, now, zone).filter(|found| *found > since),
            Self::Every { seconds } => {
                let elapsed = now.as_second().checked_sub(since.as_second())?;
                let runs = elapsed.div_euclid(*seconds);
                if runs < 1 {
                    return None;
                }
                Timestamp::from_second(since.as_second() + runs * seconds).ok()
            }
        }
    }
}

impl Fields {
    fn ever_match(&self) -> bool {
        if self.minutes == 0 || self.hours == 0 {
            return false;
        }
        let some_date = (1..).zip(LONGEST).any(|(month, last)| self.months & (1 << month) != 0 && self.days & below(last + 1) != 0);
        let some_weekday = self.weekdays != 0 && self.months != 0;
        if self.any_day || self.any_weekday { some_date && some_weekday } else { some_date || some_weekday }
    }

    fn matches_month(&self, month: i8) -> bool {
        self.months & (1 << month) != 0
    }

    fn matches_day(&self, day: i8, weekday: i8) -> bool {
        let (day, weekday) = (self.days & (1 << day) != 0, self.weekdays & (1 << weekday) != 0);
        if self.any_day || self.any_weekday { day && weekday } else { day || weekday }
    }

    /// The first matching minute of a day at or after `from` (minutes since midnight).
    fn first_minute(&self, from: u32) -> Option<u32> {
        let (hour, minute) = (from / 60, from % 60);
        let now = (self.hours & (1 << hour.min(63)) != 0 && hour < 24).then(|| self.minutes & !below(minute)).filter(|left| *left != 0);
        if let Some(left) = now {
            return Some(hour * 60 + left.trailing_zeros());
        }
        let later = self.hours & !below((hour + 1).min(63));
        (later != 0 && self.minutes != 0).then(|| later.trailing_zeros() * 60 + self.minutes.trailing_zeros())
    }

    /// The last matching minute of a day at or before `to` (minutes since midnight).
    fn last_minute(&self, to: u32) -> Option<u32> {
        let last_bit = |set: u64| 63 - set.leading_zeros();
        let (hour, minute) = ((to / 60).min(23), to % 60);
        let now = (self.hours & (1 << hour) != 0).then(|| self.minutes & below(minute + 1)).filter(|left| *left != 0);
        if let Some(left) = now {
            return Some(hour * 60 + last_bit(left));
        }
        let earlier = self.hours & below(hour);
        (earlier != 0 && self.minutes != 0).then(|| last_bit(earlier) * 60 + last_bit(self.minutes))
    }
}

/// Days of each month in its longest year.
const LONGEST: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/// The set of all values below `limit` (at most 63).
const fn below(limit: u32) -> u64 {
    (1 << limit) - 1
}

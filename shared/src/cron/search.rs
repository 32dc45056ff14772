//! Finding activations.
//!
//! Between two changes of a zone's offset, wall time runs evenly. So each stretch is searched on its own, in wall time: a wall
//! time that is skipped belongs to no stretch, one that occurs twice belongs to two.

use jiff::{
    Timestamp, ToSpan,
    civil::{Date, DateTime},
    tz::{Offset, TimeZone},
};

use super::Fields;

/// How far to look. A 29 February can be eight years away (around 2100).
const HORIZON_YEARS: i16 = 9;

pub(super) fn next_after(fields: &Fields, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    if !fields.ever_match() {
        return None;
    }
    let mut from = Timestamp::from_second(after.as_second().checked_add(1)?).ok()?;
    let last_year = wall(from, zone.to_offset(from))?.year().saturating_add(HORIZON_YEARS);
    loop {
        let offset = zone.to_offset(from);
        let end = zone.following(from).next().map(|transition| transition.timestamp());
        let found = first_match(fields, wall(from, offset)?, last_year).and_then(|wall| offset.to_timestamp(wall).ok());
        match (found, end) {
            (Some(found), Some(end)) if found >= end => from = end,
            (Some(found), _) => return Some(found),
            // The stretch has no match up to the horizon, and neither have later ones, whose wall times are the same.
            (None, _) => return None,
        }
    }
}

pub(super) fn latest_at_or_before(fields: &Fields, now: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    if !fields.ever_match() {
        return None;
    }
    let mut to = Timestamp::from_second(now.as_second()).ok()?;
    let first_year = wall(to, zone.to_offset(to))?.year().saturating_sub(HORIZON_YEARS);
    loop {
        let offset = zone.to_offset(to);
        // The stretch begins at its transition; `preceding` leaves out one that is exactly here.
        let next_second = Timestamp::from_second(to.as_second().checked_add(1)?).ok()?;
        let begin = zone.preceding(next_second).next().map(|transition| transition.timestamp());
        let found = last_match(fields, wall(to, offset)?, first_year).and_then(|wall| offset.to_timestamp(wall).ok());
        match (found, begin) {
            (Some(found), Some(begin)) if found < begin => to = Timestamp::from_second(begin.as_second().checked_sub(1)?).ok()?,
            (Some(found), _) => return Some(found),
            (None, _) => return None,
        }
    }
}

fn wall(instant: Timestamp, offset: Offset) -> Option<DateTime> {
    Some(offset.to_datetime(instant))
}

fn first_match(fields: &Fields, from: DateTime, last_year: i16) -> Option<DateTime> {
    let mut date = from.date();
    let seconds = i64::from(from.hour()) * 3600 + i64::from(from.minute()) * 60 + i64::from(from.second());
    // A run is at second 0: within a minute only the next one counts.
    let mut minute = u32::try_from(seconds.div_euclid(60) + i64::from(seconds % 60 != 0)).ok()?;
    while date.year() <= last_year {
        if !fields.matches_month(date.month()) {
            date = date.first_of_month().checked_add(1.month()).ok()?;
        } else {
            if fields.matches_day(date.day(), weekday(date))
                && let Some(found) = fields.first_minute(minute)
            {
                return at(date, found);
            }
            date = date.tomorrow().ok()?;
        }
        minute = 0;
    }
    None
}

fn last_match(fields: &Fields, to: DateTime, first_year: i16) -> Option<DateTime> {
    let mut date = to.date();
    let mut minute = u32::try_from(i32::from(to.hour()) * 60 + i32::from(to.minute())).ok()?;
    while date.year() >= first_year {
        if !fields.matches_month(date.month()) {
            date = date.first_of_month().yesterday().ok()?;
        } else {
            if fields.matches_day(date.day(), weekday(date))
                && let Some(found) = fields.last_minute(minute)
            {
                return at(date, found);
            }
            date = date.yesterday().ok()?;
        }
        minute = 24 * 60 - 1;
    }
    None
}

fn weekday(date: Date) -> i8 {
    date.weekday().to_sunday_zero_offset()
}

fn at(date: Date, minute: u32) -> Option<DateTime> {
    Some(date.at(i8::try_from(minute / 60).ok()?, i8::try_from(minute % 60).ok()?, 0, 0))
}

//! Schedules against what is known of them: the grammar, daylight saving time, missed runs, dates that never come.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::needless_pass_by_value)] // helpers of tests

use jiff::{Timestamp, tz::TimeZone};
use proptest::prelude::*;
use shared::cron::{Schedule, ZoneError, zone};

fn instant(text: &str) -> Timestamp {
    text.parse().expect("an instant")
}

fn schedule(text: &str) -> Schedule {
    Schedule::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn next(text: &str, after: &str, zone_name: &str) -> String {
    schedule(text).next_after(instant(after), &zone(zone_name).unwrap()).map_or("never".to_owned(), |found| found.to_string())
}

#[test]
fn the_grammar_has_five_fields_with_lists_ranges_steps_and_names() {
    for text in [
        "* * * * *",
        "? ? ? ? ?",
        "59/10,0 23 1-31/7 jan,JUL-DEC sun-SAT",
        "0-59/70 * * * *",
        "  5   4 * *   *  ",
        "0 0 1,15 * 1",
        "@yearly",
        "@annually",
        "@monthly",
        "@weekly",
        "@daily",
        "@midnight",
        "@hourly",
        "@every 1h30m10s",
        "@every 10ms",
    ] {
        schedule(text);
    }
    for text in [
        "",
        " ",
        "* * * *",
        "* * * * * *",
        "60 * * * *",
        "-1 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 0 *",
        "* * * 13 *",
        "* * * * 7",
        "* * * * sunday",
        "* * * foo *",
        "5-1 * * * *",
        "1-2-3 * * * *",
        "*/0 * * * *",
        "*/x * * * *",
        "*/-1 * * * *",
        "1/2/3 * * * *",
        ", * * * *",
        "+1 * * * *",
        "*-5 * * * *",
        "a * * * *",
        "@reboot",
        "@Daily",
        "@daily ",
        "@every",
        "@every ",
        "@every 1",
        "@every 1x",
        "é * * * *",
    ] {
        assert!(Schedule::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn the_next_run_is_strictly_later() {
    let table = [
        ("*/5 * * * *", "2024-01-01T00:00:00Z", "2024-01-01T00:05:00Z"),
        ("*/5 * * * *", "2024-01-01T00:04:59.999Z", "2024-01-01T00:05:00Z"),
        ("*/5 * * * *", "2024-01-01T00:05:00.5Z", "2024-01-01T00:10:00Z"),
        ("0 0 * * *", "2024-12-31T00:00:00Z", "2025-01-01T00:00:00Z"),
        ("30 4 * * mon-fri", "2024-01-05T12:00:00Z", "2024-01-08T04:30:00Z"),
        ("0 0 29 2 *", "2024-02-29T00:00:00Z", "2028-02-29T00:00:00Z"),
        ("0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"),
        ("59/10,0 * * * *", "2024-01-01T00:00:00Z", "2024-01-01T00:59:00Z"),
        ("10/20 * * * *", "2024-01-01T00:10:00Z", "2024-01-01T00:30:00Z"),
        // Both day fields are restricted: one of them is enough. An open one does not count, but an open one with a step does.
        ("0 0 13 * fri", "2024-01-01T00:00:00Z", "2024-01-05T00:00:00Z"),
        ("0 0 * * fri", "2024-01-01T00:00:00Z", "2024-01-05T00:00:00Z"),
        ("0 0 13 * ?", "2024-01-01T00:00:00Z", "2024-01-13T00:00:00Z"),
        ("0 0 */10 * fri", "2024-01-01T00:00:00Z", "2024-01-05T00:00:00Z"),
        ("0 0 */1 * fri", "2024-01-01T00:00:00Z", "2024-01-05T00:00:00Z"),
        ("0 0 31 4 mon", "2024-04-02T00:00:00Z", "2024-04-08T00:00:00Z"),
        ("@weekly", "2024-01-01T00:00:00Z", "2024-01-07T00:00:00Z"),
        ("@monthly", "2024-01-01T00:00:00Z", "2024-02-01T00:00:00Z"),
        ("@every 90m", "2024-01-01T00:00:30.7Z", "2024-01-01T01:30:30Z"),
        ("@every 10ms", "2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z"),
        ("0 0 30 2 *", "2024-01-01T00:00:00Z", "never"),
        ("0 0 31 2,4,6,9,11 *", "2024-01-01T00:00:00Z", "never"),
        ("0 0 1 1 *", "9999-06-01T00:00:00Z", "never"),
    ];
    for (text, after, wanted) in table {
        assert_eq!(next(text, after, "UTC"), wanted, "{text} after {after}");
    }
}

#[test]
fn impossible_dates_are_known_as_such() {
    for (text, wanted) in [
        ("0 0 30 2 *", false),
        ("0 0 31 4,6,9,11 *", false),
        ("0 0 29 2 *", true),
        ("0 0 30,31 2,3 *", true),
        // A restricted weekday makes every date good.
        ("0 0 30 2 mon", true),
        ("0 0 30 2 */1", false),
        ("@every 1s", true),
    ] {
        assert_eq!(schedule(text).ever_fires(), wanted, "{text}");
    }
}

#[test]
fn wall_time_rules_and_daylight_saving_is_respected() {
    let new_york = "America/New_York";
    let table = [
        // 02:30 does not exist on 2024-03-10.
        ("30 2 * * *", "2024-03-09T12:00:00Z", new_york, "2024-03-11T06:30:00Z"),
        ("0 3 * * *", "2024-03-09T12:00:00Z", new_york, "2024-03-10T07:00:00Z"),
        // 01:30 occurs twice on 2024-11-03.
        ("30 1 * * *", "2024-11-03T04:00:00Z", new_york, "2024-11-03T05:30:00Z"),
        ("30 1 * * *", "2024-11-03T05:30:00Z", new_york, "2024-11-03T06:30:00Z"),
        ("30 1 * * *", "2024-11-03T06:30:00Z", new_york, "2024-11-04T06:30:00Z"),
        // Every half hour goes on through both changes.
        ("*/30 * * * *", "2024-03-10T06:30:00Z", new_york, "2024-03-10T07:00:00Z"),
        ("*/30 * * * *", "2024-11-03T05:30:00Z", new_york, "2024-11-03T06:00:00Z"),
        // Midnight does not exist on this day in São Paulo.
        ("0 0 * * *", "2018-11-03T12:00:00Z", "America/Sao_Paulo", "2018-11-05T02:00:00Z"),
        ("0 1 * * *", "2024-01-01T00:00:00Z", "Asia/Tokyo", "2024-01-01T16:00:00Z"),
        ("45 6 * * mon-fri", "2024-07-05T12:00:00Z", new_york, "2024-07-08T10:45:00Z"),
        // Half an hour of daylight saving, and an offset of 45 minutes.
        ("15 2 * * *", "2024-10-05T12:00:00Z", "Australia/Lord_Howe", "2024-10-06T15:15:00Z"),
        ("0 12 * * *", "2024-01-01T00:00:00Z", "Asia/Kathmandu", "2024-01-01T06:15:00Z"),
    ];
    for (text, after, zone, wanted) in table {
        assert_eq!(next(text, after, zone), wanted, "{text} after {after} in {zone}");
    }
}

#[test]
fn the_last_missed_run_is_found() {
    let latest = |text: &str, now: &str, since: &str, name: &str| {
        let found = schedule(text).latest_at_or_before(instant(now), instant(since), &zone(name).unwrap());
        found.map_or("none".to_owned(), |found| found.to_string())
    };
    let table = [
        ("*/1 * * * *", "2024-01-01T01:00:30Z", "2024-01-01T00:00:00Z", "UTC", "2024-01-01T01:00:00Z"),
        ("*/5 * * * *", "2024-01-01T00:10:00Z", "2024-01-01T00:05:00Z", "UTC", "2024-01-01T00:10:00Z"),
        ("*/5 * * * *", "2024-01-01T00:09:59Z", "2024-01-01T00:05:00Z", "UTC", "none"),
        ("0 0 * * *", "2024-06-01T12:00:00Z", "2020-01-01T00:00:00Z", "UTC", "2024-06-01T00:00:00Z"),
        ("0 0 29 2 *", "2027-06-01T00:00:00Z", "2020-01-01T00:00:00Z", "UTC", "2024-02-29T00:00:00Z"),
        ("0 0 29 2 *", "2027-06-01T00:00:00Z", "2024-03-01T00:00:00Z", "UTC", "none"),
        ("0 0 30 2 *", "2027-06-01T00:00:00Z", "2020-01-01T00:00:00Z", "UTC", "none"),
        ("30 1 * * *", "2024-11-03T07:00:00Z", "2024-11-01T00:00:00Z", "America/New_York", "2024-11-03T06:30:00Z"),
        ("30 1 * * *", "2024-11-03T06:00:00Z", "2024-11-01T00:00:00Z", "America/New_York", "2024-11-03T05:30:00Z"),
        ("30 2 * * *", "2024-03-10T12:00:00Z", "2024-03-01T00:00:00Z", "America/New_York", "2024-03-09T07:30:00Z"),
        ("@every 1h", "2024-01-01T05:59:59Z", "2024-01-01T00:00:00Z", "UTC", "2024-01-01T05:00:00Z"),
        ("@every 1h", "2024-01-01T00:59:59Z", "2024-01-01T00:00:00Z", "UTC", "none"),
        ("@every 1h", "2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z", "UTC", "none"),
    ];
    for (text, now, since, zone, wanted) in table {
        assert_eq!(latest(text, now, since, zone), wanted, "{text} at {now} since {since} in {zone}");
    }
}

#[test]
fn zones_are_those_of_the_database_in_the_program() {
    for name in ["UTC", "Europe/Rome", "America/Argentina/Ushuaia", "Etc/GMT+5", "EST"] {
        assert!(zone(name).is_ok(), "{name}");
    }
    let table =
        [("", ZoneError::Empty), ("Local", ZoneError::Local), ("Mars/Base", ZoneError::Unknown), ("europe/rome", ZoneError::Unknown)];
    for (name, error) in table {
        assert_eq!(zone(name).err(), Some(error), "{name}");
    }
    assert_eq!(zone("/etc/passwd").err(), Some(ZoneError::Unknown));
}

/// Fields that match some minute of nearly every day, so that a minute-by-minute search ends soon.
fn busy_schedule() -> impl Strategy<Value = String> {
    let minute = prop_oneof![Just("*".to_owned()), (0..60_u32).prop_map(|m| m.to_string()), (1..30_u32).prop_map(|s| format!("*/{s}"))];
    let hour = prop_oneof![Just("*".to_owned()), (0..24_u32).prop_map(|h| h.to_string()), Just("1-3".to_owned())];
    (minute, hour).prop_map(|(minute, hour)| format!("{minute} {hour} * * *"))
}

/// The reference: every minute, tried one after the other.
fn slow_next(text: &str, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let fits = |field: &str, value: u32| match field.split_once('/') {
        _ if field == "*" => true,
        Some((_, step)) => value.is_multiple_of(step.parse::<u32>().unwrap()),
        None => match field.split_once('-') {
            Some((low, high)) => (low.parse::<u32>().unwrap()..=high.parse::<u32>().unwrap()).contains(&value),
            None => field.parse::<u32>().unwrap() == value,
        },
    };
    let first_minute = after.as_second().div_euclid(60) + 1;
    (first_minute..first_minute + 4 * 24 * 60).map(|minute| Timestamp::from_second(minute * 60).unwrap()).find(|instant| {
        let wall = instant.to_zoned(zone.clone());
        wall.second() == 0 && fits(fields[0], wall.minute().try_into().unwrap()) && fits(fields[1], wall.hour().try_into().unwrap())
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_search_agrees_with_trying_every_minute(text in busy_schedule(), second in 1_500_000_000_i64..2_000_000_000, place in 0..5_usize) {
        let name = ["UTC", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Africa/Casablanca"][place];
        let zone = zone(name).unwrap();
        let after = Timestamp::from_second(second).unwrap();
        let found = schedule(&text).next_after(after, &zone);
        prop_assert_eq!(found, slow_next(&text, after, &zone), "{} after {} in {}", text, after, name);
        // And back again: the run found is the last one at its own instant, and none lies between.
        let found = found.unwrap();
        prop_assert_eq!(schedule(&text).latest_at_or_before(found, after, &zone), Some(found));
        let just_before = Timestamp::from_second(found.as_second() - 1).unwrap();
        prop_assert_eq!(schedule(&text).latest_at_or_before(just_before, after, &zone), None);
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in "[*?0-9,/@a-z -]{0,20}|\\PC{0,20}") {
        if let Ok(schedule) = Schedule::parse(&text) {
            let _ = schedule.next_after(instant("2024-01-01T00:00:00Z"), &TimeZone::UTC);
            let _ = schedule.latest_at_or_before(instant("2024-01-01T00:00:00Z"), instant("2020-01-01T00:00:00Z"), &TimeZone::UTC);
        }
    }
}

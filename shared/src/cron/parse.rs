//! The grammar of schedules (RCJ-12).

use super::{Fields, Schedule, ScheduleError};
use crate::duration::GoDuration;

const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

/// A field of a schedule: its name in messages, its bounds, and names for its values beginning at the lower bound.
struct Field {
    name: &'static str,
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { name: "minute", min: 0, max: 59, names: &[] },
    Field { name: "hour", min: 0, max: 23, names: &[] },
    Field { name: "day of month", min: 1, max: 31, names: &[] },
    Field { name: "month", min: 1, max: 12, names: &MONTHS },
    Field { name: "day of week", min: 0, max: 6, names: &WEEKDAYS },
];

pub(super) fn schedule(text: &str) -> Result<Schedule, ScheduleError> {
    if text.starts_with('@') {
        return descriptor(text);
    }
    let mut words = text.split_whitespace();
    let (Some(minute), Some(hour), Some(day), Some(month), Some(weekday), None) =
        (words.next(), words.next(), words.next(), words.next(), words.next(), words.next())
    else {
        let count = text.split_whitespace().count();
        return Err(ScheduleError(format!(
            "a schedule has five fields (minute, hour, day of month, month, day of week), this one has {count}"
        )));
    };
    let [minutes, hours, days, months, weekdays] = &FIELDS;
    let ((minutes, _), (hours, _)) = (minutes.read(minute)?, hours.read(hour)?);
    let ((days, any_day), (months, _), (weekdays, any_weekday)) = (days.read(day)?, months.read(month)?, weekdays.read(weekday)?);
    Ok(Schedule::Fields(Fields { minutes, hours, days, months, weekdays, any_day, any_weekday }))
}

fn descriptor(text: &str) -> Result<Schedule, ScheduleError> {
    let fields = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let Some(duration) = text.strip_prefix("@every ") else {
                return Err(ScheduleError(
                    "there is no such descriptor: use @yearly, @monthly, @weekly, @daily, @hourly, or \"@every 1h30m\"".to_owned(),
                ));
            };
            let duration = GoDuration::parse(duration)
                .ok_or_else(|| ScheduleError("what follows @every is not a duration: write it like \"90m\" or \"1h30m\"".to_owned()))?;
            return Ok(Schedule::Every { seconds: duration.whole_seconds().max(1) });
        }
    };
    schedule(fields)
}

impl Field {
    /// The set of values of a field, and whether it is open (`*` or `?` without a step).
    fn read(&self, text: &str) -> Result<(u64, bool), ScheduleError> {
        let (mut set, mut open) = (0, false);
        for element in text.split(',').filter(|element| !element.is_empty()) {
            let (values, is_open) = self.element(element)?;
            set |= values;
            open |= is_open;
        }
        if set == 0 { Err(self.error(text, "is empty")) } else { Ok((set, open)) }
    }

    fn element(&self, text: &str) -> Result<(u64, bool), ScheduleError> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => {
                let step = step.parse::<u32>().ok().filter(|step| *step > 0 && !text.contains('+'));
                (range, Some(step.ok_or_else(|| self.error(text, "has a step that is not a number above zero"))?))
            }
            None => (text, None),
        };
        let star = matches!(range, "*" | "?");
        let (low, high) = if star {
            (self.min, self.max)
        } else if let Some((low, high)) = range.split_once('-') {
            (self.value(low, text)?, self.value(high, text)?)
        } else {
            let value = self.value(range, text)?;
            // `N/step` counts from N to the end of the field.
            (value, if step.is_some() { self.max } else { value })
        };
        if low > high {
            return Err(self.error(text, "runs backwards"));
        }
        let step = step.unwrap_or(1);
        let mut set = 0;
        let mut value = low;
        while value <= high {
            set |= 1 << value;
            value = value.saturating_add(step);
        }
        Ok((set, star && step == 1))
    }

    fn value(&self, text: &str, element: &str) -> Result<u32, ScheduleError> {
        let named = self.names.iter().zip(self.min..).find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, value)| value);
        let number = || text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
        match named.or_else(number) {
            None => Err(self.error(element, "is not a number, a range, or \"*\"")),
            Some(value) if (self.min..=self.max).contains(&value) => Ok(value),
            Some(_) => Err(self.error(element, &format!("is outside {} to {}", self.min, self.max))),
        }
    }

    fn error(&self, element: &str, problem: &str) -> ScheduleError {
        let shown = crate::validation::json::Shown(element);
        ScheduleError(format!("in the field for the {}, {shown} {problem}", self.name))
    }
}

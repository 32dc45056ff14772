//! Durations in Go's notation (`1h30m`, `300ms`), as annotations and `@every` schedules use them.

/// A duration as Go counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration {
    /// Length in nanoseconds; negative for a leading `-`.
    pub nanoseconds: i64,
}

/// The units, longest name first where one begins with another.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000), // U+00B5
    ("μs", 1_000), // U+03BC
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3600 * 1_000_000_000),
];

impl GoDuration {
    /// Reads a sign and one or more decimal numbers with units (`h`, `m`, `s`, `ms`, `us`, `ns`); `0` needs no unit.
    /// `None` if the text is of another form or does not fit into 63 bits of nanoseconds.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, mut rest) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        if rest == "0" {
            return Some(Self { nanoseconds: 0 });
        }
        if rest.is_empty() {
            return None;
        }
        let mut total: i128 = 0;
        while !rest.is_empty() {
            let (amount, after) = component(rest)?;
            total = total.checked_add(amount).filter(|total| *total <= i128::from(i64::MAX))?;
            rest = after;
        }
        let nanoseconds = i64::try_from(total).ok()?;
        Some(Self { nanoseconds: if negative { -nanoseconds } else { nanoseconds } })
    }

    /// Whole seconds, fractions dropped.
    pub const fn whole_seconds(self) -> i64 {
        self.nanoseconds / 1_000_000_000
    }
}

/// One number with its unit, in nanoseconds, and the text behind it.
fn component(text: &str) -> Option<(i128, &str)> {
    let (whole, rest) = digits(text)?;
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest)?,
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let unit_length = rest.bytes().position(|byte| byte == b'.' || byte.is_ascii_digit()).unwrap_or(rest.len());
    let (name, rest) = rest.split_at_checked(unit_length)?;
    let (_, unit) = UNITS.iter().find(|(unit, _)| *unit == name)?;
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // Beyond 18 digits a fraction of an hour is far below a nanosecond.
    let kept = fraction.get(..fraction.len().min(18))?;
    let (numerator, denominator) =
        if kept.is_empty() { (0, 1) } else { (kept.parse().ok()?, 10_i128.pow(u32::try_from(kept.len()).ok()?)) };
    let amount = whole.checked_mul(*unit)?.checked_add(unit.checked_mul(numerator)? / denominator)?;
    Some((amount, rest))
}

fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end)
}

/// Reads the form of the `ray.io/initializing-timeout` annotation (V-S-3): a Go duration, or else a whole number of seconds.
pub fn seconds_or_duration(text: &str) -> Option<GoDuration> {
    GoDuration::parse(text).or_else(|| {
        let seconds: i64 = text.parse().ok()?;
        Some(GoDuration { nanoseconds: seconds.saturating_mul(1_000_000_000) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_as_go_reads_them() {
        let second = 1_000_000_000;
        let table = [
            ("0", Some(0)),
            ("+5s", Some(5 * second)),
            ("-1.5h", Some(-5400 * second)),
            ("1h30m", Some(5400 * second)),
            ("1.h", Some(3600 * second)),
            (".5s", Some(second / 2)),
            ("1h0.000000001s", Some(3600 * second + 1)),
            ("3µs4us5μs", Some(12_000)),
            ("1ms", Some(1_000_000)),
            ("", None),
            ("-", None),
            (".", None),
            (".s", None),
            ("5", None),
            ("5 s", None),
            ("5d", None),
            ("1h ", None),
            ("9223372036854775808ns", None),
            ("99999999999999999999h", None),
        ];
        for (text, wanted) in table {
            assert_eq!(GoDuration::parse(text).map(|d| d.nanoseconds), wanted, "{text:?}");
        }
        assert_eq!(GoDuration::parse("90.9s").unwrap().whole_seconds(), 90);
    }

    #[test]
    fn annotations_may_give_plain_seconds() {
        assert_eq!(seconds_or_duration("300").map(GoDuration::whole_seconds), Some(300));
        assert_eq!(seconds_or_duration("-3").map(GoDuration::whole_seconds), Some(-3));
        assert_eq!(seconds_or_duration("5m").map(GoDuration::whole_seconds), Some(300));
        assert_eq!(seconds_or_duration("soon"), None);
        assert_eq!(seconds_or_duration("1.5"), None);
        assert!(seconds_or_duration("99999999999999").is_some());
    }
}

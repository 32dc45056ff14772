//! Kubernetes quantities, exactly: `500m`, `2`, `1.5Gi`, `3e3`.

use std::{fmt, ops::Add};

use serde_json::Value;

/// Nano-units in one unit: nothing finer exists, as in Kubernetes.
const NANOS: i128 = 1_000_000_000;
/// Kubernetes caps every quantity at this many units.
const MAX: i128 = i64::MAX as i128 * NANOS;

/// How a quantity was written, which decides how a sum of it is written again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Format {
    /// Powers of ten: `m`, `k`, `M`, …
    #[default]
    DecimalSi,
    /// Powers of 1024: `Ki`, `Mi`, …
    BinarySi,
    /// A decimal exponent: `3e6`.
    DecimalExponent,
}

/// An amount of a resource, exact to a billionth of a unit. Compared and added by amount; the notation only matters when it is
/// shown.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

/// The text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a quantity: a number with an optional unit such as m, k, M, G, Ki, Mi or Gi is needed")]
pub struct NotAQuantity;

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi };

    /// A whole number of units.
    pub const fn units(units: i64) -> Self {
        Self { nanos: units as i128 * NANOS, format: Format::DecimalSi }
    }

    /// Reads Kubernetes' notation. What is finer than a billionth is rounded away from zero, what is larger than 2⁶³-1 is cut
    /// to that, as the API server does.
    ///
    /// # Errors
    /// If the text is not `<sign><number><suffix>`.
    pub fn parse(text: &str) -> Result<Self, NotAQuantity> {
        Self::read(text).ok_or(NotAQuantity)
    }

    /// Reads a quantity from JSON, where whole numbers may stand without quotes.
    pub fn of_json(value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::read(text),
            Value::Number(number) => number.as_i64().map(Self::units),
            _ => None,
        }
    }

    fn read(text: &str) -> Option<Self> {
        let (negative, rest) = match text.as_bytes().first()? {
            b'-' => (true, text.get(1..)?),
            b'+' => (false, text.get(1..)?),
            _ => (false, text),
        };
        let (whole, rest) = digits(rest)?;
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(rest) => digits(rest)?,
            None => ("", rest),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let (scale, format) = scale(suffix)?;
        let nanos = magnitude(whole, fraction, scale);
        Some(Self { nanos: if negative { -nanos } else { nanos }, format })
    }

    /// Whether it is exactly nothing.
    pub const fn is_zero(self) -> bool {
        self.nanos == 0
    }

    /// Whether it is below nothing.
    pub const fn is_negative(self) -> bool {
        self.nanos < 0
    }

    /// Whole units, fractions rounded up (away from zero).
    pub fn ceil(self) -> i64 {
        clamp(round_away(self.nanos, NANOS))
    }

    /// Thousandths, finer parts rounded up (away from zero).
    pub fn milli(self) -> i64 {
        clamp(round_away(self.nanos, NANOS / 1000))
    }

    /// The amount as a floating-point number of units; exact for all that people write.
    pub fn as_f64(self) -> f64 {
        let (whole, part) = (self.nanos / NANOS, self.nanos % NANOS);
        whole as f64 + part as f64 / NANOS as f64
    }

    /// `count` times this amount.
    #[must_use]
    pub fn times(self, count: i64) -> Self {
        Self { nanos: self.nanos.saturating_mul(i128::from(count)).clamp(-MAX, MAX), format: self.format }
    }
}

fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end)
}

#[derive(Clone, Copy)]
enum Scale {
    /// Times ten to this power.
    Ten(i32),
    /// Times two to this power.
    Two(u32),
}

fn scale(suffix: &str) -> Option<(Scale, Format)> {
    let ten = |power| Some((Scale::Ten(power), Format::DecimalSi));
    let two = |power| Some((Scale::Two(power), Format::BinarySi));
    match suffix {
        "" => ten(0),
        "n" => ten(-9),
        "u" => ten(-6),
        "m" => ten(-3),
        "k" => ten(3),
        "M" => ten(6),
        "G" => ten(9),
        "T" => ten(12),
        "P" => ten(15),
        "E" => ten(18),
        "Ki" => two(10),
        "Mi" => two(20),
        "Gi" => two(30),
        "Ti" => two(40),
        "Pi" => two(50),
        "Ei" => two(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E'])?;
            let unsigned = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
            if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
                return None;
            }
            Some((Scale::Ten(exponent.parse().ok()?), Format::DecimalExponent))
        }
    }
}

/// `whole.fraction` at a scale, in nano-units, rounded up and capped.
fn magnitude(whole: &str, fraction: &str, scale: Scale) -> i128 {
    let (power, factor) = match scale {
        Scale::Ten(power) => (i64::from(power) + 9, 1),
        Scale::Two(power) => (9, 1_i128 << power),
    };
    // The digits as one integer, with the decimal point moved: value = digits × 10^(power - fraction digits) × factor.
    let mut value: i128 = 0;
    let mut shift = power;
    let mut lost = false;
    for (position, byte) in whole.bytes().chain(fraction.bytes()).enumerate() {
        let after_point = position >= whole.len();
        // 30 significant digits are far more than the cap has; further ones only move the point or round up.
        if value < 1_000_000_000_000_000_000_000_000_000_000 / 10 {
            value = value * 10 + i128::from(byte - b'0');
            shift -= i64::from(after_point);
        } else {
            lost |= byte != b'0';
            shift += i64::from(!after_point);
        }
    }
    if value == 0 {
        return 0;
    }
    if factor > 1 {
        // Binary scales: value × factor can overflow only far above the cap.
        let Some(product) = value.checked_mul(factor) else {
            return if shift < -30 { lift(value, shift, lost).saturating_mul(factor).min(MAX) } else { MAX };
        };
        value = product;
    }
    lift(value, shift, lost).min(MAX)
}

/// `value × 10^shift`, rounded up.
fn lift(value: i128, shift: i64, lost: bool) -> i128 {
    match u32::try_from(shift) {
        Ok(shift) => 10_i128.checked_pow(shift).and_then(|factor| value.checked_mul(factor)).map_or(MAX, |nanos| nanos + i128::from(lost)),
        Err(_) => match u32::try_from(-shift).ok().and_then(|shift| 10_i128.checked_pow(shift)) {
            Some(divisor) => round_away(value, divisor).max(i128::from(value > 0)) + i128::from(lost && value % divisor == 0),
            None => 1,
        },
    }
}

/// Division that rounds away from zero.
fn round_away(value: i128, divisor: i128) -> i128 {
    value / divisor + (value % divisor).signum()
}

fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

impl Add for Quantity {
    type Output = Self;

    /// The sum, in the notation of the first that is not zero.
    fn add(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        Self { nanos: self.nanos.saturating_add(other.nanos).clamp(-MAX, MAX), format }
    }
}

impl std::iter::Sum for Quantity {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::ZERO, Add::add)
    }
}

const DECIMAL: [(&str, i128); 9] = [
    ("E", 1_000_000_000_000_000_000 * NANOS),
    ("P", 1_000_000_000_000_000 * NANOS),
    ("T", 1_000_000_000_000 * NANOS),
    ("G", 1_000_000_000 * NANOS),
    ("M", 1_000_000 * NANOS),
    ("k", 1_000 * NANOS),
    ("", NANOS),
    ("m", NANOS / 1_000),
    ("u", NANOS / 1_000_000),
];
const BINARY: [(&str, i128); 6] =
    [("Ei", NANOS << 60), ("Pi", NANOS << 50), ("Ti", NANOS << 40), ("Gi", NANOS << 30), ("Mi", NANOS << 20), ("Ki", NANOS << 10)];

impl fmt::Display for Quantity {
    /// Kubernetes' canonical form: the largest unit that leaves a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.nanos;
        if nanos == 0 {
            return f.write_str("0");
        }
        // Below 1024, and for fractions, the binary notation has nothing to offer.
        if self.format == Format::BinarySi && nanos % NANOS == 0 && nanos.abs() >= 1024 * NANOS {
            return match BINARY.iter().find(|(_, unit)| nanos % unit == 0) {
                Some((suffix, unit)) => write!(f, "{}{suffix}", nanos / unit),
                None => write!(f, "{}", nanos / NANOS),
            };
        }
        let (suffix, unit) = DECIMAL.iter().find(|(_, unit)| nanos % unit == 0).copied().unwrap_or(("n", 1));
        match (self.format, suffix) {
            (Format::DecimalExponent, "") => write!(f, "{}", nanos / unit),
            (Format::DecimalExponent, _) => {
                let exponent = match suffix {
                    "E" => 18,
                    "P" => 15,
                    "T" => 12,
                    "G" => 9,
                    "M" => 6,
                    "k" => 3,
                    "m" => -3,
                    "u" => -6,
                    _ => -9,
                };
                write!(f, "{}e{exponent}", nanos / unit)
            }
            _ => write!(f, "{}{suffix}", nanos / unit),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quantities_are_read_exactly_and_shown_canonically() {
        let table = [
            ("0", "0"),
            ("2", "2"),
            ("+2", "2"),
            ("-2", "-2"),
            ("1500m", "1500m"),
            ("1.5", "1500m"),
            (".5", "500m"),
            ("5.", "5"),
            ("1000m", "1"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1Gi", "1Gi"),
            ("1024Mi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("0.1Gi", "107374182400m"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("12e-1", "1200e-3"),
            ("5E", "5E"),
            ("3n", "3n"),
            ("0.1n", "1n"),
            ("1.0000000001", "1000000001n"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9223372036854775807"),
            ("8Ei", "9223372036854775807"),
            ("1e1000", "9223372036854775807"),
            ("1e-1000", "1e-9"),
            ("100000000000000000000000000000000000000000", "9223372036854775807"),
            ("0.00000000000000000000000000000000000000000000000000Ki", "0"),
        ];
        for (text, wanted) in table {
            assert_eq!(Quantity::parse(text).unwrap().to_string(), wanted, "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in
            ["", " ", "-", "+", ".", "m", "1 Gi", "1gi", "1GiB", "1K", "1ki", "two", "1e", "1e+", "1e1.5", "1Mi1", "0x10", "1_000", "١"]
        {
            assert_eq!(Quantity::parse(text), Err(NotAQuantity), "{text:?}");
        }
        assert_eq!(Quantity::of_json(&json!(2)), Some(Quantity::units(2)));
        assert_eq!(Quantity::of_json(&json!(0.5)), None);
        assert_eq!(Quantity::of_json(&json!(null)), None);
    }

    #[test]
    fn amounts_are_rounded_up_compared_and_added() {
        let q = |text: &str| Quantity::parse(text).unwrap();
        assert_eq!((q("1500m").ceil(), q("1500m").milli(), q("-1500m").ceil()), (2, 1500, -2));
        assert_eq!(q("1n").milli(), 1);
        assert_eq!(q("1024Mi"), q("1Gi"));
        assert!(q("999m") < q("1") && q("1G") < q("1Gi"));
        assert_eq!((q("1Gi") + q("1G")).to_string(), "2073741824");
        assert_eq!([q("0"), q("1Gi"), q("1Gi")].into_iter().sum::<Quantity>().to_string(), "2Gi");
        assert_eq!(q("500m").times(3).to_string(), "1500m");
        assert_eq!(q("8E").times(1000).ceil(), i64::MAX);
        assert!((q("0.25").as_f64() - 0.25).abs() < f64::EPSILON);
    }
}

//! What an unquoted word means: the YAML 1.1 rules that Kubernetes tools apply (`RJ-118`).

use base64::Engine as _;
use serde_json::{Number, Value};

/// Why a tagged scalar has no value.
pub(super) type Refused = String;

/// The value of an unquoted scalar without a tag.
pub(super) fn plain(text: &str) -> Result<Value, Refused> {
    let Some(first) = text.bytes().next() else { return Ok(Value::Null) };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => Ok(word(text).unwrap_or_else(|| text.into())),
        b'.' | b'+' | b'-' | b'0'..=b'9' => {
            if is_not_finite(text) {
                return Err(format!("`{text}` is a number that JSON cannot express; quote it if it is meant as text"));
            }
            Ok(number(text).unwrap_or_else(|| text.into()))
        }
        _ => Ok(text.into()),
    }
}

/// The value of a scalar with a tag of the `tag:yaml.org,2002:` family, quoted or not.
pub(super) fn tagged(suffix: &str, text: &str) -> Result<Value, Refused> {
    let value = match suffix {
        "str" => return Ok(text.into()),
        "binary" => return binary(text).map(Value::from).ok_or_else(|| "`!!binary` is not followed by base64 of text".to_owned()),
        "bool" | "int" | "float" | "null" => plain(text)?,
        _ => return Ok(text.into()),
    };
    let fits = match suffix {
        "bool" => value.is_boolean(),
        "int" => value.is_i64() || value.is_u64(),
        "float" => value.is_number(),
        _ => value.is_null(),
    };
    if fits { Ok(value) } else { Err(format!("`{text}` is not a value of `!!{suffix}`")) }
}

fn word(text: &str) -> Option<Value> {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => Some(Value::Bool(true)),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => Some(Value::Bool(false)),
        "~" | "null" | "Null" | "NULL" => Some(Value::Null),
        _ => None,
    }
}

fn is_not_finite(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

fn number(text: &str) -> Option<Value> {
    if text.starts_with('.') {
        return is_decimal(text).then(|| float(text)).flatten();
    }
    // Most plain scalars that start with a digit have no underscore; only the others pay for a copy.
    if text.contains('_') { numeral(&text.replace('_', "")) } else { numeral(text) }
}

fn numeral(text: &str) -> Option<Value> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    integer(negative, digits).or_else(|| is_decimal(text).then(|| float(text)).flatten())
}

fn integer(negative: bool, digits: &str) -> Option<Value> {
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, digits.get(2..)?),
        [b'0', b'b' | b'B', ..] => (2, digits.get(2..)?),
        [b'0', b'o' | b'O', ..] => (8, digits.get(2..)?),
        [b'0', _, ..] => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // The standard parser would take a second sign.
    if !digits.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative { 0i64.checked_sub_unsigned(magnitude).map(Value::from) } else { Some(Value::from(magnitude)) }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_decimal(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = |text| str::strip_prefix(text, ['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned(text).split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, unsigned(exponent)),
        None => (unsigned(text), "0"),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    digits(whole) && digits(fraction) && !(whole.is_empty() && fraction.is_empty()) && digits(exponent) && !exponent.is_empty()
}

fn float(text: &str) -> Option<Value> {
    let number: f64 = text.parse().ok()?;
    number.is_finite().then(|| from_f64(number))
}

/// A float as it arrives in the cluster: it travels as JSON, where `1.0` and `1e3` are written without a fraction, hence are
/// integers again.
pub(super) fn from_f64(number: f64) -> Value {
    // Above 2^63 the digits no longer fit an integer and the cluster keeps a float, too.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    if number.fract() == 0.0 && (-LIMIT..LIMIT).contains(&number) {
        #[allow(clippy::cast_possible_truncation, reason = "integral and in range, tested above")]
        return Value::from(number as i64);
    }
    Number::from_f64(number).map_or(Value::Null, Value::Number)
}

fn binary(text: &str) -> Option<String> {
    let compact: String = text.split_ascii_whitespace().collect();
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(compact).ok()?).ok()
}

//! The name grammars of Kubernetes, as predicates.

/// Longest DNS label, and longest label value.
pub(crate) const MAX_LABEL: usize = 63;

/// RFC 1123 label: lower-case letters, digits and `-`, beginning and ending with a letter or digit, at most 63 characters.
pub(crate) fn is_dns1123_label(text: &str) -> bool {
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    (1..=MAX_LABEL).contains(&bytes.len())
        && bytes.first().is_some_and(edge)
        && bytes.last().is_some_and(edge)
        && bytes.iter().all(|byte| edge(byte) || *byte == b'-')
}

/// RFC 1035 label: as RFC 1123, but it begins with a letter. Service names are of this kind.
pub(crate) fn is_dns1035_label(text: &str) -> bool {
    is_dns1123_label(text) && text.as_bytes().first().is_some_and(u8::is_ascii_lowercase)
}

/// RFC 1123 subdomain: labels joined by dots, at most 253 characters.
pub(crate) fn is_dns1123_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns1123_label_of_any_length)
}

fn is_dns1123_label_of_any_length(text: &str) -> bool {
    // Kubernetes limits a subdomain as a whole, not its parts.
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(edge) && bytes.last().is_some_and(edge) && bytes.iter().all(|byte| edge(byte) || *byte == b'-')
}

/// A label value: empty, or at most 63 letters, digits, `-`, `_` and `.`, beginning and ending with a letter or digit.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_qualified_part(text)
}

/// A label key: a name like a label value, optionally preceded by a DNS subdomain and a slash.
pub(crate) fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns1123_subdomain(prefix) && is_qualified_part(name),
        None => is_qualified_part(text),
    }
}

fn is_qualified_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    (1..=MAX_LABEL).contains(&bytes.len())
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_on_both_sides_of_each_limit() {
        let (n63, n64) = ("a".repeat(63), "a".repeat(64));
        // (text, RFC 1123 label, RFC 1035 label, label value, label key)
        let table = [
            ("a", true, true, true, true),
            ("", false, false, true, false),
            ("1a", true, false, true, true),
            ("a-", false, false, false, false),
            ("-a", false, false, false, false),
            ("a.b", false, false, true, true),
            ("a_b", false, false, true, true),
            ("A", false, false, true, true),
            ("é", false, false, false, false),
            (&n63, true, true, true, true),
            (&n64, false, false, false, false),
            ("x.io/a", false, false, false, true),
            ("x.io/", false, false, false, false),
            ("/a", false, false, false, false),
            ("a/b/c", false, false, false, false),
            ("X.io/a", false, false, false, false),
        ];
        for (text, label1123, label1035, value, key) in table {
            assert_eq!(is_dns1123_label(text), label1123, "1123 {text:?}");
            assert_eq!(is_dns1035_label(text), label1035, "1035 {text:?}");
            assert_eq!(is_label_value(text), value, "value {text:?}");
            assert_eq!(is_qualified_name(text), key, "key {text:?}");
        }
        assert!(is_dns1123_subdomain("a.b-c.d1") && !is_dns1123_subdomain("a..b") && !is_dns1123_subdomain(&"a".repeat(254)));
    }
}

//! Ray versions as users write them in `rayVersion` and in image tags (RC-62, V-C-57).

use std::fmt;

/// A Ray release, compared number by number. Text after the numbers (`rc1`, `-py311`) does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RayVersion {
    /// First number.
    pub major: u32,
    /// Second number.
    pub minor: u32,
    /// Third number; 0 where the text has only two.
    pub patch: u32,
}

impl RayVersion {
    /// Shorthand for constants.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Reads `2.52.0`, `v2.52`, `2.52.0rc1`. At least two numeric components are needed; what follows them is ignored.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (major, rest) = number(text)?;
        if text.starts_with('0') && major != 0 {
            return None;
        }
        let (minor, rest) = number(rest.strip_prefix('.')?)?;
        let patch = rest.strip_prefix('.').and_then(number).map_or(0, |(patch, _)| patch);
        Some(Self { major, minor, patch })
    }

    /// The version in the tag of an image reference such as `rayproject/ray:2.53.0-py311-gpu`, with its text as it can be
    /// written to `rayVersion` (numbers and a directly following release suffix: `2.53.0`, `2.53.0rc1`).
    ///
    /// Only an image with the word `ray` in its name and a tag of three numbers counts: `2.53.1` on somebody's application is
    /// the application's own version.
    pub fn of_image(image: &str) -> Option<(Self, &str)> {
        let reference = image.split_once('@').map_or(image, |(name, _digest)| name);
        let (repository, last) = reference.rsplit_once('/').unwrap_or(("", reference));
        let (name, tag) = last.split_once(':')?;
        let is_ray = name.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == "ray") || repository.ends_with("rayproject");
        if !is_ray {
            return None;
        }
        let text = tag.split(['-', '+', '_']).next()?;
        let bare = text.strip_prefix('v').unwrap_or(text);
        let version = Self::parse(bare)?;
        let third = bare.splitn(3, '.').nth(2)?;
        let plausible = (1..=9).contains(&version.major) && version.minor < 1000 && third.starts_with(|c: char| c.is_ascii_digit());
        (plausible && bare.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')).then_some((version, bare))
    }
}

fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at_checked(end)?;
    Some((digits.parse().ok()?, rest))
}

impl fmt::Display for RayVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_leniently_but_need_two_numbers() {
        let table = [
            ("2.52.0", Some((2, 52, 0))),
            ("v2.55", Some((2, 55, 0))),
            ("2.52.0rc1", Some((2, 52, 0))),
            ("2.9.3-py39", Some((2, 9, 3))),
            ("3.0.0.dev0", Some((3, 0, 0))),
            ("0.8.1", Some((0, 8, 1))),
            ("02.5", None),
            ("2", None),
            ("2.", None),
            ("2.x", None),
            ("nightly", None),
            ("", None),
            ("99999999999.1", None),
            ("é.1", None),
        ];
        for (text, wanted) in table {
            assert_eq!(RayVersion::parse(text), wanted.map(|(a, b, c)| RayVersion::new(a, b, c)), "{text:?}");
        }
        assert!(RayVersion::new(2, 9, 3) < RayVersion::new(2, 52, 0));
    }

    #[test]
    fn image_tags_give_a_version_only_when_it_is_one() {
        let table = [
            ("rayproject/ray:2.53.0", Some("2.53.0")),
            ("rayproject/ray:2.53.0-py311-gpu", Some("2.53.0")),
            ("rayproject/ray:2.53.0.abc123-py312", Some("2.53.0.abc123")),
            ("host:5000/team/ray:v2.54.1", Some("2.54.1")),
            ("rayproject/ray:2.53.0rc1", Some("2.53.0rc1")),
            ("rayproject/ray:2.53.0@sha256:5f2b", Some("2.53.0")),
            ("quay.io/acme/ray-runtime:2.55.0", Some("2.55.0")),
            ("rayproject/base:2.55.0", Some("2.55.0")),
            ("registry/llm/train:2.54.0", None),
            ("registry/array:2.54.0", None),
            ("host:5000/team/ray", None),
            ("rayproject/ray:nightly", None),
            ("rayproject/ray:latest", None),
            ("registry/trading/signals:2031.2", None),
            ("registry/ray:2.5", None),
            ("registry/ray:20240101.1.2", None),
            ("ray@sha256:5f2b", None),
            ("", None),
        ];
        for (image, wanted) in table {
            assert_eq!(RayVersion::of_image(image).map(|(_, text)| text), wanted, "{image:?}");
        }
    }
}

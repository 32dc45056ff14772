//! Field paths that cost nothing until they are shown.

use std::fmt;

/// A place in an object: a chain of nodes on the stack, each pointing to its parent. Going deeper is one small copy; text is
/// made by `Display`, which only a reported problem asks for.
///
/// Written as JSON names, list positions and map keys: `spec.workerGroupSpecs[1].groupName`,
/// `spec.headGroupSpec.rayStartParams[num-cpus]`.
#[derive(Clone, Copy, Debug)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

/// Keys longer than this are cut when shown: a path is for reading, and a key may be as large as the request.
const MAX_SHOWN_KEY: usize = 100;

impl<'a> Path<'a> {
    /// A field at the top of the object.
    pub const fn root(name: &'a str) -> Self {
        Self { parent: None, step: Step::Field(name) }
    }

    /// The field `name` below this place.
    #[must_use]
    pub const fn field(&'a self, name: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Field(name) }
    }

    /// The element at position `index` (from 0) of the list at this place.
    #[must_use]
    pub const fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    /// The entry `key` of the map at this place.
    #[must_use]
    pub const fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Field(name) if self.parent.is_some() => write!(f, ".{name}"),
            Step::Field(name) => f.write_str(name),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => match key.char_indices().nth(MAX_SHOWN_KEY) {
                Some((end, _)) => write!(f, "[{}…]", key.get(..end).unwrap_or_default()),
                None => write!(f, "[{key}]"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_read_like_the_object() {
        let spec = Path::root("spec");
        assert_eq!(spec.field("workerGroupSpecs").index(1).field("groupName").to_string(), "spec.workerGroupSpecs[1].groupName");
        assert_eq!(spec.field("headGroupSpec").field("labels").key("a.b/c").to_string(), "spec.headGroupSpec.labels[a.b/c]");
    }

    #[test]
    fn an_endless_key_is_cut_at_a_character() {
        let key = "é".repeat(1_000_000);
        let text = Path::root("spec").key(&key).to_string();
        assert_eq!(text, format!("spec[{}…]", "é".repeat(MAX_SHOWN_KEY)));
    }
}

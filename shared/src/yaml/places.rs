//! Where each field of a document was written.

use std::fmt;

/// A position in a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pos {
    /// Line, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
}

/// One step of a field path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into the value of this key.
    Key(String),
    /// Into this element of a list.
    Index(usize),
}

impl Step {
    /// Reads a path such as `spec.workerGroupSpecs[1].rayStartParams[num-cpus]`. Every text is a path: what is not understood is a key.
    #[must_use]
    pub fn parse(path: &str) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut rest = path;
        while !rest.is_empty() {
            if let Some((inside, after)) = rest.strip_prefix('[').and_then(|tail| tail.split_once(']')) {
                steps.push(inside.parse().map_or_else(|_| Step::Key(inside.to_owned()), Step::Index));
                rest = after;
            } else if let Some(after) = rest.strip_prefix('.') {
                rest = after;
            } else {
                // The first character always belongs to the key, so that a stray bracket cannot stop the walk.
                let end = rest.char_indices().skip(1).find(|(_, c)| matches!(c, '.' | '[')).map_or(rest.len(), |(at, _)| at);
                let (key, after) = rest.split_at(end);
                steps.push(Step::Key(key.to_owned()));
                rest = after;
            }
        }
        steps
    }

    /// Writes steps as a path: list positions and keys that are no plain field name in brackets.
    #[must_use]
    pub fn join(steps: &[Step]) -> String {
        let mut path = String::new();
        for step in steps {
            match step {
                Step::Key(key) if key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !key.is_empty() => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(key);
                }
                other => {
                    path.push('[');
                    path.push_str(&other.to_string());
                    path.push(']');
                }
            }
        }
        path
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Key(key) => f.write_str(key),
            Step::Index(index) => write!(f, "{index}"),
        }
    }
}

/// Where a value was written, and all values in it.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Where the value starts.
    pub pos: Pos,
    pub(super) inner: Inner,
}

#[derive(Clone, Debug, Default)]
pub(super) enum Inner {
    #[default]
    Scalar,
    List(Vec<Place>),
    Map(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: Box<str>,
    pub(super) key_pos: Pos,
    pub(super) place: Place,
}

/// The answer of [`Place::find`].
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Where the field is written: its key, or the start of a list element. For an absent field, that of its nearest parent.
    pub pos: Pos,
    /// The value found.
    pub place: &'a Place,
    /// How many steps of the path exist.
    pub depth: usize,
}

impl Place {
    /// A place without inner structure.
    #[must_use]
    pub fn at(pos: Pos) -> Self {
        Place { pos, inner: Inner::Scalar }
    }

    /// The place of a field, or of its nearest parent that exists.
    #[must_use]
    pub fn find<'a>(&'a self, steps: &[Step]) -> Found<'a> {
        let mut found = Found { pos: self.pos, place: self, depth: 0 };
        for step in steps {
            let next = match (step, &found.place.inner) {
                (Step::Index(index), Inner::List(items)) => items.get(*index).map(|place| (place.pos, place)),
                (Step::Index(index), Inner::Map(entries)) => entry(entries, &index.to_string()),
                (Step::Key(key), Inner::Map(entries)) => entry(entries, key),
                _ => None,
            };
            let Some((pos, place)) = next else { break };
            found = Found { pos, place, depth: found.depth + 1 };
        }
        found
    }

    /// The keys of a mapping with their positions, in the order written; nothing for other values.
    pub fn keys(&self) -> impl Iterator<Item = (&str, Pos)> {
        let entries = if let Inner::Map(entries) = &self.inner { entries.as_slice() } else { &[] };
        entries.iter().map(|entry| (&*entry.key, entry.key_pos))
    }
}

fn entry<'a>(entries: &'a [Entry], key: &str) -> Option<(Pos, &'a Place)> {
    entries.iter().find(|entry| &*entry.key == key).map(|entry| (entry.key_pos, &entry.place))
}

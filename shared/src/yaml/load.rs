//! Builds documents from parser events.

use std::borrow::Cow;
use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::{Map, Value};

use super::places::{Entry, Inner, Place, Pos, Step};
use super::{Document, Duplicate, MAX_DEPTH, YamlError, scalar};

/// What anchors and aliases of a document may copy together: values and characters, counted once per copy.
const MAX_EXPANSION: usize = 4 << 20;
/// What a value counts in [`MAX_EXPANSION`] beside its characters; about its size in memory.
const VALUE_WEIGHT: usize = 64;

/// How many duplicate keys of a document are noted; finding where a key was written first is a search.
const MAX_DUPLICATES: usize = 64;

/// Reads the documents of one chunk, one at a time.
pub(super) struct Loader<'t> {
    parser: Parser<'t, StrInput<'t>>,
    lines_before: usize,
    anchors: HashMap<usize, Anchor>,
    expanded: usize,
    frames: Vec<Frame>,
    duplicates: Vec<Duplicate>,
}

/// A finished value that aliases may repeat.
struct Anchor {
    value: Value,
    place: Place,
    weight: usize,
}

/// A list or mapping that is still being read.
struct Frame {
    anchor: usize,
    pos: Pos,
    content: Content,
}

enum Content {
    List(Vec<Value>, Vec<Place>),
    Map { map: Map<String, Value>, entries: Vec<Entry>, key: Key },
}

/// What the next value of a mapping belongs to.
enum Key {
    /// It is itself the next key.
    Awaited,
    Named(String, Pos),
    /// `<<`: the value is a mapping, or a list of mappings, whose entries are taken over.
    Merge,
}

impl<'t> Loader<'t> {
    /// `lines_before` is added to every line number.
    pub(super) fn new(text: &'t str, lines_before: usize) -> Self {
        let parser = Parser::new_from_str(text.strip_prefix('\u{feff}').unwrap_or(text));
        Loader { parser, lines_before, anchors: HashMap::new(), expanded: 0, frames: Vec::new(), duplicates: Vec::new() }
    }

    /// The next document, or `None` at the end.
    pub(super) fn next_document(&mut self) -> Result<Option<Document>, YamlError> {
        loop {
            let Some(event) = self.parser.next_event() else { return Ok(None) };
            let (event, span) = event.map_err(|error| self.scan_error(&error))?;
            let pos = self.pos(&span);
            let done = match event {
                Event::Scalar(text, style, anchor, tag) => {
                    if self.at_merge_key(&text, style, tag.as_deref()) {
                        continue;
                    }
                    let value = scalar_value(text, style, tag.as_deref()).map_err(|message| at(pos, message))?;
                    self.add(value, Place::at(pos), anchor)?
                }
                Event::SequenceStart(anchor, _) => {
                    self.open(anchor, pos, Content::List(Vec::new(), Vec::new()))?;
                    None
                }
                Event::MappingStart(anchor, _) => {
                    self.open(anchor, pos, Content::Map { map: Map::new(), entries: Vec::new(), key: Key::Awaited })?;
                    None
                }
                Event::SequenceEnd | Event::MappingEnd => self.close()?,
                Event::Alias(id) => self.alias(id, pos)?,
                Event::DocumentStart(_) => {
                    self.anchors.clear();
                    self.expanded = 0;
                    None
                }
                Event::StreamEnd => return Ok(None),
                Event::DocumentEnd | Event::StreamStart | Event::Nothing => None,
            };
            if let Some((value, place)) = done {
                // The rest of the document's events (its end) is skipped by the next call; a syntax error there is still seen.
                let document = Document { value, place, duplicates: std::mem::take(&mut self.duplicates) };
                return self.finish_document().map(|()| Some(document));
            }
        }
    }

    /// Reads up to the end of the document whose content is complete, so that garbage after it is not overlooked.
    fn finish_document(&mut self) -> Result<(), YamlError> {
        loop {
            match self.parser.next_event() {
                None | Some(Ok((Event::DocumentEnd | Event::StreamEnd, _))) => return Ok(()),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(self.scan_error(&error)),
            }
        }
    }

    fn pos(&self, span: &Span) -> Pos {
        let line = self.lines_before + span.start.line();
        Pos { line: u32::try_from(line).unwrap_or(u32::MAX), column: u32::try_from(span.start.col() + 1).unwrap_or(u32::MAX) }
    }

    fn scan_error(&self, error: &ScanError) -> YamlError {
        at(self.pos(&Span::empty(*error.marker())), error.info().to_owned())
    }

    /// Whether this scalar is the key `<<`; notes it if so.
    fn at_merge_key(&mut self, text: &str, style: ScalarStyle, tag: Option<&Tag>) -> bool {
        let merge = text == "<<" && style == ScalarStyle::Plain && tag.is_none_or(|tag| core_tag(tag) == Some("merge"));
        if let Some(Frame { content: Content::Map { key, .. }, .. }) = self.frames.last_mut()
            && merge
            && matches!(key, Key::Awaited)
        {
            *key = Key::Merge;
            return true;
        }
        false
    }

    fn open(&mut self, anchor: usize, pos: Pos, content: Content) -> Result<(), YamlError> {
        if let Some(Frame { content: Content::Map { key: Key::Awaited, .. }, .. }) = self.frames.last() {
            let what = if matches!(content, Content::List(..)) { "a list" } else { "a mapping" };
            return Err(at(pos, format!("{what} cannot be a key; a value that starts with `{{` or `[` must be quoted")));
        }
        if self.frames.len() >= MAX_DEPTH {
            return Err(at(pos, format!("nested more than {MAX_DEPTH} levels deep")));
        }
        self.frames.push(Frame { anchor, pos, content });
        Ok(())
    }

    fn close(&mut self) -> Result<Option<(Value, Place)>, YamlError> {
        let Some(frame) = self.frames.pop() else { return Ok(None) };
        let (value, inner) = match frame.content {
            Content::List(values, places) => (Value::Array(values), Inner::List(places)),
            Content::Map { map, entries, .. } => (Value::Object(map), Inner::Map(entries)),
        };
        self.add(value, Place { pos: frame.pos, inner }, frame.anchor)
    }

    fn alias(&mut self, id: usize, pos: Pos) -> Result<Option<(Value, Place)>, YamlError> {
        let Some(anchor) = self.anchors.get(&id) else {
            return Err(at(pos, "an alias stands inside the value that its anchor names".to_owned()));
        };
        self.expanded = self.expanded.saturating_add(anchor.weight);
        within_budget(self.expanded, pos)?;
        let (value, mut place) = (anchor.value.clone(), anchor.place.clone());
        // A scalar is best shown where it is used; inside a repeated block, the block is where one edits.
        if matches!(place.inner, Inner::Scalar) {
            place.pos = pos;
        }
        if self.frames.len() + depth(&value) > MAX_DEPTH {
            return Err(at(pos, format!("nested more than {MAX_DEPTH} levels deep")));
        }
        self.add(value, place, 0)
    }

    /// Puts a finished value where it belongs; gives it back when it is the whole document.
    fn add(&mut self, value: Value, place: Place, anchor: usize) -> Result<Option<(Value, Place)>, YamlError> {
        if anchor > 0 {
            let weight = weight(&value);
            self.expanded = self.expanded.saturating_add(weight);
            within_budget(self.expanded, place.pos)?;
            self.anchors.insert(anchor, Anchor { weight, value: value.clone(), place: place.clone() });
        }
        let Some(Frame { content, .. }) = self.frames.last_mut() else { return Ok(Some((value, place))) };
        match content {
            Content::List(values, places) => {
                values.push(value);
                places.push(place);
            }
            Content::Map { map, entries, key } => match std::mem::replace(key, Key::Awaited) {
                Key::Awaited => *key = Key::Named(key_text(value).map_err(|message| at(place.pos, message))?, place.pos),
                Key::Named(name, key_pos) => {
                    let again = map.insert(name.clone(), value).is_some();
                    if !again {
                        entries.push(Entry { key: name.into(), key_pos, place });
                    } else if self.duplicates.len() < MAX_DUPLICATES
                        && let Some(old) = entries.iter_mut().find(|old| *old.key == *name)
                    {
                        let first = std::mem::replace(old, Entry { key: name.clone().into(), key_pos, place }).key_pos;
                        let mut path = self.path();
                        path.push(Step::Key(name));
                        self.duplicates.push(Duplicate { path, first, again: key_pos });
                    }
                }
                Key::Merge => merge(map, entries, value, place)?,
            },
        }
        Ok(None)
    }

    /// The path of the innermost open list or mapping.
    fn path(&self) -> Vec<Step> {
        let parents = self.frames.iter().take(self.frames.len().saturating_sub(1));
        parents
            .filter_map(|frame| match &frame.content {
                Content::List(values, _) => Some(Step::Index(values.len())),
                Content::Map { key: Key::Named(name, _), .. } => Some(Step::Key(name.clone())),
                Content::Map { .. } => None,
            })
            .collect()
    }
}

fn within_budget(expanded: usize, pos: Pos) -> Result<(), YamlError> {
    if expanded > MAX_EXPANSION { Err(at(pos, "the anchors and aliases of this document expand to too much".to_owned())) } else { Ok(()) }
}

fn at(pos: Pos, message: String) -> YamlError {
    YamlError { line: pos.line, column: pos.column, message }
}

/// The part after `!!` of a tag of the YAML family.
fn core_tag(tag: &Tag) -> Option<&str> {
    (tag.is_yaml_core_schema() || tag.handle == "!!").then_some(&*tag.suffix)
}

fn scalar_value(text: Cow<'_, str>, style: ScalarStyle, tag: Option<&Tag>) -> Result<Value, String> {
    match tag.map(|tag| (core_tag(tag), tag)) {
        Some((Some(suffix), _)) => scalar::tagged(suffix, &text),
        // A lone `!` and tags of somebody's own: text, whatever it looks like.
        Some((None, _)) => Ok(Value::String(text.into_owned())),
        None if style == ScalarStyle::Plain => scalar::plain(&text),
        None => Ok(Value::String(text.into_owned())),
    }
}

/// Keys are strings in JSON: numbers and booleans are written out.
fn key_text(key: Value) -> Result<String, String> {
    match key {
        Value::String(text) => Ok(text),
        Value::Bool(yes) => Ok(yes.to_string()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Null => Err("a key is missing before `:` (or is `null`; quote it if it is meant as text)".to_owned()),
        Value::Array(_) | Value::Object(_) => Err("only a word or a number can be a key".to_owned()),
    }
}

/// Takes over the entries of a merged mapping at this point: they replace what was written before `<<`, and what follows replaces
/// them. In a list of mappings the first one that has a key wins.
fn merge(map: &mut Map<String, Value>, entries: &mut Vec<Entry>, value: Value, place: Place) -> Result<(), YamlError> {
    let pos = place.pos;
    match (value, place.inner) {
        (Value::Object(from), Inner::Map(places)) => {
            let mut from = from;
            for entry in places {
                // A key that was written here as well keeps its place.
                if let Some(value) = from.remove(&*entry.key)
                    && map.insert(entry.key.to_string(), value).is_none()
                {
                    entries.push(entry);
                }
            }
            Ok(())
        }
        (Value::Array(list), Inner::List(places)) => list.into_iter().zip(places).rev().try_for_each(|(value, place)| match value {
            Value::Object(_) => merge(map, entries, value, place),
            _ => Err(at(place.pos, "`<<` takes a mapping or a list of mappings".to_owned())),
        }),
        _ => Err(at(pos, "`<<` takes a mapping or a list of mappings".to_owned())),
    }
}

fn weight(value: &Value) -> usize {
    VALUE_WEIGHT
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(weight).sum(),
            Value::Object(map) => map.iter().map(|(key, value)| VALUE_WEIGHT + key.len() + weight(value)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

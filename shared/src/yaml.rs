//! YAML as `kubectl` reads it, with the line of every field.
//!
//! Kubernetes tools read YAML 1.1 scalars: an unquoted `yes` is a boolean and `010` is eight. A YAML 1.2 reader would see other
//! values than the cluster does, so the scalar rules here are those of YAML 1.1 as the Go tools apply them (`RJ-118`), on top of
//! a parser that only delivers events. Keys become strings, the last of two equal keys wins, anchors and merge keys work.
//!
//! Everything is bounded: nesting ([`MAX_DEPTH`]), what aliases may expand to, and no input panics.

mod json;
mod load;
mod places;
mod scalar;
mod split;

#[cfg(test)]
mod tests;

pub use json::{to_json, yaml_to_json};
pub use places::{Found, Place, Pos, Step};

use serde_json::Value;

/// Deepest nesting of lists and mappings that is read; the same bound that the JSON reader of the webhook has.
pub const MAX_DEPTH: usize = 128;

/// Why a text cannot be read, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct YamlError {
    /// Line in the text, counted from 1.
    pub line: u32,
    /// Column in characters, counted from 1.
    pub column: u32,
    /// What is wrong, as half a sentence without position.
    pub message: String,
}

/// A key written twice in one mapping. Kubernetes keeps the last value and drops the first without a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// Where the key is, from the root of the document.
    pub path: Vec<Step>,
    /// Where the key was written first (the value that is lost).
    pub first: Pos,
    /// Where it was written again (the value that counts).
    pub again: Pos,
}

/// One document of a stream.
#[derive(Clone, Debug)]
pub struct Document {
    /// Its content.
    pub value: Value,
    /// Where each part of it was written.
    pub place: Place,
    /// Keys that were written twice.
    pub duplicates: Vec<Duplicate>,
}

/// Reads the first document of a text, as `runtimeEnvYAML` and `serveConfigV2` are read. An empty text is `null`.
///
/// # Errors
/// When the text is not YAML, is nested too deeply, or holds something JSON cannot express (a list as a key, `.nan`).
pub fn parse_str(text: &str) -> Result<Value, YamlError> {
    Ok(load::Loader::new(text, 0).next_document()?.map_or(Value::Null, |document| document.value))
}

/// Like [`parse_str`], with places and duplicate keys; `None` for a text without content.
///
/// # Errors
/// As [`parse_str`].
pub fn parse_document(text: &str) -> Result<Option<Document>, YamlError> {
    load::Loader::new(text, 0).next_document()
}

/// Reads every document of a file, in order. A document that cannot be read does not hide the others: like `kubectl`, the text is
/// cut at its `---` lines first. Empty documents are left out. JSON texts, also several in a row, are read as JSON.
pub fn documents(text: &str) -> Vec<Result<Document, YamlError>> {
    let mut found = Vec::new();
    for (lines_before, chunk) in split::chunks(text) {
        if let Some(documents) = json::json_documents(chunk, lines_before) {
            found.extend(documents.into_iter().map(Ok));
            continue;
        }
        let mut loader = load::Loader::new(chunk, lines_before);
        loop {
            match loader.next_document() {
                Ok(Some(document)) => found.push(Ok(document)),
                Ok(None) => break,
                Err(error) => {
                    found.push(Err(error));
                    break;
                }
            }
        }
    }
    found
}

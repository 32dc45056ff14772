//! What the check found.

use serde::Serialize;
use serde_json::Value;
use shared::validation::ErrorType;

/// Something about one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Where it is; empty when it concerns the document as a whole.
    pub path: String,
    /// What kind of problem it is.
    pub kind: ErrorType,
    /// What was found and what to do about it.
    pub message: String,
    /// Line in the file, counted from 1: that of the field, or of its nearest parent that is written.
    pub line: u32,
}

/// The verdict on one object, or on a document that cannot be read.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Line at which it starts, counted from 1.
    pub line: u32,
    /// Its kind as written.
    pub kind: String,
    /// Its namespace as written; empty when it is left to the client.
    pub namespace: String,
    /// Its name; empty when the API server makes one.
    pub name: String,
    /// Whether the document could not be read at all.
    pub unreadable: bool,
    /// What refuses it, by line.
    pub errors: Vec<Finding>,
    /// What deserves a look, by line.
    pub warnings: Vec<Finding>,
    /// What the webhook would fill in, as a JSON patch.
    pub patch: Value,
}

impl Checked {
    /// Whether the object would be admitted.
    #[must_use]
    pub fn allowed(&self) -> bool {
        self.errors.is_empty()
    }
}

/// All verdicts on one file.
#[derive(Clone, Debug, Default)]
pub struct CheckedFile {
    /// The file's name as shown to the user.
    pub name: String,
    /// In the order written.
    pub objects: Vec<Checked>,
    /// Documents and list items that are not of our kinds.
    pub skipped: usize,
}

/// An error in the JSON output.
#[derive(Serialize)]
pub(super) struct JsonError<'a> {
    pub(super) path: &'a str,
    pub(super) r#type: &'static str,
    pub(super) message: &'a str,
    pub(super) line: u32,
}

/// A warning in the JSON output.
#[derive(Serialize)]
pub(super) struct JsonWarning<'a> {
    pub(super) path: &'a str,
    pub(super) message: &'a str,
    pub(super) line: u32,
}

/// An object in the JSON output.
#[derive(Serialize)]
pub(super) struct JsonObject<'a> {
    pub(super) file: &'a str,
    pub(super) line: u32,
    pub(super) kind: &'a str,
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) allowed: bool,
    pub(super) errors: Vec<JsonError<'a>>,
    pub(super) warnings: Vec<JsonWarning<'a>>,
    pub(super) patch: &'a Value,
}

impl<'a> JsonObject<'a> {
    pub(super) fn new(file: &'a str, checked: &'a Checked) -> Self {
        JsonObject {
            file,
            line: checked.line,
            kind: &checked.kind,
            namespace: &checked.namespace,
            name: &checked.name,
            allowed: checked.allowed(),
            errors: checked
                .errors
                .iter()
                .map(|Finding { path, kind, message, line }| JsonError { path, r#type: kind.as_str(), message, line: *line })
                .collect(),
            warnings: checked
                .warnings
                .iter()
                .map(|Finding { path, message, line, .. }| JsonWarning { path, message, line: *line })
                .collect(),
            patch: &checked.patch,
        }
    }
}

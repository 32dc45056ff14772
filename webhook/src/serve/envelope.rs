//! The admission protocol as far as we speak it: reading an AdmissionReview and writing the answer. Pure.
//!
//! The envelope is our own so that the object in it stays raw JSON: nothing unknown is lost, and nothing unneeded is parsed.
//! `admission.k8s.io/v1` and `v1beta1` have the same shape here and are answered in the version that was asked in.

use std::borrow::Cow;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use shared::validation::{FieldError, FieldWarning, Kind, Report};

/// API group of the objects that are reviewed.
pub(crate) const GROUP: &str = "ray.io";
/// Errors and warnings shown in one answer. The rest is counted.
pub(crate) const SHOWN: usize = 32;

const VERSIONS: [&str; 2] = ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"];

/// A request to review something, as far as it matters.
#[derive(Debug)]
pub(crate) struct Review<'a> {
    /// The version to answer in.
    pub(crate) api_version: &'static str,
    pub(crate) request: Request<'a>,
}

/// `request` of an AdmissionReview.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Request<'a> {
    #[serde(borrow)]
    pub(crate) uid: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) kind: GroupVersionKind<'a>,
    #[serde(borrow, default)]
    pub(crate) sub_resource: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) namespace: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(crate) operation: Cow<'a, str>,
    #[serde(default)]
    pub(crate) dry_run: Option<bool>,
    #[serde(default)]
    pub(crate) object: Value,
    #[serde(default)]
    pub(crate) old_object: Value,
}

/// What the object is, in the version that the webhook registered for.
#[derive(Debug, Deserialize)]
pub(crate) struct GroupVersionKind<'a> {
    #[serde(borrow, default)]
    pub(crate) group: Cow<'a, str>,
    #[serde(borrow)]
    pub(crate) kind: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope<'a> {
    #[serde(borrow, default)]
    api_version: Cow<'a, str>,
    #[serde(borrow, default)]
    kind: Cow<'a, str>,
    #[serde(borrow, default)]
    request: Option<Request<'a>>,
}

/// Why a body cannot be answered with a review: nobody knows which request it belongs to.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvelopeError {
    #[error("the body is empty; POST an AdmissionReview of admission.k8s.io/v1")]
    Empty,
    #[error("the body is not JSON: {0}")]
    Json(String),
    #[error("the body is not an AdmissionReview of admission.k8s.io/v1: {0}")]
    Shape(String),
    #[error("the AdmissionReview has no request")]
    NoRequest,
    #[error(
        "{0:?} is not a version of AdmissionReview that is spoken here; set admissionReviewVersions: [\"v1\"] in the webhook configuration"
    )]
    Version(String),
}

impl<'a> Review<'a> {
    /// Reads the body of a request.
    pub(crate) fn parse(body: &'a [u8]) -> Result<Self, EnvelopeError> {
        if body.is_empty() {
            return Err(EnvelopeError::Empty);
        }
        let envelope: Envelope<'a> = serde_json::from_slice(body).map_err(|error| {
            // The text may quote the body; a person must be able to read it all the same.
            let text = cut(&error.to_string(), 200).into_owned();
            if error.is_data() { EnvelopeError::Shape(text) } else { EnvelopeError::Json(text) }
        })?;
        if envelope.kind != "AdmissionReview" {
            return Err(EnvelopeError::Shape(format!("its kind is {:?}", cut(&envelope.kind, 60))));
        }
        let Some(api_version) = VERSIONS.into_iter().find(|version| *version == envelope.api_version) else {
            return Err(EnvelopeError::Version(cut(&envelope.api_version, 60).into_owned()));
        };
        let request = envelope.request.ok_or(EnvelopeError::NoRequest)?;
        Ok(Self { api_version, request })
    }
}

/// At most `limit` characters of `text`.
fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    match text.char_indices().nth(limit) {
        Some((end, _)) => Cow::Owned(format!("{}…", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// The answer to a request.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    /// Why not; `None` admits.
    pub(crate) refusal: Option<Refusal>,
    /// Shown to the user whether admitted or not.
    pub(crate) warnings: Vec<String>,
    /// A JSON patch (RFC 6902); only when something changes.
    pub(crate) patch: Option<Vec<u8>>,
}

/// A refusal, as the API server hands it on to the client.
#[derive(Debug, Serialize)]
pub(crate) struct Refusal {
    status: &'static str,
    pub(crate) code: u16,
    reason: &'static str,
    pub(crate) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Details>,
}

#[derive(Debug, Serialize)]
struct Details {
    group: &'static str,
    kind: &'static str,
    name: String,
    causes: Vec<Cause>,
}

#[derive(Debug, Serialize)]
struct Cause {
    reason: &'static str,
    message: String,
    field: String,
}

impl Refusal {
    /// A request that cannot be reviewed as it stands.
    pub(crate) fn bad_request(message: String) -> Self {
        Self { status: "Failure", code: 400, reason: "BadRequest", message, details: None }
    }

    /// An object with errors; `None` if the report has none.
    pub(crate) fn invalid(kind: Kind, name: &str, report: &Report) -> Option<Self> {
        if report.allowed() {
            return None;
        }
        let mut causes: Vec<Cause> = report.errors.iter().take(SHOWN).map(Cause::from).collect();
        let hidden = report.errors.len() + report.omitted - causes.len();
        if hidden > 0 {
            // kubectl writes the causes, not the message, so that the count has to be among them.
            let message = format!("{hidden} more problems are not shown");
            causes.push(Cause { reason: "FieldValueInvalid", message, field: "spec".to_owned() });
        }
        Some(Self {
            status: "Failure",
            code: 422,
            reason: "Invalid",
            message: shared::validation::render(report, SHOWN),
            details: Some(Details { group: GROUP, kind: kind.as_str(), name: name.to_owned(), causes }),
        })
    }
}

impl From<&FieldError> for Cause {
    fn from(error: &FieldError) -> Self {
        Self { reason: error.kind.reason(), message: error.message.clone(), field: error.path.clone() }
    }
}

/// Warnings as HTTP warning headers can carry them: one line each, without control characters, not too many.
pub(crate) fn warning_lines(warnings: &[FieldWarning]) -> Vec<String> {
    let line = |warning: &FieldWarning| {
        let text = format!("{}: {}", warning.path, warning.message);
        text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
    };
    let mut lines: Vec<String> = warnings.iter().take(SHOWN).map(line).collect();
    if warnings.len() > SHOWN {
        lines.push(format!("… and {} more warnings", warnings.len() - SHOWN));
    }
    lines
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnswerEnvelope<'a> {
    api_version: &'a str,
    kind: &'a str,
    response: Answer<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a Refusal>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
}

impl Verdict {
    /// Admits without a word.
    pub(crate) fn admitted() -> Self {
        Self::default()
    }

    /// Refuses.
    pub(crate) fn refused(refusal: Refusal) -> Self {
        Self { refusal: Some(refusal), ..Self::default() }
    }

    /// Whether the request is admitted.
    pub(crate) fn allowed(&self) -> bool {
        self.refusal.is_none()
    }

    /// The body of the answer.
    pub(crate) fn encode(&self, api_version: &str, uid: &str) -> serde_json::Result<Vec<u8>> {
        let patch = self.patch.as_ref().map(|patch| BASE64_STANDARD.encode(patch));
        serde_json::to_vec(&AnswerEnvelope {
            api_version,
            kind: "AdmissionReview",
            response: Answer {
                uid,
                allowed: self.allowed(),
                status: self.refusal.as_ref(),
                warnings: &self.warnings,
                patch_type: patch.is_some().then_some("JSONPatch"),
                patch,
            },
        })
    }
}

#[cfg(test)]
#[path = "envelope_tests.rs"]
mod tests;

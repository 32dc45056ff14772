//! Every rule about the four kinds, once: used by the webhook, by `check` and, as a back-stop, by the operator.
//!
//! The rules work on raw JSON, so that they see exactly what was sent and never drop an unknown field. They are total: any
//! JSON gives a report. All problems are reported at once; which of them refuse an UPDATE is decided in [`update`].

mod advice;
mod clashes;
mod cluster;
mod containers;
mod cronjob;
mod embedded;
mod fault_tolerance;
mod groups;
mod job;
mod job_deletion;
pub(crate) mod json;
mod metadata;
pub(crate) mod names;
mod options;
mod params;
mod path;
mod pods;
mod render;
mod rules;
mod service;
mod transition;
mod update;

use std::{fmt, str::FromStr};

pub use path::Path;
pub use render::{SHOWN_ERRORS, render};
pub use rules::{Origin, RULES, RuleConfig, RuleConfigError, RuleInfo, Softened, rule, rules_markdown};
use serde_json::Value;

use self::json::Json;
use crate::features::FeatureGates;

/// A kind of the API group `ray.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A Ray cluster.
    RayCluster,
    /// A job and, usually, the cluster made for it.
    RayJob,
    /// Ray Serve applications and the clusters that run them.
    RayService,
    /// RayJobs made on a schedule.
    RayCronJob,
}

impl Kind {
    /// All four, in the order of their rules.
    pub const ALL: [Self; 4] = [Self::RayCluster, Self::RayJob, Self::RayService, Self::RayCronJob];

    /// The kind as it stands in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RayCluster => "RayCluster",
            Self::RayJob => "RayJob",
            Self::RayService => "RayService",
            Self::RayCronJob => "RayCronJob",
        }
    }

    /// The resource name, as it stands in URLs and RBAC rules.
    pub const fn plural(self) -> &'static str {
        match self {
            Self::RayCluster => "rayclusters",
            Self::RayJob => "rayjobs",
            Self::RayService => "rayservices",
            Self::RayCronJob => "raycronjobs",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text does not name a kind of `ray.io`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a kind of ray.io; the kinds are RayCluster, RayJob, RayService and RayCronJob")]
pub struct UnknownKind(pub String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| UnknownKind(format!("{}", json::Shown(text))))
    }
}

/// What is wrong with a field, in the terms of the Kubernetes API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorType {
    /// The field is missing.
    Required,
    /// The value is not acceptable.
    Invalid,
    /// The field may not be set here.
    Forbidden,
    /// The value occurs twice where it must be unique.
    Duplicate,
    /// The value is not one of a fixed set.
    NotSupported,
    /// The value has too many characters.
    TooLong,
    /// The value has another type than the schema says.
    TypeInvalid,
}

impl ErrorType {
    /// Short name, used in the JSON output of `check`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Required => "Required",
            Self::Invalid => "Invalid",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate",
            Self::NotSupported => "NotSupported",
            Self::TooLong => "TooLong",
            Self::TypeInvalid => "TypeInvalid",
        }
    }

    /// The reason of a cause in `status.details.causes`, as the API server spells it.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotSupported => "FieldValueNotSupported",
            Self::TooLong => "FieldValueTooLong",
            Self::TypeInvalid => "FieldValueTypeInvalid",
        }
    }
}

/// A problem that refuses the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Where it is, see [`Path`].
    pub path: String,
    /// What kind of problem it is.
    pub kind: ErrorType,
    /// What was found and what to do about it.
    pub message: String,
    /// The rule behind it; [`RULES`] describes each.
    pub rule: &'static str,
}

/// Something legal that deserves a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldWarning {
    /// Where it is, see [`Path`].
    pub path: String,
    /// What was found and what it leads to.
    pub message: String,
    /// The rule behind it; [`RULES`] describes each.
    pub rule: &'static str,
}

/// Everything found in one object. Empty `errors` mean that the object is admitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Problems that refuse the object, in the order in which they were found: metadata, then the spec part by part.
    pub errors: Vec<FieldError>,
    /// Advice.
    pub warnings: Vec<FieldWarning>,
    /// How many further errors were found but not kept; memory stays bounded whatever is sent.
    pub omitted: usize,
}

impl Report {
    /// Whether nothing refuses the object.
    pub fn allowed(&self) -> bool {
        self.errors.is_empty() && self.omitted == 0
    }
}

/// Errors and warnings kept of one object. An answer shows far fewer.
const MAX_KEPT: usize = 500;

/// Where the rules put what they find.
#[derive(Default)]
pub(crate) struct Findings {
    report: Report,
}

impl Findings {
    pub(crate) fn error(&mut self, path: &Path<'_>, kind: ErrorType, rule: &'static str, message: impl Into<String>) {
        if self.report.errors.len() < MAX_KEPT {
            self.report.errors.push(FieldError { path: path.to_string(), kind, message: message.into(), rule });
        } else {
            self.report.omitted += 1;
        }
    }

    pub(crate) fn required(&mut self, path: &Path<'_>, rule: &'static str, message: impl Into<String>) {
        self.error(path, ErrorType::Required, rule, message);
    }

    pub(crate) fn invalid(&mut self, path: &Path<'_>, rule: &'static str, message: impl Into<String>) {
        self.error(path, ErrorType::Invalid, rule, message);
    }

    pub(crate) fn forbidden(&mut self, path: &Path<'_>, rule: &'static str, message: impl Into<String>) {
        self.error(path, ErrorType::Forbidden, rule, message);
    }

    pub(crate) fn warn(&mut self, path: &Path<'_>, rule: &'static str, message: impl Into<String>) {
        if self.report.warnings.len() < MAX_KEPT {
            self.report.warnings.push(FieldWarning { path: path.to_string(), message: message.into(), rule });
        }
    }
}

/// One object to be judged.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// What the object is.
    pub kind: Kind,
    /// The object as it would be stored (after defaults).
    pub object: &'a Value,
    /// On UPDATE, the object as it is stored now.
    pub old: Option<&'a Value>,
    /// The gates of the operator that will work on it.
    pub features: &'a FeatureGates,
    /// Rules that only warn in this object's namespace.
    pub softened: Softened,
}

impl<'a> Request<'a> {
    /// A CREATE without any softened rule.
    pub fn create(kind: Kind, object: &'a Value, features: &'a FeatureGates) -> Self {
        Self { kind, object, old: None, features, softened: Softened::none() }
    }

    /// The same object as an UPDATE of `old`.
    #[must_use]
    pub fn update(self, old: &'a Value) -> Self {
        Self { old: Some(old), ..self }
    }

    /// The same request with some rules turned into warnings.
    #[must_use]
    pub fn softened(self, softened: Softened) -> Self {
        Self { softened, ..self }
    }
}

/// Judges a CREATE or an UPDATE. Never refuses an object that is being deleted, nor an UPDATE that changes neither the spec
/// nor validated metadata (C-19).
pub fn validate(request: &Request<'_>) -> Report {
    if request.object.at("metadata").at("deletionTimestamp").is_set() {
        return Report::default();
    }
    match request.old {
        None => finish(examine(&Subject::of(request.kind, request.object, *request.features)), request.softened),
        Some(old) => finish(update::examine(request, old), request.softened),
    }
}

/// Judges an object that is already stored, as the operator meets it: the same rules, and those about the status (V-C-5,
/// V-J-37). Reports on objects that are being deleted, too; whether the problem matters then is the caller's decision. No advice.
pub fn validate_stored(kind: Kind, object: &Value, features: &FeatureGates) -> Report {
    validate_stored_softened(kind, object, features, Softened::none())
}

/// [`validate_stored`] for an operator that is told, like the webhook, which rules only warn.
pub fn validate_stored_softened(kind: Kind, object: &Value, features: &FeatureGates, softened: Softened) -> Report {
    let mut report = finish(examine(&Subject { stored: true, ..Subject::of(kind, object, *features) }), softened);
    report.warnings.clear();
    report
}

fn finish(findings: Findings, softened: Softened) -> Report {
    let mut report = findings.report;
    if softened.is_empty() {
        return report;
    }
    let (soft, hard) = report.errors.into_iter().partition(|error| softened.contains(error.rule));
    report.errors = hard;
    report.warnings.extend(soft.into_iter().map(|FieldError { path, message, rule, .. }| FieldWarning { path, message, rule }));
    report
}

/// What every rule may ask about the object as a whole.
pub(crate) struct Subject<'a> {
    pub(crate) kind: Kind,
    pub(crate) object: &'a Value,
    pub(crate) spec: &'a Value,
    pub(crate) features: FeatureGates,
    pub(crate) name: &'a str,
    /// Annotations that reach the cluster; a RayCronJob's do not.
    pub(crate) annotations: &'a Value,
    pub(crate) stored: bool,
}

impl<'a> Subject<'a> {
    pub(crate) fn of(kind: Kind, object: &'a Value, features: FeatureGates) -> Self {
        let metadata = object.at("metadata");
        let annotations = if kind == Kind::RayCronJob { object.at("") } else { metadata.at("annotations") };
        let name = metadata.at("name").text().unwrap_or_default();
        Self { kind, object, spec: object.at("spec"), features, name, annotations, stored: false }
    }

    /// The value of an annotation, empty where there is none.
    pub(crate) fn annotation(&self, key: &str) -> &'a str {
        self.annotations.at(key).text().unwrap_or_default()
    }
}

/// Runs every rule that looks at one object alone.
pub(crate) fn examine(subject: &Subject<'_>) -> Findings {
    let mut out = Findings::default();
    metadata::examine(subject, &mut out);
    let spec = Path::root("spec");
    match subject.kind {
        Kind::RayCluster => cluster::examine_object(subject, &spec, &mut out),
        Kind::RayJob => job::examine_object(subject, &spec, &mut out),
        Kind::RayService => service::examine(subject, &spec, &mut out),
        Kind::RayCronJob => cronjob::examine(subject, &spec, &mut out),
    }
    out
}

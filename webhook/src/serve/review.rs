//! From an AdmissionReview to its answer: which path, which operation, which rules. Pure; everything that a review costs is here.

use std::sync::Arc;

use serde_json::Value;
use shared::defaults::{self, Settings};
use shared::features::FeatureGates;
use shared::validation::{self, Kind, Report};

use super::envelope::{EnvelopeError, GROUP, Refusal, Request, Review, Verdict, warning_lines};
use super::namespaces::{Labels, Namespaces};
use super::policy::Policy;

/// What a path does with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// `/validate-…`: judges.
    Validate,
    /// `/mutate-…`: fills in defaults.
    Mutate,
}

impl Mode {
    /// As in the path and in metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Validate => "validate",
            Self::Mutate => "mutate",
        }
    }
}

/// One of the eight paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// What it does.
    pub mode: Mode,
    /// The kind that it is for.
    pub kind: Kind,
}

impl Endpoint {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Kind::ALL.into_iter().flat_map(|kind| [Mode::Validate, Mode::Mutate].map(|mode| Self { mode, kind }))
    }

    /// Its path, such as `/validate-ray-io-v1-rayjob`.
    pub fn path(self) -> String {
        format!("/{}-ray-io-v1-{}", self.mode.as_str(), self.kind.as_str().to_ascii_lowercase())
    }
}

/// What was asked for, as a metric label: unknown texts become `OTHER`.
pub(crate) fn operation_label(operation: &str) -> &'static str {
    ["CREATE", "UPDATE", "DELETE", "CONNECT"].into_iter().find(|known| *known == operation).unwrap_or("OTHER")
}

/// What a review rests on besides the request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grounds {
    pub(crate) features: FeatureGates,
    pub(crate) policy: Arc<Policy>,
    pub(crate) namespaces: Arc<Namespaces>,
}

impl Grounds {
    /// The labels of a namespace, if anything in the policy asks for labels at all.
    fn labels(&self, namespace: &str) -> Labels {
        if self.policy.reads_labels() { self.namespaces.labels(namespace) } else { Labels::new() }
    }
}

/// A finished review.
#[derive(Debug)]
pub(crate) struct Reviewed {
    /// The answer's body.
    pub(crate) body: Vec<u8>,
    /// What metrics and the log want to know.
    pub(crate) facts: Facts,
}

/// A review in figures and names. No content of the object.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) operation: &'static str,
    pub(crate) allowed: bool,
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) dry_run: bool,
    /// Why it was refused if no rule says so.
    pub(crate) problem: Option<String>,
    pub(crate) report: Report,
}

impl Facts {
    /// The rules that refuse, each once.
    pub(crate) fn rules(&self) -> Vec<&'static str> {
        let mut rules: Vec<_> = self.report.errors.iter().map(|error| error.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }
}

/// Reviews one request body.
pub(crate) fn review(endpoint: Endpoint, grounds: &Grounds, body: &[u8]) -> Result<Reviewed, EnvelopeError> {
    let Review { api_version, request } = Review::parse(body)?;
    let (verdict, report) = decide(endpoint, grounds, &request);
    let body = verdict.encode(api_version, &request.uid).map_err(|error| EnvelopeError::Json(error.to_string()))?;
    let problem = verdict.refusal.as_ref().filter(|_| report.allowed()).map(|refusal| refusal.message.clone());
    let facts = Facts {
        operation: operation_label(&request.operation),
        allowed: verdict.allowed(),
        name: object_name(&request).to_owned(),
        namespace: request.namespace.into_owned(),
        dry_run: request.dry_run.unwrap_or(false),
        problem,
        report,
    };
    Ok(Reviewed { body, facts })
}

/// The name of the object; on a CREATE with `generateName` the prefix.
fn object_name<'a>(request: &'a Request<'_>) -> &'a str {
    let metadata = request.object.get("metadata");
    let field = |key| metadata.and_then(|metadata| metadata.get(key)).and_then(Value::as_str).filter(|text| !text.is_empty());
    if request.name.is_empty() { field("name").or_else(|| field("generateName")).unwrap_or_default() } else { &request.name }
}

fn decide(endpoint: Endpoint, grounds: &Grounds, request: &Request<'_>) -> (Verdict, Report) {
    let nothing = |verdict| (verdict, Report::default());
    // Nobody is kept from deleting, and sub-resources (status, scale) are written by machines.
    if !matches!(&*request.operation, "CREATE" | "UPDATE") || !request.sub_resource.is_empty() {
        return nothing(Verdict::admitted());
    }
    if let Err(problem) = check(endpoint, request) {
        return nothing(Verdict::refused(Refusal::bad_request(problem)));
    }
    let old = (request.operation == "UPDATE").then_some(&request.old_object);
    let labels = grounds.labels(&request.namespace);
    match endpoint.mode {
        Mode::Mutate => {
            let fleet = grounds.policy.fleet.settings(endpoint.kind, &request.namespace, &labels);
            nothing(mutate(endpoint.kind, &request.object, old, &fleet))
        }
        Mode::Validate => {
            let softened = grounds.policy.rules.for_namespace(&request.namespace, &labels);
            let subject = validation::Request::create(endpoint.kind, &request.object, &grounds.features).softened(softened);
            let report = validation::validate(&old.map_or(subject, |old| subject.update(old)));
            let verdict = Verdict {
                refusal: Refusal::invalid(endpoint.kind, object_name(request), &report),
                warnings: warning_lines(&report.warnings),
                patch: None,
            };
            (verdict, report)
        }
    }
}

/// Whether the request fits the path and carries what a review needs.
fn check(endpoint: Endpoint, request: &Request<'_>) -> Result<(), String> {
    let asked = &request.kind;
    if asked.group != GROUP || asked.kind != endpoint.kind.as_str() {
        return Err(format!(
            "{} reviews {}.{GROUP}, but the request is about {:.100}.{:.100}: correct the rules or the path of the webhook configuration",
            endpoint.path(),
            endpoint.kind,
            asked.kind,
            asked.group,
        ));
    }
    if !request.object.is_object() {
        return Err(format!("the {} request carries no object", request.operation));
    }
    if request.operation == "UPDATE" && !request.old_object.is_object() {
        return Err("the UPDATE request carries no oldObject".to_owned());
    }
    Ok(())
}

/// Fills in defaults on a copy and answers with the difference, so that whatever we do not know survives.
fn mutate(kind: Kind, object: &Value, old: Option<&Value>, fleet: &Settings) -> Verdict {
    let mut changed = object.clone();
    defaults::apply(kind, &mut changed, old, fleet);
    let patch = json_patch::diff(object, &changed);
    if patch.0.is_empty() {
        return Verdict::admitted();
    }
    match serde_json::to_vec(&patch) {
        Ok(patch) => Verdict { patch: Some(patch), ..Verdict::default() },
        Err(error) => Verdict::refused(Refusal::bad_request(format!("the defaults cannot be written as a patch: {error}"))),
    }
}

#[cfg(test)]
#[path = "review_tests.rs"]
mod tests;

//! From the text of a file to verdicts.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::defaults::{self, FleetDefaults};
use shared::features::FeatureGates;
use shared::schema::{Schema, UnknownField, metadata as metadata_rules};
use shared::validation::{self, ErrorType, FieldError, FieldWarning, Kind, Request, RuleConfig};
use shared::yaml::{self, Duplicate, Place, Step, YamlError};

use super::cel::CelEngine;
use super::finding::{Checked, CheckedFile, Finding};
use super::meant::{self, Advice};
use super::objects::{Identity, Object, identify, metadata, objects, text};
use super::old::Stored;

/// Unknown fields of one object that are reported one by one: what each was meant to be is a search.
const MAX_UNKNOWN: usize = 100;

/// What verdicts depend on beside the files.
#[derive(Default)]
pub struct Context {
    features: FeatureGates,
    fleet: FleetDefaults,
    rules: RuleConfig,
    stored: Stored,
    patches: bool,
    cel: CelEngine,
}

impl Context {
    /// Feature gates of the operator; no stored objects, no fleet defaults, no patches.
    #[must_use]
    pub fn new(features: FeatureGates) -> Self {
        Context { features, ..Context::default() }
    }

    /// With objects as they are stored now, as the text of a file.
    ///
    /// # Errors
    /// When a document cannot be read.
    pub fn with_stored(self, text: &str) -> Result<Self, YamlError> {
        Ok(Context { stored: Stored::parse(text)?, ..self })
    }

    /// With fleet defaults. Labels of namespaces are not known here: defaults that ask for some are not filled in.
    #[must_use]
    pub fn with_fleet_defaults(self, fleet: FleetDefaults) -> Self {
        Context { fleet, ..self }
    }

    /// With rules that only warn in some namespaces; in which by label is not known here.
    #[must_use]
    pub fn with_rules(self, rules: RuleConfig) -> Self {
        Context { rules, ..self }
    }

    /// Whether fleet defaults or rules ask for labels of namespaces, which are not known here.
    #[must_use]
    pub fn lacks_namespace_labels(&self) -> bool {
        self.fleet.reads_labels() || self.rules.reads_labels()
    }

    /// Whether verdicts tell what the webhook would fill in.
    #[must_use]
    pub fn with_patches(self, patches: bool) -> Self {
        Context { patches, ..self }
    }
}

/// Judges every object in a text. `name` is the file's name as shown to the user.
#[must_use]
pub fn check_text(context: &Context, name: &str, source: &str) -> CheckedFile {
    let mut file = CheckedFile { name: name.to_owned(), ..CheckedFile::default() };
    for document in yaml::documents(source) {
        let mut document = match document {
            Ok(document) => document,
            Err(error) => {
                file.objects.push(unreadable(source, &error));
                continue;
            }
        };
        for object in objects(&mut document) {
            match identify(&object.value) {
                Identity::Ray(kind, schema) => file.objects.push(judge(context, kind, schema, object, source)),
                Identity::Misnamed(field, error, message) => file.objects.push(misnamed(&object, field, error, message)),
                Identity::Other if meant::swallowed(source, &object.duplicates) => file.objects.push(glued(&object)),
                // An empty document is nothing.
                Identity::Other if object.value.is_null() => {}
                Identity::Other => file.skipped += 1,
            }
        }
    }
    file
}

fn unreadable(source: &str, error: &YamlError) -> Checked {
    let message = meant::syntax(source, error);
    let finding = Finding { path: String::new(), kind: ErrorType::Invalid, message, line: error.line };
    Checked { line: error.line, unreadable: true, errors: vec![finding], patch: json!([]), ..Checked::default() }
}

fn misnamed(object: &Object<'_>, field: &'static str, kind: ErrorType, message: String) -> Checked {
    let line = object.place.find(&[Step::Key(field.to_owned())]).pos.line;
    let errors = vec![Finding { path: field.to_owned(), kind, message, line }];
    Checked { errors, patch: json!([]), ..head(object) }
}

/// An object of another kind that has taken the place of one of ours.
fn glued(object: &Object<'_>) -> Checked {
    let finding = |second: &Duplicate| Finding {
        path: Step::join(&second.path),
        kind: ErrorType::Duplicate,
        message: meant::glued_message(second),
        line: second.again.line,
    };
    let errors = meant::glued(&object.duplicates).or(object.duplicates.first()).map(finding).into_iter().collect();
    Checked { errors, patch: json!([]), ..head(object) }
}

/// Who an object is.
fn head(object: &Object<'_>) -> Checked {
    let name = Some(metadata(&object.value, "name")).filter(|name| !name.is_empty());
    Checked {
        line: object.place.pos.line,
        kind: text(&object.value, "kind").to_owned(),
        namespace: metadata(&object.value, "namespace").to_owned(),
        name: name.unwrap_or_else(|| metadata(&object.value, "generateName")).to_owned(),
        ..Checked::default()
    }
}

/// The API server's walk of one object; pure.
fn judge(context: &Context, kind: Kind, schema: &'static Schema, object: Object<'_>, source: &str) -> Checked {
    let mut checked = head(&object);
    checked.patch = json!([]);
    let Object { mut value, place, duplicates } = object;
    let mut found = Collector { place, source, checked };
    if let Some(second) = meant::glued(&duplicates) {
        found.error_at(
            second.again.line,
            FieldError { path: Step::join(&second.path), kind: ErrorType::Duplicate, message: meant::glued_message(second), rule: "yaml" },
        );
        return found.checked;
    }
    found.duplicates(&duplicates);
    let unknown = schema.settle(&mut value);
    let mut errors = unknown_fields(kind, schema, &unknown);
    let old = context.stored.of(kind, &value);
    if old.is_none() {
        as_created(&mut value);
    }
    found.mutate(context, kind, schema, &mut value, old);
    let mut structural = schema.check(&value, old, &context.cel);
    structural.extend(new_metadata_errors(&value, old));
    let softened = context.rules.for_namespace(&found.checked.namespace, &BTreeMap::new());
    let request = Request::create(kind, &value, &context.features).softened(softened);
    let report = validation::validate(&old.map_or(request, |old| request.update(old)));
    errors.extend(merged(structural, report.errors));
    for mut error in errors {
        error.message.push_str(&meant::remark(schema, &error, &value, place, source));
        found.error(error, &value);
    }
    let advice = meant::advice(kind, &value, place, source, &report.warnings);
    for FieldWarning { path, message, .. } in report.warnings {
        // What a value of the wrong type amounts to is no advice.
        if found.checked.errors.iter().any(|error| error.kind == ErrorType::TypeInvalid && is_below(&path, &error.path)) {
            continue;
        }
        found.warning(path, message, &value);
    }
    for Advice { path, message, line } in advice {
        let line = line.unwrap_or_else(|| found.line(&path, &value));
        found.checked.warnings.push(Finding { path, kind: ErrorType::Invalid, message, line });
    }
    found.finish()
}

fn unknown_fields(kind: Kind, schema: &'static Schema, unknown: &[UnknownField<'_>]) -> Vec<FieldError> {
    let error = |path: &str, message: String| FieldError { path: path.to_owned(), kind: ErrorType::Invalid, message, rule: "schema" };
    let mut errors: Vec<_> =
        unknown.iter().take(MAX_UNKNOWN).map(|field| error(&field.path, meant::unknown(kind, schema, field))).collect();
    if let Some(next) = unknown.get(MAX_UNKNOWN) {
        errors.push(error(&next.path, format!("unknown field, the first of {} more", unknown.len() - MAX_UNKNOWN)));
    }
    errors
}

/// What the API server sets or takes away when it creates an object, before any validation.
fn as_created(object: &mut Value) {
    let Some(Value::Object(fields)) = object.get_mut("metadata") else { return };
    fields.remove("deletionTimestamp");
    fields.remove("deletionGracePeriodSeconds");
    let named = fields.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    if let Some(base) = fields.get("generateName").and_then(Value::as_str)
        && !named
        && !base.is_empty()
    {
        let name = metadata_rules::generated_name(base);
        fields.insert("name".to_owned(), name.into());
    }
}

/// Errors in metadata, but those that the stored object has, too.
fn new_metadata_errors(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = metadata_rules::check(object);
    if let Some(old) = old.filter(|_| !errors.is_empty()) {
        let before = metadata_rules::check(old);
        errors.retain(|error| !before.contains(error));
    }
    errors
}

/// Structural errors and those of the rules, each mistake once: at the same place a rule explains more than the schema does, but
/// has nothing to say about a value of the wrong type or about what is inside something missing.
fn merged(structural: Vec<FieldError>, rules: Vec<FieldError>) -> Vec<FieldError> {
    let hidden = |rule: &FieldError| {
        structural.iter().any(|error| match error.kind {
            ErrorType::TypeInvalid => is_below(&rule.path, &error.path),
            ErrorType::Required => rule.path != error.path && is_below(&rule.path, &error.path),
            _ => false,
        })
    };
    let rules: Vec<FieldError> = rules.into_iter().filter(|rule| !hidden(rule)).collect();
    let explained = |error: &FieldError| {
        rules.iter().any(|rule| {
            rule.path == error.path || error.kind == ErrorType::Duplicate && rule.kind == error.kind && is_below(&rule.path, &error.path)
        })
    };
    let mut all: Vec<FieldError> =
        structural.into_iter().filter(|error| error.kind == ErrorType::TypeInvalid || !explained(error)).collect();
    all.extend(rules);
    all
}

/// Whether a path is another one, or leads on from it.
fn is_below(path: &str, parent: &str) -> bool {
    path.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// Gives findings their lines.
struct Collector<'a> {
    place: &'a Place,
    source: &'a str,
    checked: Checked,
}

impl Collector<'_> {
    fn duplicates(&mut self, duplicates: &[Duplicate]) {
        for duplicate in duplicates {
            let message = format!("is written twice; the value in line {} is lost: remove one of them", duplicate.first.line);
            let path = Step::join(&duplicate.path);
            self.error_at(duplicate.again.line, FieldError { path, kind: ErrorType::Duplicate, message, rule: "yaml" });
        }
    }

    fn mutate(&mut self, context: &Context, kind: Kind, schema: &Schema, value: &mut Value, old: Option<&Value>) {
        let settings = context.fleet.settings(kind, &self.checked.namespace, &BTreeMap::new());
        let before = context.patches.then(|| value.clone());
        defaults::apply(kind, value, old, &settings);
        if let Some(before) = before {
            self.checked.patch = serde_json::to_value(json_patch::diff(&before, value)).unwrap_or_else(|_| json!([]));
        }
        schema.settle(value);
    }

    fn error(&mut self, mut error: FieldError, object: &Value) {
        let line = match self.line_inside(&error.path, &error.message) {
            Some((line, rest)) => {
                error.message = rest;
                line
            }
            None => self.line(&error.path, object),
        };
        self.error_at(line, error);
    }

    fn error_at(&mut self, line: u32, FieldError { path, kind, message, .. }: FieldError) {
        self.checked.errors.push(Finding { path, kind, message, line });
    }

    fn warning(&mut self, path: String, message: String, object: &Value) {
        let (line, message) = self.line_inside(&path, &message).unwrap_or_else(|| (self.line(&path, object), message));
        self.checked.warnings.push(Finding { path, kind: ErrorType::Invalid, message, line });
    }

    /// Messages about a text that holds YAML may begin with the line in that text: as a line of the file it is easier to find.
    fn line_inside(&self, path: &str, message: &str) -> Option<(u32, String)> {
        let (number, rest) = message.strip_prefix("line ")?.split_once(": ")?;
        let steps = Step::parse(path);
        let holds_yaml = matches!(steps.last(), Some(Step::Key(name)) if meant::holds_yaml(name));
        let found = self.place.find(&steps);
        if !holds_yaml || found.depth < steps.len() {
            return None;
        }
        let line = meant::line_before_content(self.source, found.pos.line, found.place).saturating_add(number.parse().ok()?);
        Some((line, rest.to_owned()))
    }

    fn line(&self, path: &str, object: &Value) -> u32 {
        let steps = Step::parse(path);
        let mut found = self.place.find(&steps);
        // A name that the API server makes comes from another field.
        if path == "metadata.name" && found.depth < steps.len() {
            found = self.place.find(&Step::parse("metadata.generateName"));
        }
        if !matches!(steps.last(), Some(Step::Key(name)) if meant::holds_yaml(name)) {
            return found.pos.line;
        }
        meant::line_of_problem(found.pos.line, meant::value_at(object, &steps).and_then(Value::as_str), found.place, self.source)
    }

    fn finish(mut self) -> Checked {
        self.checked.errors.sort_by_key(|finding| finding.line);
        self.checked.warnings.sort_by_key(|finding| finding.line);
        self.checked
    }
}

//! What was meant: the remark that turns "unknown field" into a remedy.

mod advice;
mod scalars;
mod search;
mod source;
mod syntax;
mod unknown;

pub(super) use advice::{Advice, advice};
pub(super) use scalars::remark;
pub(super) use source::{line_before_content, line_of_problem, value_at};
pub(super) use syntax::{glued, glued_message, swallowed, syntax};
pub(super) use unknown::unknown;

/// Whether a field is a text that holds YAML.
pub(super) fn holds_yaml(field: &str) -> bool {
    matches!(field, "serveConfigV2" | "runtimeEnvYAML")
}

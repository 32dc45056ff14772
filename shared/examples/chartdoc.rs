//! Writes the table of values into a chart's README.md, made of the comments in its values.yaml; with `--check` says whether it is stale.
//!
//! In values.yaml, `# --` begins the description of the key below it, `# ` goes on with it, and `#key: value` is a key that is not set.

use std::{fs, path::Path, process::ExitCode};

use serde_json::Value;

/// The table stands between these lines of README.md.
const MARKS: (&str, &str) = ("<!-- values: made from values.yaml by `make chart-docs` -->\n", "<!-- end of values -->\n");

/// Longest default that fits into a table.
const LONGEST: usize = 100;

/// A key with a description.
struct Entry {
    path: Vec<String>,
    description: String,
    /// Only an example in a comment.
    unset: bool,
}

/// The described keys of a values.yaml, in its order.
///
/// # Errors
/// A description that no key follows.
fn entries(text: &str) -> Result<Vec<Entry>, String> {
    let mut found = Vec::new();
    let mut open: Vec<(usize, String)> = Vec::new();
    let mut description: Option<String> = None;
    for (index, line) in text.lines().enumerate() {
        let body = line.trim_start();
        let indent = line.len() - body.len();
        if let Some(begun) = body.strip_prefix("# -- ") {
            description = Some(begun.trim().to_owned());
        } else if let (Some(more), Some(description)) = (body.strip_prefix("# "), description.as_mut()) {
            description.push(' ');
            description.push_str(more.trim());
        } else if let Some((key, unset)) = key(body) {
            open.retain(|(depth, _)| *depth < indent);
            open.push((indent, key.to_owned()));
            if let Some(description) = description.take() {
                found.push(Entry { path: open.iter().map(|(_, key)| key.clone()).collect(), description, unset });
            }
            if unset {
                open.pop();
            }
        } else if let Some(lost) = description.take() {
            return Err(format!("line {}: no key follows the description {lost:?}", index + 1));
        }
    }
    Ok(found)
}

/// The key that a line begins with, and whether it stands in a comment.
fn key(body: &str) -> Option<(&str, bool)> {
    let (body, unset) = body.strip_prefix('#').map_or((body, false), |rest| (rest, true));
    let (key, _) = body.split_once(':')?;
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    (plain && !key.starts_with('-')).then_some((key, unset))
}

fn table(text: &str) -> Result<String, String> {
    let values = shared::yaml::parse_str(text).map_err(|error| error.to_string())?;
    let mut table = "| key | default | meaning |\n|---|---|---|\n".to_owned();
    for Entry { path, description, unset } in entries(text)? {
        let default = match path.iter().try_fold(&values, |value, key| value.get(key)) {
            _ if unset => "unset".to_owned(),
            None => return Err(format!("{} is described but not there", path.join("."))),
            Some(Value::String(text)) if text.is_empty() => "`\"\"`".to_owned(),
            Some(Value::String(text)) => format!("`{text}`"),
            Some(value) if value.to_string().len() > LONGEST => "see values.yaml".to_owned(),
            Some(value) => format!("`{value}`"),
        };
        table += &format!("| `{}` | {} | {} |\n", path.join("."), default.replace('|', "\\|"), description.replace('|', "\\|"));
    }
    Ok(table)
}

/// The README with the current table.
fn updated(chart: &Path) -> Result<(String, String), String> {
    let read = |name: &str| fs::read_to_string(chart.join(name)).map_err(|error| format!("{}: {error}", chart.join(name).display()));
    let (old, table) = (read("README.md")?, table(&read("values.yaml")?).map_err(|error| format!("{}: {error}", chart.display()))?);
    let marks = || format!("{}: the lines around the table are missing", chart.display());
    let (before, rest) = old.split_once(MARKS.0).ok_or_else(marks)?;
    let (_, after) = rest.split_once(MARKS.1).ok_or_else(marks)?;
    let new = format!("{before}{}{table}{}{after}", MARKS.0, MARKS.1);
    Ok((old, new))
}

fn main() -> ExitCode {
    let (options, charts): (Vec<_>, Vec<_>) = std::env::args().skip(1).partition(|argument| argument == "--check");
    if charts.is_empty() {
        eprintln!("usage: chartdoc [--check] CHART...");
        return ExitCode::from(2);
    }
    let mut failed = false;
    for chart in &charts {
        let chart = Path::new(chart);
        let outcome = match updated(chart) {
            Ok((old, new)) if old == new => continue,
            Ok(_) if !options.is_empty() => Err(format!("{}/README.md is stale: run `make chart-docs`", chart.display())),
            Ok((_, new)) => fs::write(chart.join("README.md"), new).map_err(|error| error.to_string()),
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            eprintln!("{error}");
            failed = true;
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

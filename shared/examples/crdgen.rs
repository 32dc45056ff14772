//! Writes the CustomResourceDefinitions into a folder, or with `--check` says which of them are stale.

use std::{fs, path::PathBuf, process::ExitCode};

use serde_json::Value;

/// Widest value that stays on one line.
const WIDTH: usize = 120;
/// Depth from which a value stays on one line whatever its width: with an indent for every level, most of a file would be blanks.
const DEPTH: usize = 12;

/// JSON that a person can read and compare: a line for each part that is not short.
fn layout(value: &Value, depth: usize, text: &mut String) {
    let compact = value.to_string();
    let (open, close, parts): (char, char, Vec<(String, &Value)>) = match value {
        _ if compact.len() <= WIDTH || depth >= DEPTH => return text.push_str(&compact),
        Value::Object(fields) => {
            ('{', '}', fields.iter().map(|(name, part)| (format!("{}: ", Value::from(name.as_str())), part)).collect())
        }
        Value::Array(items) => ('[', ']', items.iter().map(|part| (String::new(), part)).collect()),
        _ => return text.push_str(&compact),
    };
    text.push(open);
    for (index, (name, part)) in parts.into_iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.extend(std::iter::repeat_n(' ', depth + 1));
        text.push_str(&name);
        layout(part, depth + 1, text);
    }
    text.push('\n');
    text.extend(std::iter::repeat_n(' ', depth));
    text.push(close);
}

fn main() -> ExitCode {
    let mut check = false;
    let mut folder = None;
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--check" => check = true,
            _ => folder = Some(PathBuf::from(argument)),
        }
    }
    let Some(folder) = folder else {
        eprintln!("usage: crdgen [--check] FOLDER");
        return ExitCode::from(2);
    };
    let mut stale = false;
    for definition in shared::crd::generate() {
        let plural = definition.pointer("/spec/names/plural").and_then(|plural| plural.as_str()).unwrap_or_default();
        let path = folder.join(format!("ray.io_{plural}.yaml"));
        let mut text = String::new();
        layout(&definition, 0, &mut text);
        text.push('\n');
        if fs::read_to_string(&path).is_ok_and(|current| current == text) {
            continue;
        }
        if check {
            eprintln!("{} is stale: run `make crds`", path.display());
            stale = true;
        } else if let Err(error) = fs::create_dir_all(&folder).and_then(|()| fs::write(&path, text)) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    if stale { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

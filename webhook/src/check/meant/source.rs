//! The text behind a place.

use serde_json::Value;
use shared::yaml::{Place, Pos, Step, parse_str};

/// A line of a text, counted from 1.
pub(super) fn line(source: &str, number: u32) -> &str {
    let index = usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
    source.lines().nth(index).unwrap_or_default()
}

/// An unquoted scalar as it is written at a position; empty for anything else.
pub(super) fn plain_scalar(source: &str, pos: Pos) -> &str {
    let line = line(source, pos.line);
    let start = line.char_indices().nth(usize::try_from(pos.column).unwrap_or(1).saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    let rest = line.get(start..).unwrap_or_default();
    if rest.starts_with(['"', '\'', '|', '>', '[', '{', '&', '*', '!']) {
        return "";
    }
    let end = rest.find(" #").unwrap_or(rest.len());
    let word = rest.get(..end).unwrap_or_default().trim_end();
    // In `{a: yes, b: 1}` the scalar ends at the punctuation.
    let end = word.find([',', '}', ']']).unwrap_or(word.len());
    word.get(..end).unwrap_or_default().trim_end()
}

/// The line in the file before the first line of a text that is embedded in it. `line` is that of its key.
pub(in crate::check) fn line_before_content(source: &str, key_line: u32, value: &Place) -> u32 {
    let block = line(source, key_line).trim_end();
    // `key: |`, with indentation indicators and a comment, has its text below; a quoted or plain text starts beside the key.
    let after_colon = block.rsplit_once(": ").map_or("", |(_, after)| after).trim_start();
    if after_colon.starts_with(['|', '>']) { key_line } else { value.pos.line.max(key_line).saturating_sub(1) }
}

/// The line of a problem in a field: for a text that holds YAML and cannot be read, the line inside.
pub(in crate::check) fn line_of_problem(key_line: u32, text: Option<&str>, value: &Place, source: &str) -> u32 {
    match text.and_then(|text| parse_str(text).err()) {
        Some(error) => {
            // What is never closed is missed at the end of the text, which is no line of it.
            let lines = text.map_or(1, |text| text.lines().count().max(1));
            line_before_content(source, key_line, value) + error.line.min(u32::try_from(lines).unwrap_or(u32::MAX))
        }
        None => key_line,
    }
}

/// The value at the end of a path.
pub(in crate::check) fn value_at<'v>(object: &'v Value, steps: &[Step]) -> Option<&'v Value> {
    steps.iter().try_fold(object, |value, step| match (step, value) {
        (Step::Index(index), Value::Array(items)) => items.get(*index),
        (step, Value::Object(map)) => map.get(&step.to_string()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use shared::yaml::{documents, parse_document};

    use super::*;

    #[test]
    fn scalars_are_shown_as_written() {
        let text = "a: yes # note\nb: {c: off, d: 010}\ne: [1.50]\nf: \"x\"\ng: a b\n";
        let document = parse_document(text).unwrap().unwrap();
        let written = |path: &str| plain_scalar(text, document.place.find(&Step::parse(path)).place.pos);
        assert_eq!(
            (written("a"), written("b.c"), written("b.d"), written("e[0]"), written("f"), written("g")),
            ("yes", "off", "010", "1.50", "", "a b")
        );
        assert_eq!(plain_scalar("", Pos { line: 9, column: 9 }), "");
    }

    #[test]
    fn lines_inside_embedded_yaml_are_lines_of_the_file() {
        let table = [
            ("spec:\n  text: |\n    a: 1\n    b: [\n    c: 2\n  x: 1\n", 5),
            ("spec:\n  text: |2- # note\n    a: 1\n    b: c: d\n", 4),
            ("spec:\n  text: >\n    a: [\n", 3),
            ("spec:\n  text: \"a: [\"\n", 2),
            ("spec:\n  text: |\n    a: 1\n", 2),
        ];
        for (source, wanted) in table {
            let document = documents(source).remove(0).unwrap();
            let found = document.place.find(&Step::parse("spec.text"));
            let text = value_at(&document.value, &Step::parse("spec.text")).and_then(Value::as_str);
            assert_eq!(line_of_problem(found.pos.line, text, found.place, source), wanted, "{source}");
        }
    }
}

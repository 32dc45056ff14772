//! Remarks on texts that are not YAML, and on keys written twice.

use shared::validation::Kind;
use shared::yaml::{Duplicate, Step, YamlError};

use super::source::line;

/// The message for a document that cannot be read.
pub(in crate::check) fn syntax(source: &str, error: &YamlError) -> String {
    format!("cannot be read as YAML: {} (column {}){}", error.message, error.column, slip(source, error))
}

/// The slip that most likely led to it.
fn slip(source: &str, error: &YamlError) -> &'static str {
    let here = line(source, error.line);
    let around = [line(source, error.line.saturating_sub(1)), here];
    let in_value = |begins: &[char]| here.split_once(": ").is_some_and(|(_, value)| value.trim_start().starts_with(begins));
    if error.message.contains("aliases") {
        "; write out what they stand for"
    } else if around.iter().any(|line| line.contains("{{")) {
        "; `{{` is a placeholder of a template: render it first, for example with `helm template CHART | kuberay-webhook check -`"
    } else if around.iter().any(|line| line.trim_start_matches(' ').starts_with('\t')) {
        "; indent with spaces: YAML does not take tabs"
    } else if here.starts_with("---") {
        "; a separator of documents stands alone in its line: `---`"
    } else if in_value(&['*']) {
        "; `*` begins an alias in YAML: put the value in quotes"
    } else if in_value(&['@', '`', '%', '&', '!']) {
        "; this character means something in YAML: put the value in quotes"
    } else if error.message.contains("mapping values") && here.split(": ").nth(2).is_some() {
        "; put the value in quotes if it contains `: `"
    } else if error.message.contains("expected key") || error.message.contains("<block end>") {
        "; look at the indentation of this line and of those above"
    } else {
        ""
    }
}

/// The key with which a second object begins whose `---` is missing, if the duplicate keys look like that.
pub(in crate::check) fn glued(duplicates: &[Duplicate]) -> Option<&Duplicate> {
    let at_top = |duplicate: &&Duplicate| matches!(duplicate.path.as_slice(), [Step::Key(key)] if matches!(key.as_str(), "apiVersion" | "kind" | "metadata" | "spec"));
    let top = || duplicates.iter().filter(at_top);
    if top().count() < 2 { None } else { top().min_by_key(|duplicate| duplicate.again) }
}

/// Whether one of the objects that are written without `---` between them is of our kinds. Only the last of them is left as a value.
pub(in crate::check) fn swallowed(source: &str, duplicates: &[Duplicate]) -> bool {
    let is_ours = |at: u32| {
        let value = line(source, at).split_once("kind:").map(|(_, value)| value.trim().trim_matches(['"', '\'', ',', '}']));
        value.is_some_and(|value| value.parse::<Kind>().is_ok())
    };
    let kinds = duplicates.iter().filter(|duplicate| matches!(duplicate.path.as_slice(), [Step::Key(key)] if key == "kind"));
    kinds.flat_map(|duplicate| [duplicate.first.line, duplicate.again.line]).any(is_ours)
}

/// The message for it.
pub(in crate::check) fn glued_message(second: &Duplicate) -> String {
    format!("a second object begins here, and its fields replace those of the one in line {}: put `---` between them", second.first.line)
}

#[cfg(test)]
mod tests {
    use shared::yaml::{documents, parse_document};

    use super::*;

    const BOMB: &str = "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n\
        d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n\
        g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\n";

    #[test]
    fn common_slips_are_recognised() {
        let table = [
            ("a: {{ .Values.x }}\n", "helm template"),
            ("a:\n{{- if .Values.x }}\n  b: 1\n{{- end }}\n", "helm template"),
            ("a:\n\tb: 1\n", "tabs"),
            ("a: b: c\n", "quotes"),
            ("schedule: */5 * * * *\n", "alias"),
            ("a: `x`\n", "means something"),
            ("a:\n  b: 1\n c: 2\n", "indentation"),
            ("a: [\n", "cannot be read as YAML"),
            (BOMB, "write out"),
        ];
        for (text, remark) in table {
            let error = documents(text).remove(0).unwrap_err();
            assert!(syntax(text, &error).contains(remark), "{text:?}: {}", syntax(text, &error));
        }
    }

    #[test]
    fn two_objects_without_a_separator_are_told_from_a_repeated_key() {
        let duplicates = |text: &str| parse_document(text).unwrap().unwrap().duplicates;
        let two = duplicates("apiVersion: a\nkind: b\nmetadata: {}\napiVersion: a\nkind: c\n");
        assert_eq!(glued(&two).unwrap().again.line, 4);
        assert!(glued_message(glued(&two).unwrap()).contains("line 1"));
        assert!(glued(&duplicates("kind: b\nkind: c\n")).is_none());
        for (text, ours) in
            [("a: 1\nkind: RayJob\nkind: \"Service\"\n", true), ("kind: Pod\nkind: 'RayJob'\n", true), ("kind: A\nkind: B\n", false)]
        {
            assert_eq!(swallowed(text, &duplicates(text)), ours, "{text}");
        }
        assert!(glued(&duplicates("spec: {kind: a, kind: b, spec: 1, spec: 2}\n")).is_none());
    }
}

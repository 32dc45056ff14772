//! Text and JSON on standard output.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use shared::validation::ErrorType;

use super::args::OutputFormat;
use super::finding::{Checked, CheckedFile, Finding, JsonObject};
use super::{ADMITTED, DENIED, UNREADABLE};

/// How many of what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Objects without errors.
    pub admitted: usize,
    /// Objects with errors.
    pub denied: usize,
    /// Files and documents that could not be read or parsed.
    pub unreadable: usize,
    /// Errors of all objects.
    pub problems: usize,
    /// Warnings of all objects.
    pub warnings: usize,
    /// Documents of other kinds.
    pub skipped: usize,
}

impl Counts {
    /// The exit status of the program.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match (self.unreadable, self.denied) {
            (0, 0) => ADMITTED,
            (0, _) => DENIED,
            _ => UNREADABLE,
        }
    }

    /// The closing line.
    #[must_use]
    pub fn summary(&self) -> String {
        let total = self.admitted + self.denied;
        let mut text = format!("{}: {} admitted, {} denied", counted(total, "Ray object"), self.admitted, self.denied);
        if self.problems > 0 {
            let _ = write!(text, " ({})", counted(self.problems, "problem"));
        }
        if self.warnings > 0 {
            let _ = write!(text, ", {}", counted(self.warnings, "warning"));
        }
        if self.skipped > 0 {
            let _ = write!(text, "; {} of other kinds skipped", counted(self.skipped, "document"));
        }
        if self.unreadable > 0 {
            let _ = write!(text, "; {} could not be read", counted(self.unreadable, "document"));
        }
        text
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Writes results as they come.
pub struct Reporter<'w, W: Write> {
    format: OutputFormat,
    out: &'w mut W,
    counts: Counts,
    elements: usize,
}

impl<'w, W: Write> Reporter<'w, W> {
    /// A reporter that has written nothing yet.
    pub fn new(format: OutputFormat, out: &'w mut W) -> Self {
        Reporter { format, out, counts: Counts::default(), elements: 0 }
    }

    /// Writes what was found in a file.
    ///
    /// # Errors
    /// When writing fails.
    pub fn file(&mut self, file: &CheckedFile) -> io::Result<()> {
        self.counts.skipped += file.skipped;
        for object in &file.objects {
            self.object(&file.name, object)?;
        }
        Ok(())
    }

    /// Writes that a file could not be read.
    ///
    /// # Errors
    /// When writing fails.
    pub fn unreadable(&mut self, name: &str, problem: &str) -> io::Result<()> {
        let error = Finding { path: String::new(), kind: ErrorType::Invalid, message: problem.to_owned(), line: 0 };
        self.object(name, &Checked { unreadable: true, errors: vec![error], patch: serde_json::json!([]), ..Checked::default() })
    }

    /// Ends the output.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish(self) -> io::Result<Counts> {
        if self.format == OutputFormat::Json {
            self.out.write_all(if self.elements == 0 { b"[]\n" } else { b"\n]\n" })?;
        }
        Ok(self.counts)
    }

    fn object(&mut self, file: &str, object: &Checked) -> io::Result<()> {
        let counts = &mut self.counts;
        match (object.unreadable, object.allowed()) {
            (true, _) => counts.unreadable += 1,
            (false, true) => counts.admitted += 1,
            (false, false) => {
                counts.denied += 1;
                counts.problems += object.errors.len();
            }
        }
        counts.warnings += object.warnings.len();
        match self.format {
            OutputFormat::Json => {
                self.out.write_all(if self.elements == 0 { b"[\n" } else { b",\n" })?;
                self.elements += 1;
                serde_json::to_writer(&mut *self.out, &JsonObject::new(file, object))?;
            }
            OutputFormat::Text => {
                let mut lines: Vec<_> = object.errors.iter().map(|finding| (finding, "")).collect();
                lines.extend(object.warnings.iter().map(|finding| (finding, "warning: ")));
                lines.sort_by_key(|(finding, _)| finding.line);
                for (finding, mark) in lines {
                    self.line(file, object, finding, mark)?;
                }
            }
        }
        Ok(())
    }

    fn line(&mut self, file: &str, object: &Checked, finding: &Finding, mark: &str) -> io::Result<()> {
        let Finding { path, message, line, .. } = finding;
        write!(self.out, "{}:", plain(file))?;
        if *line > 0 {
            write!(self.out, "{line}:")?;
        }
        if !object.kind.is_empty() {
            write!(self.out, " {}/{}:", plain(&object.kind), plain(&object.name))?;
        }
        if !path.is_empty() {
            write!(self.out, " {}:", plain(path))?;
        }
        writeln!(self.out, " {mark}{}", plain(message))
    }
}

/// Text from a manifest as it is safe in a terminal: on one line, without control characters.
fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(path: &str, line: u32) -> Finding {
        Finding { path: path.to_owned(), kind: ErrorType::Invalid, message: "is\nwrong".to_owned(), line }
    }

    fn written(format: OutputFormat) -> (String, Counts) {
        let mut out = Vec::new();
        let mut reporter = Reporter::new(format, &mut out);
        let denied = Checked {
            line: 2,
            kind: "RayJob".into(),
            namespace: "ns".into(),
            name: "j".into(),
            errors: vec![finding("spec.b", 9), finding("spec.a", 4)],
            warnings: vec![finding("spec.c", 5)],
            patch: serde_json::json!([]),
            ..Checked::default()
        };
        let admitted = Checked { line: 20, kind: "RayCluster".into(), patch: serde_json::json!([]), ..Checked::default() };
        reporter.file(&CheckedFile { name: "f.yaml".into(), objects: vec![denied, admitted], skipped: 3 }).unwrap();
        reporter.unreadable("g\u{1b}.yaml", "is not UTF-8 text").unwrap();
        let counts = reporter.finish().unwrap();
        (String::from_utf8(out).unwrap(), counts)
    }

    #[test]
    fn text_has_a_line_for_each_finding_in_the_order_of_lines() {
        let (text, counts) = written(OutputFormat::Text);
        assert_eq!(
            text,
            "f.yaml:4: RayJob/j: spec.a: is\\nwrong\nf.yaml:5: RayJob/j: spec.c: warning: is\\nwrong\nf.yaml:9: RayJob/j: spec.b: is\\nwrong\n\
             g\\u{1b}.yaml: is not UTF-8 text\n"
        );
        assert_eq!(counts, Counts { admitted: 1, denied: 1, unreadable: 1, problems: 2, warnings: 1, skipped: 3 });
        assert_eq!(
            counts.summary(),
            "2 Ray objects: 1 admitted, 1 denied (2 problems), 1 warning; 3 documents of other kinds skipped; 1 document could not be read"
        );
    }

    #[test]
    fn json_has_an_element_for_each_object() {
        let (text, _) = written(OutputFormat::Json);
        let array: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(
            array[0],
            serde_json::json!({"file": "f.yaml", "line": 2, "kind": "RayJob", "namespace": "ns", "name": "j", "allowed": false,
                "errors": [{"path": "spec.b", "type": "Invalid", "message": "is\nwrong", "line": 9},
                    {"path": "spec.a", "type": "Invalid", "message": "is\nwrong", "line": 4}],
                "warnings": [{"path": "spec.c", "message": "is\nwrong", "line": 5}], "patch": []})
        );
        assert_eq!(array.len(), 3);
        assert_eq!((&array[1]["allowed"], &array[2]["allowed"]), (&serde_json::json!(true), &serde_json::json!(false)));
        let mut nothing = Vec::new();
        Reporter::new(OutputFormat::Json, &mut nothing).finish().unwrap();
        assert_eq!(nothing, b"[]\n");
    }

    #[test]
    fn the_exit_code_tells_the_worst() {
        let code = |denied, unreadable| Counts { denied, unreadable, ..Counts::default() }.exit_code();
        assert_eq!((code(0, 0), code(2, 0), code(0, 1), code(1, 1)), (0, 1, 2, 2));
    }
}

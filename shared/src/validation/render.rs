//! The message a person reads in the terminal.

use std::fmt::Write;

use super::Report;

/// Errors shown in one answer unless the caller wants another number.
pub const SHOWN_ERRORS: usize = 32;

/// All errors of the report as text for a terminal: one line when there is one error, otherwise a counted list with one
/// error a line. At most `limit` errors are shown, then the number of the rest. Empty when nothing refuses the object.
pub fn render(report: &Report, limit: usize) -> String {
    let total = report.errors.len() + report.omitted;
    let mut text = String::new();
    match (report.errors.as_slice(), total) {
        (_, 0) => {}
        ([only], 1) => {
            let _ = write!(text, "{}: {}", only.path, only.message);
        }
        (errors, _) => {
            let _ = write!(text, "{total} problems");
            for error in errors.iter().take(limit) {
                let _ = write!(text, "\n* {}: {}", error.path, error.message);
            }
            let hidden = total - errors.len().min(limit);
            if hidden > 0 {
                let _ = write!(text, "\n… and {hidden} more");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::validation::{ErrorType, FieldError};

    fn report(errors: usize, omitted: usize) -> Report {
        let error =
            |n: usize| FieldError { path: format!("spec.f{n}"), kind: ErrorType::Invalid, message: "is wrong".into(), rule: "V-C-1" };
        Report { errors: (0..errors).map(error).collect(), omitted, ..Report::default() }
    }

    #[test]
    fn one_error_is_a_sentence_and_more_are_a_list() {
        assert_eq!(render(&report(0, 0), 32), "");
        assert_eq!(render(&report(1, 0), 32), "spec.f0: is wrong");
        assert_eq!(render(&report(2, 0), 32), "2 problems\n* spec.f0: is wrong\n* spec.f1: is wrong");
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        assert_eq!(render(&report(3, 0), 2), "3 problems\n* spec.f0: is wrong\n* spec.f1: is wrong\n… and 1 more");
        assert_eq!(render(&report(1, 9), 32), "10 problems\n* spec.f0: is wrong\n… and 9 more");
        assert_eq!(render(&report(32, 0), SHOWN_ERRORS).lines().count(), 33);
    }
}

//! Cuts a stream into documents before any of it is parsed.

/// The parts of a stream between its separator lines, each with the number of lines before it.
///
/// A separator is a line of `---` followed by nothing but white space or a comment, as `kubectl` has it. Parts without content
/// (blank, comments, directives) are left out.
pub(super) fn chunks(text: &str) -> Vec<(usize, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parts = Vec::new();
    let mut part = Part { start: 0, lines_before: 0, content: false };
    let mut offset = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if is_separator(line) {
            part.close(text, offset, &mut parts);
            part = Part { start: offset + line.len(), lines_before: number + 1, content: false };
        } else if !part.content {
            part.content = !matches!(line.trim_start().as_bytes().first(), None | Some(b'#')) && !line.starts_with('%');
        }
        offset += line.len();
    }
    part.close(text, offset, &mut parts);
    parts
}

struct Part {
    start: usize,
    lines_before: usize,
    content: bool,
}

impl Part {
    fn close<'a>(&self, text: &'a str, end: usize, parts: &mut Vec<(usize, &'a str)>) {
        if self.content
            && let Some(chunk) = text.get(self.start..end)
        {
            parts.push((self.lines_before, chunk));
        }
    }
}

fn is_separator(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| {
        let rest = rest.trim();
        rest.is_empty() || rest.starts_with('#')
    })
}

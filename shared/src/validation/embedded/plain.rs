//! The quick look at a YAML text: most are plain enough to be seen as right without a YAML parser.
//!
//! Understood is a small part of YAML: block mappings and lists, one-line scalars, flow lists and mappings of scalars. Whatever
//! goes beyond it, looks odd, or would be worth a word is left to the parser: the answer is then "not surely fine", never an error.
//! A property test holds the two against each other.

use super::application::{SHARED, is_import_path, is_route, is_uri};

/// What the keys of a text are to the one who asks.
pub(super) trait Reader<'a> {
    /// Whether this key at the top or below it needs a closer look.
    fn key(&mut self, path: &[&'a str], key: &'a str) -> bool;
    /// A scalar in a mapping, as it is written without quotes. Whether it needs a closer look.
    fn scalar(&mut self, path: &[&'a str], key: &'a str, text: &'a str, quoted: bool) -> bool;
    /// A list or mapping on one line. Whether it needs a closer look.
    fn flow(&mut self, _key: &'a str, _text: &'a str) -> bool {
        false
    }
    /// An element of a list, which is a mapping or a scalar. Whether it needs a closer look.
    fn element(&mut self, path: &[&'a str], is_mapping: bool) -> bool;
}

/// Deeper texts are left to the parser.
const MAX_DEPTH: usize = 24;
/// Longer lists of keys are left to the parser: duplicates are searched for one by one.
const MAX_KEYS: usize = 48;

struct Frame<'a> {
    indent: usize,
    kind: Kind<'a>,
    /// The last key, or the last dash, has nothing behind it yet: something nested may follow.
    open: bool,
}

enum Kind<'a> {
    Mapping(Vec<&'a str>),
    List,
}

/// Whether the text is surely a YAML mapping without duplicate keys, and `reader` has no objection.
pub(super) fn is_surely_fine<'a>(text: &'a str, reader: &mut impl Reader<'a>) -> bool {
    let mut walk = Walk { frames: Vec::with_capacity(8), path: Vec::with_capacity(8), reader };
    // Anything but printable ASCII and line feeds has rules of its own.
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) && text.split('\n').all(|line| walk.line(line)) && !walk.frames.is_empty()
}

struct Walk<'a, 'r, R> {
    frames: Vec<Frame<'a>>,
    /// The key of each open mapping, from the top; an empty name stands for a list.
    path: Vec<&'a str>,
    reader: &'r mut R,
}

impl<'a, R: Reader<'a>> Walk<'a, '_, R> {
    fn line(&mut self, line: &'a str) -> bool {
        let content = line.trim_start_matches(' ');
        if content.is_empty() || content.starts_with('#') {
            return true;
        }
        let indent = line.len() - content.len();
        if indent == 0 && (content.starts_with("---") || content.starts_with("...")) {
            return false;
        }
        match content.strip_prefix("- ") {
            Some(item) => {
                let inner = item.trim_start_matches(' ');
                let inner_indent = line.len() - inner.len();
                self.enter_list(indent) && self.item(inner_indent, inner)
            }
            None => self.enter_mapping(indent) && self.entry(content),
        }
    }

    /// Closes what the indent closes, and finds or opens the mapping of this line.
    fn enter_mapping(&mut self, indent: usize) -> bool {
        self.close(indent);
        // A list may stand at the indent of the key it belongs to; a key there ends it.
        if self.frames.last().is_some_and(|top| top.indent == indent && matches!(top.kind, Kind::List)) {
            self.pop();
        }
        match self.frames.last() {
            Some(Frame { indent: at, kind: Kind::Mapping(_), .. }) if *at == indent => true,
            Some(top) if top.indent < indent && top.open => self.push(indent, Kind::Mapping(Vec::new())),
            None if self.path.is_empty() => self.push(indent, Kind::Mapping(Vec::new())),
            _ => false,
        }
    }

    fn enter_list(&mut self, indent: usize) -> bool {
        self.close(indent);
        match self.frames.last() {
            Some(Frame { indent: at, kind: Kind::List, .. }) if *at == indent => true,
            Some(Frame { indent: at, kind: Kind::Mapping(_), open: true }) if *at <= indent => self.push(indent, Kind::List),
            _ => false,
        }
    }

    fn close(&mut self, indent: usize) {
        while self.frames.len() > 1 && self.frames.last().is_some_and(|top| top.indent > indent) {
            self.pop();
        }
    }

    fn push(&mut self, indent: usize, kind: Kind<'a>) -> bool {
        self.open(false);
        if matches!(kind, Kind::List) {
            self.path.push("");
        }
        self.frames.push(Frame { indent, kind, open: false });
        self.frames.len() < MAX_DEPTH
    }

    fn pop(&mut self) {
        // Each frame has one name on the path: its list, or its last key.
        self.path.pop();
        self.frames.pop();
    }

    fn open(&mut self, open: bool) {
        if let Some(top) = self.frames.last_mut() {
            top.open = open;
        }
    }

    /// What stands behind a dash.
    fn item(&mut self, indent: usize, content: &'a str) -> bool {
        let is_mapping = split_entry(content).is_some();
        if content.is_empty() || content.starts_with("- ") || self.reader.element(&self.path, is_mapping) {
            return false;
        }
        if is_mapping {
            return self.push(indent, Kind::Mapping(Vec::new())) && self.entry(content);
        }
        scalar(content).is_some()
    }

    /// `key: value`, or `key:`.
    fn entry(&mut self, content: &'a str) -> bool {
        let Some((key, value)) = split_entry(content) else { return false };
        let depth = self.frames.len();
        let Some(Frame { kind: Kind::Mapping(keys), open, .. }) = self.frames.last_mut() else { return false };
        if keys.contains(&key) || keys.len() >= MAX_KEYS {
            return false;
        }
        if !keys.is_empty() {
            self.path.pop();
        }
        keys.push(key);
        *open = value.is_empty();
        if self.reader.key(&self.path, key) {
            return false;
        }
        let fine = value.is_empty() || self.value(key, value);
        self.path.push(key);
        fine && self.path.len() == depth
    }

    fn value(&mut self, key: &'a str, value: &'a str) -> bool {
        match value.as_bytes().first() {
            Some(b'[') => flow(value, b']') && !self.reader.flow(key, value),
            Some(b'{') => flow(value, b'}') && !self.reader.flow(key, value),
            _ => scalar(value).is_some_and(|(text, quoted)| !self.reader.scalar(&self.path, key, text, quoted)),
        }
    }
}

/// Splits `key: value`; the value may be empty or a comment. `None` if there is no plain key.
fn split_entry(content: &str) -> Option<(&str, &str)> {
    let end = content.bytes().position(|byte| !(byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/')))?;
    let (key, rest) = content.split_at_checked(end)?;
    let rest = rest.strip_prefix(':')?;
    if !(rest.is_empty() || rest.starts_with(' ')) || !is_plain_word(key) {
        return None;
    }
    let value = rest.trim_matches(' ');
    Some((key, if value.starts_with('#') { "" } else { value }))
}

/// A word that is text in every version of YAML.
fn is_plain_word(word: &str) -> bool {
    word.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_') && !is_constant(word)
}

/// Words that YAML 1.1 reads as true, false or null.
fn is_constant(word: &str) -> bool {
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    word.len() <= 5 && WORDS.iter().any(|constant| word.eq_ignore_ascii_case(constant))
}

/// A scalar on one line, maybe with a comment behind it: its text, and whether it is quoted.
fn scalar(value: &str) -> Option<(&str, bool)> {
    let first = *value.as_bytes().first()?;
    if let b'"' | b'\'' = first {
        let quote = char::from(first);
        let (text, rest) = value.get(1..)?.split_once(quote)?;
        let rest_is_comment = rest.is_empty() || rest.trim_start_matches(' ').is_empty() || rest.starts_with(" #");
        return (rest_is_comment && !text.contains('\\')).then_some((text, true));
    }
    let text = value.split_once(" #").map_or(value, |(text, _comment)| text).trim_end_matches(' ');
    is_plain(text).then_some((text, false))
}

/// Whether a plain scalar is simply text, a simple number or a constant.
fn is_plain(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.starts_with(|c: char| c.is_ascii_digit()) {
        return digits.len() <= 15 && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    }
    let letter = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'/');
    let inside = |byte: u8| byte.is_ascii_alphanumeric() || b"_ ./=<>~+*()@:,-".contains(&byte);
    text.as_bytes().first().is_some_and(letter) && text.bytes().all(inside) && !text.contains(": ") && !text.ends_with(':')
}

/// A flow list or mapping of scalars on one line.
fn flow(value: &str, close: u8) -> bool {
    let mut rest = value.get(1..).unwrap_or_default().trim_start_matches(' ');
    let is_mapping = close == b'}';
    let mut keys: Vec<&str> = Vec::new();
    if let Some(after) = rest.strip_prefix(char::from(close)) {
        return ends(after);
    }
    loop {
        if is_mapping {
            let Some((key, after)) = rest.split_once(": ") else { return false };
            if !is_plain_word(key) || !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') || keys.contains(&key) {
                return false;
            }
            keys.push(key);
            rest = after.trim_start_matches(' ');
        }
        let Some(after) = flow_scalar(rest) else { return false };
        rest = after.trim_start_matches(' ');
        if let Some(after) = rest.strip_prefix(',') {
            rest = after.trim_start_matches(' ');
        } else {
            return rest.strip_prefix(char::from(close)).is_some_and(ends);
        }
        if keys.len() >= MAX_KEYS {
            return false;
        }
    }
}

/// Whether nothing but a comment follows.
fn ends(rest: &str) -> bool {
    rest.trim_matches(' ').is_empty() || rest.starts_with(" #")
}

/// The text behind a scalar in a flow collection.
fn flow_scalar(text: &str) -> Option<&str> {
    let first = *text.as_bytes().first()?;
    if let b'"' | b'\'' = first {
        let (inside, rest) = text.get(1..)?.split_once(char::from(first))?;
        return (!inside.contains('\\')).then_some(rest);
    }
    let end = text.bytes().position(|byte| matches!(byte, b',' | b']' | b'}' | b' '))?;
    let (word, rest) = text.split_at_checked(end)?;
    let simple = word
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'/' | b'=' | b'-' | b'<' | b'>' | b'~' | b'+'));
    (simple && is_plain(word)).then_some(rest)
}

/// Applications of a Serve configuration, as far as they must differ and Ray looks at them before their code.
#[derive(Default)]
pub(super) struct Applications<'a> {
    names: Vec<&'a str>,
    routes: Vec<&'a str>,
    present: Option<Present<'a>>,
    seen: bool,
}

/// Where the settings of an application stand; a list has no name.
const APPLICATION: [&str; 2] = ["applications", ""];
/// Where the settings of a deployment stand.
const DEPLOYMENT: [&str; 4] = ["applications", "", "deployments", ""];

/// What the present application has said so far.
#[derive(Default)]
struct Present<'a> {
    name: Option<&'a str>,
    route: Option<&'a str>,
    imported: bool,
    deployment: Option<Deployment>,
}

/// What the present deployment has said so far.
#[derive(Default)]
struct Deployment {
    named: bool,
    fixed: bool,
    scaled: bool,
}

impl Present<'_> {
    /// Ends the present deployment. `false` if Ray would not take it.
    fn finish_deployment(&mut self) -> bool {
        self.deployment.take().is_none_or(|deployment| deployment.named && !(deployment.fixed && deployment.scaled))
    }
}

impl<'a> Applications<'a> {
    /// Takes the present application into the list. `false` if it shares its name or route with another, or is not complete.
    fn finish(&mut self) -> bool {
        let Some(mut present) = self.present.take() else { return true };
        // Ray's defaults.
        let (name, route) = (present.name.unwrap_or("default"), present.route.unwrap_or("/"));
        let complete = present.imported && present.finish_deployment();
        let unique = !self.names.contains(&name) && !self.routes.contains(&route) && self.names.len() < MAX_KEYS;
        self.names.push(name);
        self.routes.push(route);
        complete && unique
    }

    fn deployment(&mut self) -> Option<&mut Deployment> {
        self.present.as_mut()?.deployment.as_mut()
    }

    /// Whether there was an application, all differ, and Ray would take each.
    pub(super) fn are_fine(mut self) -> bool {
        self.seen && self.finish()
    }
}

impl<'a> Reader<'a> for Applications<'a> {
    fn key(&mut self, path: &[&'a str], key: &'a str) -> bool {
        let swallowed = path.is_empty() && super::SWALLOWED.contains(&key);
        let shared = *path == APPLICATION && SHARED.contains(&key);
        if *path == DEPLOYMENT
            && key == "autoscaling_config"
            && let Some(deployment) = self.deployment()
        {
            deployment.scaled = true;
        }
        swallowed || shared || key == "py_modules" || super::RENAMED.iter().any(|(old, _)| *old == key)
    }

    fn scalar(&mut self, path: &[&'a str], key: &'a str, text: &'a str, quoted: bool) -> bool {
        if path.is_empty() && key == "applications" {
            return true;
        }
        // Only what is text for sure can be compared.
        let is_text = quoted || (!is_constant(text) && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/'));
        if *path == APPLICATION {
            let Some(present) = &mut self.present else { return true };
            match key {
                "name" => present.name = Some(text).filter(|name| is_text && !name.is_empty()),
                "route_prefix" => present.route = Some(text).filter(|route| is_text && is_route(route)),
                "import_path" => present.imported = is_text && is_import_path(text),
                _ => {}
            }
            let taken = match key {
                "name" => present.name.is_some(),
                "route_prefix" => present.route.is_some(),
                "import_path" => present.imported,
                _ => true,
            };
            return !taken;
        }
        if *path == DEPLOYMENT {
            let Some(deployment) = self.deployment() else { return true };
            match key {
                "name" => deployment.named = is_text && !text.is_empty(),
                "num_replicas" if text == "auto" => {}
                "num_replicas" => {
                    deployment.fixed = true;
                    return quoted || text.starts_with('0') || !text.bytes().all(|byte| byte.is_ascii_digit());
                }
                _ => {}
            }
        }
        key == "working_dir" && !is_uri(text)
    }

    fn flow(&mut self, key: &'a str, text: &'a str) -> bool {
        key == "num_replicas" || text.contains("working_dir")
    }

    fn element(&mut self, path: &[&'a str], is_mapping: bool) -> bool {
        if *path == DEPLOYMENT {
            let Some(present) = &mut self.present else { return true };
            let fine = is_mapping && present.finish_deployment();
            present.deployment = Some(Deployment::default());
            return !fine;
        }
        if *path != APPLICATION {
            return false;
        }
        let fine = is_mapping && self.finish();
        self.present = Some(Present::default());
        self.seen = true;
        !fine
    }
}

/// For a text of which only the shape matters.
pub(super) struct AnyMapping;

impl<'a> Reader<'a> for AnyMapping {
    fn key(&mut self, _: &[&'a str], _: &'a str) -> bool {
        false
    }

    fn scalar(&mut self, _: &[&'a str], _: &'a str, _: &'a str, _: bool) -> bool {
        false
    }

    fn element(&mut self, _: &[&'a str], _: bool) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;

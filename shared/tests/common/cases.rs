//! Admission cases: what the head of a file says, and whether an answer fits it. For the rules, `check` and a real API server alike.

/// What a case's head says.
#[derive(Debug, Default)]
pub(crate) struct Header<'t> {
    /// The verdict.
    pub(crate) deny: bool,
    /// One entry an error, each with the paths that are equally good.
    pub(crate) paths: Vec<Vec<&'t str>>,
    /// Fields that a warning has to name.
    pub(crate) warnings: Vec<&'t str>,
    /// Feature gates, in the form of the flag.
    pub(crate) gates: &'t str,
    /// The file holds an old object and its update.
    pub(crate) update: bool,
    /// The denial may be the schema's.
    pub(crate) schema: bool,
}

impl<'t> Header<'t> {
    pub(crate) fn parse(text: &'t str) -> Self {
        let mut header = Self::default();
        for line in text.lines().map_while(|line| line.strip_prefix("# ")) {
            let (key, value) = line.split_once(": ").expect("header lines are `# key: value`");
            match key {
                "expect" => header.deny = value == "deny",
                "path" => header.paths.push(value.split(" | ").collect()),
                "warn" => header.warnings.push(value),
                "gates" => header.gates = value,
                "operation" => header.update = value == "UPDATE",
                "rule" => header.schema = value.contains("schema"),
                _ => {}
            }
        }
        header
    }

    /// The stored object, if there is one, and the one to be judged.
    pub(crate) fn objects(&self, text: &'t str) -> (Option<&'t str>, &'t str) {
        if !self.update {
            return (None, text);
        }
        let (old, new) = text.split_once("\n---\n").expect("an UPDATE has two documents");
        (Some(old), new)
    }

    /// What is wrong with an answer, if anything.
    pub(crate) fn complaint(&self, answer: &Answer) -> Option<String> {
        let Answer { denied, errors, warnings } = answer;
        if *denied != self.deny {
            return Some(format!("denied: {denied}, wanted: {}; errors at {errors:?}", self.deny));
        }
        let has = |found: &[String], path: &str| found.iter().any(|found| found == path);
        let missing: Vec<_> = self.paths.iter().filter(|paths| !paths.iter().any(|path| has(errors, path))).collect();
        if !missing.is_empty() {
            return Some(format!("no error at {missing:?}, only at {errors:?}"));
        }
        let extra: Vec<_> = errors.iter().filter(|path| !self.paths.iter().flatten().any(|wanted| wanted == path)).collect();
        if !extra.is_empty() {
            return Some(format!("more errors than the header has: {extra:?}"));
        }
        let silent: Vec<_> = self.warnings.iter().filter(|path| !has(warnings, path)).collect();
        (!silent.is_empty()).then(|| format!("no warning at {silent:?}, only at {warnings:?}"))
    }
}

/// What was said about an object: the verdict, and the fields that errors and warnings name.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) denied: bool,
    pub(crate) errors: Vec<String>,
    pub(crate) warnings: Vec<String>,
}

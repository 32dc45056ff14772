//! Which files to check.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Folders below this depth are taken for a loop.
const MAX_DEPTH: usize = 64;

/// What the arguments lead to.
#[derive(Debug, Default)]
pub(super) struct Files {
    /// In the order of the arguments; within a directory by name.
    pub(super) inputs: Vec<Input>,
    /// Arguments and folders that cannot be looked at, and why.
    pub(super) problems: Vec<(String, String)>,
    /// Files left out because Helm has to render them first.
    pub(super) templates: usize,
}

/// One file, or standard input.
#[derive(Debug)]
pub(super) struct Input {
    /// As shown to the user.
    pub(super) name: String,
    /// `None` for standard input.
    path: Option<PathBuf>,
}

impl Input {
    /// The whole text, or a sentence that says why not.
    pub(super) fn read(&self) -> Result<String, String> {
        let mut bytes = Vec::new();
        let read = match &self.path {
            Some(path) => fs::read(path).map(|content| bytes = content),
            None => io::stdin().lock().read_to_end(&mut bytes).map(|_| ()),
        };
        read.map_err(|error| error.to_string())?;
        if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
            return Err("is UTF-16 text: save it as UTF-8".to_owned());
        }
        String::from_utf8(bytes).map_err(|error| format!("is not UTF-8 text (at byte {})", error.utf8_error().valid_up_to()))
    }
}

/// Resolves the arguments.
pub(super) fn find(arguments: &[PathBuf]) -> Files {
    let mut files = Files::default();
    for argument in arguments {
        if argument.as_os_str() == "-" {
            files.inputs.push(Input { name: "-".to_owned(), path: None });
        } else if argument.is_dir() {
            directory(argument, 0, &mut files);
        } else {
            // A file that is not there is reported when it is read.
            files.inputs.push(Input { name: argument.display().to_string(), path: Some(argument.clone()) });
        }
    }
    files
}

fn directory(folder: &Path, depth: usize, files: &mut Files) {
    let entries = match fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>) {
        Ok(entries) if depth < MAX_DEPTH => entries,
        Ok(_) => return files.problems.push((folder.display().to_string(), "folders are nested too deeply".to_owned())),
        Err(error) => return files.problems.push((folder.display().to_string(), error.to_string())),
    };
    let mut entries: Vec<_> = entries.into_iter().map(|entry| (entry.file_name(), entry.path())).collect();
    entries.sort();
    let renders = folder.file_name() == Some(OsStr::new("templates")) && folder.with_file_name("Chart.yaml").is_file();
    for (name, path) in entries {
        if name.as_encoded_bytes().starts_with(b".") {
            continue;
        }
        if path.is_dir() {
            // Links to folders are not followed: they may lead in circles.
            if !path.is_symlink() {
                directory(&path, depth + 1, files);
            }
        } else if is_manifest(&path) {
            if renders {
                files.templates += 1;
            } else {
                files.inputs.push(Input { name: path.display().to_string(), path: Some(path) });
            }
        }
    }
}

fn is_manifest(path: &Path) -> bool {
    path.extension().and_then(OsStr::to_str).is_some_and(|extension| matches!(extension, "yaml" | "yml" | "json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_searched_by_name_and_charts_are_left_to_helm() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "a: 1").unwrap();
        };
        for path in [
            "b.yaml",
            "a.yml",
            "c.json",
            "d.txt",
            ".git/x.yaml",
            "sub/e.yaml",
            "chart/Chart.yaml",
            "chart/templates/t.yaml",
            "templates/u.yaml",
        ] {
            write(path);
        }
        let found = find(&[root.path().to_owned(), PathBuf::from("-"), root.path().join("d.txt"), root.path().join("missing")]);
        let names: Vec<_> = found
            .inputs
            .iter()
            .map(|input| Path::new(&input.name).strip_prefix(root.path()).map_or(&*input.name, |p| p.to_str().unwrap()))
            .collect();
        assert_eq!(names, ["a.yml", "b.yaml", "c.json", "chart/Chart.yaml", "sub/e.yaml", "templates/u.yaml", "-", "d.txt", "missing"]);
        assert_eq!(found.templates, 1);
        assert!(found.problems.is_empty());
        assert!(found.inputs.last().unwrap().read().is_err());
        fs::write(root.path().join("latin"), b"caf\xe9").unwrap();
        let latin = find(&[root.path().join("latin")]);
        assert_eq!(latin.inputs[0].read().unwrap_err(), "is not UTF-8 text (at byte 3)");
        fs::write(root.path().join("wide"), b"\xff\xfea\0").unwrap();
        assert!(find(&[root.path().join("wide")]).inputs[0].read().unwrap_err().contains("UTF-16"));
    }
}

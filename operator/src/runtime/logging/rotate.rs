//! A log file that is set aside when it has grown too large (RC-244).

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use tracing_subscriber::fmt::MakeWriter;

/// Size at which a file is set aside, in bytes.
const MAX_SIZE: u64 = 500 << 20;
/// How many files that were set aside are kept.
const MAX_OLD: u32 = 10;

/// A file that is set aside as `NAME.1` when it has grown too large; the one before becomes `NAME.2`, and so on.
#[derive(Clone)]
pub(super) struct Rotating {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    path: PathBuf,
    file: File,
    size: u64,
    max_size: u64,
}

impl Rotating {
    /// Opens or makes the file, and its folder.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Self::with_size(path, MAX_SIZE)
    }

    fn with_size(path: &Path, max_size: u64) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = append(path)?;
        let size = file.metadata()?.len();
        Ok(Self { inner: Arc::new(Mutex::new(Inner { path: path.to_owned(), file, size, max_size })) })
    }
}

impl Inner {
    fn set_aside(&mut self) -> io::Result<()> {
        let old = |number: u32| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        for number in (1..MAX_OLD).rev() {
            if old(number).exists() {
                fs::rename(old(number), old(number + 1))?;
            }
        }
        fs::rename(&self.path, old(1))?;
        self.file = append(&self.path)?;
        self.size = 0;
        Ok(())
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

impl Write for Rotating {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        if inner.size > 0 && inner.size.saturating_add(length) > inner.max_size {
            // A folder without room for another name must not cost the line: then the file grows on.
            let _ = inner.set_aside();
        }
        let written = inner.file.write(line)?;
        inner.size = inner.size.saturating_add(u64::try_from(written).unwrap_or(u64::MAX));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).file.flush()
    }
}

impl<'a> MakeWriter<'a> for Rotating {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_file_is_set_aside_and_the_oldest_is_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/operator.log");
        let mut log = Rotating::with_size(&path, 10).unwrap();
        for number in 0..14 {
            writeln!(log, "line {number:03}").unwrap();
        }
        let read = |name: &str| fs::read_to_string(folder.path().join("logs").join(name)).unwrap();
        assert_eq!(read("operator.log"), "line 013\n");
        assert_eq!(read("operator.log.1"), "line 012\n");
        assert_eq!(read("operator.log.10"), "line 003\n");
        assert!(!folder.path().join("logs/operator.log.11").exists());
    }

    #[test]
    fn an_existing_file_is_continued() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("operator.log");
        fs::write(&path, "before\n").unwrap();
        writeln!(Rotating::open(&path).unwrap(), "after").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before\nafter\n");
    }
}

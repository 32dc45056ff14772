//! The cache of built and downloaded things, outside the work tree, keyed by tool and version.
//!
//! `$KUBERAY_TESTBED_CACHE`, or `~/.cache/kuberay-testbed`, holds one folder `<tool>-<version>` each. A file appears under its
//! final name only when it is complete (it is made under another name and renamed), and a lock per key keeps two processes from making
//! the same thing at the same time.

use std::{
    ffi::OsString,
    fmt, fs,
    future::Future,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use crate::progress::Progress;

/// Environment variable that moves the cache.
pub const CACHE_VARIABLE: &str = "KUBERAY_TESTBED_CACHE";

/// What a cached thing is filed under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    tool: &'static str,
    version: String,
}

impl Key {
    /// A key for one version of one tool.
    pub fn new(tool: &'static str, version: impl Into<String>) -> Self {
        Self { tool, version: version.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.tool, self.version)
    }
}

/// The cache's folder.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

impl Cache {
    /// The cache that the environment names.
    ///
    /// # Errors
    /// When neither the variable nor a home directory is known.
    pub fn from_env() -> Result<Self> {
        root_from(std::env::var_os(CACHE_VARIABLE), std::env::home_dir())
            .map(Self::at)
            .with_context(|| format!("no home directory is known; set {CACHE_VARIABLE} to a folder with 10 GB of room"))
    }

    /// A cache in a folder of one's choice.
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder of everything.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of one key.
    pub fn dir(&self, key: &Key) -> PathBuf {
        self.root.join(key.to_string())
    }

    /// The path of `name` under `key`, made by `make` if it is not there yet. `make` gets the path to write to: a file or a folder.
    ///
    /// # Errors
    /// Whatever `make` fails with; nothing is left under the final name then.
    pub async fn entry<F>(&self, key: &Key, name: &str, progress: &Progress, make: impl FnOnce(PathBuf) -> F) -> Result<PathBuf>
    where
        F: Future<Output = Result<()>>,
    {
        let dir = self.dir(key);
        let path = dir.join(name);
        if path.exists() {
            return Ok(path);
        }
        let _lock = self.lock(&key.to_string(), progress).await?;
        if path.exists() {
            return Ok(path); // whoever held the lock made it
        }
        let partial = dir.join(format!(".partial-{name}"));
        remove(&partial)?; // of a run that was cut off
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        if let Err(error) = make(partial.clone()).await {
            remove(&partial)?;
            return Err(error.context(format!("making {name} of {key}")));
        }
        fs::rename(&partial, &path).with_context(|| format!("moving {} into place", path.display()))?;
        Ok(path)
    }

    /// Takes the lock `name`, waiting for its holder. It is given back when the value is dropped or the process ends, however it ends.
    ///
    /// # Errors
    /// When the lock file cannot be made.
    pub async fn lock(&self, name: &str, progress: &Progress) -> Result<fs::File> {
        let file = self.lock_file(name)?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(fs::TryLockError::WouldBlock) => {}
            Err(fs::TryLockError::Error(error)) => return Err(error).context("taking a lock of the cache"),
        }
        let wait = async {
            tokio::task::spawn_blocking(move || file.lock().map(|()| file)).await?.with_context(|| format!("taking the lock {name}"))
        };
        progress.step(&format!("waiting for another process that works on {name}"), wait).await
    }

    /// Takes the lock `name` unless another process has it.
    ///
    /// # Errors
    /// When the lock file cannot be made.
    pub fn try_lock(&self, name: &str) -> Result<Option<fs::File>> {
        let file = self.lock_file(name)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(fs::TryLockError::WouldBlock) => Ok(None),
            Err(fs::TryLockError::Error(error)) => Err(error).with_context(|| format!("taking the lock {name}")),
        }
    }

    fn lock_file(&self, name: &str) -> Result<fs::File> {
        let dir = self.root.join(".locks");
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        let path = dir.join(name);
        fs::File::create(&path).with_context(|| format!("opening {}", path.display()))
    }
}

/// An absolute folder from the variable, or the default below the home directory. An empty variable counts as unset.
fn root_from(variable: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    match variable.filter(|value| !value.is_empty()) {
        Some(value) => std::path::absolute(PathBuf::from(value)).ok(),
        None => home.map(|home| home.join(".cache/kuberay-testbed")),
    }
}

/// Removes a file or a folder that may not exist.
///
/// # Errors
/// When it exists and cannot be removed.
pub(crate) fn remove(path: &Path) -> Result<()> {
    let result = match fs::symlink_metadata(path) {
        Err(_) => return Ok(()),
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
    };
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()), // somebody else was quicker
        other => other.with_context(|| format!("removing {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_follows_the_variable_then_the_home_directory() {
        for (variable, home, want) in [
            (Some("/x/y"), Some("/home/u"), Some("/x/y")),
            (Some(""), Some("/home/u"), Some("/home/u/.cache/kuberay-testbed")),
            (None, Some("/home/u"), Some("/home/u/.cache/kuberay-testbed")),
            (None, None, None),
        ] {
            let got = root_from(variable.map(OsString::from), home.map(PathBuf::from));
            assert_eq!(got, want.map(PathBuf::from), "{variable:?} {home:?}");
        }
    }

    #[tokio::test]
    async fn an_entry_is_made_once_and_never_half() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().to_owned());
        let key = Key::new("tool", "1.2");
        let progress = Progress::quiet();

        let failed = cache
            .entry(&key, "a", &progress, async |path| {
                fs::write(path, "half")?;
                anyhow::bail!("cut off")
            })
            .await;
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(cache.dir(&key)).unwrap().count(), 0, "nothing is left of a failed attempt");

        let write = async |path: PathBuf| Ok(fs::write(path, "whole")?);
        let path = cache.entry(&key, "a", &progress, write).await.unwrap();
        assert_eq!(path, dir.path().join("tool-1.2/a"));
        let again = cache.entry(&key, "a", &progress, async |_| anyhow::bail!("must not be made again")).await.unwrap();
        assert_eq!(fs::read_to_string(again).unwrap(), "whole");
    }

    #[tokio::test]
    async fn two_makers_of_one_entry_take_turns() {
        let dir = tempfile::tempdir().unwrap();
        let cache = Cache::at(dir.path().to_owned());
        let held = cache.try_lock("tool-1").unwrap().expect("free at first");
        assert!(cache.try_lock("tool-1").unwrap().is_none(), "held");
        let waiting = tokio::spawn({
            let cache = cache.clone();
            async move {
                let make = async |path: PathBuf| Ok(fs::write(path, "second")?);
                cache.entry(&Key::new("tool", "1"), "a", &Progress::quiet(), make).await
            }
        });
        fs::create_dir_all(dir.path().join("tool-1")).unwrap();
        fs::write(dir.path().join("tool-1/a"), "first").unwrap();
        drop(held);
        let path = waiting.await.unwrap().unwrap();
        assert_eq!(fs::read_to_string(path).unwrap(), "first");
    }
}

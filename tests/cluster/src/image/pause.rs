//! The image of a Pod's sandbox: our pause program alone.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result};

use super::{Config, Entry, Image, Layer};
use crate::{
    cache::{Cache, Key},
    fetch,
    progress::Progress,
    versions,
};

/// Its name.
pub const PAUSE_IMAGE: &str = "docker.io/kuberay-rs/pause:1";

/// The archive of the pause image.
///
/// # Errors
/// When the program cannot be built or the archive not be written.
pub async fn pause(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let program = fetch::node_programs(cache, progress).await?.pause;
    let make = |to: PathBuf| async move {
        let contents = fs::read(&program).with_context(|| format!("reading {}", program.display()))?;
        let entry = Entry { path: "pause".to_owned(), mode: 0o755, owner: 0, contents: Some(contents) };
        let config = Config { user: "65535:65535".to_owned(), entrypoint: vec!["/pause".to_owned()], ..Config::default() };
        Image { names: vec![PAUSE_IMAGE.to_owned()], config, layer: Layer::Entries(vec![entry]) }.write(&to)
    };
    cache.entry(&Key::new("pause", versions::PAUSE), "image.tar", progress, make).await
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tag_is_the_pinned_version() {
        assert!(super::PAUSE_IMAGE.ends_with(&format!(":{}", super::versions::PAUSE)));
    }
}

//! The images of our two programs: one static binary each on an empty file system, as user 65532.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::{Config, Entry, Image, Layer};
use crate::{process, progress::Progress};

/// The user of both images: nobody's number on common distributions.
const USER: u64 = 65532;

/// One of the two programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `kuberay-operator`
    Operator,
    /// `kuberay-webhook`
    Webhook,
}

impl Program {
    /// Name of the binary and of the image.
    pub fn name(self) -> &'static str {
        match self {
            Self::Operator => "kuberay-operator",
            Self::Webhook => "kuberay-webhook",
        }
    }

    /// Name of the program inside the image. The operator's is the one that KubeRay's chart calls, so that values which name it go on working.
    fn path(self) -> &'static str {
        match self {
            Self::Operator => "manager",
            Self::Webhook => "kuberay-webhook",
        }
    }

    /// Full name of the image with the workspace's version as tag.
    pub fn image(self) -> String {
        format!("docker.io/kuberay-rs/{}:{}", self.name(), env!("CARGO_PKG_VERSION"))
    }
}

/// Builds the program in release mode as a static binary and packs it; gives the archive's path, `target/images/NAME-VERSION.tar`.
///
/// # Errors
/// When the build fails or the archive cannot be written.
pub async fn program(program: Program, progress: &Progress) -> Result<PathBuf> {
    let workspace = workspace()?;
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(&workspace)
        // Without `--target` these flags would reach build scripts and macros as well, which cannot be static.
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--target",
            &target,
            // Both at once: alone, each would build their dependencies with other features.
            "--package=operator",
            "--package=webhook",
            "--bin=kuberay-operator",
            "--bin=kuberay-webhook",
        ]);
    progress.step("building both programs", process::run(&mut cargo)).await?;
    let target_dir = target_dir(&workspace);
    let images = target_dir.join("images");
    fs::create_dir_all(&images).with_context(|| format!("creating {}", images.display()))?;
    let archive = images.join(format!("{}-{}.tar", program.name(), env!("CARGO_PKG_VERSION")));
    package(program, &target_dir.join(target).join("release").join(program.name()), &archive)?;
    Ok(archive)
}

/// Packs a binary that was built already.
///
/// # Errors
/// When the binary needs a dynamic linker (an empty image has none), or a file cannot be read or written.
pub fn package(program: Program, binary: &Path, archive: &Path) -> Result<()> {
    let contents = fs::read(binary).with_context(|| format!("reading {}", binary.display()))?;
    if asks_for_an_interpreter(&contents) {
        anyhow::bail!("{} is not static: an image without a file system cannot run it", binary.display());
    }
    let folder = |path: &str, mode, owner| Entry { path: path.to_owned(), mode, owner, contents: None };
    let entries = vec![
        // A place for those who mount a Secret or ask for a temporary file; read-only roots mount over it.
        folder("tmp", 0o1777, 0),
        Entry { path: program.path().to_owned(), mode: 0o755, owner: 0, contents: Some(contents) },
    ];
    let config = Config {
        user: format!("{USER}:{USER}"),
        entrypoint: vec![format!("/{}", program.path())],
        environment: vec!["PATH=/".to_owned()],
        directory: "/".to_owned(),
        ..Config::default()
    };
    Image { names: vec![program.image()], config, layer: Layer::Entries(entries) }.write(archive)
}

/// Whether an ELF file of 64 bits has a program header PT_INTERP.
fn asks_for_an_interpreter(file: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let number = |offset: usize, size: usize| {
        let bytes = file.get(offset..offset.checked_add(size)?)?;
        Some(bytes.iter().rev().fold(0_usize, |value, byte| value << 8 | usize::from(*byte)))
    };
    let headers = || {
        let (start, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        let kinds = (0..count).filter_map(|index| number(start + index * size, 4));
        Some(kinds.into_iter().any(|kind| u32::try_from(kind).is_ok_and(|kind| kind == PT_INTERP)))
    };
    headers().unwrap_or(false)
}

/// The workspace's folder: two above this crate.
fn workspace() -> Result<PathBuf> {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).map(Path::to_owned).context("this crate is two folders below the workspace")
}

fn target_dir(workspace: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_binary_that_needs_a_linker_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        // This test program itself is linked dynamically.
        let own = std::env::current_exe().unwrap();
        let error = package(Program::Operator, &own, &dir.path().join("x.tar")).unwrap_err();
        assert!(error.to_string().contains("is not static"), "{error}");
        let script = dir.path().join("static");
        fs::write(&script, b"\x7fELF but nothing more").unwrap();
        package(Program::Webhook, &script, &dir.path().join("y.tar")).unwrap();
    }

    #[test]
    fn images_carry_the_workspace_version() {
        assert_eq!(Program::Operator.image(), format!("docker.io/kuberay-rs/kuberay-operator:{}", env!("CARGO_PKG_VERSION")));
        assert_eq!(Program::Webhook.image(), format!("docker.io/kuberay-rs/kuberay-webhook:{}", env!("CARGO_PKG_VERSION")));
    }
}

//! The images of our two programs: one static binary each on an empty file system, as user 65532.
//!
//! For work on the programs there are images of the debug build, too, which takes seconds where the static release build takes minutes.
//! Their binaries load libraries, so those of this machine are in the image.

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
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = cargo()?;
    // Without `--target` these flags would reach build scripts and macros as well, which cannot be static.
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static").args(["--release", "--locked", "--target", &target]);
    progress.step("building both programs", process::run(&mut cargo)).await?;
    let archive = archive(program, "")?;
    package(program, &target_dir()?.join(target).join("release").join(program.name()), &archive)?;
    Ok(archive)
}

/// Builds the program in debug mode and packs it with the libraries that it loads, under the same name as [`program`]; gives the
/// archive's path, `target/images/NAME-VERSION-debug.tar`.
///
/// # Errors
/// When the build fails, `ldd` or `strip` is missing, or the archive cannot be written.
pub async fn debug_program(program: Program, progress: &Progress) -> Result<PathBuf> {
    progress.step("building both programs in debug mode", process::run(&mut cargo()?)).await?;
    let binary = target_dir()?.join("debug").join(program.name());
    let archive = archive(program, "-debug")?;
    // Nine tenths of a debug build is what a debugger reads.
    let stripped = archive.with_extension("bin");
    process::run(Command::new("strip").arg("-o").arg(&stripped).arg(&binary)).await?;
    let linked = process::run(Command::new("ldd").arg(&stripped)).await?;
    let mut extra = Vec::new();
    for library in libraries(&linked) {
        let contents = fs::read(&library).with_context(|| format!("reading {library}"))?;
        extra.push(Entry { path: library.trim_start_matches('/').to_owned(), mode: 0o755, owner: 0, contents: Some(contents) });
    }
    let contents = fs::read(&stripped).with_context(|| format!("reading {}", stripped.display()))?;
    write(program, contents, extra, &archive)?;
    fs::remove_file(&stripped).with_context(|| format!("removing {}", stripped.display()))?;
    Ok(archive)
}

/// A build of both programs at once: alone, each would build their dependencies with other features.
fn cargo() -> Result<Command> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(crate::work_tree());
    cargo.args(["build", "--quiet", "--package=operator", "--package=webhook", "--bin=kuberay-operator", "--bin=kuberay-webhook"]);
    Ok(cargo)
}

/// Where an image's archive goes.
fn archive(program: Program, suffix: &str) -> Result<PathBuf> {
    let images = target_dir()?.join("images");
    fs::create_dir_all(&images).with_context(|| format!("creating {}", images.display()))?;
    Ok(images.join(format!("{}-{}{suffix}.tar", program.name(), env!("CARGO_PKG_VERSION"))))
}

/// The files that `ldd` names: behind an arrow, or alone where the linker itself is meant.
pub(super) fn libraries(linked: &str) -> Vec<String> {
    let paths = linked.lines().filter(|line| !line.ends_with(':'));
    paths.filter_map(|line| line.split_ascii_whitespace().find(|word| word.starts_with('/'))).map(str::to_owned).collect()
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
    write(program, contents, Vec::new(), archive)
}

/// Writes the image of a program with further files.
fn write(program: Program, contents: Vec<u8>, extra: Vec<Entry>, archive: &Path) -> Result<()> {
    let mut entries = vec![
        // A place for those who mount a Secret or ask for a temporary file; read-only roots mount over it.
        Entry { path: "tmp".to_owned(), mode: 0o1777, owner: 0, contents: None },
        Entry { path: program.path().to_owned(), mode: 0o755, owner: 0, contents: Some(contents) },
    ];
    entries.extend(extra);
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

fn target_dir() -> Result<PathBuf> {
    Ok(std::env::var_os("CARGO_TARGET_DIR").map_or(crate::work_tree().join("target"), PathBuf::from))
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
    fn libraries_are_what_ldd_names() {
        let linked = "/usr/bin/a:\n\tlinux-vdso.so.1 (0x7ff)\n\tlibm.so.6 => /lib/x/libm.so.6 (0x7f0)\n\t/lib64/ld.so.2 (0x7f1)\n/bin/sh:\n\t\
                      libc.so.6 => /lib/x/libc.so.6 (0x7f2)\n";
        assert_eq!(libraries(linked), ["/lib/x/libm.so.6", "/lib64/ld.so.2", "/lib/x/libc.so.6"]);
    }

    #[test]
    fn images_carry_the_workspace_version() {
        assert_eq!(Program::Operator.image(), format!("docker.io/kuberay-rs/kuberay-operator:{}", env!("CARGO_PKG_VERSION")));
        assert_eq!(Program::Webhook.image(), format!("docker.io/kuberay-rs/kuberay-webhook:{}", env!("CARGO_PKG_VERSION")));
    }
}

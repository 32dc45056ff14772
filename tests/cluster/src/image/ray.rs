//! The Ray image: a small Debian with Ray from PyPI, laid out like Ray's own images (user 1000, `/home/ray`, `python` and `ray` on the path).
//!
//! The wheels are downloaded outside and installed inside without a network, so that nothing of this machine's network
//! configuration gets into the image.

use std::{
    fs,
    os::unix::fs::{chown, symlink},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use tokio::process::Command;

use super::{Config, Image, Layer, debian};
use crate::{
    cache::{Cache, Key},
    process,
    progress::Progress,
    versions,
};

/// Its name, the one that Ray's manifests use.
pub const RAY_IMAGE: &str = "docker.io/rayproject/ray:2.56.0";

/// Debian packages of the image. `wget` is what KubeRay's probes call.
const PACKAGES: &str = "python3,python3-pip,wget,ca-certificates,procps,curl";
/// Python of that Debian release.
const PYTHON: &str = "3.11";
/// User and group of Ray's images.
const OWNER: (u32, u32) = (1000, 100);

/// The archive of the Ray image; made on first use (about four minutes).
///
/// # Errors
/// Where this is not Linux as root, or a download or an installation fails.
pub async fn ray(cache: &Cache, progress: &Progress) -> Result<PathBuf> {
    let make = |to: PathBuf| async move {
        debian::in_work_folder(&to, cache, progress, |work| {
            let to = &to;
            async move { build(&work, to, progress).await }
        })
        .await
    };
    cache.entry(&Key::new("ray", versions::RAY), "image.tar", progress, make).await
}

async fn build(work: &Path, to: &Path, progress: &Progress) -> Result<()> {
    let (root, wheels) = (work.join("root"), work.join("root/wheels"));
    progress.step("installing a small Debian for the Ray image", debian::install(&root, PACKAGES)).await?;
    progress.step(&format!("downloading Ray {}", versions::RAY), download(&wheels)).await?;
    progress.step("installing Ray into the image", install(&root)).await?;
    lay_out(&root)?;
    let (layer, sha256) = progress.step("packing the Ray image", pack(work, &root)).await?;
    let config = Config {
        user: format!("{}:{}", OWNER.0, OWNER.1),
        command: vec!["/bin/bash".to_owned()],
        environment: [format!("PATH={}", debian::PATH), "HOME=/home/ray".to_owned(), "LANG=C.UTF-8".to_owned()].to_vec(),
        directory: "/home/ray".to_owned(),
        ..Config::default()
    };
    let image = Image { names: vec![RAY_IMAGE.to_owned()], config, layer: Layer::Archive { path: layer, sha256 } };
    let to = to.to_owned();
    let write = async move { tokio::task::spawn_blocking(move || image.write(&to)).await? };
    progress.step("writing the Ray image", write).await
}

async fn download(wheels: &Path) -> Result<()> {
    let python = process::find_program("python3").context("Ray comes from PyPI, and no `python3` is on the path")?;
    let machine = std::env::consts::ARCH;
    let mut command = Command::new(python);
    command.args(["-m", "pip", "download", "--quiet", "--only-binary=:all:", "--python-version", PYTHON, "--implementation=cp"]);
    for (major, minor) in [(2, 17), (2, 28), (2, 34)] {
        command.arg(format!("--platform=manylinux_{major}_{minor}_{machine}"));
    }
    command.arg(format!("--platform=manylinux2014_{machine}")).args(["--constraint"]).arg(sources().join("constraints.txt"));
    command.arg("--dest").arg(wheels).arg(requirement());
    process::run(&mut command).await?;
    Ok(())
}

/// `/usr/local/bin` is on the path of login shells, which is how Ray containers start; a virtual environment would not be.
async fn install(root: &Path) -> Result<()> {
    let mut command = debian::command(root, "/usr/bin/python3");
    command.args(["-m", "pip", "install", "--quiet", "--no-index", "--find-links=/wheels"]);
    command.args(["--break-system-packages", "--no-cache-dir", "--root-user-action=ignore"]).arg(requirement());
    process::run(&mut command).await?;
    Ok(())
}

fn requirement() -> String {
    format!("ray[default,serve]=={}", versions::RAY)
}

fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("build/ray")
}

/// The user, the home folder, `python`; and away with what no container needs.
fn lay_out(root: &Path) -> Result<()> {
    for folder in ["wheels", "var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"] {
        crate::cache::remove(&root.join(folder))?;
    }
    symlink("/usr/bin/python3", root.join("usr/local/bin/python")).context("linking python")?;
    let home = root.join("home/ray");
    fs::create_dir_all(&home)?;
    chown(&home, Some(OWNER.0), Some(OWNER.1))?;
    let passwd = root.join("etc/passwd");
    let mut users = fs::read_to_string(&passwd).context("reading the image's users")?;
    users.push_str(&format!("ray:x:{}:{}::/home/ray:/bin/bash\n", OWNER.0, OWNER.1));
    fs::write(&passwd, users).context("adding the image's user")
}

/// The layer and its checksum. Times and order are fixed; device files and what was mounted stay out.
async fn pack(work: &Path, root: &Path) -> Result<(PathBuf, String)> {
    let layer = work.join("layer.tar");
    let mut tar = Command::new("tar");
    tar.args(debian::TAR).args(["--exclude=./dev/*", "--exclude=./proc/*", "--exclude=./sys/*"]);
    tar.arg("--file").arg(&layer).arg("--directory").arg(root).arg(".");
    process::run(&mut tar).await?;
    let sum = debian::sha256(&layer).await?;
    fs::remove_dir_all(root).context("removing the image's work folder")?;
    Ok((layer, sum))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tag_is_the_pinned_version() {
        assert!(super::RAY_IMAGE.ends_with(&format!(":{}", super::versions::RAY)));
    }
}

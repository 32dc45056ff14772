//! Writes an image as a docker-archive: `manifest.json`, the image's configuration, one layer. The same input gives the same bytes.

use std::{
    fs::File,
    io::{self, BufWriter, Read, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::json;
use sha2::{Digest, Sha256};

/// An image with one layer.
#[derive(Clone, Debug)]
pub struct Image {
    /// Full names with tags, such as `docker.io/kuberay-rs/kuberay-operator:0.1.0`.
    pub names: Vec<String>,
    /// How a container of it starts.
    pub config: Config,
    /// Its files.
    pub layer: Layer,
}

/// How a container starts.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `UID` or `UID:GID`. Numbers, since a Pod with `runAsNonRoot` is refused where only a name is known.
    pub user: String,
    /// The program and its fixed arguments.
    pub entrypoint: Vec<String>,
    /// Arguments that a Pod may replace.
    pub command: Vec<String>,
    /// Environment, `NAME=VALUE`.
    pub environment: Vec<String>,
    /// Working directory.
    pub directory: String,
}

/// The files of an image.
#[derive(Clone, Debug)]
pub enum Layer {
    /// These files and folders.
    Entries(Vec<Entry>),
    /// A tar archive made elsewhere, with its SHA-256 in hexadecimal.
    Archive {
        /// Where it is.
        path: PathBuf,
        /// Its checksum.
        sha256: String,
    },
}

/// A file or folder of a layer.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Path from the root, without a leading slash.
    pub path: String,
    /// Permission bits.
    pub mode: u32,
    /// Owner and group number.
    pub owner: u64,
    /// The contents; `None` makes a folder.
    pub contents: Option<Vec<u8>>,
}

impl Image {
    /// Writes the archive.
    ///
    /// # Errors
    /// When a file cannot be read or written.
    pub fn write(&self, to: &Path) -> Result<()> {
        let file = File::create(to).with_context(|| format!("creating {}", to.display()))?;
        let mut out = tar::Builder::new(BufWriter::new(file));
        let digest = match &self.layer {
            Layer::Entries(entries) => {
                let bytes = layer(entries)?;
                let digest = hex(&Sha256::digest(&bytes));
                append(&mut out, &layer_name(&digest), u64::try_from(bytes.len())?, bytes.as_slice())?;
                digest
            }
            Layer::Archive { path, sha256 } => {
                let layer = File::open(path).with_context(|| format!("opening {}", path.display()))?;
                append(&mut out, &layer_name(sha256), layer.metadata()?.len(), layer)?;
                sha256.clone()
            }
        };
        let config = self.config_json(&digest).to_string();
        let config_name = format!("{}.json", hex(&Sha256::digest(config.as_bytes())));
        append(&mut out, &config_name, u64::try_from(config.len())?, config.as_bytes())?;
        let manifest = json!([{ "Config": config_name, "RepoTags": self.names, "Layers": [layer_name(&digest)] }]).to_string();
        append(&mut out, "manifest.json", u64::try_from(manifest.len())?, manifest.as_bytes())?;
        out.into_inner()?.into_inner().map_err(io::IntoInnerError::into_error)?.flush().context("writing an image")
    }

    fn config_json(&self, layer_digest: &str) -> serde_json::Value {
        let config = &self.config;
        json!({
            "architecture": architecture(),
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {
                "User": config.user,
                "Env": config.environment,
                "Entrypoint": config.entrypoint,
                "Cmd": config.command,
                "WorkingDir": config.directory,
            },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer_digest}")] },
            "history": [{ "created": "1970-01-01T00:00:00Z", "created_by": "testcluster" }],
        })
    }
}

/// The machine's architecture as container images name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn layer_name(digest: &str) -> String {
    format!("{digest}/layer.tar")
}

/// The layer's tar archive.
fn layer(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut out = tar::Builder::new(Vec::new());
    for entry in entries {
        let contents = entry.contents.as_deref().unwrap_or_default();
        let kind = if entry.contents.is_some() { tar::EntryType::Regular } else { tar::EntryType::Directory };
        let mut header = header(kind, entry.mode, u64::try_from(contents.len())?);
        header.set_uid(entry.owner);
        header.set_gid(entry.owner);
        out.append_data(&mut header, &entry.path, contents)?;
    }
    Ok(out.into_inner()?)
}

fn append(out: &mut tar::Builder<impl Write>, name: &str, size: u64, contents: impl Read) -> Result<()> {
    out.append_data(&mut header(tar::EntryType::Regular, 0o644, size), name, contents).with_context(|| format!("writing {name}"))
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    header.set_mtime(0);
    header
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn image(layer: Layer) -> Image {
        Image {
            names: vec!["docker.io/x/y:1".to_owned(), "docker.io/x/y:2".to_owned()],
            config: Config { user: "65532".to_owned(), entrypoint: vec!["/y".to_owned()], ..Config::default() },
            layer,
        }
    }

    fn entries() -> Layer {
        let file = Entry { path: "y".to_owned(), mode: 0o755, owner: 7, contents: Some(b"program".to_vec()) };
        Layer::Entries(vec![Entry { path: "tmp".to_owned(), mode: 0o1777, owner: 0, contents: None }, file])
    }

    fn unpack(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let mut archive = tar::Archive::new(bytes);
        let read = |entry: io::Result<tar::Entry<'_, &[u8]>>| {
            let mut entry = entry.unwrap();
            let mut contents = Vec::new();
            entry.read_to_end(&mut contents).unwrap();
            (entry.path().unwrap().display().to_string(), contents)
        };
        archive.entries().unwrap().map(read).collect()
    }

    #[test]
    fn an_archive_holds_what_a_container_runtime_looks_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image.tar");
        image(entries()).write(&path).unwrap();
        let files = unpack(&std::fs::read(&path).unwrap());
        let manifest: serde_json::Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
        assert_eq!(manifest[0]["RepoTags"], json!(["docker.io/x/y:1", "docker.io/x/y:2"]));
        let config_name = manifest[0]["Config"].as_str().unwrap();
        let config: serde_json::Value = serde_json::from_slice(&files[config_name]).unwrap();
        assert_eq!(config_name, format!("{}.json", hex(&Sha256::digest(&files[config_name]))));
        assert_eq!((&config["config"]["User"], &config["config"]["Entrypoint"]), (&json!("65532"), &json!(["/y"])));
        let layer = &files[manifest[0]["Layers"][0].as_str().unwrap()];
        assert_eq!(config["rootfs"]["diff_ids"], json!([format!("sha256:{}", hex(&Sha256::digest(layer)))]));
        let inside = unpack(layer);
        assert_eq!(inside["y"], b"program");
        assert!(inside.contains_key("tmp"), "{:?}", inside.keys());
    }

    #[test]
    fn the_same_image_is_the_same_bytes_and_a_foreign_layer_is_taken_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two, three, tar] = ["1", "2", "3", "layer"].map(|name| dir.path().join(name));
        image(entries()).write(&one).unwrap();
        image(entries()).write(&two).unwrap();
        assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&two).unwrap());
        let Layer::Entries(list) = entries() else { unreachable!() };
        let bytes = layer(&list).unwrap();
        std::fs::write(&tar, &bytes).unwrap();
        image(Layer::Archive { path: tar, sha256: hex(&Sha256::digest(&bytes)) }).write(&three).unwrap();
        assert_eq!(std::fs::read(&one).unwrap(), std::fs::read(&three).unwrap());
    }
}

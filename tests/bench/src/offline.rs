//! `kuberay-webhook check` over a thousand files, beside kubeconform with the schemas of the same CRDs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use testcluster::cache::Cache;
use testcluster::fetch;
use testcluster::progress::Progress;

use crate::measure::{children_cpu, release, seconds};

/// What to measure.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Options {
    /// Files to check.
    #[arg(long, default_value_t = 1000)]
    pub(crate) files: usize,
    /// Folder of the manifests that the files are made from; `../shared/upstream/samples` or, where that is absent, `examples`.
    #[arg(long)]
    pub(crate) samples: Option<PathBuf>,
    /// Our webhook; the release build when absent.
    #[arg(long)]
    pub(crate) webhook: Option<PathBuf>,
}

/// How often each checker runs over the same files; its best figures count.
const ROUNDS: usize = 3;

/// Runs the benchmark and prints its figures.
///
/// # Errors
/// When kubeconform cannot be built or a checker cannot be run.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let root = testcluster::work_tree();
    let program = release(options.webhook.as_deref(), "kuberay-webhook");
    let kubeconform = fetch::kubeconform(&Cache::from_env()?, &Progress::stderr()).await?;
    let samples = options.samples.clone().unwrap_or_else(|| {
        let upstream = root.join("../shared/upstream/samples");
        if upstream.is_dir() { upstream } else { root.join("examples") }
    });
    let folder = tempfile::tempdir()?;
    let (files, schemas) = (folder.path().join("files"), folder.path().join("schemas"));
    let bytes = write_files(&samples, &files, options.files)?;
    write_schemas(&schemas)?;
    println!("offline check: {} files, {:.1} MB", options.files, bytes as f64 / 1e6);

    let check = best(|| {
        let mut command = Command::new(&program);
        command.args(["check", "--output=json"]).arg(&files);
        command
    })?;
    let refused = serde_json::from_slice::<Vec<Value>>(&check.output)?;
    let refused = refused.iter().filter(|object| object.get("allowed") != Some(&Value::Bool(true))).count();
    check.print("check", refused);

    let other = best(|| {
        let mut command = Command::new(&kubeconform);
        let location = schemas.join("{{.ResourceKind}}_{{.ResourceAPIVersion}}.json");
        command.args(["-n", "2", "-output", "json", "-schema-location"]).arg(location).arg(&files);
        command
    })?;
    let listed: Value = serde_json::from_slice(&other.output)?;
    other.print("kubeconform", listed.get("resources").and_then(Value::as_array).map_or(0, Vec::len));
    println!("  check takes {:.2} of kubeconform's CPU", check.cpu.as_secs_f64() / other.cpu.as_secs_f64());
    Ok(())
}

struct Round {
    elapsed: Duration,
    cpu: Duration,
    output: Vec<u8>,
}

impl Round {
    fn print(&self, name: &str, refused: usize) {
        println!("  {name}: CPU {:.2} s, {} elapsed, {refused} refused", self.cpu.as_secs_f64(), seconds(self.elapsed));
    }
}

fn best(command: impl Fn() -> Command) -> Result<Round> {
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let mut command = command();
        let (before, started) = (children_cpu()?, Instant::now());
        let output = command.stderr(Stdio::inherit()).output().with_context(|| format!("running {command:?}"))?;
        ensure!(matches!(output.status.code(), Some(0 | 1)), "{command:?} ended with {}", output.status);
        rounds.push(Round { elapsed: started.elapsed(), cpu: children_cpu()?.saturating_sub(before), output: output.stdout });
    }
    rounds.into_iter().min_by_key(|round| round.cpu).context("no round")
}

/// Writes `count` files, each with one object of ours from `samples` under a name of its own; answers with their size.
fn write_files(samples: &Path, folder: &Path, count: usize) -> Result<u64> {
    let mut paths: Vec<PathBuf> = fs::read_dir(samples)?.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    paths.sort();
    let mut objects = Vec::new();
    for path in paths.iter().filter(|path| path.extension().is_some_and(|extension| extension == "yaml")) {
        for document in fs::read_to_string(path)?.split("\n---") {
            let ours = document.lines().any(|line| line.trim() == "apiVersion: ray.io/v1");
            let name = document.lines().find_map(|line| line.strip_prefix("  name: ")).map(str::to_owned);
            if let (true, Some(name)) = (ours, name) {
                objects.push((document.to_owned(), name));
            }
        }
    }
    ensure!(!objects.is_empty(), "no objects of ray.io/v1 under {}", samples.display());
    fs::create_dir_all(folder)?;
    let mut bytes = 0;
    for (number, (text, name)) in objects.iter().cycle().take(count).enumerate() {
        let text = text.replacen(&format!("\n  name: {name}"), &format!("\n  name: r{number}"), 1);
        bytes += text.len() as u64;
        fs::write(folder.join(format!("{number:04}.yaml")), text)?;
    }
    Ok(bytes)
}

/// The schemas of our CRDs as files for kubeconform.
fn write_schemas(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    for crd in shared::crd::all() {
        let kind = crd.pointer("/spec/names/kind").and_then(Value::as_str).context("a CRD without a kind")?.to_lowercase();
        for version in crd.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten() {
            let name = version.get("name").and_then(Value::as_str).unwrap_or_default();
            let schema = version.pointer("/schema/openAPIV3Schema").context("a version without a schema")?;
            fs::write(folder.join(format!("{kind}_{name}.json")), serde_json::to_vec(schema)?)?;
        }
    }
    Ok(())
}

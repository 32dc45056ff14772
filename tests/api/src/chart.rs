//! The charts, rendered by the real helm.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;
use testcluster::cache::Cache;
use testcluster::fetch::{self, KubectlTools};
use testcluster::progress::Progress;

/// kubectl and helm, for tests that need no API server.
///
/// # Panics
/// When they cannot be had: no test can go on then.
#[allow(clippy::expect_used)] // see above
pub fn tools() -> &'static KubectlTools {
    static TOOLS: OnceLock<KubectlTools> = OnceLock::new();
    TOOLS.get_or_init(|| fetched(async |cache, progress| fetch::kubectl(cache, progress).await).expect("kubectl and helm"))
}

/// Helm 3, beside the Helm 4 of [`tools`].
///
/// # Panics
/// As [`tools`].
#[allow(clippy::expect_used)] // see above
pub fn helm3() -> &'static Path {
    static HELM3: OnceLock<PathBuf> = OnceLock::new();
    HELM3.get_or_init(|| fetched(async |cache, progress| fetch::helm3(cache, progress).await).expect("Helm 3"))
}

/// On a thread of its own, because the caller may be in a runtime already.
#[allow(clippy::expect_used)] // see above
fn fetched<T: Send>(fetch: impl AsyncFnOnce(&Cache, &Progress) -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let fetching = scope.spawn(|| {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async { fetch(&Cache::from_env()?, &Progress::stderr()).await })
        });
        fetching.join().expect("the thread")
    })
}

/// The workspace's root, from which the commands of the documentation run.
pub fn workspace() -> PathBuf {
    testcluster::work_tree()
}

/// A folder under `charts/`.
pub fn folder(chart: &str) -> PathBuf {
    workspace().join("charts").join(chart)
}

/// What `helm template` makes of a chart.
#[derive(Clone, Debug)]
pub struct Rendered {
    objects: Vec<Value>,
}

/// Renders a chart as release `release` in namespace `namespace`, with further arguments of helm.
///
/// # Errors
/// What helm says when it refuses, or what is wrong with its output.
pub fn render(chart: &str, release: &str, namespace: &str, arguments: &[&str]) -> Result<Rendered> {
    render_with(&tools().helm, chart, release, namespace, arguments)
}

/// As [`render`], with this helm.
///
/// # Errors
/// As [`render`].
pub fn render_with(helm: &Path, chart: &str, release: &str, namespace: &str, arguments: &[&str]) -> Result<Rendered> {
    let mut helm = Command::new(helm);
    helm.args(["template", release]).arg(folder(chart)).args(["--namespace", namespace]).args(arguments);
    let output = helm.output().with_context(|| format!("running {helm:?}"))?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Rendered::read(&String::from_utf8(output.stdout)?)
}

impl Rendered {
    /// Reads manifests.
    ///
    /// # Errors
    /// When a document cannot be read, or a key stands twice in a mapping.
    pub fn read(text: &str) -> Result<Self> {
        let mut objects = Vec::new();
        for document in shared::yaml::documents(text) {
            let document = document?;
            if let Some(twice) = document.duplicates.first() {
                bail!("a key stands twice: {:?}\n{text}", twice.path);
            }
            if !document.value.is_null() {
                objects.push(document.value);
            }
        }
        Ok(Self { objects })
    }

    /// The same with the webhooks in their configurations, as the running webhook puts them in and leaves them.
    ///
    /// # Errors
    /// When an annotation cannot be read.
    #[must_use = "the rendered objects stay as they are"]
    pub fn with_webhooks(mut self) -> Result<Self> {
        for object in &mut self.objects {
            let annotations = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
            if let Some(wanted) = annotations.and_then(|annotations| annotations.remove(certs::configurations::WANTED)) {
                object["webhooks"] = serde_json::from_str(wanted.as_str().unwrap_or_default())?;
            }
        }
        Ok(self)
    }

    /// All objects.
    pub fn objects(&self) -> &[Value] {
        &self.objects
    }

    /// The object of this kind and name, in any namespace.
    pub fn find(&self, kind: &str, name: &str) -> Option<&Value> {
        self.of_kind(kind).find(|object| text(object, "/metadata/name") == name)
    }

    /// As [`Rendered::find`].
    ///
    /// # Errors
    /// When it is not there.
    pub fn get(&self, kind: &str, name: &str) -> Result<&Value> {
        self.find(kind, name).ok_or_else(|| anyhow!("no {kind} {name} among {:?}", self.names()))
    }

    /// Every object of a kind.
    pub fn of_kind(&self, kind: &str) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |object| text(object, "/kind") == kind)
    }

    /// `Kind/name` of every object, sorted; with the namespace where two have the same.
    pub fn names(&self) -> Vec<String> {
        let name = |object: &Value| format!("{}/{}", text(object, "/kind"), text(object, "/metadata/name"));
        let mut names: Vec<String> = self.objects.iter().map(name).collect();
        names.sort();
        names
    }

    /// The manifests again, as YAML documents for kubectl.
    pub fn manifest(&self) -> String {
        self.objects.iter().map(|object| format!("---\n{object}\n")).collect()
    }

    /// The arguments of a Deployment's first container.
    ///
    /// # Errors
    /// When there is no such Deployment.
    pub fn arguments(&self, deployment: &str) -> Result<Vec<String>> {
        let deployment = self.get("Deployment", deployment)?;
        let arguments = deployment.pointer("/spec/template/spec/containers/0/args").and_then(Value::as_array);
        Ok(arguments.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect())
    }
}

/// The text at a place in an object; empty if there is none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

//! Commands as a person types them, with what they print.

use std::path::PathBuf;
use std::process::Output;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use testcluster::node::Node;
use tokio::process::Command;

/// Runs commands against a cluster and, where asked to, shows them and their output.
pub struct Shell {
    kubeconfig: PathBuf,
    path: String,
    folder: PathBuf,
    visible: bool,
}

/// What a command printed and whether it succeeded.
pub struct Printed {
    /// Exit code 0.
    pub ok: bool,
    /// Standard output and standard error, in this order, trimmed.
    pub text: String,
}

impl Shell {
    /// A shell with the node's `kubectl` and `helm` and the root of the work tree as its folder.
    pub fn new(node: &Node, visible: bool) -> Self {
        let tools = node.tools();
        let folders: Vec<String> =
            [&tools.kubectl, &tools.helm].iter().filter_map(|tool| tool.parent()).map(|folder| folder.display().to_string()).collect();
        let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
        Self { kubeconfig: node.kubeconfig_path(), path, folder: testcluster::work_tree(), visible }
    }

    /// Prints a line, if this shell is to be seen.
    pub fn say(&self, line: &str) {
        if self.visible {
            println!("{line}");
        }
    }

    /// Shows and runs a command line; its failure is not an error here.
    ///
    /// # Errors
    /// When the shell cannot be started.
    pub async fn attempt(&self, line: &str) -> Result<Printed> {
        self.say(&format!("$ {line}"));
        let output = self.output(line, None).await?;
        let printed = printed(&output);
        for line in printed.text.lines() {
            self.say(line);
        }
        Ok(printed)
    }

    /// Shows and runs a command line that has to succeed, and gives what it printed.
    ///
    /// # Errors
    /// When it fails, with what it printed.
    pub async fn run(&self, line: &str) -> Result<String> {
        let printed = self.attempt(line).await?;
        if !printed.ok {
            bail!("`{line}` failed:\n{}", printed.text);
        }
        Ok(printed.text)
    }

    /// Runs a command line without showing it, and gives its standard output; it has to succeed.
    ///
    /// # Errors
    /// When it fails, with what it printed.
    pub async fn quiet(&self, line: &str) -> Result<String> {
        let output = self.output(line, None).await?;
        if !output.status.success() {
            bail!("`{line}` failed:\n{}", printed(&output).text);
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// `kubectl apply -f -` of a manifest, shown as `kubectl apply -f <name>`.
    ///
    /// # Errors
    /// When kubectl cannot be started.
    pub async fn apply(&self, name: &str, manifest: &str) -> Result<Printed> {
        self.say(&format!("$ kubectl apply -f {name}"));
        let output = self.output("kubectl apply -f -", Some(manifest)).await?;
        let printed = printed(&output);
        for line in printed.text.lines() {
            self.say(line);
        }
        Ok(printed)
    }

    /// Waits until a command line that is not shown prints something that `wanted` accepts, and gives it.
    ///
    /// # Errors
    /// When that takes longer than `limit`; the text last printed is part of the error.
    pub async fn wait_for(&self, what: &str, limit: Duration, line: &str, wanted: impl Fn(&str) -> bool) -> Result<String> {
        let last = std::cell::RefCell::new(String::new());
        let probe = || async {
            let text = self.quiet(line).await.unwrap_or_else(|error| error.to_string());
            let found = wanted(&text).then(|| text.clone());
            last.replace(text);
            Ok(found)
        };
        let progress = if self.visible { testcluster::progress::Progress::stderr() } else { testcluster::progress::Progress::quiet() };
        let result = progress.step(what, testcluster::wait::until(what, limit, probe)).await;
        result.with_context(|| format!("`{line}` last printed: {}", last.borrow()))
    }

    async fn output(&self, line: &str, input: Option<&str>) -> Result<Output> {
        let mut command = Command::new("bash");
        command.args(["-c", line]).env("KUBECONFIG", &self.kubeconfig).env("PATH", &self.path).current_dir(&self.folder);
        command.stdin(std::process::Stdio::null()).kill_on_drop(true);
        let Some(input) = input else { return command.output().await.context("starting bash") };
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().context("starting bash")?;
        if let Some(mut stdin) = child.stdin.take() {
            tokio::io::AsyncWriteExt::write_all(&mut stdin, input.as_bytes()).await.context("writing to the command")?;
        }
        child.wait_with_output().await.context("running the command")
    }
}

fn printed(output: &Output) -> Printed {
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Printed { ok: output.status.success(), text: text.trim().to_owned() }
}

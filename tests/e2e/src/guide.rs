//! The guide, step by step. Each step does what a reader of the guide types, and fails where the reader would see something else.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use testcluster::node::Node;

use crate::show::{Printed, Shell};

/// The RayJob of the guide.
pub const JOB: &str = "rayjob-sidecar-restart";
const MANIFEST: &str = "examples/rayjob-sidecar-restart.yaml";
const RAY_START_LIMIT: Duration = Duration::from_secs(240);

/// One run of the guide.
pub struct Guide<'a> {
    node: &'a Node,
    shell: &'a Shell,
    run_seconds: u32,
}

/// What identifies the running job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Submission id in Ray.
    pub job_id: String,
    /// Name of the head Pod.
    pub head: String,
}

impl<'a> Guide<'a> {
    /// A run whose job works for `run_seconds`.
    pub fn new(node: &'a Node, shell: &'a Shell, run_seconds: u32) -> Self {
        Self { node, shell, run_seconds }
    }

    fn manifest(&self) -> Result<String> {
        let text = std::fs::read_to_string(testcluster::work_tree().join(MANIFEST)).with_context(|| format!("reading {MANIFEST}"))?;
        Ok(text.replace("\"RUN_SECONDS\", \"300\"", &format!("\"RUN_SECONDS\", \"{}\"", self.run_seconds)))
    }

    /// The guide's job with a mistake: a `submitterConfig`, which SidecarMode does not take. The API server refuses it in our words.
    ///
    /// # Errors
    /// When it is accepted, or refused for another reason.
    pub async fn refused(&self) -> Result<Printed> {
        let manifest = self
            .manifest()?
            .replace("  submissionMode: SidecarMode\n", "  submissionMode: SidecarMode\n  submitterConfig:\n    backoffLimit: 5\n");
        let printed = self.shell.apply("rayjob-with-submitter-config.yaml", &manifest).await?;
        ensure!(printed.text.contains("spec.submitterConfig"), "the answer does not name the field:\n{}", printed.text);
        ensure!(
            self.shell.quiet("kubectl get rayjobs -o name").await?.is_empty(),
            "a RayJob with a submitterConfig in SidecarMode was accepted"
        );
        // The same file has the ConfigMap, which is in order and was created.
        self.shell.quiet("kubectl delete configmap ray-job-code-sample --ignore-not-found").await?;
        Ok(printed)
    }

    /// The guide's job as it stands.
    ///
    /// # Errors
    /// When it is refused.
    pub async fn apply(&self) -> Result<()> {
        let printed = self.shell.apply(MANIFEST, &self.manifest()?).await?;
        ensure!(printed.ok, "the guide's job was refused:\n{}", printed.text);
        Ok(())
    }

    /// Waits until the job runs in Ray.
    ///
    /// # Errors
    /// When it does not within four minutes.
    pub async fn wait_running(&self) -> Result<Running> {
        self.shell
            .wait_for("the job running in Ray", RAY_START_LIMIT, &self.status("{.jobDeploymentStatus} {.jobStatus}"), |text| {
                text == "Running RUNNING"
            })
            .await?;
        self.shell.run(&format!("kubectl get rayjob {JOB}")).await?;
        let job_id = self.shell.quiet(&self.status("{.jobId}")).await?;
        let head = self.head().await?;
        Ok(Running { job_id, head })
    }

    /// Name of the head Pod.
    ///
    /// # Errors
    /// When there is none.
    pub async fn head(&self) -> Result<String> {
        let cluster = self.shell.quiet(&self.status("{.rayClusterName}")).await?;
        let head = self
            .shell
            .quiet(&format!("kubectl get pods -l ray.io/cluster={cluster},ray.io/node-type=head -o jsonpath='{{.items[0].metadata.name}}'"))
            .await?;
        ensure!(!head.is_empty(), "cluster {cluster} has no head Pod");
        Ok(head)
    }

    /// Stops the submitter's container through the container runtime, as a crash would.
    ///
    /// # Errors
    /// When there is no such container.
    pub async fn stop_submitter(&self, running: &Running) -> Result<()> {
        let line = format!(
            "kubectl get pod {} -o jsonpath='{{.status.containerStatuses[?(@.name==\"ray-job-submitter\")].containerID}}'",
            running.head
        );
        let id = self.shell.run(&line).await?;
        self.shell.say("$ # stop that container through the node's container runtime");
        self.node.stop_container(id.trim_start_matches("containerd://")).await
    }

    /// Checks what the guide promises after the crash: only the submitter was restarted, the job runs on under the same id.
    ///
    /// # Errors
    /// When anything differs.
    pub async fn verify_recovery(&self, running: &Running) -> Result<()> {
        let restarts = format!(
            "kubectl get pod {} -o jsonpath='{{range .status.containerStatuses[*]}}{{.name}}{{\" restartCount=\"}}{{.restartCount}}{{\"\\n\"}}{{end}}'",
            running.head
        );
        self.shell
            .wait_for("the submitter's restart", Duration::from_secs(60), &restarts, |text| {
                text.contains("ray-job-submitter restartCount=1")
            })
            .await?;
        let text = self.shell.run(&restarts).await?;
        ensure!(text.contains("ray-head restartCount=0"), "the Ray container was restarted, too:\n{text}");
        let status = self.shell.run(&self.status("{.jobDeploymentStatus}")).await?;
        ensure!(status == "Running", "the RayJob is {status}, not Running");
        let line = format!(
            "kubectl exec {} -c ray-head -- ray job status --address=http://127.0.0.1:8265 {} 2>&1 | grep -i status",
            running.head, running.job_id
        );
        let text = self.shell.run(&line).await?;
        ensure!(text.contains("RUNNING"), "Ray does not say that job {} is RUNNING:\n{text}", running.job_id);
        ensure!(self.shell.quiet(&self.status("{.jobId}")).await? == running.job_id, "the job has another id now");
        Ok(())
    }

    /// Waits until the job has succeeded, and checks that the submitter showed its output to the end.
    ///
    /// # Errors
    /// When it fails, or does not end in time.
    pub async fn wait_complete(&self, running: &Running) -> Result<()> {
        let limit = Duration::from_secs(u64::from(self.run_seconds) + 120);
        let text = self
            .shell
            .wait_for("the end of the job", limit, &self.status("{.jobDeploymentStatus} {.jobStatus}"), |text| {
                text.starts_with("Complete") || text.starts_with("Failed")
            })
            .await?;
        self.shell.run(&format!("kubectl get rayjob {JOB}")).await?;
        if text != "Complete SUCCEEDED" {
            bail!("the job ended as `{text}`: {}", self.shell.quiet(&self.status("{.reason} {.message}")).await?);
        }
        let logs = self.shell.run(&format!("kubectl logs {} -c ray-job-submitter --tail=12", running.head)).await?;
        ensure!(logs.contains("done"), "the submitter's log lacks the end of the job's output:\n{logs}");
        ensure!(self.shell.quiet(&self.status("{.jobId}")).await? == running.job_id, "the job has another id now");
        let counts = self.shell.quiet(&self.status("{.succeeded} {.failed}")).await?;
        ensure!(counts == "1 0", "succeeded and failed count `{counts}`, expected `1 0`");
        Ok(())
    }

    /// Deletes the job and waits until its cluster is gone.
    ///
    /// # Errors
    /// When something stays.
    pub async fn delete(&self) -> Result<()> {
        self.shell.run(&format!("kubectl delete rayjob {JOB} --timeout=60s")).await?;
        self.shell.run("kubectl delete configmap ray-job-code-sample").await?;
        let all = "kubectl get rayjobs,rayclusters,pods,services -l 'ray.io/cluster' -o name; kubectl get rayjobs,rayclusters -o name";
        self.shell.wait_for("the cluster going", Duration::from_secs(90), all, str::is_empty).await?;
        Ok(())
    }

    fn status(&self, fields: &str) -> String {
        let fields = fields.replace("{.", "{.status.");
        format!("kubectl get rayjob {JOB} -o jsonpath='{fields}'")
    }
}

/// Resident memory of both programs' processes: their names and bytes. The node's processes are this machine's, too.
pub fn memory() -> Vec<(String, u64)> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut found: Vec<(String, u64)> = processes
        .filter_map(|process| {
            let command = std::fs::read_to_string(process.path().join("cmdline")).ok()?;
            let name = match command.split('\0').next()? {
                "/manager" => "operator",
                "/kuberay-webhook" => "webhook",
                _ => return None,
            };
            let status = std::fs::read_to_string(process.path().join("status")).ok()?;
            let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
            let kib: u64 = resident.trim().trim_end_matches(" kB").parse().ok()?;
            Some((name.to_owned(), kib * 1024))
        })
        .collect();
    found.sort();
    found
}

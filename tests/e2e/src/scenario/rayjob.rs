//! What scenarios ask about RayJobs. Status is read through a client of its own: many jobs are waited for at the same time.

use std::cell::RefCell;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::Value;
use shared::api::{RayJob, RayJobStatus, rayjob::JobDeploymentStatus};
use shared::labels::label;
use testcluster::progress::Progress;
use testcluster::wait;

use super::Scenario;

/// How long a job of a few seconds may take from its RayJob to its start or its end, head included, on a machine that does many things
/// at once.
const JOB: Duration = Duration::from_secs(300);

impl Scenario {
    /// Status of a RayJob.
    ///
    /// # Errors
    /// When there is no such RayJob.
    pub async fn job(&self, name: &str) -> Result<RayJobStatus> {
        let jobs: Api<RayJob> = Api::namespaced(self.client.clone(), self.namespace());
        Ok(jobs.get(name).await.with_context(|| format!("reading RayJob {name}"))?.status.unwrap_or_default())
    }

    /// The RayJobs that a RayCronJob made, in order of their names.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn jobs_of(&self, schedule: &str) -> Result<Vec<RayJob>> {
        let jobs: Api<RayJob> = Api::namespaced(self.client.clone(), self.namespace());
        let list = ListParams::default().labels(&format!("{}={schedule}", label::CRONJOB_NAME));
        let mut items = jobs.list(&list).await.context("listing RayJobs")?.items;
        items.sort_by_key(RayJob::name_any);
        Ok(items)
    }

    /// The Pods of the Job that submits in K8sJobMode, the oldest first.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn submitters(&self, job: &str) -> Result<Vec<Pod>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), self.namespace());
        let list = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={job}"));
        let mut items = pods.list(&list).await.context("listing Pods")?.items;
        items.sort_by_key(Pod::creation_timestamp);
        Ok(items)
    }

    /// Waits until the status of a RayJob is such that `wanted` accepts it.
    ///
    /// # Errors
    /// When that takes longer than `limit`; the error shows the status.
    pub async fn wait_job(&self, name: &str, what: &str, limit: Duration, wanted: impl Fn(&RayJobStatus) -> bool) -> Result<RayJobStatus> {
        self.follow_job(name, what, limit, |status| Ok(wanted(status))).await
    }

    /// Waits until Ray runs the job of a RayJob and its status says so.
    ///
    /// # Errors
    /// When it ends before, or that takes longer than a head and a job may take to start.
    pub async fn runs(&self, name: &str) -> Result<RayJobStatus> {
        let runs = |status: &RayJobStatus| {
            ensure!(!status.job_deployment_status.is_terminal(), "{name} has ended: {}", summary(status));
            Ok(status.job_deployment_status == JobDeploymentStatus::Running && status.job_status == "RUNNING")
        };
        self.follow_job(name, "the job running in Ray", JOB, runs).await
    }

    /// Waits until a RayJob has ended, and checks that it did so with this `jobDeploymentStatus/reason/jobStatus`.
    ///
    /// # Errors
    /// When it ends otherwise, or not in time.
    pub async fn ends(&self, name: &str, wanted: &str) -> Result<RayJobStatus> {
        let status = self.wait_job(name, "its end", JOB, |status| status.job_deployment_status.is_terminal()).await?;
        ensure!(summary(&status) == wanted, "{name} was to end as {wanted}, and did as {}: {}", summary(&status), status.message);
        self.shell.say(&format!("# {name} ended: {}", summary(&status)));
        Ok(status)
    }

    /// What Ray says about the job of a RayJob with this status.
    ///
    /// # Errors
    /// When Ray does not know it.
    pub async fn in_ray(&self, status: &RayJobStatus) -> Result<Value> {
        self.ray(&status.ray_cluster_name, &format!("api/jobs/{}", status.job_id)).await
    }

    /// The output of the job, as Ray keeps it.
    ///
    /// # Errors
    /// When Ray does not know the job.
    pub async fn driver_log(&self, status: &RayJobStatus) -> Result<String> {
        let logs = self.ray(&status.ray_cluster_name, &format!("api/jobs/{}/logs", status.job_id)).await?;
        logs.get("logs").and_then(Value::as_str).map(str::to_owned).with_context(|| format!("there are no logs in {logs}"))
    }

    /// Hands a job to Ray as a user does who has no RayJob do it.
    ///
    /// # Errors
    /// When Ray does not take it.
    pub async fn submit_by_hand(&self, cluster: &str, id: &str, entrypoint: &str) -> Result<()> {
        let request = serde_json::json!({ "submission_id": id, "entrypoint": entrypoint }).to_string();
        ensure!(!request.contains('\''), "the shell would take {request} for several words");
        let create = self.line(&format!("create --raw {} -f -", self.dashboard(cluster, "api/jobs/")));
        self.shell.run(&format!("printf %s '{request}' | {create}")).await.map(drop)
    }

    /// Lets go a job with the entrypoint that [`until_let_go`] made for `name`.
    ///
    /// # Errors
    /// When the cluster has no head.
    pub async fn let_go(&self, cluster: &str, name: &str) -> Result<()> {
        let head = self.head_of(cluster).await?.name;
        self.kubectl(&format!("exec {head} -c ray-head -- touch {}", mark(name))).await.map(drop)
    }

    async fn follow_job(
        &self,
        name: &str,
        what: &str,
        limit: Duration,
        wanted: impl Fn(&RayJobStatus) -> Result<bool>,
    ) -> Result<RayJobStatus> {
        let last = RefCell::new(RayJobStatus::default());
        let wanted = &wanted;
        let probe = || async {
            let status = self.job(name).await?;
            let found = wanted(&status)?.then(|| status.clone());
            last.replace(status);
            Ok(found)
        };
        let what = format!("{name}: {what}");
        let result = Progress::stderr().step(&what, wait::until(&what, limit, probe)).await;
        result.with_context(|| format!("RayJob {name} was {}: {}", summary(&last.borrow()), last.borrow().message))
    }
}

/// An entrypoint that prints `begun`, waits for [`Scenario::let_go`], and prints `finished`.
pub fn until_let_go(name: &str) -> String {
    format!("echo begun; until [ -e {} ]; do sleep 0.5; done; echo finished", mark(name))
}

fn mark(name: &str) -> String {
    format!("/tmp/let-go-{name}")
}

/// A condition of a RayJob.
///
/// # Errors
/// When there is no such condition.
pub fn condition_of<'a>(status: &'a RayJobStatus, name: &str) -> Result<&'a Condition> {
    let found = status.conditions.iter().find(|condition| condition.type_ == name);
    match found {
        Some(condition) => Ok(condition),
        None => bail!("no condition {name} in {:?}", status.conditions),
    }
}

fn summary(status: &RayJobStatus) -> String {
    format!("{}/{}/{}", status.job_deployment_status.as_str(), status.reason, status.job_status)
}

//! RayJobs with real Ray on a real node. Run with `make test-e2e`; `KUBERAY_E2E_DEBUG=1` takes the debug build of both programs.
//!
//! A head takes half a minute to start, so the outcomes that need no cluster of their own share one, and whatever can run side by side
//! does.

#![allow(clippy::indexing_slicing, clippy::needless_pass_by_value)] // helpers of tests are tests; objects made in place read better

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e_tests::scenario::{self, SOON, Scenario, condition_of, until_let_go};
use futures::try_join;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::{Value, json};
use shared::api::{RayJobStatus, rayjob::JobDeploymentStatus};
use testcluster::{progress::Progress, wait};

const GATES: &[&str] = &["RayCronJob"];
const SHARED: &str = "shared";

/// What a shell, Kubernetes or YAML would change if it came to read it on the way to Ray.
const EXACT: &str = r#" echo "first: $GREETING" && echo 'kept: $HOME `id` $(RAY_DASHBOARD_ADDRESS) $$ "q" \ <&>'
# naïve ☃ 🚀
printf '%s|' `echo back` $(echo dollar) "d\"q" é; echo
false || echo "last: $((6 * 7))"
"#;
const GREETING: &str = r#"it's $5 "now" `é`"#;
const NOTE: &str = r#"it's `x` $(y) $HOME "z" \ ☃"#;
/// What [`EXACT`] prints.
const PRINTED: [&str; 4] =
    [r#"first: it's $5 "now" `é`"#, r#"kept: $HOME `id` $(RAY_DASHBOARD_ADDRESS) $$ "q" \ <&>"#, r#"back|dollar|d"q|é|"#, "last: 42"];
const FAILS: &str = "echo 'about to fail' && exit 7";

fn cluster(memory: &str) -> Value {
    let head = json!({
        "name": "ray-head",
        "image": "rayproject/ray:2.56.0",
        // On a busy machine the dashboard's parts need longer than their half minute.
        "env": [{ "name": "RAY_DASHBOARD_SUBPROCESS_MODULE_WAIT_READY_TIMEOUT", "value": "150" }],
        "resources": { "requests": { "cpu": "250m" }, "limits": { "memory": memory } },
    });
    json!({
        "rayVersion": "2.56.0",
        "headGroupSpec": {
            "rayStartParams": { "num-cpus": "0", "object-store-memory": "100000000" },
            "template": { "spec": { "terminationGracePeriodSeconds": 5, "containers": [head] } },
        },
    })
}

fn ray_job(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": name }, "spec": spec })
}

/// The spec of a RayJob, with `more` in it.
fn spec(mode: &str, entrypoint: &str, cluster: (&str, Value), more: Value) -> Value {
    let mut spec = json!({ "submissionMode": mode, "entrypoint": entrypoint, cluster.0: cluster.1 });
    if let (Some(spec), Value::Object(more)) = (spec.as_object_mut(), more) {
        spec.extend(more);
    }
    spec
}

fn on_shared(mode: &str, entrypoint: &str, more: Value) -> Value {
    spec(mode, entrypoint, ("clusterSelector", json!({ "ray.io/cluster": SHARED })), more)
}

fn on_own(mode: &str, entrypoint: &str, more: Value) -> Value {
    spec(mode, entrypoint, ("rayClusterSpec", cluster("2Gi")), more)
}

/// The rest of a spec with [`EXACT`].
fn exact() -> Value {
    let runtime_env = json!({ "env_vars": { "GREETING": GREETING } });
    json!({ "metadata": { "note": NOTE }, "runtimeEnvYAML": runtime_env.to_string() })
}

/// Ray has what the user wrote, once.
async fn has_exactly_that(scenario: &Scenario, status: &RayJobStatus) -> Result<()> {
    let found = scenario.in_ray(status).await?;
    ensure!(found["entrypoint"] == EXACT, "the entrypoint in Ray: {}", found["entrypoint"]);
    ensure!(found["metadata"]["note"] == NOTE, "the metadata in Ray: {}", found["metadata"]);
    ensure!(found["runtime_env"]["env_vars"]["GREETING"] == GREETING, "the runtime environment in Ray: {}", found["runtime_env"]);
    is_there_once(scenario, status).await
}

async fn is_there_once(scenario: &Scenario, status: &RayJobStatus) -> Result<()> {
    let all = scenario.ray(&status.ray_cluster_name, "api/jobs/").await?;
    let count = all.as_array().into_iter().flatten().filter(|job| job["submission_id"] == *status.job_id).count();
    ensure!(count == 1, "job {} is {count} times in Ray: {all}", status.job_id);
    Ok(())
}

fn shows(log: &str, wanted: &[&str]) -> Result<()> {
    for line in wanted {
        ensure!(log.contains(line), "`{line}` is not in the log:\n{log}");
    }
    Ok(())
}

fn tells_of_the_failure(status: &RayJobStatus) -> Result<()> {
    ensure!(status.message.contains("exit code 7"), "the message does not say why: {}", status.message);
    ensure!((status.succeeded, status.failed) == (Some(0), Some(1)), "counts: {:?} {:?}", status.succeeded, status.failed);
    let failed = condition_of(status, "Failed")?;
    ensure!(failed.status == "True" && failed.reason == "AppFailed", "{failed:?}");
    Ok(())
}

fn seconds(time: Option<&Time>) -> Result<i64> {
    time.map(|time| time.0.as_second()).context("a time is missing")
}

/// How many Pods of a submitter's Job ended well, and how many did not.
async fn ends_of_submitter(scenario: &Scenario, name: &str) -> Result<String> {
    scenario.quiet(&format!("get job {name} -o jsonpath='{{.status.succeeded}}/{{.status.failed}}'")).await
}

/// Each mode to SUCCEEDED and to FAILED, with the job's output where the mode promises it; and what else can happen to jobs on a cluster
/// that others use, too. Heads start one after the other: two cores are not enough for more.
#[tokio::test]
async fn e2e_each_mode_ends_as_its_job_does_and_shows_its_output() {
    scenario::run_with(GATES, "modes", async |scenario: &Scenario| {
        let shared = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": SHARED }, "spec": cluster("3Gi") });
        scenario.make(shared).await?;
        try_join!(each_minute(scenario), on_the_shared_cluster(scenario))?;
        scenario.kubectl("get rayjobs,raycronjobs,jobs").await?;
        let heads = scenario.record().count("head")?;
        ensure!(heads == 3, "the shared head and two of SidecarMode were to be made, not {heads}");
        Ok(())
    })
    .await
    .unwrap();
}

async fn on_the_shared_cluster(scenario: &Scenario) -> Result<()> {
    scenario.wait_ready(SHARED, 0).await?;
    let head = scenario.head_of(SHARED).await?;
    let one_by_one = async {
        http(scenario).await?;
        interactive(scenario).await?;
        deadline(scenario).await
    };
    try_join!(sidecar(scenario), k8s_job(scenario), killed_submitter(scenario), one_by_one)?;
    ensure!(scenario.head_of(SHARED).await? == head, "the shared head was touched");
    Ok(())
}

async fn k8s_job(scenario: &Scenario) -> Result<()> {
    scenario.make(ray_job("k8s-good", on_shared("K8sJobMode", EXACT, exact()))).await?;
    let good = scenario.ends("k8s-good", "Complete//SUCCEEDED").await?;
    has_exactly_that(scenario, &good).await?;
    shows(&scenario.quiet("logs job/k8s-good").await?, &PRINTED)?;
    scenario.make(ray_job("k8s-bad", on_shared("K8sJobMode", FAILS, json!({})))).await?;
    let bad = scenario.ends("k8s-bad", "Failed/AppFailed/FAILED").await?;
    tells_of_the_failure(&bad)?;
    shows(&scenario.quiet("logs job/k8s-bad").await?, &["about to fail"])?;
    // An application that fails is no failure of its submitter.
    for name in ["k8s-good", "k8s-bad"] {
        let ends = ends_of_submitter(scenario, name).await?;
        ensure!(ends == "1/", "Pods of submitter {name} that ended well and did not: {ends}");
    }
    Ok(())
}

async fn http(scenario: &Scenario) -> Result<()> {
    scenario.make(ray_job("http-good", on_shared("HTTPMode", EXACT, exact()))).await?;
    scenario.make(ray_job("http-bad", on_shared("HTTPMode", FAILS, json!({})))).await?;
    let good = scenario.ends("http-good", "Complete//SUCCEEDED").await?;
    has_exactly_that(scenario, &good).await?;
    shows(&scenario.driver_log(&good).await?, &PRINTED)?;
    let bad = scenario.ends("http-bad", "Failed/AppFailed/FAILED").await?;
    tells_of_the_failure(&bad)?;
    shows(&scenario.driver_log(&bad).await?, &["about to fail"])?;
    let jobs = scenario.quiet("get jobs http-good http-bad --ignore-not-found -o name").await?;
    ensure!(jobs.is_empty(), "nobody but the operator submits in HTTPMode: {jobs}");
    Ok(())
}

/// The user submits, and tells the RayJob.
async fn interactive(scenario: &Scenario) -> Result<()> {
    let follow = async |name: &str, entrypoint: &str, wanted: &str, line: &str| {
        let spec = json!({ "submissionMode": "InteractiveMode", "clusterSelector": { "ray.io/cluster": SHARED } });
        scenario.make(ray_job(name, spec)).await?;
        scenario.wait_job(name, "Waiting", SOON, |status| status.job_deployment_status == JobDeploymentStatus::Waiting).await?;
        let id = format!("{name}-by-hand");
        scenario.submit_by_hand(SHARED, &id, entrypoint).await?;
        scenario.kubectl(&format!("patch rayjob {name} --type=merge -p '{{\"spec\":{{\"jobId\":\"{id}\"}}}}'")).await?;
        let status = scenario.ends(name, wanted).await?;
        ensure!(status.job_id == id, "another job was followed: {}", status.job_id);
        shows(&scenario.driver_log(&status).await?, &[line])?;
        anyhow::Ok(status)
    };
    let (_, bad) = try_join!(
        follow("interactive-good", "echo by hand", "Complete//SUCCEEDED", "by hand"),
        follow("interactive-bad", "echo by hand; exit 7", "Failed/AppFailed/FAILED", "by hand"),
    )?;
    tells_of_the_failure(&bad)
}

/// Kubernetes starts another submitter, which follows the job and does not hand it over again; the RayJob runs all the time.
async fn killed_submitter(scenario: &Scenario) -> Result<()> {
    let name = "k8s-killed";
    scenario.make(ray_job(name, on_shared("K8sJobMode", &until_let_go(name), json!({})))).await?;
    let before = scenario.runs(name).await?;
    let first = scenario.submitters(name).await?.pop().context("no submitter")?;
    let states = first.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    let id = states.first().and_then(|state| state.container_id.as_deref()).context("the submitter has no container")?;
    scenario.shell().say(&format!("$ # kill the container of {}", first.name_any()));
    scenario.node().stop_container(id).await?;

    let another = || async { Ok(scenario.submitters(name).await?.into_iter().nth(1)) };
    let what = "another submitter";
    let second = Progress::stderr().step(what, wait::until(what, SOON, another)).await?.name_any();
    let log = scenario.wait("its output", SOON, &format!("logs {second}"), |log| log.contains("begun")).await?;
    shows(&log, &["already"])?;
    let after = scenario.job(name).await?;
    let since = |status: &RayJobStatus| anyhow::Ok(condition_of(status, "Running")?.clone());
    ensure!(since(&after)? == since(&before)?, "it did not run all the time: {:?} {:?}", since(&before)?, since(&after)?);
    ensure!(after.job_id == before.job_id && after.ray_job_info == before.ray_job_info, "another job runs: {after:?}");

    scenario.let_go(SHARED, name).await?;
    let status = scenario.ends(name, "Complete//SUCCEEDED").await?;
    ensure!(status.job_id == before.job_id, "another job ended: {}", status.job_id);
    is_there_once(scenario, &status).await?;
    shows(&scenario.quiet(&format!("logs {second}")).await?, &["begun", "finished"])?;
    let ends = ends_of_submitter(scenario, name).await?;
    ensure!(ends == "1/1", "Pods of the submitter that ended well and did not: {ends}");
    Ok(())
}

/// The job is stopped, its submitter ends with it, and the cluster stays (C-60).
async fn deadline(scenario: &Scenario) -> Result<()> {
    let name = "deadline";
    scenario.make(ray_job(name, on_shared("K8sJobMode", "echo begun; sleep 3600", json!({ "activeDeadlineSeconds": 600 })))).await?;
    let runs = scenario.runs(name).await?;
    // How long a busy machine takes until it runs is not known before.
    let start = seconds(runs.start_time.as_ref())?;
    let limit = condition_of(&runs, "Running")?.last_transition_time.0.as_second() - start + 6;
    scenario.kubectl(&format!("patch rayjob {name} --type=merge -p '{{\"spec\":{{\"activeDeadlineSeconds\":{limit}}}}}'")).await?;
    let is_stopped = |status: &RayJobStatus| status.job_deployment_status.is_terminal() && status.job_status == "STOPPED";
    let status = scenario.wait_job(name, "the job being stopped", SOON, is_stopped).await?;
    ensure!(status.reason == "DeadlineExceeded" && status.failed == Some(1), "{status:?}");
    let took = seconds(status.end_time.as_ref())? - start;
    ensure!((limit..limit + 15).contains(&took), "it ended after {took} s, its deadline was {limit} s");
    let found = scenario.in_ray(&status).await?;
    ensure!(found["status"] == "STOPPED", "the job in Ray: {found}");
    let ends = format!("get job {name} -o jsonpath='{{.status.succeeded}}/{{.status.failed}}'");
    scenario.wait("the submitter's end", SOON, &ends, |ends| ends == "1/").await.map(drop)
}

/// In the head Pod, each with a cluster of its own.
async fn sidecar(scenario: &Scenario) -> Result<()> {
    scenario.make(ray_job("sidecar-good", on_own("SidecarMode", EXACT, exact()))).await?;
    let log = async |status: &RayJobStatus| {
        let head = scenario.head_of(&status.ray_cluster_name).await?;
        ensure!(head.restarts == 0, "something in {} was restarted", head.name);
        scenario.quiet(&format!("logs {} -c ray-job-submitter", head.name)).await
    };
    let good = scenario.ends("sidecar-good", "Complete//SUCCEEDED").await?;
    has_exactly_that(scenario, &good).await?;
    shows(&log(&good).await?, &PRINTED)?;
    scenario.make(ray_job("sidecar-bad", on_own("SidecarMode", FAILS, json!({})))).await?;
    let bad = scenario.ends("sidecar-bad", "Failed/AppFailed/FAILED").await?;
    tells_of_the_failure(&bad)?;
    shows(&log(&bad).await?, &["about to fail"])
}

/// A RayJob a minute, each in its own.
async fn each_minute(scenario: &Scenario) -> Result<()> {
    let name = "each-minute";
    let spec = json!({ "schedule": "* * * * *", "jobTemplate": on_shared("HTTPMode", "echo a minute", json!({})) });
    scenario.make(json!({ "apiVersion": "ray.io/v1", "kind": "RayCronJob", "metadata": { "name": name }, "spec": spec })).await?;
    let complete = || async {
        let jobs = scenario.jobs_of(name).await?;
        let state = |status: &RayJobStatus| (status.job_deployment_status, status.job_status == "SUCCEEDED");
        let ended = jobs.iter().filter(|job| job.status.as_ref().map(state) == Some((JobDeploymentStatus::Complete, true)));
        Ok((ended.count() >= 2).then_some(jobs))
    };
    let what = "two RayJobs of the schedule";
    let jobs = Progress::stderr().step(what, wait::until(what, Duration::from_secs(300), complete)).await?;
    scenario.kubectl(&format!("patch raycronjob {name} --type=merge -p '{{\"spec\":{{\"suspend\":true}}}}'")).await?;
    let mut minutes = Vec::new();
    for job in &jobs {
        let minute: i64 = job.name_any().trim_start_matches("each-minute-").parse().with_context(|| job.name_any())?;
        let late = seconds(job.metadata.creation_timestamp.as_ref())? - minute * 60;
        ensure!((0..60).contains(&late), "{} was made {late} s after its minute", job.name_any());
        minutes.push(minute);
    }
    ensure!(minutes.windows(2).all(|pair| pair[1] == pair[0] + 1), "a minute was left out: {minutes:?}");
    Ok(())
}

/// A lost head costs a try and not the job; a suspended RayJob begins anew; and what both jobs came to while nobody looked is found out.
#[tokio::test]
async fn e2e_a_lost_head_a_suspension_and_an_operator_that_is_away() {
    scenario::run_with(GATES, "tries", async |scenario: &Scenario| {
        let (lost, held) = try_join!(lost_head(scenario), suspended(scenario))?;
        let jobs = [("lost", lost, 1), ("held", held, 0)];
        // Both end while nobody looks.
        let times = scenario
            .without_operator(Duration::from_secs(60), async || {
                for (name, status, _) in &jobs {
                    scenario.let_go(&status.ray_cluster_name, name).await?;
                }
                let mut times = Vec::new();
                for (name, status, _) in &jobs {
                    let what = format!("{name}: the end in Ray");
                    let ended = || async { Ok(Some(scenario.in_ray(status).await?).filter(|found| found["status"] == "SUCCEEDED")) };
                    let found = Progress::stderr().step(&what, wait::until(&what, SOON, ended)).await?;
                    let second = |field: &str| found[field].as_i64().map(|time| time / 1000).with_context(|| found.to_string());
                    times.push((second("start_time")?, second("end_time")?));
                }
                Ok(times)
            })
            .await?;
        for ((name, before, failed), (start, end)) in jobs.iter().zip(times) {
            let status = scenario.ends(name, "Complete//SUCCEEDED").await?;
            ensure!(status.job_id == before.job_id, "{name}: another job ended: {}", status.job_id);
            let told = (seconds(status.ray_job_info.start_time.as_ref())?, seconds(status.ray_job_info.end_time.as_ref())?);
            ensure!(told == (start, end), "{name}: Ray says {start} and {end}, the status {told:?}");
            // The submitter has the rest of the output to show; the operator came back much later.
            let late = seconds(status.end_time.as_ref())? - end;
            ensure!((0..30).contains(&late), "{name} is said to have ended {late} s after its job");
            ensure!((status.succeeded, status.failed) == (Some(1), Some(*failed)), "{name}: {:?} {:?}", status.succeeded, status.failed);
            is_there_once(scenario, &status).await?;
            let log = if *name == "lost" { scenario.quiet("logs job/lost").await? } else { scenario.driver_log(&status).await? };
            shows(&log, &["begun", "finished"])?;
        }
        scenario.kubectl("get rayjobs,rayclusters").await.map(drop)
    })
    .await
    .unwrap();
}

/// Up to the second try's job running.
async fn lost_head(scenario: &Scenario) -> Result<RayJobStatus> {
    let name = "lost";
    scenario.make(ray_job(name, on_own("K8sJobMode", &until_let_go(name), json!({ "backoffLimit": 1 })))).await?;
    let first = scenario.runs(name).await?;
    let submitter = "get job lost -o jsonpath='{.metadata.uid}'";
    let first_submitter = scenario.quiet(submitter).await?;
    let head = scenario.head_of(&first.ray_cluster_name).await?.name;
    scenario.kubectl(&format!("delete pod {head} --grace-period=0 --force")).await?;
    let is_next = |status: &RayJobStatus| status.failed == Some(1) && !status.job_id.is_empty() && status.job_id != first.job_id;
    scenario.wait_job(name, "another try", SOON, is_next).await?;
    let events = "get events --field-selector reason=Retrying -o jsonpath='{.items[*].message}'";
    scenario.wait("a word about it", SOON, events, |text| text.contains("AppFailed")).await?;
    let second = scenario.runs(name).await?;
    ensure!(second.ray_cluster_name != first.ray_cluster_name, "the cluster is the one that lost its head");
    ensure!(scenario.quiet(submitter).await? != first_submitter, "the submitter is that of the first try");
    let clusters = format!("get raycluster {} --ignore-not-found -o name", first.ray_cluster_name);
    ensure!(scenario.quiet(&clusters).await?.is_empty(), "the first try's cluster is still there");
    Ok(second)
}

/// Up to the job running again.
async fn suspended(scenario: &Scenario) -> Result<RayJobStatus> {
    let name = "held";
    let more = json!({ "shutdownAfterJobFinishes": true, "ttlSecondsAfterFinished": 600 });
    scenario.make(ray_job(name, on_own("HTTPMode", &until_let_go(name), more))).await?;
    let first = scenario.runs(name).await?;
    scenario.kubectl(&format!("patch rayjob {name} --type=merge -p '{{\"spec\":{{\"suspend\":true}}}}'")).await?;
    let is_suspended = |status: &RayJobStatus| status.job_deployment_status == JobDeploymentStatus::Suspended;
    let status = scenario.wait_job(name, "Suspended", SOON, is_suspended).await?;
    ensure!(condition_of(&status, "Suspended")?.status == "True", "{status:?}");
    ensure!(status.job_id.is_empty() && status.job_status.is_empty() && status.failed == Some(0), "{status:?}");
    let clusters = format!("get raycluster {} --ignore-not-found -o name", first.ray_cluster_name);
    ensure!(scenario.quiet(&clusters).await?.is_empty(), "it holds a cluster while it is suspended");
    scenario.kubectl(&format!("patch rayjob {name} --type=merge -p '{{\"spec\":{{\"suspend\":false}}}}'")).await?;
    let second = scenario.runs(name).await?;
    ensure!(second.job_id != first.job_id && second.ray_cluster_name != first.ray_cluster_name, "{second:?}");
    Ok(second)
}

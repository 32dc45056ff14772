//! Warnings about jobs, services and cron jobs (W-J-*, W-S-*, W-CJ-*).

use serde_json::Value;

use super::{has_variable, lacks_port};
use crate::{
    features::Feature,
    labels::{annotation, env, label, port},
    validation::{
        Findings, Kind, Path, Subject,
        cluster::{at_ray_container, ray_container},
        job::Mode,
        json::Json,
        service::INCREMENTAL,
    },
};

pub(crate) fn examine_job(subject: &Subject<'_>, spec: &Value, mode: Mode, path: &Path<'_>, out: &mut Findings) {
    let name = match mode {
        Mode::Http => "HTTPMode",
        Mode::Interactive => "InteractiveMode",
        Mode::K8sJob | Mode::Sidecar => "",
    };
    if !name.is_empty() {
        for field in ["submitterPodTemplate", "submitterConfig"] {
            if spec.at(field).is_set() {
                out.warn(&path.field(field), "W-J-2", format!("in {name} there is no submitter Pod, so this does nothing"));
            }
        }
    }
    if mode == Mode::Interactive && spec.at("entrypoint").filled().is_some() {
        out.warn(&path.field("entrypoint"), "W-J-3", "in InteractiveMode the user submits the job, so this command is not run");
    }
    let cluster = spec.at("rayClusterSpec");
    let cluster_path = path.field("rayClusterSpec");
    if spec.at("clusterSelector").has_entries() {
        let selector = path.field("clusterSelector");
        for (key, _) in spec.at("clusterSelector").entries().filter(|(key, _)| *key != label::CLUSTER) {
            out.warn(&selector.key(key), "W-J-9", "only ray.io/cluster is read, which names the cluster");
        }
        if cluster.is_set() {
            out.warn(&cluster_path, "W-J-4", "the job runs on the cluster chosen by clusterSelector, so no cluster is made from this");
        }
    } else if cluster.is_set() {
        if cluster.at("workerGroupSpecs").items().is_empty() {
            out.warn(&cluster_path.field("workerGroupSpecs"), "W-J-5", "there are no worker groups, so the job runs on the head alone");
        }
        warn_of_missing_dashboard(cluster, &cluster_path, out);
    }
    let submitter = spec.at("submitterPodTemplate").at("spec").at("containers").first();
    if mode == Mode::K8sJob {
        for name in [env::RAY_DASHBOARD_ADDRESS, env::RAY_JOB_SUBMISSION_ID] {
            if has_variable(submitter, name) {
                let template = path.field("submitterPodTemplate");
                let pod = template.field("spec");
                let containers = pod.field("containers");
                let container = containers.index(0);
                out.warn(&container.field("env"), "W-J-6", format!("the operator sets {name} itself, so this value is not used"));
            }
        }
    }
    if subject.kind == Kind::RayJob && cluster.at("suspend").is_true() {
        out.warn(
            &cluster_path.field("suspend"),
            "W-J-7",
            "the cluster of a job is suspended by the suspend field of the job; this one keeps the job waiting",
        );
    }
}

/// Jobs and services are reached over the dashboard (WEAK-7).
fn warn_of_missing_dashboard(cluster: &Value, path: &Path<'_>, out: &mut Findings) {
    let head = cluster.at("headGroupSpec");
    let params = head.at("rayStartParams");
    let closed = [("dashboard-host", &["127.0.0.1", "localhost", "::1"][..]), ("include-dashboard", &["false", "False"][..])];
    for (name, values) in closed {
        if params.at(name).text().is_some_and(|value| values.contains(&value)) {
            let head_path = path.field("headGroupSpec");
            out.warn(
                &head_path.field("rayStartParams").key(name),
                "W-J-10",
                "the operator and the submitter reach Ray over its dashboard, which this closes to them",
            );
        }
    }
    if lacks_port(ray_container(head), |name| name == port::DASHBOARD_NAME) {
        at_ray_container(&path.field("headGroupSpec"), |container| {
            out.warn(
                &container.field("ports"),
                "W-J-8",
                "ports are listed, but none is named \"dashboard\", over which the operator reaches Ray: add {name: dashboard, containerPort: 8265}",
            );
        });
    }
}

pub(crate) fn examine_service(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let spec = subject.spec;
    for field in ["serviceUnhealthySecondThreshold", "deploymentUnhealthySecondThreshold"] {
        if spec.at(field).is_set() {
            out.warn(&path.field(field), "W-S-4", "this field is no longer used: remove it");
        }
    }
    examine_upgrade(subject, path, out);
    let (config, config_path) = (spec.at("rayClusterConfig"), path.field("rayClusterConfig"));
    warn_of_missing_dashboard(config, &config_path, out);
    let head_container = ray_container(config.at("headGroupSpec"));
    if !spec.at("serveService").is_set() && lacks_port(head_container, |name| name == port::SERVE_NAME || name.starts_with("serve-")) {
        at_ray_container(&config_path.field("headGroupSpec"), |container| {
            out.warn(
                &container.field("ports"),
                "W-S-7",
                "ports are listed, but none is named \"serve\", so nothing is served: add {name: serve, containerPort: 8000}",
            );
        });
    }
    if spec.at("excludeHeadPodFromServeSvc").is_true() && config.at("workerGroupSpecs").items().is_empty() {
        out.warn(&path.field("excludeHeadPodFromServeSvc"), "W-S-9", "there are no workers, so without the head nothing answers requests");
    }
    if subject.annotation(annotation::ENABLE_SERVE_SERVICE) == "true" {
        let metadata = Path::root("metadata");
        let annotations = metadata.field("annotations");
        out.warn(
            &annotations.key(annotation::ENABLE_SERVE_SERVICE),
            "W-S-10",
            "a RayService has a Service for its applications already; this annotation is for RayClusters",
        );
    }
}

fn examine_upgrade(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let strategy = subject.spec.at("upgradeStrategy");
    let strategy_path = path.field("upgradeStrategy");
    if strategy.at("type").text() != Some(INCREMENTAL) {
        if strategy.at("clusterUpgradeOptions").is_set() {
            out.warn(&strategy_path.field("clusterUpgradeOptions"), "W-S-5", format!("only the type {INCREMENTAL} reads these options"));
        }
    } else if !subject.features.enabled(Feature::RayServiceIncrementalUpgrade) {
        out.warn(
            &strategy_path.field("type"),
            "W-S-6",
            "the feature gate RayServiceIncrementalUpgrade is off, so this behaves like None: changes of the cluster are not rolled out",
        );
    } else if subject.spec.at("serveService").is_set() {
        out.warn(
            &path.field("serveService"),
            "W-S-8",
            format!("with {INCREMENTAL} requests come through a Gateway, and this Service is not made"),
        );
    }
}

pub(crate) fn examine_cronjob(subject: &Subject<'_>, path: &Path<'_>, out: &mut Findings) {
    let spec = subject.spec;
    if !subject.features.enabled(Feature::RayCronJob) {
        out.warn(&Path::root("kind"), "W-CJ-1", "the feature gate RayCronJob is off, so nobody runs this schedule");
    }
    if spec.at("timeZone").is_set() && spec.at("schedule").text().is_some_and(|text| text.starts_with("@every")) {
        out.warn(&path.field("timeZone"), "W-CJ-2", "@every counts from the last run, whatever the time zone");
    }
    let template = spec.at("jobTemplate");
    let template_path = path.field("jobTemplate");
    if template.at("jobId").filled().is_some() && template.at("clusterSelector").has_entries() {
        out.warn(
            &template_path.field("jobId"),
            "W-CJ-5",
            "every run has this id on the same cluster, where Ray knows it after the first run and starts nothing: leave it out",
        );
    }
    let head = template.at("rayClusterSpec").at("headGroupSpec");
    if head.at("headService").at("metadata").at("name").filled().is_some() {
        let cluster = template_path.field("rayClusterSpec");
        let head = cluster.field("headGroupSpec");
        let service = head.field("headService");
        let metadata = service.field("metadata");
        out.warn(
            &metadata.field("name"),
            "W-CJ-6",
            "the clusters of all runs want a Service of this name, so a run fails while the cluster of another is there",
        );
    }
    if template.at("suspend").is_true() {
        out.warn(
            &template_path.field("suspend"),
            "W-CJ-4",
            "every job is made suspended and waits for somebody to start it; spec.suspend pauses the schedule",
        );
    }
    if template.at("rayClusterSpec").is_set()
        && !template.at("clusterSelector").has_entries()
        && !template.at("shutdownAfterJobFinishes").is_true()
        && !template.at("deletionStrategy").is_set()
    {
        out.warn(
            &template_path.field("shutdownAfterJobFinishes"),
            "W-CJ-3",
            "every run leaves its cluster behind: set this to true, or use deletionStrategy",
        );
    }
}

//! The configuration file (RC-241, RC-242), and what flags, file and environment make together.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvVar};
use serde::{Deserialize as _, de::DeserializeOwned};
use serde_json::{Map, Value};
use shared::features::{Feature, FeatureError, FeatureGates};

use crate::{
    build::scheduling::Scheduler,
    cli::{DEFAULT_CONCURRENCY, Flags},
    settings::{Platform, PodDefaults, Settings, Switches},
};

/// What was decided by flags, configuration file and environment.
#[derive(Clone, Debug)]
pub struct Options {
    /// Kubeconfig; empty to look for one.
    pub kubeconfig: String,
    /// Namespaces to watch; empty for all.
    pub namespaces: Vec<String>,
    /// Address of metrics; `0` or empty for none.
    pub metrics_address: String,
    /// Address of health and readiness; `0` or empty for none.
    pub probe_address: String,
    /// Whether the metrics about Ray objects are served (RC-260).
    pub ray_metrics: bool,
    /// Whether a lease is needed to reconcile.
    pub leader_election: bool,
    /// Namespace of the lease; empty for the operator's own.
    pub leader_election_namespace: String,
    /// Objects of a kind that are reconciled side by side; at least 1.
    pub concurrency: u32,
    /// Requests a second to the API server; 0 for no limit.
    pub qps: f64,
    /// Requests that may be made at once after a pause.
    pub burst: u32,
    /// Whether Ray is reached through the API server's proxy.
    pub use_kubernetes_proxy: bool,
    /// Whether the operator keeps the CustomResourceDefinitions current.
    pub manage_crds: bool,
    /// How to log.
    pub log: LogOptions,
    /// For building and planning. What is found of the cluster is added later.
    pub settings: Settings,
    /// What to tell the user once there is a log.
    pub warnings: Vec<String>,
}

/// How to log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Form on standard output.
    pub stdout: Encoder,
    /// File that gets a copy, and its form.
    pub file: Option<(String, Encoder)>,
    /// Lowest level that is logged.
    pub level: tracing::Level,
}

/// Form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoder {
    /// One JSON object a line.
    Json,
    /// For people.
    Console,
}

/// Why the operator cannot start like this.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// The file is not YAML.
    #[error("the configuration file cannot be read: {0}")]
    Syntax(String),
    /// The file is of another kind.
    #[error("the configuration file must have apiVersion config.ray.io/v1alpha1 and kind Configuration, but has {0}")]
    Kind(String),
    /// A field has the wrong form.
    #[error("the configuration file has a wrong `{field}`: {problem}")]
    Field {
        /// Name of the field.
        field: &'static str,
        /// What is wrong.
        problem: String,
    },
    /// A value is none of the known ones.
    #[error("{what} must be one of {known}, not `{value}`")]
    Choice {
        /// Flag or field.
        what: &'static str,
        /// The values that are known.
        known: &'static str,
        /// The value that was given.
        value: String,
    },
    /// `--feature-gates` cannot be read.
    #[error("--feature-gates: {0}")]
    Gates(#[from] FeatureError),
    /// Something that this version cannot do.
    #[error("{0} is not supported yet by this version; {1}")]
    Unsupported(String, &'static str),
    /// Two settings that exclude each other.
    #[error("{0}")]
    Contradiction(&'static str),
}

/// Gates that exist and cannot be switched on yet.
const UNSUPPORTED_GATES: [Feature; 4] =
    [Feature::RayClusterMTLS, Feature::RayClusterNetworkPolicy, Feature::RayClusterHistoryServer, Feature::KubernetesWAS];

/// Fields of the configuration file.
#[derive(Debug, Default, PartialEq)]
struct File {
    metrics_address: Option<String>,
    probe_address: Option<String>,
    enable_leader_election: Option<bool>,
    leader_election_namespace: Option<String>,
    watch_namespace: Option<String>,
    reconcile_concurrency: Option<u32>,
    qps: Option<f64>,
    burst: Option<u32>,
    log_file: Option<String>,
    log_file_encoder: Option<String>,
    log_stdout_encoder: Option<String>,
    batch_scheduler: Option<String>,
    enable_batch_scheduler: Option<bool>,
    use_kubernetes_proxy: Option<bool>,
    enable_metrics: Option<bool>,
    delete_ray_job: Option<bool>,
    head_sidecars: Option<Vec<Container>>,
    worker_sidecars: Option<Vec<Container>>,
    env: Option<Vec<EnvVar>>,
    annotations: Option<BTreeMap<String, String>>,
    labels: Option<BTreeMap<String, String>>,
    unknown: Vec<String>,
}

impl File {
    fn read(text: &str) -> Result<Self, ConfigError> {
        let document = shared::yaml::parse_str(text).map_err(|error| ConfigError::Syntax(error.to_string()))?;
        let Value::Object(mut fields) = document else {
            return Err(ConfigError::Syntax("it must be a mapping".to_owned()));
        };
        let (version, kind) = (take::<String>(&mut fields, "apiVersion")?, take::<String>(&mut fields, "kind")?);
        if version.as_deref() != Some("config.ray.io/v1alpha1") || kind.as_deref() != Some("Configuration") {
            return Err(ConfigError::Kind(format!("{} and {}", version.unwrap_or_default(), kind.unwrap_or_default())));
        }
        let fields = &mut fields;
        Ok(Self {
            metrics_address: take(fields, "metricsAddr")?,
            probe_address: take(fields, "probeAddr")?,
            enable_leader_election: take(fields, "enableLeaderElection")?,
            leader_election_namespace: take(fields, "leaderElectionNamespace")?,
            watch_namespace: take(fields, "watchNamespace")?,
            reconcile_concurrency: take(fields, "reconcileConcurrency")?,
            qps: take(fields, "qps")?,
            burst: take(fields, "burst")?,
            log_file: take(fields, "logFile")?,
            log_file_encoder: take(fields, "logFileEncoder")?,
            log_stdout_encoder: take(fields, "logStdoutEncoder")?,
            batch_scheduler: take(fields, "batchScheduler")?,
            enable_batch_scheduler: take(fields, "enableBatchScheduler")?,
            use_kubernetes_proxy: take(fields, "useKubernetesProxy")?,
            enable_metrics: take(fields, "enableMetrics")?,
            delete_ray_job: take(fields, "deleteRayJobAfterJobFinishes")?,
            head_sidecars: take(fields, "headSidecarContainers")?,
            worker_sidecars: take(fields, "workerSidecarContainers")?,
            env: take(fields, "defaultContainerEnvs")?,
            annotations: take(fields, "defaultPodAnnotations")?,
            labels: take(fields, "defaultPodLabels")?,
            unknown: fields.keys().filter(|key| *key != "metadata").cloned().collect(),
        })
    }
}

fn take<T: DeserializeOwned>(fields: &mut Map<String, Value>, field: &'static str) -> Result<Option<T>, ConfigError> {
    let value = fields.remove(field).unwrap_or_default();
    Option::<T>::deserialize(value).map_err(|error| ConfigError::Field { field, problem: error.to_string() })
}

impl Options {
    /// Puts together what the flags say, what the file behind `--config` says, and what the environment says.
    ///
    /// # Errors
    /// When something cannot be read or cannot be done.
    pub fn resolve(flags: &Flags, file: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Result<Self, ConfigError> {
        let features: FeatureGates = flags.feature_gates.parse()?;
        let mut switches = Switches::read(&variable);
        let file_given = file.is_some();
        let file = file.map(File::read).transpose()?.unwrap_or_default();
        let mut warnings: Vec<String> = file
            .unknown
            .iter()
            .map(|field| format!("the configuration file has a field `{field}` that is not known; it is ignored"))
            .collect();
        // With a file, flags that it has a field for are ignored, whether or not the field is there.
        let from = |flag: &str, field: Option<String>, default: &str| match file_given {
            true => field.filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned()),
            false => flag.to_owned(),
        };
        let on = |flag: bool, field: Option<bool>, default: bool| if file_given { field.unwrap_or(default) } else { flag };
        if file_given {
            switches.delete_ray_job_after_finish = file.delete_ray_job.unwrap_or_default();
        }
        check_gates(features)?;
        let enables_volcano = on(flags.switches.enable_batch_scheduler, file.enable_batch_scheduler, false);
        let scheduler = scheduler(&from(&flags.batch_scheduler, file.batch_scheduler, ""), enables_volcano)?;
        if flags.switches.forced_cluster_upgrade {
            warnings.push("--forced-cluster-upgrade is deprecated and does nothing".to_owned());
        }
        if enables_volcano {
            warnings.push("--enable-batch-scheduler is deprecated: say --batch-scheduler=volcano".to_owned());
        }
        let concurrency = if file_given { file.reconcile_concurrency.unwrap_or(DEFAULT_CONCURRENCY) } else { flags.reconcile_concurrency };
        let (qps, burst) = if file_given { (file.qps.unwrap_or(0.0), file.burst.unwrap_or(0)) } else { (flags.qps, flags.burst) };
        Ok(Self {
            kubeconfig: flags.kubeconfig.clone(),
            namespaces: namespaces(&from(&flags.watch_namespace, file.watch_namespace, "")),
            metrics_address: from(&flags.metrics_addr, file.metrics_address, ":8080"),
            probe_address: from(&flags.health_probe_bind_address, file.probe_address, ":8082"),
            ray_metrics: on(flags.switches.enable_metrics, file.enable_metrics, false),
            leader_election: on(flags.election.enable_leader_election, file.enable_leader_election, true),
            leader_election_namespace: from(&flags.leader_election_namespace, file.leader_election_namespace, ""),
            concurrency: concurrency.clamp(1, 1000),
            qps,
            burst,
            use_kubernetes_proxy: on(flags.switches.use_kubernetes_proxy, file.use_kubernetes_proxy, false),
            manage_crds: flags.switches.manage_crds,
            log: log_options(
                flags,
                &from(&flags.log_file_path, file.log_file, ""),
                file.log_stdout_encoder.as_deref().filter(|value| !value.is_empty()),
                file.log_file_encoder.as_deref().filter(|value| !value.is_empty()),
            )?,
            settings: Settings {
                features,
                switches,
                pods: PodDefaults {
                    head_sidecars: file.head_sidecars.unwrap_or_default(),
                    worker_sidecars: file.worker_sidecars.unwrap_or_default(),
                    env: file.env.unwrap_or_default(),
                    annotations: file.annotations.unwrap_or_default(),
                    labels: file.labels.unwrap_or_default(),
                },
                platform: Platform::default(),
                scheduler,
                rules_file: Some(flags.rules_file.as_str()).filter(|path| !path.is_empty()).map(Into::into),
            },
            warnings,
        })
    }
}

fn check_gates(features: FeatureGates) -> Result<(), ConfigError> {
    let on: Vec<&str> = UNSUPPORTED_GATES.iter().filter(|gate| features.enabled(**gate)).map(|gate| gate.name()).collect();
    if on.is_empty() {
        return Ok(());
    }
    let what = format!("feature gate {}", on.join(", "));
    let advice = match on.contains(&Feature::KubernetesWAS.name()) {
        true => "leave it off (KubernetesWAS also needs the API scheduling.k8s.io/v1alpha2 of Kubernetes 1.36)",
        false => "leave it off",
    };
    Err(ConfigError::Unsupported(what, advice))
}

/// BS-2, RC-243. The name `default` that KubeRay's chart speaks of is none.
fn scheduler(name: &str, enabled: bool) -> Result<Option<Scheduler>, ConfigError> {
    match (enabled, name) {
        (true, "") => Ok(Some(Scheduler::Volcano)),
        (true, _) => {
            Err(ConfigError::Contradiction("set --batch-scheduler alone; --enable-batch-scheduler is deprecated and means volcano"))
        }
        (false, "") => Ok(None),
        (false, name) => Scheduler::parse(name).map(Some).ok_or_else(|| ConfigError::Choice {
            what: "--batch-scheduler",
            known: "volcano, yunikorn, scheduler-plugins, kai-scheduler",
            value: name.to_owned(),
        }),
    }
}

fn namespaces(list: &str) -> Vec<String> {
    let mut names: Vec<String> = list.split(',').map(str::trim).filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

fn log_options(flags: &Flags, file: &str, stdout: Option<&str>, file_encoder: Option<&str>) -> Result<LogOptions, ConfigError> {
    let zap = Some(flags.zap.zap_encoder.as_str()).filter(|value| !value.is_empty());
    let stdout = zap.or(stdout).unwrap_or(if flags.zap.zap_devel { "console" } else { &flags.log_stdout_encoder });
    let file_encoder = encoder("--log-file-encoder", file_encoder.unwrap_or(&flags.log_file_encoder))?;
    Ok(LogOptions {
        stdout: encoder("--log-stdout-encoder", stdout)?,
        file: Some((file.to_owned(), file_encoder)).filter(|(path, _)| !path.is_empty()),
        level: level(&flags.zap.zap_log_level, flags.zap.zap_devel)?,
    })
}

fn encoder(what: &'static str, value: &str) -> Result<Encoder, ConfigError> {
    match value {
        "json" => Ok(Encoder::Json),
        "console" => Ok(Encoder::Console),
        other => Err(ConfigError::Choice { what, known: "json, console", value: other.to_owned() }),
    }
}

fn level(text: &str, devel: bool) -> Result<tracing::Level, ConfigError> {
    let number = text.parse::<i32>().ok().filter(|number| *number > 0);
    match (text, number) {
        ("", _) if devel => Ok(tracing::Level::DEBUG),
        ("" | "info", _) => Ok(tracing::Level::INFO),
        ("debug", _) | (_, Some(1)) => Ok(tracing::Level::DEBUG),
        (_, Some(_)) => Ok(tracing::Level::TRACE),
        ("warn", _) => Ok(tracing::Level::WARN),
        ("error" | "dpanic" | "panic" | "fatal", _) => Ok(tracing::Level::ERROR),
        (other, None) => Err(ConfigError::Choice {
            what: "--zap-log-level",
            known: "debug, info, warn, error, a number above 0",
            value: other.to_owned(),
        }),
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;

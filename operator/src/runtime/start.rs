//! What is found out, and refused, before anything is reconciled (RC-245, RC-247).

use std::{fmt, future::Future, time::Duration};

use kube::Client;
use shared::{
    features::{Feature, FeatureGates},
    labels::GROUP,
};
use tokio::time::Instant;

use crate::{build::scheduling::Scheduler, settings::Platform};

/// How long an API server that does not answer is waited for at start.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(500);
/// How long one answer may take.
const CALL: Duration = Duration::from_secs(10);

/// API groups that only OpenShift serves.
const OPENSHIFT: [&str; 3] = ["route.openshift.io", "security.openshift.io", "config.openshift.io"];

/// Version of the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion {
    /// Major version.
    pub major: u32,
    /// Minor version.
    pub minor: u32,
}

impl KubernetesVersion {
    /// Reads the two parts as the API server gives them; distributions append things such as `+`.
    pub fn parse(major: &str, minor: &str) -> Option<Self> {
        let number = |text: &str| {
            let digits = text.find(|c: char| !c.is_ascii_digit()).map_or(text, |end| text.get(..end).unwrap_or_default());
            digits.parse().ok()
        };
        Some(Self { major: number(major)?, minor: number(minor)? })
    }

    /// Whether lists come as streams without anybody having to ask for it.
    pub fn streams_lists(self) -> bool {
        self >= Self { major: 1, minor: 34 }
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// What was found out of the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Version of the API server.
    pub version: KubernetesVersion,
    /// What else it serves.
    pub platform: Platform,
}

/// Asks the API server for its version and its groups. Waits half a minute for one that does not answer.
///
/// # Errors
/// A sentence for the user.
pub async fn facts(client: &Client) -> Result<Facts, String> {
    let version = ask("its version", || client.apiserver_version()).await?;
    let parsed = KubernetesVersion::parse(&version.major, &version.minor);
    let parsed = parsed
        .ok_or_else(|| format!("the API server says that its version is {}.{}, which is no version", version.major, version.minor))?;
    let groups = ask("its API groups", || client.list_api_groups()).await?.groups;
    let served = |name: &str| groups.iter().find(|group| group.name == name);
    let platform = Platform {
        openshift: OPENSHIFT.iter().any(|name| served(name).is_some()),
        cert_manager: served("cert-manager.io").is_some_and(|group| group.versions.iter().any(|version| version.version == "v1")),
    };
    Ok(Facts { version: parsed, platform })
}

/// What the gates need of the API server (RC-500).
///
/// # Errors
/// A sentence for the user.
pub fn check_gates(features: FeatureGates, version: KubernetesVersion) -> Result<(), String> {
    let needed = KubernetesVersion { major: 1, minor: 35 };
    if features.enabled(Feature::SidecarSubmitterRestart) && version < needed {
        return Err(format!(
            "feature gate SidecarSubmitterRestart needs Kubernetes {needed} or newer, because only then a single container of a Pod can be \
             restarted; this API server is {version}: switch the gate off or upgrade the cluster"
        ));
    }
    Ok(())
}

/// What the gang scheduler needs of the API server: a process that cannot make groups would make Pods that never start (BS-2).
///
/// # Errors
/// A sentence for the user.
pub async fn check_scheduler(client: &Client, scheduler: Scheduler) -> Result<(), String> {
    let Some((group, version)) = scheduler.pod_groups() else { return Ok(()) };
    if served(client, &format!("{group}/{version}")).await?.iter().any(|kind| kind == "podgroups") {
        return Ok(());
    }
    Err(format!(
        "gang scheduler {name} needs the kind PodGroup of {group}/{version}, which this API server does not serve: install {name} with its \
         CustomResourceDefinitions first, or start without --batch-scheduler",
        name = scheduler.name()
    ))
}

/// Plural names of the kinds that this operator reconciles.
pub fn wanted_kinds(features: FeatureGates) -> Vec<&'static str> {
    let cron = features.enabled(Feature::RayCronJob).then_some("raycronjobs");
    ["rayclusters", "rayjobs"].into_iter().chain(cron).collect()
}

/// The wanted kinds that the API server does not serve.
///
/// # Errors
/// A sentence for the user, if the API server does not answer.
pub async fn missing_kinds(client: &Client, wanted: &[&'static str]) -> Result<Vec<&'static str>, String> {
    let served = served(client, &format!("{GROUP}/v1")).await?;
    Ok(wanted.iter().copied().filter(|kind| !served.iter().any(|served| served == kind)).collect())
}

/// Plural names of the kinds that are served of a group's version.
async fn served(client: &Client, version: &str) -> Result<Vec<String>, String> {
    ask(&format!("the kinds of {version}"), || async {
        match client.list_api_group_resources(version).await {
            Ok(list) => Ok(list.resources.into_iter().map(|resource| resource.name).collect()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    })
    .await
}

async fn ask<T, F: Future<Output = Result<T, kube::Error>>>(what: &str, question: impl Fn() -> F) -> Result<T, String> {
    let began = Instant::now();
    let mut told = false;
    loop {
        let error = match tokio::time::timeout(CALL, question()).await {
            Ok(Ok(answer)) => return Ok(answer),
            // A clear no does not become a yes by waiting.
            Ok(Err(kube::Error::Api(status))) if status.code < 500 && status.code != 429 => {
                return Err(format!("the API server does not tell {what}: {}", status.message));
            }
            Ok(Err(error)) => super::controller::with_causes(&error),
            Err(_) => format!("no answer within {} s", CALL.as_secs()),
        };
        if began.elapsed() > PATIENCE {
            return Err(format!("cannot ask the API server for {what}: {error}"));
        }
        if !std::mem::replace(&mut told, true) {
            tracing::warn!("waiting for the API server: {error}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(minor: u32) -> KubernetesVersion {
        KubernetesVersion { major: 1, minor }
    }

    #[test]
    fn versions_of_distributions_are_read() {
        let table = [
            ("1", "35", Some(version(35))),
            ("1", "34+", Some(version(34))),
            ("1+", "9-gke", Some(version(9))),
            ("", "", None),
            ("1", "x", None),
        ];
        for (major, minor, wanted) in table {
            assert_eq!(KubernetesVersion::parse(major, minor), wanted, "{major}.{minor}");
        }
        assert!(version(34).streams_lists() && !version(33).streams_lists());
    }

    #[test]
    fn the_restart_gate_needs_a_new_api_server() {
        let on = FeatureGates::default().with(Feature::SidecarSubmitterRestart, true);
        assert_eq!(check_gates(on, version(35)), Ok(()));
        assert_eq!(check_gates(FeatureGates::default(), version(30)), Ok(()));
        let refused = check_gates(on, version(34)).unwrap_err();
        assert!(refused.contains("SidecarSubmitterRestart") && refused.contains("1.35") && refused.contains("1.34"), "{refused}");
    }

    #[test]
    fn cron_jobs_are_wanted_only_with_their_gate() {
        assert_eq!(wanted_kinds(FeatureGates::default()), ["rayclusters", "rayjobs"]);
        assert_eq!(wanted_kinds(FeatureGates::default().with(Feature::RayCronJob, true)), ["rayclusters", "rayjobs", "raycronjobs"]);
    }
}

//! The list of all rules, and the switch that turns some of them into warnings.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::{selector::NamespaceSelector, yaml};

/// Where a rule comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// KubeRay 1.7 has it, somewhere: at admission, in the schema or in its operator. It always refuses.
    KubeRay,
    /// KubeRay 1.7 does not have it. It refuses, unless the configuration lets it only warn.
    Added,
    /// Never refuses.
    Advice,
}

/// A rule.
#[derive(Clone, Copy, Debug)]
pub struct RuleInfo {
    /// Its id, as it stands in answers, in the configuration and in the documentation.
    pub id: &'static str,
    /// Where it comes from.
    pub origin: Origin,
    /// What it is about, in a line.
    pub summary: &'static str,
}

macro_rules! rules {
    ($($origin:ident { $($id:literal: $summary:literal,)+ })+) => {
        /// Every rule, in the order of their ids within their origin.
        pub const RULES: &[RuleInfo] = &[$($(RuleInfo { id: $id, origin: Origin::$origin, summary: $summary },)+)+];
    };
}

rules! {
    KubeRay {
        "V-C-1": "name of a RayCluster: at most 53 characters",
        "V-C-2": "name of a RayCluster: a DNS label",
        "V-C-3": "upgradeStrategy.type: Recreate or None",
        "V-C-4": "no upgradeStrategy in a cluster made by a RayJob or RayService",
        "V-C-5": "conditions Suspending and Suspended exclude each other",
        "V-C-10": "the head has a container",
        "V-C-11": "head: resources in one place",
        "V-C-12": "head: no start parameter labels",
        "V-C-13": "head: labels are Kubernetes labels",
        "V-C-14": "every worker group has a container",
        "V-C-15": "without autoscaling: minReplicas and maxReplicas are given",
        "V-C-16": "minReplicas is not negative",
        "V-C-17": "maxReplicas is not negative",
        "V-C-18": "minReplicas is not above maxReplicas",
        "V-C-19": "worker group: resources in one place",
        "V-C-20": "worker group: no start parameter labels",
        "V-C-21": "worker group: labels are Kubernetes labels",
        "V-C-22": "idle time of a group: not negative, and only with autoscaler v2",
        "V-C-23": "priority of a group: only with Ray 2.56 and autoscaler v2",
        "V-C-24": "fault tolerance by annotation or by options, not both",
        "V-C-25": "RAY_REDIS_ADDRESS only with fault tolerance",
        "V-C-26": "redis-password is given in the options",
        "V-C-27": "REDIS_PASSWORD is given in the options",
        "V-C-28": "RAY_REDIS_ADDRESS is given in the options",
        "V-C-29": "the external storage namespace is given in the options",
        "V-C-30": "rocksdb is behind a feature gate",
        "V-C-31": "rocksdb has no Redis settings",
        "V-C-32": "an existing claim has its own size, class and modes",
        "V-C-33": "storage variables of rocksdb belong to the operator",
        "V-C-34": "the storage mount of rocksdb belongs to the operator",
        "V-C-35": "the storage volume of rocksdb belongs to the operator",
        "V-C-36": "storage only with rocksdb",
        "V-C-37": "the Redis user is given in the options",
        "V-C-38": "suspend of a group is behind a feature gate",
        "V-C-39": "autoscaler v2 is only switched on with autoscaling",
        "V-C-40": "no suspended groups with autoscaling",
        "V-C-41": "autoscaler version by option or by environment, not both",
        "V-C-42": "autoscaler v2: the head is not restarted in place",
        "V-C-43": "autoscaler v2: workers are not restarted in place",
        "V-C-44": "idle time of the autoscaler is not negative",
        "V-C-45": "the autoscaler's start command variable belongs to the operator",
        "V-C-46": "the history server is behind a feature gate",
        "V-C-47": "the history server has a collector",
        "V-C-48": "the collector has an image",
        "V-C-49": "variables of the collector that belong to the operator",
        "V-C-50": "the collector has a storage backend",
        "V-C-51": "collector with GCS: bucket",
        "V-C-52": "collector with S3: region",
        "V-C-53": "collector with AzureBlob: account or connection",
        "V-C-54": "collector with AliyunOSS: bucket, endpoint, region",
        "V-C-55": "head: no container of the collector's name",
        "V-C-56": "worker group: no container of the collector's name",
        "V-C-57": "token authentication: Ray 2.52",
        "V-C-58": "Kubernetes tokens: Ray 2.55, no Secret",
        "V-C-59": "Kubernetes tokens: mode token",
        "V-C-60": "network policies are behind a feature gate",
        "V-C-61": "no ingress rules where ingress is open",
        "V-C-62": "no egress rules where egress is open",
        "V-C-63": "with a network policy: group names are DNS labels",
        "V-C-64": "network rules name existing groups",
        "V-C-65": "TLS is behind a feature gate",
        "V-C-66": "TLS variables belong to the operator",
        "V-C-67": "the TLS mount belongs to the operator",
        "V-C-70": "group names are unique",
        "V-S-1": "name of a RayService: at most 47 characters",
        "V-S-2": "name of a RayService: a DNS label",
        "V-S-3": "initializing timeout: a duration above zero",
        "V-S-4": "no Kubernetes tokens in a RayService",
        "V-S-5": "a RayService has a cluster",
        "V-S-6": "no name for the head Service of a RayService",
        "V-S-7": "upgradeStrategy.type: NewCluster, NewClusterWithIncrementalUpgrade or None",
        "V-S-8": "deletion delay is not negative",
        "V-S-9": "incremental upgrade: autoscaling",
        "V-S-10": "incremental upgrade: options",
        "V-S-11": "incremental upgrade: surge is 0 to 100 percent",
        "V-S-12": "incremental upgrade: step is 0 to 100 percent",
        "V-S-13": "incremental upgrade: the step is not above the surge",
        "V-S-14": "incremental upgrade: interval above zero",
        "V-S-15": "incremental upgrade: gateway class",
        "V-J-1": "name of a RayJob: at most 47 characters",
        "V-J-2": "name of a RayJob: a DNS label",
        "V-J-3": "suspend needs shutdownAfterJobFinishes (or deletion rules, C-15)",
        "V-J-4": "TTL is not negative",
        "V-J-5": "TTL only with shutdownAfterJobFinishes",
        "V-J-6": "deletion strategies are behind a feature gate",
        "V-J-7": "deletion rules or shutdownAfterJobFinishes, not both",
        "V-J-8": "deletion rules or onSuccess/onFailure, not both",
        "V-J-9": "a deletion strategy says something",
        "V-J-10": "onSuccess and onFailure come together",
        "V-J-11": "onSuccess and onFailure have a policy",
        "V-J-12": "a selected cluster is not deleted (older way)",
        "V-J-13": "no DeleteWorkers with autoscaling (older way)",
        "V-J-14": "no DeleteNone with shutdownAfterJobFinishes",
        "V-J-15": "a deletion rule has one condition, not two",
        "V-J-16": "a deletion rule has a condition",
        "V-J-17": "TTL of a deletion rule is not negative",
        "V-J-18": "a selected cluster is not deleted (rules)",
        "V-J-19": "no DeleteWorkers with autoscaling (rules)",
        "V-J-20": "one deletion rule for a condition and policy",
        "V-J-21": "deletion rules go from workers to cluster to job",
        "V-J-22": "no suspend with clusterSelector",
        "V-J-23": "a job has a cluster",
        "V-J-24": "clusterSelector names a cluster",
        "V-J-25": "no SidecarMode with clusterSelector",
        "V-J-26": "no retries with clusterSelector",
        "V-J-27": "no retries in InteractiveMode",
        "V-J-28": "no submitter template in SidecarMode",
        "V-J-29": "no submitterConfig in SidecarMode",
        "V-J-30": "SidecarMode: the head is not restarted in place",
        "V-J-31": "no Kubernetes tokens in a RayJob",
        "V-J-33": "the runtime environment is a YAML mapping",
        "V-J-34": "active deadline above zero",
        "V-J-35": "pre-running deadline above zero",
        "V-J-36": "retries are not negative",
        "V-J-37": "a job only waits for a user in InteractiveMode",
        "V-CJ-1": "name of a RayCronJob: at most 36 characters",
        "V-CJ-2": "no time zone in the schedule",
        "V-CJ-3": "the schedule can be read",
        "V-CJ-4": "the time zone is not empty",
        "V-CJ-5": "the time zone exists",
        "V-CJ-6": "a RayCronJob has a template",
        "V-X-1": "manager and backend do not change",
    }
    Added {
        "C-02": "no worker group takes a reserved name",
        "C-03": "at least one host a replica",
        "C-06": "name of a RayCronJob: a DNS label",
        "C-07": "serveConfigV2: a YAML mapping, applications with names and routes of their own",
        "C-08": "a submitter template has a container",
        "C-09": "the submitter is restarted never or on failure",
        "C-10": "SidecarMode: no container of the submitter's name",
        "C-11": "submissionMode is one of four",
        "C-13": "no upgradeStrategy in the cluster of another kind",
        "C-14": "quantities and custom resources can be read",
        "C-16": "incremental upgrade: surge and step above zero",
        "C-17": "the schedule comes true, at most once a minute; no local time zone",
        "C-49": "a job id is a plain name",
        "N-C-1": "a worker group has a name that fits labels and Pods",
        "N-C-2": "name of a multi-host group: room for the replica",
        "N-C-3": "container names are unique, also with those the operator adds",
        "N-C-4": "volumes and paths that the operator adds are free",
        "N-C-5": "the head Service has a name of its own",
        "N-C-6": "no request above its limit",
        "N-C-7": "numbers among the start parameters are numbers",
        "N-C-8": "RAY_AUTH_MODE does not contradict the options",
        "N-C-9": "serviceType of the head is one of three",
        "N-C-10": "restartPolicy is one of three",
        "N-C-11": "start parameters have names of options",
        "N-C-12": "containers, volumes and Services have names that Kubernetes takes",
        "N-C-13": "labels and node selectors of templates are Kubernetes labels",
        "N-C-14": "resources are ones that Kubernetes knows, devices whole and not overcommitted",
        "N-C-15": "image, ports, variables and mounts of containers are ones that Kubernetes takes",
        "N-J-1": "a job has an entrypoint where its mode needs one",
        "N-J-2": "entrypointResources: a JSON object of numbers",
        "N-J-3": "entrypoint CPUs and GPUs are not negative",
        "N-J-4": "metadata needs Ray 2.6",
        "N-J-5": "retries of the submitter are not negative",
        "N-J-6": "the mode of a job in progress does not change",
        "N-J-7": "the cluster of a job in progress does not change",
        "N-S-1": "the serve Service has a name of its own",
    }
    Advice {
        "C-04": "replicas outside minReplicas and maxReplicas",
        "C-05": "a removed worker group takes its Pods along",
        "C-15": "suspend with deletion rules",
        "V-C-69": "autoscaler v1: workers restarted in place",
        "W-X-1": "v1alpha1",
        "W-C-1": "rayVersion differs from the image",
        "W-C-2": "rayVersion unknown",
        "W-C-3": "rayVersion is not a version",
        "W-C-4": "head and workers of different versions",
        "W-C-5": "no memory limit",
        "W-C-6": "no CPU limit or request",
        "W-C-7": "autoscaler options without autoscaling",
        "W-C-8": "a mount without volume",
        "W-C-9": "a variable that the operator overwrites",
        "W-C-10": "a container without image",
        "W-C-11": "groups whose Pods have equal names",
        "W-C-12": "fault tolerance by annotation",
        "W-C-13": "a topology that Volcano cannot read",
        "W-C-14": "fault tolerance without an address of Redis",
        "W-C-15": "a misspelled option of ray start",
        "W-J-1": "a key given twice in the runtime environment",
        "W-J-2": "submitter settings without submitter",
        "W-J-3": "an entrypoint that is not run",
        "W-J-4": "a cluster that is not made",
        "W-J-5": "a job without workers",
        "W-J-6": "a variable of the submitter that the operator overwrites",
        "W-J-7": "suspend inside the cluster of a job",
        "W-J-8": "no port for the dashboard",
        "W-J-9": "a selector key that is not read",
        "W-J-10": "a dashboard that cannot be reached",
        "W-S-1": "cluster settings inside serveConfigV2",
        "W-S-2": "a key given twice in serveConfigV2",
        "W-S-3": "a Serve setting of older Ray",
        "W-S-4": "unused thresholds",
        "W-S-5": "upgrade options without incremental upgrade",
        "W-S-6": "incremental upgrade switched off",
        "W-S-7": "no port for Serve",
        "W-S-8": "a serve Service that is not made",
        "W-S-9": "no Pod left to answer requests",
        "W-S-10": "a second serve Service",
        "W-S-11": "an application that Ray does not take",
        "W-CJ-1": "RayCronJobs switched off",
        "W-CJ-2": "a time zone without effect",
        "W-CJ-3": "clusters left behind",
        "W-CJ-4": "jobs made suspended",
        "W-CJ-5": "one job id for all runs on one cluster",
        "W-CJ-6": "one head Service for the clusters of all runs",
        "W-U-1": "cluster of a job in progress changed",
        "W-U-2": "submission of a running job changed",
        "W-U-3": "suspend of a finished job",
        "W-U-4": "a template that running Pods do not take over",
        "W-U-5": "a change that is not rolled out",
    }
}

/// The rule of this id.
pub fn rule(id: &str) -> Option<&'static RuleInfo> {
    RULES.iter().find(|rule| rule.id == id)
}

/// Whether a rule may be turned into a warning. V-J-29 may: there the operator knows what to do with the field (C-10).
fn can_be_softened(rule: &RuleInfo) -> bool {
    rule.origin == Origin::Added || rule.id == "V-J-29"
}

/// A set of rules that only warn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Softened([u64; WORDS]);

const WORDS: usize = RULES.len().div_ceil(64);

impl Softened {
    /// No rule: everything refuses that can.
    pub const fn none() -> Self {
        Self([0; WORDS])
    }

    /// Whether no rule is in the set.
    pub fn is_empty(self) -> bool {
        self == Self::none()
    }

    /// Whether a rule is in the set.
    pub fn contains(self, id: &str) -> bool {
        RULES
            .iter()
            .position(|rule| rule.id == id)
            .is_some_and(|index| self.0.get(index / 64).is_some_and(|word| word & (1 << (index % 64)) != 0))
    }

    fn insert(&mut self, index: usize) {
        if let Some(word) = self.0.get_mut(index / 64) {
            *word |= 1 << (index % 64);
        }
    }

    fn union(self, other: Self) -> Self {
        let mut both = self;
        both.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
        both
    }
}

/// Which rules only warn, and in which namespaces. Only rules that KubeRay 1.7 does not have can be listed, so that an upgrade
/// blocks nobody whose objects worked before.
///
/// ```yaml
/// warnOnly:
/// - rules: [N-C-7, C-14]        # "*" stands for every rule that can be listed
///   namespaces: {names: [legacy-*], matchLabels: {team: vision}}
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleConfig {
    entries: Vec<(NamespaceSelector, Softened)>,
}

/// Why the section about rules cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleConfigError {
    /// It is not YAML, or not of the documented form.
    #[error("the rules section cannot be read: {0}")]
    Form(String),
    /// There is no rule of this id.
    #[error("there is no rule {0}")]
    Unknown(String),
    /// KubeRay itself has this rule; an operator would refuse the object anyway.
    #[error("the rule {0} cannot be turned into a warning: KubeRay has it, too")]
    Fixed(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct File {
    #[serde(default)]
    warn_only: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    rules: Vec<String>,
    #[serde(default)]
    namespaces: NamespaceSelector,
}

impl RuleConfig {
    /// Reads the section from YAML or JSON text. Empty text means: no rule is softened.
    ///
    /// # Errors
    /// See [`RuleConfigError`].
    pub fn parse(text: &str) -> Result<Self, RuleConfigError> {
        Self::from_value(yaml::parse_str(text).map_err(|error| RuleConfigError::Form(error.to_string()))?)
    }

    /// Reads the section from a part of a larger file.
    ///
    /// # Errors
    /// See [`RuleConfigError`].
    pub fn from_value(value: Value) -> Result<Self, RuleConfigError> {
        if value.is_null() {
            return Ok(Self::default());
        }
        let file: File = serde_json::from_value(value).map_err(|error| RuleConfigError::Form(error.to_string()))?;
        let entries = file.warn_only.into_iter().map(|entry| Ok((entry.namespaces, Self::set(&entry.rules)?))).collect::<Result<_, _>>()?;
        Ok(Self { entries })
    }

    fn set(ids: &[String]) -> Result<Softened, RuleConfigError> {
        let mut set = Softened::none();
        for id in ids {
            if id == "*" {
                RULES.iter().enumerate().filter(|(_, rule)| can_be_softened(rule)).for_each(|(index, _)| set.insert(index));
                continue;
            }
            let (index, rule) =
                RULES.iter().enumerate().find(|(_, rule)| rule.id == id).ok_or_else(|| RuleConfigError::Unknown(id.clone()))?;
            if !can_be_softened(rule) {
                return Err(RuleConfigError::Fixed(id.clone()));
            }
            set.insert(index);
        }
        Ok(set)
    }

    /// The rules that only warn in a namespace.
    pub fn for_namespace(&self, name: &str, labels: &BTreeMap<String, String>) -> Softened {
        self.entries.iter().filter(|(selector, _)| selector.matches(name, labels)).fold(Softened::none(), |all, (_, set)| all.union(*set))
    }

    /// Whether any entry chooses namespaces by label, so that their labels must be known.
    pub fn reads_labels(&self) -> bool {
        self.entries.iter().any(|(selector, _)| selector.reads_labels())
    }
}

/// The list of rules as it stands in the documentation.
pub fn rules_markdown() -> String {
    let mut text = String::from(
        "# Rules\n\nMade from the code by `cargo run -p shared --example rulesdoc > docs/rules.md`.\n\n\
         The id of a rule stands in the webhook's metrics and log. What a rule says about a cluster holds in every kind that has one.\n",
    );
    let chapters = [
        (
            Origin::KubeRay,
            "KubeRay's own",
            "An operator of KubeRay 1.7 refuses the object, too, sooner or later. V-J-29 may be turned into a warning.",
        ),
        (
            Origin::Added,
            "Added here",
            "KubeRay 1.7 accepts the object and fails later, or does something else than was meant. A rules file can turn each into a warning.",
        ),
        (Origin::Advice, "Advice", "Never refuses."),
    ];
    for (origin, title, about) in chapters {
        text.push_str(&format!("\n## {title}\n{about}\n\n| id | |\n|---|---|\n"));
        for rule in RULES.iter().filter(|rule| rule.origin == origin) {
            text.push_str(&format!("| {} | {} |\n", rule.id, rule.summary));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_the_rules_of_the_code() {
        let written = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/rules.md")).unwrap();
        assert!(
            written == rules_markdown(),
            "docs/rules.md is stale: make it again with `cargo run -p shared --example rulesdoc > docs/rules.md`"
        );
    }

    #[test]
    fn ids_are_unique() {
        for (index, rule) in RULES.iter().enumerate() {
            assert_eq!(RULES.iter().position(|other| other.id == rule.id), Some(index), "{}", rule.id);
        }
    }

    #[test]
    fn rules_are_softened_by_namespace() {
        let config = RuleConfig::parse("warnOnly:\n- rules: [C-02]\n  namespaces: {names: [old-*]}\n- rules: [C-03, V-J-29]\n").unwrap();
        let none = BTreeMap::new();
        let (old, new) = (config.for_namespace("old-1", &none), config.for_namespace("new", &none));
        assert!(old.contains("C-02") && old.contains("C-03") && old.contains("V-J-29") && !old.contains("C-08"));
        assert!(!new.contains("C-02") && new.contains("C-03"));
        assert!(RuleConfig::parse("warnOnly: [{rules: ['*']}]").unwrap().for_namespace("x", &none).contains("N-S-1"));
        assert!(RuleConfig::parse("").unwrap().for_namespace("x", &none).is_empty());
        assert!(!config.reads_labels());
    }

    #[test]
    fn mistakes_in_the_section_are_named() {
        assert_eq!(RuleConfig::parse("warnOnly: [{rules: [X-1]}]"), Err(RuleConfigError::Unknown("X-1".into())));
        assert_eq!(RuleConfig::parse("warnOnly: [{rules: [V-C-1]}]"), Err(RuleConfigError::Fixed("V-C-1".into())));
        assert!(matches!(RuleConfig::parse("warnonly: []"), Err(RuleConfigError::Form(_))));
        assert!(matches!(RuleConfig::parse("warnOnly: [{rules: [C-02], namespace: {}}]"), Err(RuleConfigError::Form(_))));
        assert!(matches!(RuleConfig::parse("a: [b"), Err(RuleConfigError::Form(_))));
    }
}

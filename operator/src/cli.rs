//! Command line (RC-240, RC-249): KubeRay's flags with KubeRay's meaning, written with one dash or two.

use clap::{ArgAction, Args, Parser};

/// Runs RayClusters, RayJobs and RayCronJobs on Kubernetes.
#[derive(Parser, Clone, Debug, PartialEq)]
#[command(name = "kuberay-operator", version, args_override_self = true)]
pub struct Flags {
    /// Configuration file. With it, every flag is ignored that the file has a field for.
    #[arg(long, default_value = "", value_name = "FILE")]
    pub config: String,
    /// Kubeconfig of the cluster. Without it: $KUBECONFIG, then the Pod's service account, then ~/.kube/config.
    #[arg(long, default_value = "", value_name = "FILE")]
    pub kubeconfig: String,
    /// Gates of features, as Name=true,Name=false.
    #[arg(long, default_value = "")]
    pub feature_gates: String,
    /// Namespaces to watch, separated by commas. Empty means all.
    #[arg(long, default_value = "")]
    pub watch_namespace: String,
    /// Address that serves metrics. 0 switches it off.
    #[arg(long, default_value = ":8080")]
    pub metrics_addr: String,
    /// Address that serves health and readiness. 0 switches it off.
    #[arg(long, default_value = ":8082")]
    pub health_probe_bind_address: String,
    /// Leader election.
    #[command(flatten)]
    pub election: Election,
    /// Namespace of the lease. Empty means the operator's own.
    #[arg(long, default_value = "")]
    pub leader_election_namespace: String,
    /// Objects of a kind that are reconciled side by side.
    #[arg(long, default_value_t = DEFAULT_CONCURRENCY)]
    pub reconcile_concurrency: u32,
    /// Requests a second to the API server. 0 sets no limit and leaves it to the API server to slow the operator down.
    #[arg(long, default_value_t = 0.0)]
    pub qps: f64,
    /// Requests that may be made at once after a pause; without --qps it means nothing.
    #[arg(long, default_value_t = 0)]
    pub burst: u32,
    /// Gang scheduler.
    #[arg(long, default_value = "")]
    pub batch_scheduler: String,
    /// File that turns rules into warnings, by rule id and namespace: the one that the webhook reads.
    #[arg(long, default_value = "", value_name = "FILE")]
    pub rules_file: String,
    /// What is on or off.
    #[command(flatten)]
    pub switches: FlagSwitches,
    /// File that gets a copy of the log.
    #[arg(long, default_value = "", value_name = "FILE")]
    pub log_file_path: String,
    /// Form of the log in the file: json or console.
    #[arg(long, default_value = "json")]
    pub log_file_encoder: String,
    /// Form of the log on standard output: json or console.
    #[arg(long, default_value = "json")]
    pub log_stdout_encoder: String,
    /// Log flags of KubeRay's framework.
    #[command(flatten)]
    pub zap: Zap,
}

/// Default of `--reconcile-concurrency`. One at a time, as KubeRay has it, makes a fleet wait for the slowest answer.
pub const DEFAULT_CONCURRENCY: u32 = 12;

macro_rules! switch_args {
    ($(#[$outer:meta])* $name:ident { $($(#[$doc:meta])* $field:ident = $default:literal),+ $(,)? }) => {
        $(#[$outer])*
        #[derive(Args, Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $(
                $(#[$doc])*
                #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = $default,
                      default_missing_value = "true", value_parser = go_bool, value_name = "BOOL")]
                pub $field: bool,
            )+
        }
    };
}

switch_args! {
    /// Leader election.
    Election {
        /// Reconcile only while holding the lease, so that several operators can run.
        enable_leader_election = "true",
    }
}

switch_args! {
    /// Switches.
    FlagSwitches {
        /// Serve the metrics about Ray objects.
        enable_metrics = "false",
        /// Reach Ray through the API server's proxy, for an operator outside the cluster.
        use_kubernetes_proxy = "false",
        /// Install the CustomResourceDefinitions and keep them current. Needs the right to.
        manage_crds = "false",
        /// Deprecated: means --batch-scheduler=volcano.
        enable_batch_scheduler = "false",
        /// Deprecated: does nothing.
        forced_cluster_upgrade = "false",
    }
}

/// Log flags of KubeRay's framework.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct Zap {
    /// Lowest level that is logged: debug, info, error, or a number above 0 for more detail.
    #[arg(long, default_value = "")]
    pub zap_log_level: String,
    /// Log as a developer likes it: on the console, at level debug.
    #[arg(long, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_value = "false",
          default_missing_value = "true", value_parser = go_bool, value_name = "BOOL")]
    pub zap_devel: bool,
    /// Form of the log on standard output; goes before --log-stdout-encoder.
    #[arg(long, default_value = "")]
    pub zap_encoder: String,
    /// Accepted and without effect: there are no stack traces.
    #[arg(long, default_value = "")]
    pub zap_stacktrace_level: String,
    /// Accepted and without effect: times are ISO 8601.
    #[arg(long, default_value = "")]
    pub zap_time_encoding: String,
}

/// What Go takes for a boolean.
fn go_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err("expected true or false".to_owned()),
    }
}

impl Flags {
    /// Reads a command line; the first element is the program's name. Flags may have one dash, as Go programs have it.
    ///
    /// # Errors
    /// What to print, and whether it is an error or the help that was asked for.
    pub fn read(arguments: impl IntoIterator<Item = String>) -> Result<Self, clap::Error> {
        Self::try_parse_from(arguments.into_iter().map(two_dashes))
    }
}

fn two_dashes(argument: String) -> String {
    let long = argument.strip_prefix('-').filter(|rest| rest.len() > 1 && !rest.starts_with('-'));
    // A negative number is a value.
    match long {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_alphabetic()) => format!("--{rest}"),
        _ => argument,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(arguments: &[&str]) -> Flags {
        Flags::read(["manager"].iter().chain(arguments).map(ToString::to_string)).unwrap()
    }

    #[test]
    fn defaults_are_kuberays_but_for_concurrency_and_rate() {
        let flags = read(&[]);
        assert_eq!((flags.metrics_addr.as_str(), flags.health_probe_bind_address.as_str()), (":8080", ":8082"));
        assert!(flags.election.enable_leader_election);
        assert!(!flags.switches.enable_metrics && !flags.switches.use_kubernetes_proxy && !flags.switches.manage_crds);
        assert_eq!((flags.log_stdout_encoder.as_str(), flags.log_file_encoder.as_str()), ("json", "json"));
        assert_eq!((flags.reconcile_concurrency, flags.qps, flags.burst), (DEFAULT_CONCURRENCY, 0.0, 0));
    }

    #[test]
    fn the_chart_of_kuberay_is_understood() {
        let flags = read(&[
            "--watch-namespace",
            "ns1,ns2",
            "--log-file-path",
            "dir/file",
            "--log-file-encoder",
            "console",
            "--log-stdout-encoder",
            "json",
            "--use-kubernetes-proxy=true",
            "--enable-leader-election=true",
            "--enable-metrics=true",
            "--reconcile-concurrency=1",
            "--qps=100",
            "--burst=200",
            "--feature-gates=RayCronJob=true,RayMultiHostIndexing=false",
            "--enable-batch-scheduler",
        ]);
        assert_eq!(flags.watch_namespace, "ns1,ns2");
        assert!(flags.switches.use_kubernetes_proxy && flags.switches.enable_metrics && flags.switches.enable_batch_scheduler);
        assert_eq!((flags.reconcile_concurrency, flags.qps, flags.burst), (1, 100.0, 200));
        assert_eq!(flags.feature_gates, "RayCronJob=true,RayMultiHostIndexing=false");
    }

    #[test]
    fn one_dash_is_as_good_as_two() {
        let flags = read(&["-metrics-addr", ":1", "-enable-leader-election=F", "-qps=2.5", "-zap-log-level=-1"]);
        assert_eq!((flags.metrics_addr.as_str(), flags.qps), (":1", 2.5));
        assert!(!flags.election.enable_leader_election);
        assert_eq!(flags.zap.zap_log_level, "-1");
    }

    #[test]
    fn a_switch_without_value_is_on_and_leaves_the_next_word_alone() {
        let flags = read(&["--use-kubernetes-proxy", "--metrics-addr", ":2"]);
        assert!(flags.switches.use_kubernetes_proxy);
        assert_eq!(flags.metrics_addr, ":2");
    }

    #[test]
    fn of_a_repeated_flag_the_last_counts() {
        assert_eq!(read(&["--metrics-addr=:1", "-metrics-addr", ":2"]).metrics_addr, ":2");
    }

    #[test]
    fn mistakes_are_named() {
        for (arguments, named) in [
            (vec!["--no-such-flag"], "no-such-flag"),
            (vec!["--reconcile-concurrency=many"], "reconcile-concurrency"),
            (vec!["--enable-metrics=maybe"], "enable-metrics"),
        ] {
            let error = Flags::read(["manager"].iter().chain(&arguments).map(ToString::to_string)).unwrap_err();
            assert!(error.to_string().contains(named), "{error}");
        }
    }
}

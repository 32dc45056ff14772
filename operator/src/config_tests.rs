use super::*;

fn flags(arguments: &[&str]) -> Flags {
    Flags::read(["manager"].iter().chain(arguments).map(ToString::to_string)).unwrap()
}

fn resolve(arguments: &[&str], file: Option<&str>) -> Result<Options, ConfigError> {
    Options::resolve(&flags(arguments), file, |_| None)
}

const HEADER: &str = "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\n";

#[test]
fn without_a_file_flags_count() {
    let options = resolve(
        &["--watch-namespace= b, a,,b", "--reconcile-concurrency=0", "--qps=50", "--burst=7", "--enable-leader-election=false"],
        None,
    )
    .unwrap();
    assert_eq!(options.namespaces, ["a", "b"]);
    assert_eq!((options.concurrency, options.qps, options.burst, options.leader_election), (1, 50.0, 7, false));
    assert_eq!((options.metrics_address.as_str(), options.probe_address.as_str()), (":8080", ":8082"));
    assert!(options.warnings.is_empty());
}

#[test]
fn with_a_file_its_fields_and_their_defaults_count() {
    let file = format!(
        "{HEADER}metricsAddr: ':1'\nwatchNamespace: x,y\nqps: 20\nenableLeaderElection: false\nreconcileConcurrency: 3\nenableMetrics: true\n"
    );
    let arguments = ["--metrics-addr=:9", "--health-probe-bind-address=:9", "--watch-namespace=z", "--use-kubernetes-proxy", "--burst=9"];
    let options = resolve(&arguments, Some(&file)).unwrap();
    assert_eq!((options.metrics_address.as_str(), options.probe_address.as_str()), (":1", ":8082"));
    assert_eq!(options.namespaces, ["x", "y"]);
    assert_eq!((options.qps, options.burst, options.concurrency), (20.0, 0, 3));
    assert!(options.ray_metrics && !options.leader_election && !options.use_kubernetes_proxy);
}

#[test]
fn gates_and_kubeconfig_come_from_flags_even_with_a_file() {
    let options = resolve(&["--feature-gates=RayCronJob=true", "--kubeconfig=k"], Some(HEADER)).unwrap();
    assert!(options.settings.features.enabled(Feature::RayCronJob));
    assert_eq!(options.kubeconfig, "k");
}

#[test]
fn pod_defaults_are_read() {
    let file = format!(
        "{HEADER}headSidecarContainers:\n- name: a\n  image: i\nworkerSidecarContainers:\n- name: b\ndefaultContainerEnvs:\n- name: X\n  value: '1'\n\
         defaultPodLabels: {{team: red}}\ndefaultPodAnnotations: {{note: 'yes'}}\ndeleteRayJobAfterJobFinishes: true\n"
    );
    let settings = resolve(&[], Some(&file)).unwrap().settings;
    assert_eq!(settings.pods.head_sidecars.first().map(|container| container.name.as_str()), Some("a"));
    assert_eq!(settings.pods.worker_sidecars.len(), 1);
    assert_eq!(settings.pods.env.first().and_then(|env| env.value.as_deref()), Some("1"));
    assert_eq!(settings.pods.labels.get("team").map(String::as_str), Some("red"));
    assert_eq!(settings.pods.annotations.get("note").map(String::as_str), Some("yes"));
    assert!(settings.switches.delete_ray_job_after_finish);
}

#[test]
fn unknown_fields_are_warned_of_and_wrong_ones_refused() {
    let options = resolve(&[], Some(&format!("{HEADER}metricAddr: ':1'\n"))).unwrap();
    assert!(options.warnings.iter().any(|warning| warning.contains("metricAddr")), "{:?}", options.warnings);

    let table = [
        (format!("{HEADER}qps: fast\n"), "qps"),
        (format!("{HEADER}enableLeaderElection: 'perhaps'\n"), "enableLeaderElection"),
        (format!("{HEADER}workerSidecarContainers: [1]\n"), "workerSidecarContainers"),
        (format!("{HEADER}reconcileConcurrency: -1\n"), "reconcileConcurrency"),
        ("kind: Configuration\n".to_owned(), "apiVersion"),
        ("- a\n".to_owned(), "mapping"),
        ("a: [\n".to_owned(), "line"),
    ];
    for (file, named) in table {
        let error = resolve(&[], Some(&file)).unwrap_err();
        assert!(error.to_string().contains(named), "{file}: {error}");
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let table: &[(&[&str], &str)] = &[
        (&["--feature-gates=NoSuchGate=true"], "NoSuchGate"),
        (&["--feature-gates=RayClusterMTLS=true"], "RayClusterMTLS is not supported yet"),
        (&["--feature-gates=AllAlpha=true"], "RayClusterNetworkPolicy"),
        (&["--batch-scheduler=default"], "volcano"),
        (&["--feature-gates=KubernetesWAS=true"], "scheduling.k8s.io/v1alpha2"),
        (&["--enable-batch-scheduler", "--batch-scheduler=volcano"], "deprecated"),
        (&["--log-stdout-encoder=xml"], "json, console"),
        (&["--zap-log-level=loud"], "zap-log-level"),
    ];
    for (arguments, named) in table {
        let error = resolve(arguments, None).unwrap_err();
        assert!(error.to_string().contains(named), "{arguments:?}: {error}");
    }
}

/// BS-1, BS-2, BS-3, RC-243.
#[test]
fn bs_2_one_gang_scheduler_or_none() {
    let chosen = |arguments: &[&str], file: Option<&str>| resolve(arguments, file).map(|options| options.settings.scheduler);
    assert_eq!(chosen(&[], None), Ok(None));
    assert_eq!(chosen(&["--batch-scheduler="], None), Ok(None));
    for (name, scheduler) in [
        ("volcano", Scheduler::Volcano),
        ("yunikorn", Scheduler::YuniKorn),
        ("kai-scheduler", Scheduler::Kai),
        ("scheduler-plugins", Scheduler::SchedulerPlugins),
    ] {
        assert_eq!(chosen(&[&format!("--batch-scheduler={name}")], None), Ok(Some(scheduler)));
        assert_eq!(chosen(&[], Some(&format!("{HEADER}batchScheduler: {name}\n"))), Ok(Some(scheduler)));
        // With a file the flag does not count.
        assert_eq!(chosen(&[&format!("--batch-scheduler={name}")], Some(HEADER)), Ok(None));
    }
    let old = resolve(&["--enable-batch-scheduler"], None).unwrap();
    assert_eq!(old.settings.scheduler, Some(Scheduler::Volcano));
    assert!(old.warnings.iter().any(|warning| warning.contains("--batch-scheduler=volcano")), "{:?}", old.warnings);
    assert_eq!(chosen(&[], Some(&format!("{HEADER}enableBatchScheduler: true\n"))), Ok(Some(Scheduler::Volcano)));
    let both = format!("{HEADER}enableBatchScheduler: true\nbatchScheduler: volcano\n");
    for (arguments, file) in [
        (&["--enable-batch-scheduler", "--batch-scheduler=yunikorn"][..], None),
        (&[], Some(both.as_str())),
        (&["--batch-scheduler=default"], None),
        (&["--batch-scheduler=kubernetes-was-v1alpha2"], None),
        (&["--batch-scheduler=Volcano"], None),
        (&["--batch-scheduler=volcano", "--feature-gates=KubernetesWAS=true"], None),
    ] {
        chosen(arguments, file).unwrap_err();
    }
}

#[test]
fn log_flags_make_one_choice() {
    let log = |arguments: &[&str]| resolve(arguments, None).unwrap().log;
    assert_eq!(log(&[]), LogOptions { stdout: Encoder::Json, file: None, level: tracing::Level::INFO });
    assert_eq!(log(&["--zap-devel"]).level, tracing::Level::DEBUG);
    assert_eq!(log(&["--zap-devel"]).stdout, Encoder::Console);
    assert_eq!(log(&["--zap-log-level=5"]).level, tracing::Level::TRACE);
    assert_eq!(log(&["--log-file-path=f", "--log-file-encoder=console"]).file, Some(("f".to_owned(), Encoder::Console)));
    let from_file = resolve(&["--log-stdout-encoder=json"], Some(&format!("{HEADER}logStdoutEncoder: console\n"))).unwrap();
    assert_eq!(from_file.log.stdout, Encoder::Console);
}

#[test]
fn the_environment_counts_without_a_file_and_for_switches_that_the_file_lacks() {
    let environment = |name: &str| ["DELETE_RAYJOB_CR_AFTER_JOB_FINISHES", "ENABLE_LOGIN_SHELL"].contains(&name).then(|| "true".to_owned());
    let flags = flags(&[]);
    let switches = |file| Options::resolve(&flags, file, environment).unwrap().settings.switches;
    assert!(switches(None).delete_ray_job_after_finish);
    assert!(!switches(Some(HEADER)).delete_ray_job_after_finish);
    assert!(switches(Some(HEADER)).login_shell);
}

//! What the charts render, key by key, by the real helm. No API server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

#[path = "chart_templates/keys.rs"]
mod keys;
#[path = "chart_templates/ray_cluster.rs"]
mod ray_cluster;
#[path = "chart_templates/rights.rs"]
mod rights;

use std::collections::BTreeSet;

use api_tests::chart::{self, Rendered, text};
use serde_json::{Value, json};

const OPERATOR: &str = "kuberay-operator";
const WEBHOOK: &str = "kuberay-operator-webhook";

/// Renders the operator's chart; the values are `path=JSON`.
fn render(values: &[&str]) -> Rendered {
    let rendered = try_render(values).and_then(Rendered::with_webhooks);
    rendered.unwrap_or_else(|error| panic!("{values:?}: {error:#}"))
}

fn try_render(values: &[&str]) -> anyhow::Result<Rendered> {
    let arguments: Vec<&str> = values.iter().flat_map(|value| ["--set-json", value]).collect();
    chart::render(OPERATOR, "release", "home", &arguments)
}

/// Why helm refuses.
fn refusal(values: &[&str]) -> String {
    match try_render(values) {
        Ok(_) => panic!("{values:?} was rendered"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_helm_or_the_schema_refuse() {
    for (values, named) in [
        (&[r#"replica=1"#][..], "replica"),
        (&[r#"webhook.failurPolicy="Fail""#], "failurPolicy"),
        (&[r#"webhook.certificates.mode="magic""#], "mode"),
        (&[r#"logging.stdoutEncoder="xml""#], "stdoutEncoder"),
        (&[r#"reconcileConcurrency=0"#], "reconcileConcurrency must be a whole number from 1 up, found 0"),
        (&[r#"reconcileConcurrency="many""#], "reconcileConcurrency must be"),
        (&[r#"kubeClient.qps="fast""#], "kubeClient.qps must be a number, found fast"),
        (&[r#"kubeClient.burst=1.5"#], "kubeClient.burst must be a whole number, found 1.5"),
        (&[r#"batchScheduler.enabled=true"#, r#"batchScheduler.name="volcano""#], "not both"),
        (&[r#"featureGates=[{"name":"NoSuchGate","enabled":true}]"#], "featureGates"),
        (&[r#"watchNamespace=[""]"#], "watchNamespace"),
        (&[r#"tracing.endpoint="collector:4317""#], "endpoint"),
        (&[r#"tracing.samplingRatio=50"#], "samplingRatio"),
        (&[r#"tracing.samplingRatio="half""#], "samplingRatio"),
        (&[r#"webhook.warnOnly=[{"namespaces":{}}]"#], "rules"),
        (&[r#"webhook.fleetDefaults=[{"kinds":["Pod"]}]"#], "kinds"),
    ] {
        let refusal = refusal(values);
        assert!(refusal.contains(named), "{values:?}: {refusal}");
    }
}

#[test]
fn feature_gates_are_those_of_the_programs() {
    let schema = schema(OPERATOR);
    let known = schema.pointer("/properties/featureGates/items/properties/name/enum").and_then(Value::as_array).unwrap();
    let known: BTreeSet<&str> = known.iter().filter_map(Value::as_str).collect();
    let gates = shared::features::Feature::ALL.iter().map(|gate| gate.name());
    assert_eq!(known, gates.chain(["AllAlpha", "AllBeta"]).collect());
}

/// A release of another chart, upgraded with `--reuse-values`, has none of our new keys.
#[test]
fn values_of_another_chart_are_named_in_one_sentence() {
    for missing in ["webhook=null", "operator=null"] {
        let refusal = refusal(&[missing]);
        assert!(refusal.contains("--reset-then-reuse-values"), "{refusal}");
        assert!(!refusal.contains("nil pointer"), "{refusal}");
    }
}

/// Every key that KubeRay's chart has, with the value that it has there.
#[test]
fn the_values_of_kuberays_chart_are_taken_as_they_are() {
    let values = json!({
        "nameOverride": "kuberay-operator", "fullnameOverride": "kuberay-operator", "componentOverride": "kuberay-operator",
        "replicas": 1,
        "image": {"repository": "quay.io/kuberay/operator", "tag": "v1.7.0", "pullPolicy": "IfNotPresent"},
        "imagePullSecrets": [], "nodeSelector": {}, "affinity": {}, "tolerations": [], "priorityClassName": "",
        "labels": {}, "annotations": {},
        "serviceAccount": {"create": true, "name": "kuberay-operator"},
        "logging": {"stdoutEncoder": "json", "fileEncoder": "json", "baseDir": "", "fileName": "", "sizeLimit": ""},
        "batchScheduler": {"enabled": false, "name": ""},
        "configuration": {
            "enabled": false, "defaultContainerEnvs": [], "defaultPodAnnotations": {}, "defaultPodLabels": {},
            "headSidecarContainers": [], "workerSidecarContainers": [],
        },
        "featureGates": [
            {"name": "RayClusterStatusConditions", "enabled": true}, {"name": "RayJobDeletionPolicy", "enabled": true},
            {"name": "RayMultiHostIndexing", "enabled": true}, {"name": "RayServiceIncrementalUpgrade", "enabled": true},
            {"name": "RayCronJob", "enabled": false}, {"name": "RayClusterMTLS", "enabled": false},
            {"name": "RayClusterNetworkPolicy", "enabled": false}, {"name": "RayClusterHistoryServer", "enabled": false},
        ],
        "metrics": {
            "enabled": true,
            "serviceMonitor": {"enabled": false, "interval": "30s", "honorLabels": true, "additionalLabels": {}, "namespace": ""},
        },
        "operatorCommand": "/manager", "useKubernetesProxy": false, "leaderElectionEnabled": true, "reconcileConcurrency": 1,
        "kubeClient": {"qps": 100.0, "burst": 200},
        "rbacEnable": true, "crNamespacedRbacEnable": true, "singleNamespaceInstall": false, "watchNamespace": ["a", "b"], "env": null,
        "resources": {"limits": {"cpu": "100m", "memory": "512Mi"}},
        "livenessProbe": {"initialDelaySeconds": 10, "periodSeconds": 5, "failureThreshold": 5},
        "readinessProbe": {"initialDelaySeconds": 10, "periodSeconds": 5, "failureThreshold": 5},
        "podSecurityContext": {},
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
            "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "service": {"type": "ClusterIP", "port": 8080},
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("values.yaml");
    std::fs::write(&file, values.to_string()).unwrap();
    let rendered = chart::render(OPERATOR, "release", "home", &["--values", file.to_str().unwrap()]).unwrap();
    let arguments = rendered.arguments(OPERATOR).unwrap();
    // The order is KubeRay's (D-3); what is not given there is not given here.
    let gates = "RayClusterStatusConditions=true,RayJobDeletionPolicy=true,RayMultiHostIndexing=true,RayServiceIncrementalUpgrade=true,\
                 RayCronJob=false,RayClusterMTLS=false,RayClusterNetworkPolicy=false,RayClusterHistoryServer=false";
    assert_eq!(
        arguments,
        [
            "--watch-namespace",
            "a,b",
            "--log-stdout-encoder",
            "json",
            "--log-file-encoder",
            "json",
            "--use-kubernetes-proxy=false",
            "--enable-leader-election=true",
            "--enable-metrics=true",
            "--reconcile-concurrency=1",
            "--qps=100",
            "--burst=200",
            &format!("--feature-gates={gates}"),
        ]
    );
    let container = rendered.get("Deployment", OPERATOR).unwrap().pointer("/spec/template/spec/containers/0").unwrap();
    assert_eq!(container["image"], "quay.io/kuberay/operator:v1.7.0");
    assert_eq!(container["command"], json!(["/manager"]));
    assert_eq!(container["resources"]["limits"], json!({"cpu": "100m", "memory": "512Mi"}));
}

/// What a Deployment selects cannot be changed by an upgrade, and Services must never choose the other program's Pods.
#[test]
fn selectors_are_kuberays_and_tell_the_programs_apart() {
    let rendered = render(&[]);
    let selector = |kind: &str, name: &str, pointer: &str| rendered.get(kind, name).unwrap().pointer(pointer).unwrap().clone();
    let (operator, webhook) = (
        json!({"app.kubernetes.io/name": "kuberay-operator", "app.kubernetes.io/instance": "release"}),
        json!({"app.kubernetes.io/name": "kuberay-operator-webhook", "app.kubernetes.io/instance": "release"}),
    );
    for (name, wanted) in [(OPERATOR, operator), (WEBHOOK, webhook)] {
        assert_eq!(selector("Deployment", name, "/spec/selector/matchLabels"), wanted);
        assert_eq!(selector("Service", name, "/spec/selector"), wanted);
        let labels = selector("Deployment", name, "/spec/template/metadata/labels");
        for (key, value) in wanted.as_object().unwrap() {
            assert_eq!(&labels[key], value);
        }
    }
}

#[test]
fn names_follow_the_release_without_an_override() {
    for (release, override_, wanted) in [
        ("release", "\"\"", "release-kuberay-operator"),
        ("my-kuberay-operator", "\"\"", "my-kuberay-operator"),
        ("release", "\"other\"", "other"),
    ] {
        let set = format!("fullnameOverride={override_}");
        let rendered = chart::render(OPERATOR, release, "home", &["--set-json", &set]).unwrap();
        let names = rendered.names();
        for name in [format!("Deployment/{wanted}"), format!("Service/{wanted}-webhook"), format!("ClusterRole/{wanted}")] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
    }
    let long = "a".repeat(52);
    let rendered = chart::render(OPERATOR, &long, "home", &["--set-json", r#"fullnameOverride="""#]).unwrap();
    for service in rendered.of_kind("Service") {
        assert!(text(service, "/metadata/name").len() <= 63, "{service}");
    }
}

/// Objects outside namespaces of two releases must not be the same, but for the users' roles, which have fixed names (D-1).
#[test]
fn two_releases_of_the_webhook_do_not_meet() {
    let names = |namespace: &str| {
        let rendered = chart::render(OPERATOR, "release", namespace, &["--set", "operator.enabled=false"]).unwrap();
        let clusterwide = rendered.objects().iter().filter(|object| object.pointer("/metadata/namespace").is_none());
        clusterwide.map(|object| format!("{}/{}", text(object, "/kind"), text(object, "/metadata/name"))).collect::<BTreeSet<_>>()
    };
    let (one, two) = (names("one"), names("two"));
    assert!(!one.is_empty() && one.is_disjoint(&two), "{one:?} {two:?}");
}

#[test]
fn each_program_goes_without_the_other() {
    let kinds = |values: &[&str]| render(values).names();
    let webhook = kinds(&["operator.enabled=false"]);
    assert!(webhook.iter().all(|name| name.contains("webhook")), "{webhook:?}");
    let operator = kinds(&["webhook.enabled=false"]);
    assert!(!operator.iter().any(|name| name.contains("webhook") || name.contains("Webhook")), "{operator:?}");
    assert!(kinds(&["operator.enabled=false", "webhook.enabled=false"]).is_empty());
}

/// The serving certificate, and who has to trust it, in each mode.
#[test]
fn certificates_by_mode() {
    let own = render(&[]);
    let arguments = own.arguments(WEBHOOK).unwrap();
    for wanted in [
        "--cert-mode=self-managed",
        "--namespace=home",
        "--secret-name=kuberay-operator-webhook-ca",
        "--service-name=kuberay-operator-webhook",
        "--webhook-configuration=kuberay-operator-webhook-home",
    ] {
        assert!(arguments.iter().any(|argument| argument == wanted), "{wanted}: {arguments:?}");
    }
    let secret = own.get("Secret", "kuberay-operator-webhook-ca").unwrap();
    assert_eq!((text(secret, "/type"), secret.get("data")), ("Opaque", None));

    let manager = render(&[r#"webhook.certificates.mode="cert-manager""#]);
    assert!(manager.find("Secret", "kuberay-operator-webhook-ca").is_none());
    let certificate = manager.get("Certificate", WEBHOOK).unwrap();
    assert_eq!(certificate["spec"]["dnsNames"][0], "kuberay-operator-webhook.home.svc");
    assert_eq!(certificate["spec"]["issuerRef"], json!({"kind": "Issuer", "name": WEBHOOK}));
    assert_eq!(certificate["spec"]["secretName"], "kuberay-operator-webhook-tls");
    assert!(manager.find("Issuer", WEBHOOK).is_some());
    for configuration in configurations(&manager) {
        assert_eq!(configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"], "home/kuberay-operator-webhook");
    }
    let pod = manager.get("Deployment", WEBHOOK).unwrap().pointer("/spec/template/spec").unwrap();
    assert_eq!(pod["volumes"], json!([{"name": "tls", "secret": {"secretName": "kuberay-operator-webhook-tls"}}]));
    assert_eq!(pod["automountServiceAccountToken"], false, "nothing is asked of the API server");

    let issuer = render(&[r#"webhook.certificates={"mode": "cert-manager", "issuerRef": {"kind": "ClusterIssuer", "name": "ca"}}"#]);
    assert!(issuer.find("Issuer", WEBHOOK).is_none());
    assert_eq!(issuer.get("Certificate", WEBHOOK).unwrap()["spec"]["issuerRef"]["kind"], "ClusterIssuer");

    let given = render(&[r#"webhook.certificates={"mode": "secret", "secretName": "mine", "caBundle": "QUJD"}"#]);
    for configuration in configurations(&given) {
        for webhook in configuration["webhooks"].as_array().unwrap() {
            assert_eq!(webhook["clientConfig"]["caBundle"], "QUJD");
        }
    }
    assert!(given.names().iter().all(|name| !name.starts_with("Certificate") && !name.starts_with("Secret")));
    let arguments = given.arguments(WEBHOOK).unwrap();
    assert!(arguments.contains(&"--cert-mode=secret".to_owned()) && arguments.iter().any(|flag| flag.starts_with("--cert-dir=")));
}

fn configurations(rendered: &Rendered) -> Vec<Value> {
    let kinds = ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    let found: Vec<Value> = kinds.iter().flat_map(|kind| rendered.of_kind(kind)).cloned().collect();
    assert_eq!(found.len(), 2);
    found
}

/// A CA of its own means webhooks of its own: they come when it can answer. Certificates from elsewhere come without rights to do so.
#[test]
fn nobody_is_refused_before_the_webhook_can_answer() {
    for (mode, listed) in [("self-managed", false), ("cert-manager", true), ("secret", true)] {
        let rendered = try_render(&[&format!(r#"webhook.certificates.mode="{mode}""#)]).unwrap();
        for configuration in configurations(&rendered) {
            assert_eq!(configuration.get("webhooks").is_some(), listed, "{mode}");
            assert_eq!(configuration["metadata"]["annotations"].get(certs::configurations::WANTED).is_some(), !listed, "{mode}");
        }
    }
}

/// Paths are fixed: the webhook serves these and no others.
#[test]
fn webhooks_call_the_paths_that_are_served() {
    let rendered = render(&[]);
    for configuration in configurations(&rendered) {
        let mutating = text(&configuration, "/kind").starts_with("Mutating");
        for (webhook, kind) in
            configuration["webhooks"].as_array().unwrap().iter().zip(["raycluster", "rayjob", "rayservice", "raycronjob"])
        {
            let verb = if mutating { "mutate" } else { "validate" };
            assert_eq!(webhook["clientConfig"]["service"]["path"], format!("/{verb}-ray-io-v1-{kind}"));
            assert_eq!(webhook["rules"][0]["resources"], json!([format!("{kind}s")]));
            assert_eq!(webhook["rules"][0]["operations"], json!(["CREATE", "UPDATE"]));
            assert_eq!(webhook["sideEffects"], "None");
            assert!(webhook["clientConfig"].get("caBundle").is_none(), "whoever upgrades must not wipe it out");
        }
        assert_eq!(configuration["webhooks"].as_array().unwrap().len(), 4);
    }
}

#[test]
fn the_webhook_keeps_to_the_watched_namespaces() {
    let selector = |values: &[&str]| configurations(&render(values))[0]["webhooks"][0].get("namespaceSelector").cloned();
    let named = |names: Value| json!({"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": names}]});
    assert_eq!(selector(&[]), None);
    assert_eq!(selector(&[r#"watchNamespace=["a","b"]"#]), Some(named(json!(["a", "b"]))));
    assert_eq!(selector(&["singleNamespaceInstall=true"]), Some(named(json!(["home"]))));
    let own = selector(&[r#"watchNamespace=["a"]"#, r#"webhook.namespaceSelector={"matchLabels":{"x":"y"}}"#]);
    assert_eq!(own, Some(json!({"matchLabels": {"x": "y"}})));
}

/// The settings of the webhook's policy arrive as files that it reads.
#[test]
fn the_policy_is_what_the_webhook_reads() {
    let rendered = render(&[
        r#"webhook.fleetDefaults=[{"namespaces":{"names":["ml-*"]},"kinds":["RayJob"],"pods":{"nodeSelector":{"pool":"ray"}}}]"#,
        r#"webhook.warnOnly=[{"rules":["N-C-7","C-14"],"namespaces":{"matchLabels":{"team":"vision"}}}]"#,
    ]);
    let data = &rendered.get("ConfigMap", "kuberay-operator-webhook-policy").unwrap()["data"];
    let defaults = shared::defaults::FleetDefaults::parse(data["defaults.yaml"].as_str().unwrap()).unwrap();
    assert!(!defaults.is_empty());
    let rules = shared::validation::RuleConfig::parse(data["rules.yaml"].as_str().unwrap()).unwrap();
    assert!(rules.for_namespace("x", &[("team".to_owned(), "vision".to_owned())].into()).contains("N-C-7"));
    let arguments = rendered.arguments(WEBHOOK).unwrap();
    for (flag, file) in [("--defaults-file", "defaults.yaml"), ("--rules-file", "rules.yaml")] {
        assert!(arguments.contains(&format!("{flag}=/etc/kuberay-webhook/policy/{file}")), "{arguments:?}");
    }
    let plain = render(&[]);
    assert!(plain.find("ConfigMap", "kuberay-operator-webhook-policy").is_none());
    assert!(!plain.arguments(WEBHOOK).unwrap().iter().any(|flag| flag.contains("-file")));
}

/// The operator goes by the same rules that only warn, also where the webhook is another release's.
#[test]
fn the_operator_reads_the_rules_that_only_warn() {
    let softened = r#"webhook.warnOnly=[{"rules":["N-C-7"]}]"#;
    for values in [&[softened][..], &[softened, "webhook.enabled=false"], &[softened, "configuration.enabled=true"]] {
        let rendered = render(values);
        let file = rendered.get("ConfigMap", "kuberay-operator-webhook-policy").unwrap()["data"]["rules.yaml"].as_str().unwrap();
        assert!(shared::validation::RuleConfig::parse(file).unwrap().for_namespace("x", &Default::default()).contains("N-C-7"));
        let arguments = rendered.arguments(OPERATOR).unwrap();
        let flags = operator::cli::Flags::read(std::iter::once("manager".to_owned()).chain(arguments)).unwrap();
        assert_eq!(flags.rules_file, "/etc/kuberay-policy/rules.yaml", "{values:?}");
        let pod = &rendered.get("Deployment", OPERATOR).unwrap()["spec"]["template"]["spec"];
        let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
        assert!(mounts.contains(&json!({"name": "policy", "mountPath": "/etc/kuberay-policy", "readOnly": true})), "{mounts:?}");
        let source = json!({"name": "kuberay-operator-webhook-policy", "items": [{"key": "rules.yaml", "path": "rules.yaml"}]});
        assert!(pod["volumes"].as_array().unwrap().contains(&json!({"name": "policy", "configMap": source})));
    }
    for plain in [render(&[]), render(&[r#"webhook.fleetDefaults=[{"pods":{"nodeSelector":{"pool":"ray"}}}]"#])] {
        assert!(!plain.arguments(OPERATOR).unwrap().iter().any(|flag| flag.contains("rules-file")));
    }
    let alone = render(&[softened, "operator.enabled=false", "webhook.enabled=false"]);
    assert!(alone.find("ConfigMap", "kuberay-operator-webhook-policy").is_none(), "nobody reads it");
}

/// The flags that the chart gives are flags that the program has.
#[test]
fn the_webhook_understands_its_arguments() {
    use clap::Parser;
    for values in [&[][..], &[r#"webhook.certificates.mode="cert-manager""#], &[r#"webhook.warnOnly=[{"rules":["*"]}]"#]] {
        let arguments = render(values).arguments(WEBHOOK).unwrap();
        let parsed = webhook::cli::Cli::try_parse_from(std::iter::once("kuberay-webhook".to_owned()).chain(arguments));
        parsed.unwrap_or_else(|error| panic!("{values:?}: {error}"));
    }
}

#[test]
fn the_configuration_file_says_what_the_flags_would() {
    let rendered = render(&[
        "configuration.enabled=true",
        r#"configuration.defaultContainerEnvs=[{"name":"A","value":"1"}]"#,
        r#"configuration.defaultPodAnnotations={"a":"b"}"#,
        r#"configuration.defaultPodLabels={"c":"d"}"#,
        r#"configuration.headSidecarContainers=[{"name":"h","image":"h"}]"#,
        r#"configuration.workerSidecarContainers=[{"name":"w","image":"w"}]"#,
        r#"watchNamespace=["a","b"]"#,
        r#"logging={"baseDir":"/var/log/","fileName":"o.log","stdoutEncoder":"console"}"#,
        r#"batchScheduler.name="yunikorn""#,
        "useKubernetesProxy=true",
        "leaderElectionEnabled=false",
        "metrics.enabled=false",
        "reconcileConcurrency=3",
        r#"kubeClient={"qps":2000000,"burst":5}"#,
        "crds.manage=true",
    ]);
    let file = rendered.get("ConfigMap", "kuberay-operator-config").unwrap()["data"]["config.yaml"].as_str().unwrap();
    assert_eq!(
        shared::yaml::parse_str(file).unwrap(),
        json!({
            "apiVersion": "config.ray.io/v1alpha1", "kind": "Configuration",
            "enableLeaderElection": false, "enableMetrics": false, "reconcileConcurrency": 3, "useKubernetesProxy": true,
            "qps": 2_000_000, "burst": 5, "watchNamespace": "a,b", "logFile": "/var/log/o.log",
            "logStdoutEncoder": "console", "logFileEncoder": "json", "batchScheduler": "yunikorn",
            "headSidecarContainers": [{"name": "h", "image": "h"}], "workerSidecarContainers": [{"name": "w", "image": "w"}],
            "defaultContainerEnvs": [{"name": "A", "value": "1"}], "defaultPodAnnotations": {"a": "b"}, "defaultPodLabels": {"c": "d"},
        })
    );
    let arguments = rendered.arguments(OPERATOR).unwrap();
    assert_eq!(arguments[..2], ["--config", "/etc/kuberay/config.yaml"]);
    assert!(arguments[2].starts_with("--feature-gates=") && arguments[3..] == ["--manage-crds"], "{arguments:?}");
    let deployment = rendered.get("Deployment", OPERATOR).unwrap();
    let mounts = &deployment["spec"]["template"]["spec"]["containers"][0]["volumeMounts"];
    assert_eq!(mounts[0], json!({"name": "operator-config", "mountPath": "/etc/kuberay", "readOnly": true}));
    let sum = |values: &[&str]| {
        let rendered = render(values);
        let annotations = rendered.get("Deployment", OPERATOR).unwrap().pointer("/spec/template/metadata/annotations").cloned();
        annotations.and_then(|all| all.get("checksum/configuration").cloned())
    };
    let (one, two) = (sum(&["configuration.enabled=true"]), sum(&["configuration.enabled=true", "reconcileConcurrency=2"]));
    assert!(one.is_some() && one != two, "a changed file must restart the operator");
    assert_eq!(sum(&[]), None);
}

fn schema(chart: &str) -> Value {
    serde_json::from_str(&std::fs::read_to_string(chart::folder(chart).join("values.schema.json")).unwrap()).unwrap()
}

/// Paths of the keys that the schema knows; a mapping without known keys counts as one.
fn keys_of(schema: &Value) -> BTreeSet<String> {
    fn walk(schema: &Value, path: &str, keys: &mut BTreeSet<String>) {
        match schema.get("properties").and_then(Value::as_object) {
            Some(properties) => {
                for (key, schema) in properties {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    walk(schema, &path, keys);
                }
            }
            None => drop(keys.insert(path.to_owned())),
        }
    }
    let mut keys = BTreeSet::new();
    walk(schema, "", &mut keys);
    keys
}

/// Paths in a chart's README table.
fn documented(chart: &str) -> BTreeSet<String> {
    let readme = std::fs::read_to_string(chart::folder(chart).join("README.md")).unwrap();
    let table = readme.split_once("<!-- values").and_then(|(_, rest)| rest.split_once("<!-- end of values")).expect("a table").0;
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` |"));
    rows.map(|(path, _)| path.to_owned()).collect()
}

/// The schema, values.yaml and README speak of the same keys.
#[test]
fn every_key_has_a_type_and_a_description() {
    for chart in [OPERATOR, "ray-cluster"] {
        let schema = schema(chart);
        let mut keys = keys_of(&schema);
        // For charts that depend on this one.
        assert!(keys.remove("enabled") && keys.remove("global"));
        let documented = documented(chart);
        // A row may describe a mapping as a whole of which the schema knows the keys.
        let fits = |key: &str, row: &str| key == row || key.strip_prefix(row).is_some_and(|rest| rest.starts_with('.'));
        let without: Vec<_> = keys.iter().filter(|key| !documented.iter().any(|row| fits(key, row))).collect();
        assert!(without.is_empty(), "{chart}: without description: {without:?}");
        let unknown: Vec<_> = documented.iter().filter(|row| !keys.iter().any(|key| fits(key, row))).collect();
        assert!(unknown.is_empty(), "{chart}: described, but not in the schema: {unknown:?}");
    }
}

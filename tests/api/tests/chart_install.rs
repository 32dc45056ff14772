//! The operator's chart at a real API server: what helm installs, takes over from KubeRay's chart, gives back and removes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

#[path = "chart_install/helm3.rs"]
mod helm3;
#[path = "chart_install/kuberay.rs"]
mod kuberay;
#[path = "chart_install/site.rs"]
mod site;

use api_tests::chart;
use serde_json::{Value, json};

use site::{Site, site};

const CHART: &str = "charts/kuberay-operator";

/// Ways to install. Between them they make every object that the chart has.
#[rustfmt::skip]
const WAYS: &[(&str, &[&str])] = &[
    ("defaults", &[]),
    ("everything", &[
        "replicas=2", "podDisruptionBudget.enabled=true", "networkPolicy.enabled=true", r#"networkPolicy.metricsFrom=[{"namespaceSelector":{}}]"#,
        "metrics.serviceMonitor.enabled=true", "metrics.rayPodMonitor.enabled=true", "webhook.podMonitor.enabled=true",
        "metrics.dashboard.enabled=true", "metrics.alerts.enabled=true",
        "configuration.enabled=true", r#"configuration.headSidecarContainers=[{"name":"a","image":"b"}]"#,
        r#"logging={"baseDir":"/logs","fileName":"o.log","sizeLimit":"1Gi"}"#, "crds.manage=true", r#"webhook.certificates.mode="cert-manager""#,
        r#"webhook.fleetDefaults=[{"namespaces":{"matchLabels":{"a":"b"}},"pods":{"nodeSelector":{"pool":"ray"}}}]"#,
        r#"featureGates=[{"name":"AllAlpha","enabled":true}]"#, "batchScheduler.enabled=true", "useKubernetesProxy=true",
        r#"tracing={"endpoint":"http://collector:4318","samplingRatio":0.1,"env":[{"name":"OTEL_SERVICE_NAME","value":"x"}]}"#,
        r#"topologySpreadConstraints=[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"}]"#,
        r#"env=[{"name":"CLUSTER_DOMAIN","value":"x.local"}]"#, r#"labels={"team":"ray"}"#, r#"annotations={"a":"b"}"#,
    ]),
    ("one namespace", &["singleNamespaceInstall=true"]),
    ("without election", &["leaderElectionEnabled=false", r#"webhook.certificates={"mode":"secret","secretName":"tls"}"#]),
    ("no roles", &["rbacEnable=false", "serviceAccount.create=false", r#"serviceAccount.name="""#]),
    ("webhook alone", &["operator.enabled=false", r#"fullnameOverride="kuberay""#]),
];

/// Real admission of each object, in a namespace that enforces Pod Security "restricted"; Pods are really made by their Deployments.
#[tokio::test]
async fn install_upgrade_and_remove_each_way() {
    for (way, values) in WAYS {
        let site = site(&format!("install-{}", way.replace(' ', "-"))).await;
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).chain([site.own_namespace_only()]).collect();
        let arguments: Vec<&str> = values.iter().flat_map(|value| ["--set-json", value.as_str()]).collect();

        let rendered = chart::render("kuberay-operator", "ray", &site.namespace, &arguments).unwrap();
        for dry in ["--dry-run=client", "--dry-run=server"] {
            site.kubectl(&["apply", dry, "--validate=strict", "--filename=-"], &rendered.manifest())
                .await
                .unwrap_or_else(|error| panic!("{way} {dry}: {error}"));
        }
        site.helm(&["upgrade", "--install", "ray", CHART], &arguments).await.unwrap_or_else(|error| panic!("{way}: {error}"));
        // Twice: the second time nothing is new.
        site.helm(&["upgrade", "--install", "ray", CHART], &arguments).await.unwrap_or_else(|error| panic!("{way}, again: {error}"));
        for deployment in rendered.of_kind("Deployment") {
            let name = chart::text(deployment, "/metadata/name");
            let replicas = deployment["spec"]["replicas"].as_u64().unwrap();
            site.until(&format!("{way}: the Pods of {name}"), async || site.pods(name).await == replicas).await;
        }
        site.helm(&["uninstall", "ray", "--wait"], &[]).await.unwrap_or_else(|error| panic!("{way}: {error}"));
        site.until(&format!("{way}: nothing is left"), async || site.leftovers().await.is_empty()).await;
    }
}

/// Pods alone, as the API server takes them, in a namespace that enforces "restricted".
#[tokio::test]
async fn pods_satisfy_restricted() {
    let site = site("restricted").await;
    for (way, values) in WAYS {
        let arguments: Vec<&str> = values.iter().flat_map(|value| ["--set-json", value]).collect();
        let rendered = chart::render("kuberay-operator", "ray", &site.namespace, &arguments).unwrap();
        for deployment in rendered.of_kind("Deployment") {
            let mut pod = deployment["spec"]["template"].clone();
            pod["apiVersion"] = json!("v1");
            pod["kind"] = json!("Pod");
            pod["metadata"]["name"] = deployment["metadata"]["name"].clone();
            // Accounts are part of the chart and not of this test.
            pod["spec"]["serviceAccountName"] = json!("default");
            pod["spec"]["priorityClassName"] = Value::Null;
            let said = site.kubectl(&["create", "--dry-run=server", "--filename=-"], &pod.to_string()).await;
            said.unwrap_or_else(|error| panic!("{way}: {error}"));
        }
    }
    let bad =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bad"}, "spec": {"containers": [{"name": "a", "image": "b"}]}});
    let refused = site.kubectl(&["create", "--dry-run=server", "--filename=-"], &bad.to_string()).await.unwrap_err();
    assert!(refused.contains("restricted"), "the namespace enforces nothing: {refused}");
}

/// The night of the upgrade: KubeRay's release becomes ours by one `helm upgrade`, and goes back.
#[tokio::test]
async fn takeover_from_kuberay_and_back() {
    let site = site("takeover").await;
    let chart = api_tests::kuberay::chart().unwrap();
    let kuberay = chart.path().to_str().unwrap();
    let set = site.own_namespace_only();
    site.helm(&["upgrade", "--install", "kuberay-operator", kuberay], &["--set", "replicas=1", "--set", "watchNamespace={somewhere}"])
        .await
        .unwrap();
    site.until("KubeRay's Pod", async || site.pods("kuberay-operator").await == 1).await;
    let cluster = kuberay::running_cluster(&site).await;
    let kept = ["deployment", "service", "serviceaccount", "role/kuberay-operator-leader-election"];
    let uids = async || {
        let mut uids = Vec::new();
        for object in kept {
            let object = if object.contains('/') { object.to_owned() } else { format!("{object}/kuberay-operator") };
            uids.push(site.kubectl(&["get", &object, "-o", "jsonpath={.metadata.uid}"], "").await.unwrap());
        }
        uids
    };
    let before = uids().await;

    let reused = site.helm(&["upgrade", "kuberay-operator", CHART, "--reuse-values"], &[]).await.unwrap_err();
    assert!(reused.contains("--reset-then-reuse-values"), "{reused}");

    for round in 1..=2 {
        site.helm(&["upgrade", "kuberay-operator", CHART, "--reset-then-reuse-values"], &["--set-json", &set]).await.unwrap();
        let ours = site.get("deployment", "kuberay-operator").await;
        let container = &ours["spec"]["template"]["spec"]["containers"][0];
        assert!(container["image"].as_str().unwrap().starts_with("docker.io/kuberay-rs/kuberay-operator:"), "{container}");
        let watched = container["args"].as_array().unwrap().iter().any(|argument| argument == "somewhere");
        assert!(watched, "the release's values are kept: {container}");
        assert_eq!(ours["spec"]["strategy"]["type"], "RollingUpdate");
        assert_eq!(uids().await, before, "nothing is made anew");
        site.until("the webhook's Pods", async || site.pods("kuberay-operator-webhook").await == 2).await;
        site.until("one operator Pod is replaced", async || site.pods("kuberay-operator").await >= 1).await;

        // Back, in the first round by an upgrade, in the second by a rollback to the release before.
        if round == 1 {
            site.helm(&["upgrade", "kuberay-operator", kuberay, "--reset-then-reuse-values"], &["--set-json", "webhook=null"])
                .await
                .unwrap();
        } else {
            site.helm(&["rollback", "kuberay-operator"], &[]).await.unwrap();
        }
        let theirs = site.get("deployment", "kuberay-operator").await;
        assert_eq!(theirs["spec"]["strategy"], json!({"type": "Recreate"}), "round {round}");
        assert_eq!(theirs["spec"]["template"]["spec"]["containers"][0]["image"], "quay.io/kuberay/operator:v1.7.0");
        let probe = &theirs["spec"]["template"]["spec"]["containers"][0]["livenessProbe"]["httpGet"];
        assert_eq!((&probe["path"], &probe["port"]), (&json!("/metrics"), &json!("http")), "round {round}");
        assert_eq!(uids().await, before);
        site.until("nothing of the webhook is left", async || site.leftovers().await.iter().all(|name| !name.contains("webhook"))).await;
    }
    assert_eq!(kuberay::running_cluster_now(&site).await, cluster, "nobody has touched the cluster or its Pod");
    site.helm(&["uninstall", "kuberay-operator", "--wait"], &[]).await.unwrap();
}

/// KubeRay's image is not ours: who carries it along in their values is told.
#[tokio::test]
async fn notes_warn_of_kuberays_image() {
    let site = site("notes").await;
    let arguments = ["--set", "image.repository=quay.io/kuberay/operator", "--dry-run=server"];
    let said = site.helm(&["upgrade", "--install", "ray", CHART], &arguments).await.unwrap();
    assert!(said.contains("WARNING") && said.contains("KubeRay's own operator"), "{said}");
    let said = site.helm(&["upgrade", "--install", "ray", CHART], &["--dry-run=server"]).await.unwrap();
    assert!(!said.contains("WARNING"), "{said}");
}

/// The values that users find are the values that the operator would take by itself.
#[tokio::test]
async fn defaults_are_the_operators_own() {
    let program = api_tests::program::binary("kuberay-operator");
    assert!(program.exists(), "{} is missing: run `make test-api`, or `cargo build -p operator`", program.display());
    let help = std::process::Command::new(program).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let rendered = chart::render("kuberay-operator", "ray", "home", &[]).unwrap();
    for flag in ["--reconcile-concurrency", "--qps", "--burst"] {
        let (_, rest) = help.split_once(flag).unwrap_or_else(|| panic!("{flag}: {help}"));
        let (_, rest) = rest.split_once("[default: ").unwrap();
        let default = rest.split_once(']').unwrap().0;
        let given = rendered.arguments("kuberay-operator").unwrap();
        assert!(given.contains(&format!("{flag}={default}")), "{flag} is {default} in the program; the chart gives {given:?}");
    }
}

//! Each key of the operator's chart, and what it does.

use std::collections::BTreeSet;

use api_tests::chart::Rendered;
use serde_json::{Value, json};

use super::{OPERATOR, WEBHOOK, keys_of, render, schema};

/// Values, and what must follow from them.
struct Case {
    values: Vec<&'static str>,
    follows: Vec<Follows>,
}

enum Follows {
    /// An object has a value at a place; `null` means that it has none.
    Has(&'static str, &'static str, &'static str, Value),
    /// A program gets this argument.
    Argument(&'static str, &'static str),
    /// A program gets no argument that begins so.
    NoArgument(&'static str, &'static str),
    /// An object is there, or not.
    There(&'static str, &'static str, bool),
}
use Follows::{Argument, Has, NoArgument, There};

fn case(values: &[&'static str], follows: Vec<Follows>) -> Case {
    Case { values: values.to_vec(), follows }
}

const DEPLOYMENT: &str = "Deployment";

fn operator(pointer: &'static str, value: Value) -> Follows {
    Has(DEPLOYMENT, OPERATOR, pointer, value)
}

fn webhook(pointer: &'static str, value: Value) -> Follows {
    Has(DEPLOYMENT, WEBHOOK, pointer, value)
}

/// `key=value` of each case names the key that it is about; keys that only combinations show are in the other tests of this folder.
#[rustfmt::skip]
fn cases() -> Vec<Case> {
    let spread = |name: &str| json!([{"topologyKey": "zone", "labelSelector": {"matchLabels":
        {"app.kubernetes.io/name": name, "app.kubernetes.io/instance": "release"}}}]);
    let tracing = |ratio: &str| json!([
        {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "OTEL_EXPORTER_OTLP_ENDPOINT", "value": "http://otel:4318"},
        {"name": "OTEL_TRACES_SAMPLER", "value": "parentbased_traceidratio"},
        {"name": "OTEL_TRACES_SAMPLER_ARG", "value": ratio},
        {"name": "OTEL_RESOURCE_ATTRIBUTES", "value": "k8s.namespace.name=home,k8s.pod.name=$(POD_NAME)"}]);
    vec![
        case(&[r#"nameOverride="other""#], vec![operator("/spec/selector/matchLabels/app.kubernetes.io~1name", json!("other"))]),
        case(&[r#"fullnameOverride="other""#], vec![There(DEPLOYMENT, "other", true), There("ServiceAccount", "kuberay-operator", true)]),
        case(&[r#"componentOverride="brain""#], vec![operator("/spec/template/metadata/labels/app.kubernetes.io~1component", json!("brain"))]),
        case(&["operator.enabled=false"], vec![There(DEPLOYMENT, OPERATOR, false), There(DEPLOYMENT, WEBHOOK, true)]),
        case(&["replicas=3"], vec![operator("/spec/replicas", json!(3)), webhook("/spec/replicas", json!(2))]),
        case(&[r#"image.repository="r/i""#], vec![operator("/spec/template/spec/containers/0/image", json!(concat!("r/i:", env!("CARGO_PKG_VERSION"))))]),
        case(&["image.tag=1.5"], vec![operator("/spec/template/spec/containers/0/image", json!("docker.io/kuberay-rs/kuberay-operator:1.5"))]),
        case(&[r#"image.pullPolicy="Always""#], vec![operator("/spec/template/spec/containers/0/imagePullPolicy", json!("Always"))]),
        case(&[r#"imagePullSecrets=[{"name":"s"}]"#], vec![
            operator("/spec/template/spec/imagePullSecrets", json!([{"name": "s"}])), webhook("/spec/template/spec/imagePullSecrets", json!([{"name": "s"}]))]),
        case(&[r#"nodeSelector={"a":"b"}"#], vec![
            operator("/spec/template/spec/nodeSelector", json!({"a": "b"})), webhook("/spec/template/spec/nodeSelector", json!({"a": "b"}))]),
        case(&[r#"webhook.nodeSelector={"c":"d"}"#, r#"nodeSelector={"a":"b"}"#], vec![
            operator("/spec/template/spec/nodeSelector", json!({"a": "b"})), webhook("/spec/template/spec/nodeSelector", json!({"c": "d"}))]),
        case(&[r#"affinity={"nodeAffinity":{}}"#], vec![
            operator("/spec/template/spec/affinity", json!({"nodeAffinity": {}})), webhook("/spec/template/spec/affinity", json!({"nodeAffinity": {}}))]),
        case(&[r#"webhook.affinity={"podAffinity":{}}"#], vec![
            operator("/spec/template/spec/affinity", Value::Null), webhook("/spec/template/spec/affinity", json!({"podAffinity": {}}))]),
        case(&[r#"tolerations=[{"key":"k"}]"#], vec![
            operator("/spec/template/spec/tolerations", json!([{"key": "k"}])), webhook("/spec/template/spec/tolerations", json!([{"key": "k"}]))]),
        case(&[r#"webhook.tolerations=[{"key":"w"}]"#], vec![
            operator("/spec/template/spec/tolerations", Value::Null), webhook("/spec/template/spec/tolerations", json!([{"key": "w"}]))]),
        case(&[r#"topologySpreadConstraints=[{"topologyKey":"zone"}]"#], vec![operator("/spec/template/spec/topologySpreadConstraints", spread(OPERATOR))]),
        case(&[r#"webhook.topologySpreadConstraints=[{"topologyKey":"zone"}]"#], vec![webhook("/spec/template/spec/topologySpreadConstraints", spread(WEBHOOK))]),
        case(&[r#"priorityClassName="high""#], vec![
            operator("/spec/template/spec/priorityClassName", json!("high")), webhook("/spec/template/spec/priorityClassName", json!("high"))]),
        case(&[r#"webhook.priorityClassName="higher""#, r#"priorityClassName="high""#], vec![webhook("/spec/template/spec/priorityClassName", json!("higher"))]),
        case(&[r#"labels={"team":"ray"}"#, "configuration.enabled=true"], vec![
            operator("/metadata/labels/team", json!("ray")), operator("/spec/template/metadata/labels/team", json!("ray")),
            webhook("/spec/template/metadata/labels/team", json!("ray")), Has("ConfigMap", "kuberay-operator-config", "/metadata/labels/team", json!("ray")),
            operator("/spec/selector/matchLabels/team", Value::Null)]),
        case(&[r#"annotations={"a":"b"}"#], vec![
            operator("/spec/template/metadata/annotations", json!({"a": "b"})), operator("/metadata/annotations", Value::Null)]),
        case(&["serviceAccount.create=false"], vec![
            There("ServiceAccount", OPERATOR, false), operator("/spec/template/spec/serviceAccountName", json!("kuberay-operator"))]),
        case(&["serviceAccount.create=false", r#"serviceAccount.name="""#], vec![operator("/spec/template/spec/serviceAccountName", json!("default"))]),
        case(&[r#"serviceAccount.name="me""#], vec![
            There("ServiceAccount", "me", true), operator("/spec/template/spec/serviceAccountName", json!("me")),
            Has("ClusterRoleBinding", OPERATOR, "/subjects/0/name", json!("me"))]),
        case(&[r#"logging.stdoutEncoder="console""#], vec![Argument(OPERATOR, "--log-stdout-encoder console")]),
        case(&[r#"logging.fileEncoder="console""#], vec![Argument(OPERATOR, "--log-file-encoder console")]),
        case(&[r#"logging.baseDir="/logs""#], vec![NoArgument(OPERATOR, "--log-file-path"), operator("/spec/template/spec/volumes", Value::Null)]),
        case(&[r#"logging.fileName="o.log""#, r#"logging.baseDir="/logs""#], vec![
            Argument(OPERATOR, "--log-file-path /logs/o.log"),
            operator("/spec/template/spec/volumes", json!([{"name": "kuberay-logs", "emptyDir": {}}])),
            operator("/spec/template/spec/containers/0/volumeMounts", json!([{"name": "kuberay-logs", "mountPath": "/logs"}]))]),
        case(&[r#"logging.sizeLimit="1Gi""#, r#"logging.fileName="o.log""#, r#"logging.baseDir="/logs""#], vec![
            operator("/spec/template/spec/volumes/0/emptyDir/sizeLimit", json!("1Gi"))]),
        case(&["batchScheduler.enabled=true"], vec![Argument(OPERATOR, "--enable-batch-scheduler")]),
        case(&[r#"batchScheduler.name="kai-scheduler""#], vec![Argument(OPERATOR, "--batch-scheduler=kai-scheduler")]),
        case(&[r#"featureGates=[{"name":"RayCronJob","enabled":true}]"#], vec![
            Argument(OPERATOR, "--feature-gates=RayCronJob=true"), Argument(WEBHOOK, "--feature-gates=RayCronJob=true")]),
        case(&["featureGates=[]"], vec![Argument(OPERATOR, "--feature-gates="), Argument(WEBHOOK, "--feature-gates=")]),
        case(&["metrics.enabled=false"], vec![Argument(OPERATOR, "--enable-metrics=false")]),
        case(&["metrics.serviceMonitor.enabled=true"], vec![
            Has("ServiceMonitor", OPERATOR, "/spec/endpoints/0", json!({"path": "/metrics", "targetPort": "http", "interval": "30s", "honorLabels": true})),
            Has("ServiceMonitor", OPERATOR, "/spec/namespaceSelector", json!({"matchNames": ["home"]})),
            Has("ServiceMonitor", OPERATOR, "/spec/selector", json!({"matchLabels": {"app.kubernetes.io/name": "kuberay-operator"}})),
            Has("ServiceMonitor", OPERATOR, "/metadata/labels", Value::Null)]),
        case(&[r#"metrics.serviceMonitor.interval="1m""#, "metrics.serviceMonitor.enabled=true"], vec![
            Has("ServiceMonitor", OPERATOR, "/spec/endpoints/0/interval", json!("1m"))]),
        case(&["metrics.serviceMonitor.honorLabels=false", "metrics.serviceMonitor.enabled=true"], vec![
            Has("ServiceMonitor", OPERATOR, "/spec/endpoints/0/honorLabels", json!(false))]),
        case(&[r#"metrics.serviceMonitor.additionalLabels={"release":"prometheus"}"#, "metrics.serviceMonitor.enabled=true"], vec![
            Has("ServiceMonitor", OPERATOR, "/metadata/labels", json!({"release": "prometheus"}))]),
        case(&[r#"metrics.serviceMonitor.namespace="monitoring""#, "metrics.serviceMonitor.enabled=true"], vec![
            Has("ServiceMonitor", OPERATOR, "/metadata/namespace", json!("monitoring"))]),
        case(&["metrics.rayPodMonitor.enabled=true"], vec![
            Has("PodMonitor", "kuberay-operator-ray-pods", "/spec/namespaceSelector", json!({"any": true})),
            Has("PodMonitor", "kuberay-operator-ray-pods", "/spec/podMetricsEndpoints/0/port", json!("metrics"))]),
        case(&[r#"metrics.rayPodMonitor.interval="5s""#, "metrics.rayPodMonitor.enabled=true", r#"watchNamespace=["a"]"#], vec![
            Has("PodMonitor", "kuberay-operator-ray-pods", "/spec/podMetricsEndpoints/0/interval", json!("5s")),
            Has("PodMonitor", "kuberay-operator-ray-pods", "/spec/namespaceSelector", json!({"matchNames": ["a"]}))]),
        case(&[r#"metrics.rayPodMonitor.additionalLabels={"a":"b"}"#, "metrics.rayPodMonitor.enabled=true"], vec![
            Has("PodMonitor", "kuberay-operator-ray-pods", "/metadata/labels/a", json!("b"))]),
        case(&[r#"metrics.rayPodMonitor.namespace="m""#, "metrics.rayPodMonitor.enabled=true"], vec![
            Has("PodMonitor", "kuberay-operator-ray-pods", "/metadata/namespace", json!("m"))]),
        case(&["metrics.dashboard.enabled=true"], vec![
            Has("ConfigMap", "kuberay-operator-dashboard", "/metadata/labels/grafana_dashboard", json!("1")),
            Has("ConfigMap", "kuberay-operator-dashboard", "/metadata/namespace", json!("home"))]),
        case(&[r#"metrics.dashboard.labels={"a":"b"}"#, "metrics.dashboard.enabled=true"], vec![Has("ConfigMap", "kuberay-operator-dashboard", "/metadata/labels/a", json!("b"))]),
        case(&[r#"metrics.dashboard.annotations={"grafana_folder":"Ray"}"#, "metrics.dashboard.enabled=true"], vec![
            Has("ConfigMap", "kuberay-operator-dashboard", "/metadata/annotations", json!({"grafana_folder": "Ray"}))]),
        case(&[r#"metrics.dashboard.namespace="m""#, "metrics.dashboard.enabled=true"], vec![Has("ConfigMap", "kuberay-operator-dashboard", "/metadata/namespace", json!("m"))]),
        case(&["metrics.alerts.enabled=true"], vec![
            Has("PrometheusRule", OPERATOR, "/spec/groups/0/name", json!("kuberay-operator")),
            Has("PrometheusRule", OPERATOR, "/spec/groups/1/name", json!("kuberay-webhook"))]),
        case(&["metrics.alerts.enabled=true", "operator.enabled=false"], vec![Has("PrometheusRule", OPERATOR, "/spec/groups/0/name", json!("kuberay-webhook"))]),
        case(&["metrics.alerts.enabled=true", "webhook.enabled=false"], vec![Has("PrometheusRule", OPERATOR, "/spec/groups/1", Value::Null)]),
        case(&[r#"metrics.alerts.additionalLabels={"release":"prometheus"}"#, "metrics.alerts.enabled=true"], vec![
            Has("PrometheusRule", OPERATOR, "/metadata/labels/release", json!("prometheus"))]),
        case(&[r#"metrics.alerts.namespace="m""#, "metrics.alerts.enabled=true"], vec![Has("PrometheusRule", OPERATOR, "/metadata/namespace", json!("m"))]),
        case(&[r#"operatorCommand="/other""#], vec![operator("/spec/template/spec/containers/0/command", json!(["/other"]))]),
        case(&["useKubernetesProxy=true"], vec![Argument(OPERATOR, "--use-kubernetes-proxy=true")]),
        case(&["leaderElectionEnabled=false"], vec![
            Argument(OPERATOR, "--enable-leader-election=false"), operator("/spec/strategy", json!({"type": "Recreate"}))]),
        case(&["leaderElectionEnabled=true"], vec![operator("/spec/strategy/rollingUpdate", json!({"maxSurge": 1, "maxUnavailable": 0}))]),
        case(&["reconcileConcurrency=7"], vec![Argument(OPERATOR, "--reconcile-concurrency=7")]),
        case(&["kubeClient.qps=12.5"], vec![Argument(OPERATOR, "--qps=12.5")]),
        case(&["kubeClient.burst=3000000"], vec![Argument(OPERATOR, "--burst=3000000")]),
        case(&["rbacEnable=false"], vec![There("ClusterRole", OPERATOR, false), There("ServiceAccount", OPERATOR, true)]),
        case(&["crNamespacedRbacEnable=false", "singleNamespaceInstall=true"], vec![There("Role", OPERATOR, false), There("Role", "kuberay-operator-leader-election", true)]),
        case(&["singleNamespaceInstall=true"], vec![Argument(OPERATOR, "--watch-namespace home"), There("Role", OPERATOR, true)]),
        case(&[r#"watchNamespace=["a","b"]"#], vec![Argument(OPERATOR, "--watch-namespace a,b"), There("ClusterRole", OPERATOR, true)]),
        case(&["watchNamespace=null"], vec![NoArgument(OPERATOR, "--watch-namespace")]),
        case(&["crds.manage=true"], vec![Argument(OPERATOR, "--manage-crds"), There("ClusterRole", "kuberay-operator-crds", true)]),
        case(&[r#"env=[{"name":"CLUSTER_DOMAIN","value":"x"}]"#], vec![
            operator("/spec/template/spec/containers/0/env", json!([{"name": "CLUSTER_DOMAIN", "value": "x"}]))]),
        case(&[r#"tracing.endpoint="http://otel:4318""#], vec![
            operator("/spec/template/spec/containers/0/env", tracing("1")), webhook("/spec/template/spec/containers/0/env", tracing("1"))]),
        case(&["tracing.samplingRatio=0.01", r#"tracing.endpoint="http://otel:4318""#, r#"env=[{"name":"X","value":"y"}]"#], vec![
            operator("/spec/template/spec/containers/0/env/3", tracing("0.01")[3].clone()),
            operator("/spec/template/spec/containers/0/env/5", json!({"name": "X", "value": "y"})),
            webhook("/spec/template/spec/containers/0/env", tracing("0.01"))]),
        // As `--set` hands it over.
        case(&[r#"tracing.samplingRatio="0.5""#, r#"tracing.endpoint="http://otel:4318""#], vec![
            webhook("/spec/template/spec/containers/0/env", tracing("0.5"))]),
        case(&[r#"tracing.env=[{"name":"OTEL_SERVICE_NAME","value":"mine"}]"#, r#"tracing.endpoint="http://otel:4318""#], vec![
            operator("/spec/template/spec/containers/0/env/5", json!({"name": "OTEL_SERVICE_NAME", "value": "mine"})),
            webhook("/spec/template/spec/containers/0/env/5", json!({"name": "OTEL_SERVICE_NAME", "value": "mine"}))]),
        case(&["tracing.samplingRatio=0", r#"tracing.env=[{"name":"X"}]"#], vec![
            operator("/spec/template/spec/containers/0/env", Value::Null), webhook("/spec/template/spec/containers/0/env", Value::Null)]),
        case(&[r#"resources={"limits":{"cpu":"100m"}}"#], vec![
            operator("/spec/template/spec/containers/0/resources/limits", json!({"cpu": "100m", "memory": "512Mi"}))]),
        case(&["livenessProbe.initialDelaySeconds=30"], vec![operator("/spec/template/spec/containers/0/livenessProbe", json!(
            {"httpGet": {"path": "/healthz", "port": "health"}, "initialDelaySeconds": 30, "periodSeconds": 5, "failureThreshold": 5}))]),
        case(&["readinessProbe.periodSeconds=9"], vec![operator("/spec/template/spec/containers/0/readinessProbe", json!(
            {"httpGet": {"path": "/readyz", "port": "health"}, "initialDelaySeconds": 1, "periodSeconds": 9, "failureThreshold": 5}))]),
        case(&[r#"podSecurityContext={"fsGroup":7}"#], vec![operator("/spec/template/spec/securityContext", json!({"fsGroup": 7}))]),
        case(&["securityContext.runAsUser=9"], vec![
            operator("/spec/template/spec/containers/0/securityContext/runAsUser", json!(9)), webhook("/spec/template/spec/containers/0/securityContext/runAsUser", Value::Null)]),
        case(&[r#"service.type="NodePort""#], vec![Has("Service", OPERATOR, "/spec/type", json!("NodePort"))]),
        case(&["service.port=9000"], vec![Has("Service", OPERATOR, "/spec/ports/0", json!({"name": "http", "port": 9000, "targetPort": "http", "protocol": "TCP"}))]),
        case(&["podDisruptionBudget.enabled=true"], vec![Has("PodDisruptionBudget", OPERATOR, "/spec/maxUnavailable", json!(1))]),
        case(&[r#"podDisruptionBudget.maxUnavailable="50%""#, "podDisruptionBudget.enabled=true"], vec![Has("PodDisruptionBudget", OPERATOR, "/spec/maxUnavailable", json!("50%"))]),
        case(&["networkPolicy.enabled=true"], vec![
            // Nothing that the programs ask others for, such as a collector of traces, is in the way.
            Has("NetworkPolicy", OPERATOR, "/spec/policyTypes", json!(["Ingress"])), Has("NetworkPolicy", WEBHOOK, "/spec/policyTypes", json!(["Ingress"])),
            Has("NetworkPolicy", OPERATOR, "/spec/ingress", json!([{"ports": [{"port": "http"}]}, {"ports": [{"port": "health"}]}])),
            Has("NetworkPolicy", WEBHOOK, "/spec/ingress", json!([{"ports": [{"port": "https"}, {"port": "health"}]}, {"ports": [{"port": "http"}]}]))]),
        case(&[r#"networkPolicy.metricsFrom=[{"namespaceSelector":{}}]"#, "networkPolicy.enabled=true"], vec![
            Has("NetworkPolicy", OPERATOR, "/spec/ingress/0/from", json!([{"namespaceSelector": {}}])),
            Has("NetworkPolicy", WEBHOOK, "/spec/ingress/0/from", Value::Null),
            Has("NetworkPolicy", WEBHOOK, "/spec/ingress/1/from", json!([{"namespaceSelector": {}}]))]),
        case(&["webhook.enabled=false"], vec![There(DEPLOYMENT, WEBHOOK, false), There(DEPLOYMENT, OPERATOR, true)]),
        case(&["webhook.replicas=5"], vec![webhook("/spec/replicas", json!(5))]),
        case(&[r#"webhook.image.repository="r/w""#], vec![webhook("/spec/template/spec/containers/0/image", json!(concat!("r/w:", env!("CARGO_PKG_VERSION"))))]),
        case(&[r#"webhook.image.tag="x""#], vec![webhook("/spec/template/spec/containers/0/image", json!("docker.io/kuberay-rs/kuberay-webhook:x"))]),
        case(&[r#"webhook.image.pullPolicy="Never""#], vec![webhook("/spec/template/spec/containers/0/imagePullPolicy", json!("Never"))]),
        case(&[r#"webhook.failurePolicy="Ignore""#], vec![Has("ValidatingWebhookConfiguration", "kuberay-operator-webhook-home", "/webhooks/3/failurePolicy", json!("Ignore"))]),
        case(&["webhook.timeoutSeconds=3"], vec![Has("MutatingWebhookConfiguration", "kuberay-operator-webhook-home", "/webhooks/0/timeoutSeconds", json!(3))]),
        case(&[r#"webhook.namespaceSelector={"matchLabels":{"a":"b"}}"#], vec![
            Has("MutatingWebhookConfiguration", "kuberay-operator-webhook-home", "/webhooks/0/namespaceSelector", json!({"matchLabels": {"a": "b"}}))]),
        case(&[r#"webhook.certificates.secretName="mine""#], vec![There("Secret", "mine", true), Argument(WEBHOOK, "--secret-name=mine")]),
        case(&[r#"webhook.logging.encoder="console""#], vec![Argument(WEBHOOK, "--log-format=console")]),
        case(&[r#"webhook.logging.level="info,certs=debug""#], vec![Argument(WEBHOOK, "--log-level=info,certs=debug")]),
        case(&["webhook.serviceAccount.create=false"], vec![
            There("ServiceAccount", WEBHOOK, false), webhook("/spec/template/spec/serviceAccountName", json!("default"))]),
        case(&[r#"webhook.serviceAccount.name="w""#], vec![There("ServiceAccount", "w", true), Has("RoleBinding", WEBHOOK, "/subjects/0/name", json!("w"))]),
        case(&[r#"webhook.annotations={"a":"b"}"#], vec![webhook("/spec/template/metadata/annotations", json!({"a": "b"}))]),
        case(&[r#"webhook.podSecurityContext={"fsGroup":7}"#], vec![webhook("/spec/template/spec/securityContext", json!({"fsGroup": 7}))]),
        case(&["webhook.securityContext.runAsUser=9"], vec![
            webhook("/spec/template/spec/containers/0/securityContext/runAsUser", json!(9)), operator("/spec/template/spec/containers/0/securityContext/runAsUser", Value::Null)]),
        case(&["webhook.resources.limits.memory=null"], vec![webhook("/spec/template/spec/containers/0/resources", json!({"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {}}))]),
        case(&["webhook.podDisruptionBudget.enabled=false"], vec![There("PodDisruptionBudget", WEBHOOK, false)]),
        case(&["webhook.podDisruptionBudget.maxUnavailable=2"], vec![Has("PodDisruptionBudget", WEBHOOK, "/spec/maxUnavailable", json!(2))]),
        case(&["webhook.podMonitor.enabled=true"], vec![
            Has("PodMonitor", WEBHOOK, "/spec/podMetricsEndpoints/0", json!({"port": "http", "path": "/metrics", "interval": "30s", "honorLabels": true}))]),
        case(&[r#"webhook.podMonitor.interval="5s""#, "webhook.podMonitor.enabled=true"], vec![Has("PodMonitor", WEBHOOK, "/spec/podMetricsEndpoints/0/interval", json!("5s"))]),
        case(&[r#"webhook.podMonitor.additionalLabels={"a":"b"}"#, "webhook.podMonitor.enabled=true"], vec![Has("PodMonitor", WEBHOOK, "/metadata/labels/a", json!("b"))]),
        case(&[r#"webhook.podMonitor.namespace="m""#, "webhook.podMonitor.enabled=true"], vec![Has("PodMonitor", WEBHOOK, "/metadata/namespace", json!("m"))]),
    ]
}

/// Keys whose effect is a combination, with the test that shows it.
const ELSEWHERE: [(&str, &str); 11] = [
    ("configuration.enabled", "the_configuration_file_says_what_the_flags_would"),
    ("configuration.defaultContainerEnvs", "the_configuration_file_says_what_the_flags_would"),
    ("configuration.defaultPodAnnotations", "the_configuration_file_says_what_the_flags_would"),
    ("configuration.defaultPodLabels", "the_configuration_file_says_what_the_flags_would"),
    ("configuration.headSidecarContainers", "the_configuration_file_says_what_the_flags_would"),
    ("configuration.workerSidecarContainers", "the_configuration_file_says_what_the_flags_would"),
    ("webhook.certificates.mode", "certificates_by_mode"),
    ("webhook.certificates.caBundle", "certificates_by_mode"),
    ("webhook.certificates.issuerRef", "certificates_by_mode"),
    ("webhook.fleetDefaults", "the_policy_is_what_the_webhook_reads"),
    ("webhook.warnOnly", "the_policy_is_what_the_webhook_reads"),
];

fn check(rendered: &Rendered, follows: &Follows, values: &[&str]) {
    match follows {
        Has(kind, name, pointer, wanted) => {
            let object = rendered.get(kind, name).unwrap();
            assert_eq!(object.pointer(pointer).unwrap_or(&Value::Null), wanted, "{values:?}: {kind} {name} {pointer}");
        }
        Argument(program, wanted) => {
            let arguments = rendered.arguments(program).unwrap();
            let joined = format!(" {} ", arguments.join(" "));
            assert!(joined.contains(&format!(" {wanted} ")), "{values:?}: {program} gets{joined}");
        }
        NoArgument(program, start) => {
            let arguments = rendered.arguments(program).unwrap();
            assert!(!arguments.iter().any(|argument| argument.starts_with(start)), "{values:?}: {arguments:?}");
        }
        There(kind, name, there) => {
            assert_eq!(rendered.find(kind, name).is_some(), *there, "{values:?}: {kind} {name} among {:?}", rendered.names());
        }
    }
}

#[test]
fn each_key_does_what_it_says() {
    for case in cases() {
        let rendered = render(&case.values);
        for follows in &case.follows {
            check(&rendered, follows, &case.values);
        }
    }
}

fn within(key: &str, other: &str) -> bool {
    key.strip_prefix(other).is_some_and(|rest| rest.starts_with('.'))
}

#[test]
fn each_key_has_a_test() {
    let cases = cases();
    let here = cases.iter().filter_map(|case| case.values.first()?.split_once('=')).map(|(key, _)| key);
    let names: BTreeSet<&str> = here.chain(ELSEWHERE.iter().map(|(key, _)| *key)).collect();
    let tested = |key: &String| names.iter().any(|name| name == key || within(name, key) || within(key, name));
    let untested: Vec<String> =
        keys_of(&schema(OPERATOR)).into_iter().filter(|key| !["enabled", "global"].contains(&key.as_str()) && !tested(key)).collect();
    assert!(untested.is_empty(), "{untested:?}");
}

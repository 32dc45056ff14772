//! The chart that makes one RayCluster: every key of KubeRay's chart (D.2), and what admission says.

use std::io::Write;
use std::process::{Command, Stdio};

use api_tests::chart::{self, text};
use serde_json::{Value, json};

fn render(values: &[&str]) -> Value {
    let arguments: Vec<&str> = values.iter().flat_map(|value| ["--set-json", value]).collect();
    let rendered = chart::render("ray-cluster", "release", "home", &arguments).unwrap_or_else(|error| panic!("{values:?}: {error:#}"));
    assert_eq!(rendered.objects().len(), 1, "exactly one object");
    rendered.objects()[0].clone()
}

/// What the API server and the webhook would say, by the program itself.
fn admitted(object: &Value) -> (bool, String) {
    let program = api_tests::program::binary("kuberay-webhook");
    assert!(program.exists(), "{} is missing: run `make test-api`, or `cargo build -p webhook`", program.display());
    let mut command = Command::new(program);
    command.args(["check", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(object.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn defaults_make_a_cluster_that_is_admitted() {
    let cluster = render(&[]);
    let (admitted, said) = admitted(&cluster);
    assert!(admitted && !said.to_lowercase().contains("warning"), "{said}");
    assert_eq!(text(&cluster, "/metadata/name"), "release-kuberay");
    let spec = &cluster["spec"];
    assert_eq!(spec.get("rayVersion"), None, "the image says it");
    assert_eq!(spec["headGroupSpec"]["serviceType"], "ClusterIP");
    assert_eq!(spec["headGroupSpec"]["rayStartParams"], json!({}));
    let head = &spec["headGroupSpec"]["template"]["spec"];
    assert_eq!(head["containers"][0]["name"], "ray-head");
    assert_eq!(head["containers"][0]["image"], "rayproject/ray:2.52.0");
    assert_eq!(head["containers"][0]["resources"]["limits"], json!({"cpu": "1", "memory": "5Gi"}));
    assert_eq!(head["containers"][0]["volumeMounts"], json!([{"name": "log-volume", "mountPath": "/tmp/ray"}]));
    assert_eq!(head["volumes"], json!([{"name": "log-volume", "emptyDir": {}}]));
    let groups = spec["workerGroupSpecs"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "smallGroup is disabled");
    assert_eq!(groups[0]["groupName"], "workergroup");
    assert_eq!((&groups[0]["replicas"], &groups[0]["minReplicas"], &groups[0]["maxReplicas"]), (&json!(1), &json!(1), &json!(5)));
    for labels in ["/metadata/labels", "/spec/headGroupSpec/template/metadata/labels", "/spec/workerGroupSpecs/0/template/metadata/labels"]
    {
        let labels = cluster.pointer(labels).unwrap();
        assert_eq!(labels["app.kubernetes.io/instance"], "release");
        assert_eq!(labels["app.kubernetes.io/managed-by"], "Helm");
        assert!(labels.get("helm.sh/chart").is_some());
    }
}

#[test]
fn names_of_the_cluster() {
    let name = |release: &str, values: &[&str]| {
        let arguments: Vec<&str> = values.iter().flat_map(|value| ["--set-json", value]).collect();
        let rendered = chart::render("ray-cluster", release, "home", &arguments).unwrap();
        text(&rendered.objects()[0], "/metadata/name").to_owned()
    };
    assert_eq!(name("release", &[]), "release-kuberay");
    assert_eq!(name("my-kuberay", &[]), "my-kuberay");
    assert_eq!(name("release", &[r#"nameOverride="ray""#]), "release-ray");
    assert_eq!(name("release", &[r#"fullnameOverride="mine""#]), "mine");
}

/// Keys of a group's Pod: the key, its value, and where it ends up below the Pod template.
#[rustfmt::skip]
const POD: &[(&str, &str, &str)] = &[
    ("image", r#""other/ray:2.54.1""#, "/spec/containers/0/image"),
    ("command", r#"["a"]"#, "/spec/containers/0/command"),
    ("args", r#"["b"]"#, "/spec/containers/0/args"),
    ("containerEnv", r#"[{"name":"A","value":"1"}]"#, "/spec/containers/0/env"),
    ("envFrom", r#"[{"secretRef":{"name":"s"}}]"#, "/spec/containers/0/envFrom"),
    ("ports", r#"[{"name":"x","containerPort":1234}]"#, "/spec/containers/0/ports"),
    ("lifecycle", r#"{"preStop":{"exec":{"command":["ray","stop"]}}}"#, "/spec/containers/0/lifecycle"),
    ("securityContext", r#"{"runAsUser":1000}"#, "/spec/containers/0/securityContext"),
    ("resources", r#"{"limits":{"cpu":"2","memory":"8Gi"},"requests":{"cpu":"2","memory":"8Gi"}}"#, "/spec/containers/0/resources"),
    ("volumeMounts", r#"[{"name":"v","mountPath":"/v"}]"#, "/spec/containers/0/volumeMounts"),
    ("volumes", r#"[{"name":"v","emptyDir":{}},{"name":"log-volume","emptyDir":{}}]"#, "/spec/volumes"),
    ("sidecarContainers", r#"[{"name":"s","image":"s"}]"#, "/spec/containers/1=0"),
    ("initContainers", r#"[{"name":"i","image":"i"}]"#, "/spec/initContainers"),
    ("annotations", r#"{"a":"b"}"#, "/metadata/annotations"),
    ("serviceAccountName", r#""me""#, "/spec/serviceAccountName"),
    ("restartPolicy", r#""Never""#, "/spec/restartPolicy"),
    ("runtimeClassName", r#""gvisor""#, "/spec/runtimeClassName"),
    ("priorityClassName", r#""high""#, "/spec/priorityClassName"),
    ("priority", "0", "/spec/priority"),
    ("dnsConfig", r#"{"searches":["x"]}"#, "/spec/dnsConfig"),
    ("nodeSelector", r#"{"a":"b"}"#, "/spec/nodeSelector"),
    ("affinity", r#"{"nodeAffinity":{}}"#, "/spec/affinity"),
    ("tolerations", r#"[{"key":"k","operator":"Exists"}]"#, "/spec/tolerations"),
    ("topologySpreadConstraints", r#"[{"maxSkew":1,"topologyKey":"z","whenUnsatisfiable":"ScheduleAnyway"}]"#, "/spec/topologySpreadConstraints"),
    ("podSecurityContext", r#"{"fsGroup":7}"#, "/spec/securityContext"),
    ("resourceClaims", r#"[{"name":"gpu","resourceClaimTemplateName":"t"}]"#, "/spec/resourceClaims"),
];

#[test]
fn each_key_of_a_pod_reaches_it() {
    let groups = [
        ("head", "/spec/headGroupSpec"),
        ("worker", "/spec/workerGroupSpecs/0"),
        ("additionalWorkerGroups.extra", "/spec/workerGroupSpecs/1"),
    ];
    for (group, place) in groups {
        let mut all: Vec<String> = POD.iter().map(|(key, value, _)| format!("{group}.{key}={value}")).collect();
        all.push(format!(r#"{group}.labels={{"app.kubernetes.io/instance":"mine","x":"y"}}"#));
        all.push(format!(r#"{group}.rayStartParams={{"num-cpus":0,"object-store-memory":2000000000}}"#));
        all.push(format!(r#"{group}.initArgs={{"num-cpus":8,"block":true}}"#));
        let cluster = render(&all.iter().map(String::as_str).collect::<Vec<_>>());
        let template = cluster.pointer(place).unwrap().get("template").unwrap();
        for (key, value, pointer) in POD {
            let value: Value = serde_json::from_str(value).unwrap();
            let (pointer, value) = match pointer.split_once('=') {
                Some((pointer, index)) => (pointer, value[index.parse::<usize>().unwrap()].clone()),
                None => (*pointer, value),
            };
            assert_eq!(template.pointer(pointer), Some(&value), "{group}.{key}");
        }
        let labels = &template["metadata"]["labels"];
        assert_eq!((&labels["x"], &labels["app.kubernetes.io/instance"]), (&json!("y"), &json!("mine")));
        let params = cluster.pointer(place).unwrap().get("rayStartParams").unwrap();
        assert_eq!(params, &json!({"num-cpus": "0", "object-store-memory": "2000000000", "block": "true"}), "text, and initArgs gives way");
    }
}

#[test]
fn keys_of_the_cluster() {
    let redis = r#"gcsFaultTolerance={"enabled":true,"redisAddress":"redis:6379","externalStorageNamespace":"ns",
        "redisUsername":{"value":"u"},"redisPassword":{"valueFrom":{"secretKeyRef":{"name":"s","key":"p"}}}}"#;
    for (values, pointer, wanted) in [
        (
            &[r#"image={"repository":"r/ray","tag":2.53,"pullPolicy":"Always"}"#][..],
            "/spec/headGroupSpec/template/spec/containers/0/image",
            json!("r/ray:2.53"),
        ),
        (&[r#"image.pullPolicy="Always""#], "/spec/workerGroupSpecs/0/template/spec/containers/0/imagePullPolicy", json!("Always")),
        (&[r#"imagePullSecrets=[{"name":"s"}]"#], "/spec/workerGroupSpecs/0/template/spec/imagePullSecrets", json!([{"name": "s"}])),
        (&[r#"annotations={"a":"b"}"#], "/metadata/annotations", json!({"a": "b"})),
        (&[], "/spec/gcsFaultToleranceOptions", Value::Null),
        (&["gcsFaultTolerance.enabled=true"], "/spec/gcsFaultToleranceOptions", json!({"redisAddress": ""})),
        (
            &[redis],
            "/spec/gcsFaultToleranceOptions",
            json!({"redisAddress": "redis:6379", "externalStorageNamespace": "ns",
            "redisUsername": {"value": "u"}, "redisPassword": {"valueFrom": {"secretKeyRef": {"name": "s", "key": "p"}}}}),
        ),
        (
            &[r#"common.containerEnv=[{"name":"C","value":"1"}]"#, r#"worker.containerEnv=[{"name":"W","value":"2"}]"#],
            "/spec/workerGroupSpecs/0/template/spec/containers/0/env",
            json!([{"name": "C", "value": "1"}, {"name": "W", "value": "2"}]),
        ),
        (&[r#"head.rayVersion="2.52.0""#], "/spec/rayVersion", json!("2.52.0")),
        (&["head.enableInTreeAutoscaling=false"], "/spec/enableInTreeAutoscaling", json!(false)),
        (&[r#"head.autoscalerOptions={"idleTimeoutSeconds":30}"#], "/spec/autoscalerOptions", json!({"idleTimeoutSeconds": 30})),
        (
            &[r#"head.headService={"metadata":{"labels":{"a":"b"}}}"#],
            "/spec/headGroupSpec/headService",
            json!({"metadata": {"labels": {"a": "b"}}}),
        ),
        (&[r#"service.type="NodePort""#], "/spec/headGroupSpec/serviceType", json!("NodePort")),
        (&["worker.disabled=true"], "/spec/workerGroupSpecs", Value::Null),
        (&[r#"worker.groupName="gpus""#], "/spec/workerGroupSpecs/0/groupName", json!("gpus")),
        (&["worker.replicas=3"], "/spec/workerGroupSpecs/0/replicas", json!(3)),
        (&["worker.minReplicas=null"], "/spec/workerGroupSpecs/0/minReplicas", json!(0)),
        (&["worker.maxReplicas=null"], "/spec/workerGroupSpecs/0/maxReplicas", json!(2_147_483_647)),
        (&["worker.maxReplicas=0", "worker.replicas=0", "worker.minReplicas=0"], "/spec/workerGroupSpecs/0/maxReplicas", json!(0)),
        (&["worker.numOfHosts=4"], "/spec/workerGroupSpecs/0/numOfHosts", json!(4)),
        (&["additionalWorkerGroups.smallGroup.disabled=false"], "/spec/workerGroupSpecs/1/groupName", json!("smallGroup")),
        (&["additionalWorkerGroups.smallGroup.disabled=false"], "/spec/workerGroupSpecs/1/maxReplicas", json!(5)),
        (
            &["additionalWorkerGroups.extra={}"],
            "/spec/workerGroupSpecs/1/template/spec/containers/0/resources/limits",
            json!({"cpu": "1", "memory": "1Gi"}),
        ),
        (&["additionalWorkerGroups.smallGroup=null"], "/spec/workerGroupSpecs/1", Value::Null),
    ] {
        let cluster = render(values);
        assert_eq!(cluster.pointer(pointer).unwrap_or(&Value::Null), &wanted, "{values:?}");
        let (admitted, said) = admitted(&cluster);
        assert!(admitted, "{values:?}: {said}");
    }
}

#[test]
fn what_cannot_work_is_refused() {
    for (values, named) in [
        (r#"worker.groupname="a""#, "groupname"),
        ("worker.numOfHosts=0", "numOfHosts"),
        (r#"head.restartPolicy="Sometimes""#, "restartPolicy"),
    ] {
        let error = chart::render("ray-cluster", "release", "home", &["--set-json", values]).unwrap_err().to_string();
        assert!(error.contains(named), "{values}: {error}");
    }
    // What the schema cannot know, admission does.
    let (allowed, said) = admitted(&render(&["worker.minReplicas=9"]));
    assert!(!allowed && said.contains("minReplicas"), "{said}");
}

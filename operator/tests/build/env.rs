//! RC-55, RC-56, RC-307: variables of the Ray container, and what init containers get.

use k8s_openapi::api::core::v1::EnvVar;
use operator::settings::VERSION;
use serde_json::json;

use crate::fixture::{ContainerExt, PodExt, head, head_group, head_with, ray, settings, worker, worker_group};

#[test]
fn rc_55_order_on_a_head() {
    let pod = head(|c| ray(head_group(c))["env"] = json!([{"name": "MINE", "value": "1"}]));
    let wanted = [
        "MINE",
        "RAY_CLUSTER_NAME",
        "RAY_CLUSTER_NAMESPACE",
        "RAY_CLOUD_INSTANCE_ID",
        "RAY_NODE_TYPE_NAME",
        "KUBERAY_GEN_RAY_START_CMD",
        "RAY_PORT",
        "RAY_ADDRESS",
        "RAY_USAGE_STATS_KUBERAY_IN_USE",
        "RAY_USAGE_STATS_EXTRA_TAGS",
        "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE",
    ];
    assert_eq!(pod.ray().names(), wanted);
}

#[test]
fn rc_307_addresses() {
    let pod = head(|_| ());
    assert_eq!(pod.ray().value("RAY_ADDRESS"), Some("127.0.0.1:6379"));
    assert_eq!(pod.ray().count("FQ_RAY_IP"), 0);
    let pod = worker(|c| {
        c["metadata"]["name"] = "raycluster-sample".into();
        c["metadata"]["namespace"] = "default".into();
    });
    let fqdn = "raycluster-sample-head-svc.default.svc.cluster.local";
    assert_eq!(pod.ray().value("RAY_ADDRESS"), Some(format!("{fqdn}:6379").as_str()));
    assert_eq!(pod.ray().value("FQ_RAY_IP"), Some(fqdn));
    assert_eq!(pod.ray().value("RAY_IP"), Some("raycluster-sample-head-svc"));
}

#[test]
fn rc_16_domain_and_service_name() {
    let pod = crate::fixture::worker_with(
        |c| head_group(c)["headService"] = json!({"metadata": {"name": "entry"}}),
        &settings(|s| s.switches.cluster_domain = "corp.example".to_owned()),
    );
    assert_eq!(pod.ray().value("FQ_RAY_IP"), Some("entry.ml.svc.corp.example"));
    assert_eq!(pod.ray().value("RAY_IP"), Some("entry"));
}

#[test]
fn rc_55_the_users_values_stay_where_they_may() {
    let mine = |names: &[&str]| json!(names.iter().map(|name| json!({"name": name, "value": "mine"})).collect::<Vec<_>>());
    let kept = ["RAY_PORT", "RAY_ADDRESS", "RAY_USAGE_STATS_KUBERAY_IN_USE", "RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE"];
    let pod = head(|c| ray(head_group(c))["env"] = mine(&kept));
    for name in kept {
        assert_eq!((pod.ray().value(name), pod.ray().count(name)), (Some("mine"), 1), "{name}");
    }
    // These are ours: Kubernetes lets the last one win.
    let ours = ["RAY_USAGE_STATS_EXTRA_TAGS", "KUBERAY_GEN_RAY_START_CMD"];
    let pod = head(|c| ray(head_group(c))["env"] = mine(&ours));
    for name in ours {
        assert_eq!(pod.ray().count(name), 2, "{name}");
        assert_ne!(pod.ray().value(name), Some("mine"), "{name}");
    }
}

#[test]
fn rc_55_5_configured_variables_fill_gaps() {
    let configured = settings(|s| {
        s.pods.env = [("A", "configured"), ("B", "configured"), ("RAY_PORT", "configured")]
            .map(|(name, value)| EnvVar { name: name.to_owned(), value: Some(value.to_owned()), value_from: None })
            .to_vec();
    });
    let pod = head_with(|c| ray(head_group(c))["env"] = json!([{"name": "A", "value": "mine"}]), &configured);
    assert_eq!((pod.ray().value("A"), pod.ray().count("A")), (Some("mine"), 1));
    assert_eq!(pod.ray().value("B"), Some("configured"));
    assert_eq!((pod.ray().value("RAY_PORT"), pod.ray().count("RAY_PORT")), (Some("configured"), 1));
    assert_eq!(pod.ray().names()[..4], ["A", "B", "RAY_PORT", "RAY_CLUSTER_NAME"]);
}

#[test]
fn rc_55_12_tags_name_version_and_creator() {
    for (kind, wanted) in
        [(None, "RayCluster"), (Some("RayJob"), "RayJob"), (Some("RayService"), "RayService"), (Some("Other"), "RayCluster")]
    {
        let pod = head(|c| {
            if let Some(kind) = kind {
                c["metadata"]["labels"] = json!({"ray.io/originated-from-crd": kind});
            }
        });
        assert_eq!(pod.ray().value("RAY_USAGE_STATS_EXTRA_TAGS"), Some(format!("kuberay_version={VERSION};kuberay_crd={wanted}").as_str()));
    }
    assert_eq!(worker(|_| ()).ray().count("RAY_USAGE_STATS_EXTRA_TAGS"), 0);
}

#[test]
fn rc_55_9_ray_services_give_up_soon() {
    let service = |c: &mut serde_json::Value| c["metadata"]["labels"] = json!({"ray.io/originated-from-crd": "RayService"});
    for pod in [head(service), worker(service)] {
        assert_eq!(pod.ray().value("RAY_timeout_ms_task_wait_for_death_info"), Some("0"));
        assert_eq!(pod.ray().value("RAY_gcs_server_request_timeout_seconds"), Some("5"));
        assert_eq!(pod.ray().value("RAY_SERVE_KV_TIMEOUT_S"), Some("5"));
    }
    assert_eq!(head(|_| ()).ray().count("RAY_SERVE_KV_TIMEOUT_S"), 0);
}

#[test]
fn rc_33_every_init_container_knows_the_head_and_other_containers_nothing() {
    let edit = |group: &mut serde_json::Value| {
        group["template"]["spec"]["initContainers"] = json!([{"name": "mine", "image": "busybox"}]);
        let sidecar = json!({"name": "sidecar", "image": "busybox"});
        group["template"]["spec"]["containers"].as_array_mut().unwrap().push(sidecar);
    };
    for pod in [head(|c| edit(head_group(c))), worker(|c| edit(worker_group(c)))] {
        assert_eq!(pod.init("mine").names(), ["FQ_RAY_IP", "RAY_IP"]);
        assert!(pod.container("sidecar").env.is_none(), "RC-56");
    }
}

#[test]
fn rc_65_the_wait_copies_what_the_user_gave_ray() {
    let pod = worker(|c| {
        let ray = ray(worker_group(c));
        ray["imagePullPolicy"] = "Always".into();
        ray["securityContext"] = json!({"privileged": true});
        ray["env"] = json!([{"name": "RAY_USE_TLS", "value": "1"}]);
        ray["envFrom"] = json!([{"secretRef": {"name": "more"}}]);
        ray["volumeMounts"] = json!([{"name": "certs", "mountPath": "/certs"}]);
        worker_group(c)["template"]["spec"]["initContainers"] = json!([{"name": "first", "image": "busybox"}]);
    });
    let names: Vec<&str> = pod.spec.as_ref().unwrap().init_containers.iter().flatten().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["first", "wait-gcs-ready"]);
    let wait = pod.init("wait-gcs-ready");
    assert_eq!(wait.names(), ["RAY_USE_TLS", "FQ_RAY_IP", "RAY_IP"]);
    assert_eq!(wait.mounted(), ["certs:/certs"]);
    assert_eq!(json!(wait.env_from), json!([{"secretRef": {"name": "more"}}]));
    assert_eq!(json!(wait.security_context), json!({"privileged": true}));
    assert_eq!(wait.image_pull_policy.as_deref(), Some("Always"));
    assert_eq!(
        json!(wait.resources),
        json!({"limits": {"cpu": "200m", "memory": "256Mi"}, "requests": {"cpu": "200m", "memory": "256Mi"}})
    );
    assert!(wait.args.as_ref().unwrap()[0].contains("ray health-check --address demo-head-svc.ml.svc.cluster.local:6379"));

    let off = settings(|s| s.switches.init_container_injection = false);
    assert!(crate::fixture::worker_with(|_| (), &off).spec.unwrap().init_containers.is_none());
    assert!(head(|_| ()).spec.unwrap().init_containers.is_none());
}

/// RC-66, run for real: refused answers are hidden for two minutes, shown afterwards, and the end is the first good answer.
#[test]
fn rc_66_the_script_waits_for_the_first_good_answer() {
    let pod = worker(|_| ());
    let script = &pod.init("wait-gcs-ready").args.as_ref().unwrap()[0];
    let folder = tempfile::tempdir().unwrap();
    // `ray` fails 27 times (135 s of waiting), `sleep` takes no time.
    let preamble = "echo 0 > n; ray() { n=$(($(cat n) + 1)); echo $n > n; echo \"asked $*\"; [ $n -gt 27 ]; }; sleep() { :; }\n";
    let text = format!("{preamble}{script}");
    let output = std::process::Command::new("bash").current_dir(folder.path()).args(["-c", "--", &text]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    let asked: Vec<&str> = text.lines().filter(|line| line.starts_with("asked")).collect();
    assert_eq!(asked, ["asked health-check --address demo-head-svc.ml.svc.cluster.local:6379"; 3], "{text}");
    assert!(text.lines().any(|line| line.starts_with("130 s")), "{text}");
    assert!(text.ends_with("The GCS server answers.\n"), "{text}");
}

//! RC-37, RC-38, RC-70..RC-76.

use serde_json::{Value, json};

use crate::fixture::{ContainerExt, PodExt, head, head_group, worker, worker_group};

const START: &str = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)";

fn on(c: &mut Value) {
    c["spec"]["enableInTreeAutoscaling"] = true.into();
}

#[test]
fn rc_70_72_the_container() {
    let pod = head(on);
    let autoscaler = pod.container("autoscaler");
    assert_eq!(autoscaler.image.as_deref(), Some("rayproject/ray:2.52.0"));
    assert_eq!(autoscaler.image_pull_policy.as_deref(), Some("IfNotPresent"));
    assert_eq!(autoscaler.command.as_deref().unwrap(), ["/bin/bash", "-c", "--"]);
    assert_eq!(autoscaler.args.as_deref().unwrap(), [START]);
    assert_eq!(
        autoscaler.names(),
        ["RAY_CLUSTER_NAME", "RAY_CLUSTER_NAMESPACE", "RAY_HEAD_POD_NAME", "KUBERAY_CRD_VER", "KUBERAY_GEN_AUTOSCALER_START_CMD"]
    );
    assert_eq!(autoscaler.value("KUBERAY_GEN_AUTOSCALER_START_CMD"), Some(START));
    assert_eq!(autoscaler.value("KUBERAY_CRD_VER"), Some("v1"));
    assert_eq!(
        json!(autoscaler.resources),
        json!({"limits": {"cpu": "500m", "memory": "512Mi"}, "requests": {"cpu": "500m", "memory": "512Mi"}})
    );
    assert!(autoscaler.security_context.is_none());
    assert_eq!(pod.spec.as_ref().unwrap().service_account_name.as_deref(), Some("demo"));
    assert!(pod.start().contains(" --no-monitor "));
    let pod = head(|c| {
        on(c);
        head_group(c)["rayStartParams"] = json!({"no-monitor": "false"});
    });
    assert!(pod.start().contains(" --no-monitor "), "RC-45: always");
}

#[test]
fn rc_73_overrides() {
    let pod = head(|c| {
        on(c);
        c["spec"]["autoscalerOptions"] = json!({
            "image": "other", "imagePullPolicy": "Always", "command": ["sh"], "args": ["-c", "$KUBERAY_GEN_AUTOSCALER_START_CMD"],
            "resources": {"limits": {"cpu": "1"}}, "securityContext": {"runAsUser": 7},
            "env": [{"name": "A", "value": "1"}], "envFrom": [{"configMapRef": {"name": "m"}}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        });
    });
    let autoscaler = pod.container("autoscaler");
    assert_eq!((autoscaler.image.as_deref(), autoscaler.image_pull_policy.as_deref()), (Some("other"), Some("Always")));
    assert_eq!(autoscaler.command.as_deref().unwrap(), ["sh"]);
    assert_eq!(autoscaler.args.as_deref().unwrap(), ["-c", "$KUBERAY_GEN_AUTOSCALER_START_CMD"]);
    assert_eq!(autoscaler.value("KUBERAY_GEN_AUTOSCALER_START_CMD"), Some(START));
    assert_eq!(json!(autoscaler.resources), json!({"limits": {"cpu": "1"}}));
    assert_eq!(json!(autoscaler.security_context), json!({"runAsUser": 7}));
    assert_eq!(autoscaler.names().last(), Some(&"A"));
    assert_eq!(json!(autoscaler.env_from), json!([{"configMapRef": {"name": "m"}}]));
    assert_eq!(autoscaler.mounted(), ["v:/v", "ray-logs:/tmp/ray"]);
}

#[test]
fn rc_37_75_versions() {
    let table = [
        (json!(null), None, None),
        (json!({}), None, None),
        (json!({"version": "v1"}), Some("false"), None),
        (json!({"version": "v2"}), Some("true"), Some("Never")),
    ];
    for (options, variable, policy) in table {
        let edit = |c: &mut Value| {
            on(c);
            c["spec"]["autoscalerOptions"] = options.clone();
        };
        let pod = head(edit);
        assert_eq!(pod.ray().value("RAY_enable_autoscaler_v2"), variable, "{options}");
        assert_eq!(pod.spec.as_ref().unwrap().restart_policy.as_deref(), policy, "{options}");
        let pod = worker(edit);
        assert_eq!(pod.spec.as_ref().unwrap().restart_policy.as_deref(), policy, "{options}");
        assert_eq!(pod.ray().value("RAY_enable_autoscaler_v2"), None, "{options}");
        assert_eq!(pod.spec.as_ref().unwrap().service_account_name, None, "workers are untouched (RC-38)");
    }
    let off = |c: &mut Value| {
        c["spec"]["autoscalerOptions"] = json!({"version": "v2"});
        worker_group(c)["template"]["spec"]["restartPolicy"] = "OnFailure".into();
    };
    assert_eq!(worker(off).spec.unwrap().restart_policy.as_deref(), Some("OnFailure"));
    assert_eq!(head(off).spec.unwrap().containers.len(), 1);
}

#[test]
fn rc_38_the_users_service_account_is_used_as_it_is() {
    let long = format!("9{}", "a".repeat(60));
    let pod = head(|c| {
        on(c);
        head_group(c)["template"]["spec"]["serviceAccountName"] = long.clone().into();
    });
    assert_eq!(pod.spec.unwrap().service_account_name, Some(long));
    let off = head(|_| ());
    assert_eq!(off.spec.unwrap().service_account_name, None);
}

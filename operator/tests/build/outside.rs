//! RC-24, RC-120..RC-147: RBAC, Ingress and Route, Secret, claim.

use operator::build::{auth, ingress, pvc, rbac, secret};
use operator::settings::Settings;
use serde_json::{Value, json};

use crate::fixture::{cluster, head, head_group, ray, settings};

#[test]
fn rc_122_123_rbac() {
    let cluster = cluster(|_| ());
    let labels = json!({"app.kubernetes.io/created-by": "kuberay-operator", "app.kubernetes.io/name": "kuberay", "ray.io/cluster": "demo"});
    let settings = Settings::default();
    let account = json!(rbac::service_account(&cluster, &settings));
    let role = json!(rbac::role(&cluster, &settings));
    let binding = json!(rbac::role_binding(&cluster, &settings));
    for object in [&account, &role, &binding] {
        assert_eq!(object["metadata"]["name"], "demo");
        assert_eq!(object["metadata"]["labels"], labels);
        assert_eq!(object["metadata"]["ownerReferences"][0]["kind"], "RayCluster");
    }
    assert_eq!(
        role["rules"],
        json!([
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "patch"]},
            {"apiGroups": [""], "resources": ["pods/resize"], "verbs": ["patch"]},
            {"apiGroups": ["ray.io"], "resources": ["rayclusters"], "verbs": ["get", "patch"]},
        ])
    );
    assert_eq!(binding["roleRef"], json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "demo"}));
    assert_eq!(binding["subjects"], json!([{"kind": "ServiceAccount", "name": "demo", "namespace": "ml"}]));
}

/// Two clusters whose long names end alike have nothing in common, and what belongs together still finds each other.
#[test]
fn long_names_do_not_meet() {
    let named = |first: char| {
        cluster(|c| {
            c["metadata"]["name"] = format!("{first}{}", "x".repeat(52)).into();
            c["spec"]["enableInTreeAutoscaling"] = true.into();
            c["spec"]["authOptions"] = json!({"mode": "token"});
        })
    };
    let settings = Settings::default();
    let names = |first: char| {
        let cluster = named(first);
        let pod = operator::build::pod::head(&cluster, &settings).unwrap();
        let account = rbac::service_account(&cluster, &settings).metadata.name;
        assert_eq!(account, pod.spec.unwrap().service_account_name);
        let binding = rbac::role_binding(&cluster, &settings);
        assert_eq!(account.as_deref(), Some(binding.subjects.unwrap()[0].name.as_str()));
        assert_eq!(rbac::role(&cluster, &settings).metadata.name.as_deref(), Some(binding.role_ref.name.as_str()));
        assert_eq!(secret::auth_token(&cluster, &[0; 32]).metadata.name, Some(auth::secret_name(&cluster)));
        [account.unwrap(), binding.role_ref.name, auth::secret_name(&cluster), ingress::ingress(&cluster, &settings).metadata.name.unwrap()]
    };
    let (a, b) = (names('a'), names('b'));
    for (a, b) in a.iter().zip(&b) {
        assert_ne!(a, b);
        assert!(a.len() <= 50 && a.starts_with('a'), "{a}");
    }
}

#[test]
fn rc_120_the_users_account() {
    let cluster = cluster(|c| head_group(c)["template"]["spec"]["serviceAccountName"] = "mine".into());
    assert_eq!(rbac::users_service_account(&cluster), Some("mine"));
    assert_eq!(rbac::role_binding(&cluster, &Settings::default()).subjects.unwrap()[0].name, "mine");
    assert_eq!(rbac::users_service_account(&crate::fixture::cluster(|_| ())), None);
}

fn ingress_of(edit: impl FnOnce(&mut Value)) -> Value {
    json!(ingress::ingress(&cluster(edit), &Settings::default()))
}

#[test]
fn rc_141_ingress() {
    let plain = ingress_of(|c| {
        c["metadata"]["annotations"] = json!({
            "kubernetes.io/ingress.class": "nginx", "nginx/x": "y", "kubectl.kubernetes.io/last-applied-configuration": "{}",
        });
    });
    assert_eq!(plain["metadata"]["name"], "demo-head-ingress");
    assert_eq!(plain["metadata"]["annotations"], json!({"nginx/x": "y"}));
    assert_eq!(plain["metadata"]["labels"]["ray.io/identifier"], "demo-head");
    let backend = json!({"service": {"name": "demo-head-svc", "port": {"number": 8265}}});
    assert_eq!(
        plain["spec"],
        json!({"ingressClassName": "nginx", "rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]})
    );
    let full = ingress_of(|c| {
        head_group(c)["ingressOptions"] =
            json!({"host": "ray.example", "path": "/ray", "pathType": "Exact", "tls": [{"hosts": ["ray.example"], "secretName": "s"}]});
        head_group(c)["headService"] = json!({"metadata": {"name": "entry"}});
        ray(head_group(c))["ports"] = json!([{"name": "dashboard", "containerPort": 1234}]);
    });
    let backend = json!({"service": {"name": "entry", "port": {"number": 1234}}});
    assert_eq!(
        full["spec"],
        json!({
            "rules": [{"host": "ray.example", "http": {"paths": [{"path": "/ray", "pathType": "Exact", "backend": backend}]}}],
            "tls": [{"hosts": ["ray.example"], "secretName": "s"}],
        })
    );
}

#[test]
fn rc_140_143_route() {
    assert!(!ingress::wanted(&cluster(|_| ())) && ingress::wanted(&cluster(|c| head_group(c)["enableIngress"] = true.into())));
    for (openshift, ingress_there, route) in [(false, false, false), (true, false, true), (true, true, false)] {
        let settings = settings(|s| (s.platform.openshift, s.switches.ingress_on_openshift) = (openshift, ingress_there));
        assert_eq!(ingress::uses_route(&settings), route);
    }
    let route = json!(ingress::route(&cluster(|c| c["metadata"]["annotations"] = json!({"a": "b"})), &Settings::default()));
    assert_eq!((&route["apiVersion"], &route["kind"]), (&json!("route.openshift.io/v1"), &json!("Route")));
    assert_eq!((&route["metadata"]["name"], &route["metadata"]["annotations"]), (&json!("demo-head-route"), &json!({"a": "b"})));
    assert_eq!(
        route["spec"],
        json!({"to": {"kind": "Service", "name": "demo-head-svc", "weight": 100}, "port": {"targetPort": 8265}, "wildcardPolicy": "None"})
    );
}

#[test]
fn rc_126_token() {
    let table = [
        (json!(null), false),
        (json!({}), true),
        (json!({"mode": "token"}), true),
        (json!({"mode": "disabled"}), false),
        (json!({"mode": "token", "secretName": "mine"}), false),
        (json!({"mode": "token", "enableK8sTokenAuth": true}), false),
    ];
    for (options, wanted) in table {
        assert_eq!(secret::wanted(&cluster(|c| c["spec"]["authOptions"] = options.clone())), wanted, "{options}");
    }
    let token = json!(secret::auth_token(&cluster(|_| ()), &[0; 32]));
    assert_eq!(token["metadata"]["labels"], json!({"ray.io/cluster": "demo"}));
    assert_eq!(token["stringData"], json!({"auth_token": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}));
}

#[test]
fn rc_145_146_claim() {
    let with = |storage: Value| cluster(|c| c["spec"]["gcsFaultToleranceOptions"] = json!({"backend": "rocksdb", "storage": storage}));
    let plain = json!(pvc::gcs(&with(json!(null))));
    assert_eq!(plain["metadata"]["name"], "demo-gcs-pvc");
    assert_eq!(plain["metadata"]["ownerReferences"][0]["name"], "demo");
    assert_eq!(plain["spec"], json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}));
    let full = with(json!({"size": "9Gi", "storageClassName": "fast", "accessModes": ["ReadWriteMany"], "deletionPolicy": "Retain"}));
    assert!(pvc::is_retained(&full));
    let claim = json!(pvc::gcs(&full));
    assert!(claim["metadata"].get("ownerReferences").is_none());
    assert_eq!(
        claim["spec"],
        json!({"accessModes": ["ReadWriteMany"], "storageClassName": "fast", "resources": {"requests": {"storage": "9Gi"}}})
    );
    assert_eq!(pvc::users_claim(&with(json!({"claimName": "mine"}))), Some("mine"));
    assert_eq!(head(|_| ()).spec.unwrap().volumes.unwrap().len(), 1);
}

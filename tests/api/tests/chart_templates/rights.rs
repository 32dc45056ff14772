//! Who may do what, in each way of installing (D-10).

use std::collections::BTreeSet;

use api_tests::chart::Rendered;
use api_tests::rbac::{self, Permission};

use super::{OPERATOR, WEBHOOK, render};

fn rights(rendered: &Rendered, account: &str) -> BTreeSet<Permission> {
    rbac::granted(rendered, "home", account)
}

/// Places in which an account has rights to Pods.
fn places(rendered: &Rendered) -> Vec<Option<String>> {
    let pods = |right: &Permission| right.resource == "pods" && right.verb == "create";
    rights(rendered, OPERATOR).into_iter().filter(pods).map(|right| right.namespace).collect()
}

fn names_of(rendered: &Rendered, kinds: &[&str]) -> Vec<String> {
    rendered.names().into_iter().filter(|name| kinds.iter().any(|kind| name.starts_with(&format!("{kind}/")))).collect()
}

#[test]
fn the_operator_has_its_rights_where_it_watches() {
    let home = Some("home".to_owned());
    let (a, b) = (Some("a".to_owned()), Some("b".to_owned()));
    let two = r#"watchNamespace=["a","b"]"#;
    for (values, wanted) in [
        (&[][..], vec![None]),
        (&[two], vec![None]),
        (&["singleNamespaceInstall=true"], vec![home]),
        (&["singleNamespaceInstall=true", two], vec![a, b]),
        (&["singleNamespaceInstall=true", two, "crNamespacedRbacEnable=false"], vec![]),
        (&["crNamespacedRbacEnable=false"], vec![None]),
        (&["rbacEnable=false"], vec![]),
        (&["rbacEnable=false", "singleNamespaceInstall=true"], vec![]),
    ] {
        assert_eq!(places(&render(values)), wanted, "{values:?}");
    }
}

#[test]
fn one_namespace_means_no_cluster_roles_of_the_operator() {
    let rendered = render(&["singleNamespaceInstall=true", "webhook.enabled=false"]);
    assert_eq!(names_of(&rendered, &["ClusterRole", "ClusterRoleBinding"]), Vec::<String>::new());
    assert!(rights(&rendered, OPERATOR).iter().all(|right| right.namespace.as_deref() == Some("home")));
}

#[test]
fn without_rbac_there_is_none() {
    let rendered =
        render(&["rbacEnable=false", "crds.manage=true", r#"webhook.warnOnly=[{"rules":["*"],"namespaces":{"matchLabels":{"a":"b"}}}]"#]);
    assert!(names_of(&rendered, &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"]).is_empty());
}

#[test]
fn the_lease_is_in_the_releases_namespace_and_only_with_an_election() {
    let leases = |values: &[&str]| {
        let lease = |right: &Permission| right.resource == "leases";
        rights(&render(values), OPERATOR).into_iter().filter(lease).map(|right| right.to_string()).collect::<Vec<_>>()
    };
    let wanted = [
        "create leases.coordination.k8s.io in home",
        "get leases.coordination.k8s.io ray-operator-leader in home",
        "update leases.coordination.k8s.io ray-operator-leader in home",
    ];
    for values in [&[][..], &["singleNamespaceInstall=true", r#"watchNamespace=["a"]"#, "crNamespacedRbacEnable=false"]] {
        assert_eq!(leases(values), wanted, "{values:?}");
    }
    assert!(leases(&["leaderElectionEnabled=false"]).is_empty());
}

#[test]
fn roles_of_users() {
    let users = |values: &[&str]| {
        let mut names = names_of(&render(values), &["ClusterRole"]);
        names.retain(|name| name.ends_with("-editor-role") || name.ends_with("-viewer-role"));
        names
    };
    let all: Vec<String> = ["raycronjob", "rayjob", "rayservice"]
        .iter()
        .flat_map(|kind| ["editor", "viewer"].map(|role| format!("ClusterRole/{kind}-{role}-role")))
        .collect();
    assert_eq!(users(&[]), all);
    for values in ["singleNamespaceInstall=true", "rbacEnable=false", "operator.enabled=false"] {
        assert!(users(&[values]).is_empty(), "{values}");
    }
    let rendered = render(&[]);
    let verbs =
        |role: &str| rbac::rules(rendered.get("ClusterRole", role).unwrap(), None).iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        verbs("rayjob-viewer-role"),
        ["get rayjobs.ray.io", "list rayjobs.ray.io", "watch rayjobs.ray.io", "get rayjobs/status.ray.io"]
    );
    assert_eq!(verbs("raycronjob-editor-role").len(), 8);
}

/// Rights to a resource, wherever they hold.
fn verbs(values: &[&str], account: &str, group: &str, resource: &str) -> String {
    let of = |right: &Permission| right.group == group && right.resource == resource;
    let verbs: Vec<String> = rights(&render(values), account).into_iter().filter(of).map(|right| right.verb).collect();
    verbs.join(" ")
}

#[test]
fn rights_that_only_a_setting_needs() {
    const ALL: &str = "create delete get list patch watch";
    // Volcano's groups go with their owners.
    const GROUPS: &str = "create get list patch watch";
    for (off, on, group, resource, wanted) in [
        (&[][..], &["useKubernetesProxy=true"][..], "", "services/proxy", "create get update"),
        (&["useKubernetesProxy=false"], &["useKubernetesProxy=true"], "", "pods/proxy", "get"),
        (&[], &[r#"featureGates=[{"name":"SidecarSubmitterRestart","enabled":true}]"#], "", "nodes", "get"),
        (&[], &[r#"featureGates=[{"name":"AllAlpha","enabled":true}]"#], "", "nodes", "get"),
        (
            &[r#"featureGates=[{"name":"SidecarSubmitterRestart","enabled":false},{"name":"AllAlpha","enabled":true}]"#],
            &[r#"featureGates=[{"name":"AllAlpha","enabled":false},{"name":"SidecarSubmitterRestart","enabled":true}]"#],
            "",
            "nodes",
            "get",
        ),
        (
            &[r#"featureGates=[{"name":"RayServiceIncrementalUpgrade","enabled":false}]"#],
            &["featureGates=[]"],
            "gateway.networking.k8s.io",
            "httproutes",
            ALL,
        ),
        (&[r#"featureGates=[{"name":"AllBeta","enabled":false}]"#], &[], "gateway.networking.k8s.io", "gateways", ALL),
        (&[], &[r#"featureGates=[{"name":"RayCronJob","enabled":true}]"#], "ray.io", "raycronjobs", "get list patch watch"),
        (&[], &[r#"featureGates=[{"name":"RayCronJob","enabled":true}]"#], "ray.io", "raycronjobs/status", "patch"),
        (&[], &[r#"featureGates=[{"name":"RayClusterNetworkPolicy","enabled":true}]"#], "networking.k8s.io", "networkpolicies", ALL),
        (
            &[],
            &[r#"featureGates=[{"name":"RayClusterMTLS","enabled":true}]"#],
            "cert-manager.io",
            "certificates",
            "create get list patch watch",
        ),
        (&[], &[r#"featureGates=[{"name":"KubernetesWAS","enabled":true}]"#], "scheduling.k8s.io", "workloads", ALL),
        (&[r#"batchScheduler.name="yunikorn""#], &["batchScheduler.enabled=true"], "scheduling.volcano.sh", "podgroups", GROUPS),
        (&[], &[r#"batchScheduler.name="volcano""#], "scheduling.volcano.sh", "podgroups", GROUPS),
        (&[], &[r#"batchScheduler.name="volcano""#, "singleNamespaceInstall=true"], "scheduling.volcano.sh", "podgroups", GROUPS),
        (&[r#"batchScheduler.name="volcano""#], &[r#"batchScheduler.name="scheduler-plugins""#], "scheduling.x-k8s.io", "podgroups", ALL),
        (&[r#"batchScheduler.name="kai-scheduler""#], &["batchScheduler.enabled=true"], "scheduling.volcano.sh", "podgroups", GROUPS),
        (&[], &[r#"batchScheduler.name="scheduler-plugins""#], "scheduling.x-k8s.io", "podgroups", ALL),
        (
            &[],
            &["crds.manage=true"],
            "apiextensions.k8s.io",
            "customresourcedefinitions",
            "create get patch create get patch create get patch create get patch",
        ),
    ] {
        assert_eq!(verbs(off, OPERATOR, group, resource), "", "{off:?}");
        assert_eq!(verbs(on, OPERATOR, group, resource), wanted, "{on:?}");
    }
}

#[test]
fn the_operator_reads_namespaces_only_where_rules_choose_them_by_label() {
    let by_label = r#"webhook.warnOnly=[{"rules":["*"],"namespaces":{"matchLabels":{"a":"b"}}}]"#;
    let by_name = r#"webhook.warnOnly=[{"rules":["*"],"namespaces":{"names":["a"]}}]"#;
    let defaults = r#"webhook.fleetDefaults=[{"namespaces":{"matchLabels":{"a":"b"}},"pods":{}}]"#;
    for (values, wanted) in
        [(&[][..], ""), (&[by_name], ""), (&[defaults], ""), (&[by_label], "get"), (&[by_label, "singleNamespaceInstall=true"], "get")]
    {
        assert_eq!(verbs(values, OPERATOR, "", "namespaces"), wanted, "{values:?}");
    }
}

#[test]
fn the_webhook_reads_namespaces_only_to_choose_them_by_label() {
    let by_label = r#"[{"rules":["*"],"namespaces":{"matchLabels":{"a":"b"}}}]"#;
    let by_name = r#"webhook.warnOnly=[{"rules":["*"],"namespaces":{"names":["a"]}}]"#;
    assert_eq!(verbs(&[by_name], WEBHOOK, "", "namespaces"), "");
    assert_eq!(verbs(&[&format!("webhook.warnOnly={by_label}")], WEBHOOK, "", "namespaces"), "list watch");
    let expression = r#"webhook.fleetDefaults=[{"namespaces":{"matchExpressions":[{"key":"a","operator":"Exists"}]},"pods":{}}]"#;
    for values in [&[expression][..], &[expression, r#"webhook.certificates.mode="cert-manager""#]] {
        assert_eq!(verbs(values, WEBHOOK, "", "namespaces"), "list watch");
        let pod = render(values).get("Deployment", WEBHOOK).unwrap().pointer("/spec/template/spec").cloned().unwrap();
        assert_eq!(pod.get("automountServiceAccountToken"), None, "it has to ask the API server");
    }
}

#[test]
fn the_webhook_has_few_rights_and_those_by_name() {
    let shown: Vec<String> = rights(&render(&[]), WEBHOOK).iter().map(ToString::to_string).collect();
    let ours = "kuberay-operator-webhook";
    let configurations = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
        .iter()
        .flat_map(|kind| ["get", "list", "patch", "watch"].map(|verb| format!("{verb} {kind}.admissionregistration.k8s.io {ours}-home")));
    let secrets = ["create secrets in home".to_owned()]
        .into_iter()
        .chain(["get", "list", "update", "watch"].map(|verb| format!("{verb} secrets {ours}-ca in home")));
    assert_eq!(shown, configurations.chain(secrets).collect::<Vec<_>>());
    assert!(rights(&render(&[r#"webhook.certificates.mode="cert-manager""#]), WEBHOOK).is_empty());
}

/// KubeRay's operator role (D.1): a switch from it must not give the namespace's programs more than they had, but for what is listed.
const KUBERAY: &[(&str, &str, &str)] = &[
    ("", "persistentvolumeclaims pods/status services", "create delete get list patch update watch"),
    ("", "pods", "create delete deletecollection get list patch update watch"),
    ("", "pods/proxy services/status", "get patch update"),
    ("", "pods/resize", "patch"),
    ("", "secrets", "create delete get list update watch"),
    ("", "serviceaccounts", "create delete get list watch"),
    ("", "services/proxy", "create get patch update"),
    ("batch", "jobs", "create delete get list patch update watch"),
    ("cert-manager.io", "certificates", "create get list update watch"),
    ("cert-manager.io", "issuers", "create get list watch"),
    ("coordination.k8s.io", "leases", "create get list update"),
    ("discovery.k8s.io", "endpointslices", "get list watch"),
    ("events.k8s.io", "events", "create patch"),
    ("networking.k8s.io", "ingresses", "create delete get list patch update watch"),
    ("gateway.networking.k8s.io", "gateways httproutes", "create delete get list update watch"),
    ("networking.k8s.io", "networkpolicies", "create delete get list update watch"),
    ("ray.io", "rayclusters raycronjobs rayjobs rayservices", "create delete get list patch update watch"),
    ("ray.io", "rayclusters/finalizers raycronjobs/finalizers rayjobs/finalizers rayservices/finalizers", "update"),
    ("ray.io", "rayclusters/status raycronjobs/status rayjobs/status rayservices/status", "get patch update"),
    ("rbac.authorization.k8s.io", "rolebindings", "create delete get list watch"),
    ("rbac.authorization.k8s.io", "roles", "create delete get list update watch"),
    ("route.openshift.io", "routes", "create delete get list patch update watch"),
    ("scheduling.k8s.io", "podgroups workloads", "create delete get list patch update watch"),
    ("scheduling.volcano.sh", "podgroups", "create delete get list update watch"),
    ("scheduling.x-k8s.io", "podgroups", "create get list watch"),
];

/// What we ask for and KubeRay does not, with the reason.
const MORE: &[(&str, &str, &str)] = &[
    // Server-side apply is a patch, where KubeRay updates or never repairs.
    ("*", "*", "patch"),
    // Suspended clusters have no group.
    ("scheduling.x-k8s.io", "podgroups", "delete"),
    // The version of a head Pod's kubelet, with the gate SidecarSubmitterRestart.
    ("", "nodes", "get"),
    // Only with crds.manage.
    ("apiextensions.k8s.io", "customresourcedefinitions", "create get"),
];

#[test]
fn the_operator_asks_for_no_more_than_kuberays() {
    let everything = render(&[
        r#"featureGates=[{"name":"AllAlpha","enabled":true}]"#,
        "batchScheduler.enabled=true",
        "useKubernetesProxy=true",
        "crds.manage=true",
    ]);
    let plugins = render(&[r#"batchScheduler.name="scheduler-plugins""#]);
    let within = |table: &[(&str, &str, &str)], right: &Permission| {
        table.iter().any(|(group, resources, verbs)| {
            (*group == "*" || *group == right.group)
                && (*resources == "*" || resources.split(' ').any(|resource| resource == right.resource))
                && verbs.split(' ').any(|verb| verb == right.verb)
        })
    };
    for right in rights(&everything, OPERATOR).union(&rights(&plugins, OPERATOR)) {
        assert!(within(KUBERAY, right) || within(MORE, right), "{right}");
        for part in [&right.group, &right.resource, &right.verb] {
            assert!(part != "*", "{right}: no wildcards");
        }
    }
    // A standing way to more rights than one's own.
    let all = rights(&everything, OPERATOR);
    assert!(!all.iter().any(|right| ["escalate", "bind", "impersonate"].contains(&right.verb.as_str())));
}

#[test]
fn rights_that_a_gate_adds_to() {
    let (cron, storage) =
        (r#"featureGates=[{"name":"RayCronJob","enabled":true}]"#, r#"featureGates=[{"name":"AllAlpha","enabled":true}]"#);
    for (values, group, resource, wanted) in [
        (&[][..], "ray.io", "rayjobs", "delete get list patch watch"),
        (&[cron], "ray.io", "rayjobs", "create delete get list patch watch"),
        (&[], "", "persistentvolumeclaims", "list watch"),
        (&[storage], "", "persistentvolumeclaims", "create get list patch watch"),
    ] {
        assert_eq!(verbs(values, OPERATOR, group, resource), wanted, "{values:?}");
    }
}

/// Nobody can give away a right that they lack: what the operator puts into the autoscaler's Role it must have itself.
#[test]
fn the_operator_has_what_it_gives_to_the_autoscaler() {
    let rights = rights(&render(&[]), OPERATOR);
    for (group, resource, verbs) in
        [("", "pods", "get list watch patch"), ("", "pods/resize", "patch"), ("ray.io", "rayclusters", "get patch")]
    {
        for verb in verbs.split(' ') {
            assert!(
                rights.iter().any(|right| right.group == group && right.resource == resource && right.verb == verb),
                "{verb} {resource}"
            );
        }
    }
}

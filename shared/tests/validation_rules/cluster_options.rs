use serde_json::{Value, json};
use shared::validation::Kind::{RayCluster, RayCronJob, RayJob, RayService};

use crate::build::*;

pub(crate) fn cases() -> Vec<Case> {
    [upgrade(), topology(), fault_tolerance(), embedded(), autoscaler(), history(), auth(), network(), tls()].concat()
}

fn annotated(annotations: &Value, spec: &Value) -> Case {
    Case::of(RayCluster, merged(cluster_object(spec), &json!({"metadata": {"annotations": annotations}})))
}

/// BS-16.
fn topology() -> Vec<Case> {
    let (mode, tier) = ("volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier-allowed");
    let at = format!("metadata.labels[{tier}]");
    let with = |object: Value, labels: Value| merged(object, &json!({"metadata": {"labels": labels}}));
    let of_cluster = |labels: Value| Case::of(RayCluster, with(cluster_object(&json!({})), labels));
    vec![
        of_cluster(json!({mode: "hard", tier: "two"})).warned("W-C-13", &at),
        of_cluster(json!({mode: "hard", tier: "1.5"})).warned("W-C-13", &at),
        of_cluster(json!({mode: "hard", tier: "2"})).not_warned("W-C-13"),
        of_cluster(json!({mode: "hard"})).not_warned("W-C-13"),
        of_cluster(json!({tier: "two"})).not_warned("W-C-13"),
        Case::of(RayJob, with(job_object(&json!({})), json!({mode: "soft", tier: "x"}))).warned("W-C-13", &at),
        Case::of(RayService, with(service_object(&json!({})), json!({mode: "soft", tier: "x"}))).not_warned("W-C-13"),
    ]
}

fn upgrade() -> Vec<Case> {
    let strategy = |value: Value| json!({"upgradeStrategy": {"type": value}});
    let made_by = |creator: &str| {
        Case::of(
            RayCluster,
            merged(cluster_object(&strategy(json!("None"))), &json!({"metadata": {"labels": {"ray.io/originated-from-crd": creator}}})),
        )
    };
    let at = "spec.upgradeStrategy.type";
    let conditions = |suspending: &str, suspended: &str| {
        let conditions =
            json!([{"type": "RayClusterSuspending", "status": suspending}, {"type": "RayClusterSuspended", "status": suspended}]);
        Case::of(RayCluster, merged(cluster_object(&json!({})), &json!({"status": {"conditions": conditions}})))
    };
    vec![
        cluster(&strategy(json!("Recreate"))),
        cluster(&strategy(json!("None"))),
        cluster(&json!({"upgradeStrategy": {}})),
        cluster(&strategy(json!("NewCluster"))).denied("V-C-3", at),
        cluster(&strategy(json!(""))).denied("V-C-3", at),
        made_by("RayJob").denied("V-C-4", at),
        made_by("RayService").denied("V-C-4", at),
        made_by("RayCluster"),
        job(&json!({"rayClusterSpec": strategy(json!("None"))})).denied("C-13", "spec.rayClusterSpec.upgradeStrategy.type"),
        job(&json!({"rayClusterSpec": {"upgradeStrategy": {}}})),
        service(&json!({"rayClusterConfig": strategy(json!("Recreate"))})).denied("C-13", "spec.rayClusterConfig.upgradeStrategy.type"),
        cron(&json!({"jobTemplate": {"rayClusterSpec": strategy(json!("Recreate"))}}))
            .denied("C-13", "spec.jobTemplate.rayClusterSpec.upgradeStrategy.type"),
        conditions("True", "True").stored().denied("V-C-5", "status.conditions"),
        conditions("True", "False").stored(),
        // Admission never blocks on a status.
        conditions("True", "True"),
    ]
}

fn fault_tolerance() -> Vec<Case> {
    let options = json!({"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}});
    let ft = |value: &str| json!({"ray.io/ft-enabled": value});
    let with_env = |name: &str| json!({"headGroupSpec": {"template": template(&env(name, "x"))}});
    let env_at = below(HEAD_BOX, "env[0].name");
    let both = |extra: Value| merged(options.clone(), &extra);
    let param = |name: &str| json!({"headGroupSpec": {"rayStartParams": {name: "x"}}});
    let storage = json!({"gcsFaultToleranceOptions": {"storage": {}}});
    vec![
        cluster(&options),
        annotated(&ft("true"), &json!({})).warned("W-C-12", "metadata.annotations[ray.io/ft-enabled]"),
        annotated(&ft("false"), &json!({})).not_warned("W-C-12"),
        annotated(&ft(""), &options),
        annotated(&ft("true"), &options).denied("V-C-24", "spec.gcsFaultToleranceOptions"),
        annotated(&ft("false"), &options).denied("V-C-24", "spec.gcsFaultToleranceOptions"),
        cluster(&with_env("RAY_REDIS_ADDRESS")).denied("V-C-25", &env_at),
        annotated(&ft("TRUE"), &with_env("RAY_REDIS_ADDRESS")),
        annotated(&ft("false"), &with_env("RAY_REDIS_ADDRESS")).denied("V-C-25", &env_at),
        // Annotations of a RayCronJob do not reach its clusters.
        Case::of(
            RayCronJob,
            merged(
                cron_object(&json!({"jobTemplate": {"rayClusterSpec": with_env("RAY_REDIS_ADDRESS")}})),
                &json!({"metadata": {"annotations": ft("true")}}),
            ),
        )
        .gates("RayCronJob=true")
        .denied("V-C-25", "spec.jobTemplate.rayClusterSpec.headGroupSpec.template.spec.containers[0].env[0].name"),
        cluster(&both(param("redis-password"))).denied("V-C-26", below(HEAD, "rayStartParams[redis-password]")),
        cluster(&param("redis-password")),
        cluster(&both(with_env("REDIS_PASSWORD"))).denied("V-C-27", &env_at),
        cluster(&with_env("REDIS_PASSWORD")),
        cluster(&both(with_env("RAY_REDIS_ADDRESS"))).denied("V-C-28", &env_at),
        annotated(&json!({"ray.io/external-storage-namespace": "n"}), &options)
            .denied("V-C-29", "metadata.annotations[ray.io/external-storage-namespace]"),
        annotated(&json!({"ray.io/external-storage-namespace": ""}), &options),
        annotated(&json!({"ray.io/external-storage-namespace": "n"}), &json!({})),
        cluster(&options).not_warned("W-C-14"),
        cluster(&json!({"gcsFaultToleranceOptions": {}})).warned("W-C-14", "spec.gcsFaultToleranceOptions.redisAddress"),
        cluster(&json!({"gcsFaultToleranceOptions": {"redisAddress": "r", "redisPassword": {"value": "p", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}}}))
            .denied("N-C-15", "spec.gcsFaultToleranceOptions.redisPassword.valueFrom"),
        cluster(&both(storage.clone())).denied("V-C-36", "spec.gcsFaultToleranceOptions.storage"),
        cluster(&merged(both(storage), &json!({"gcsFaultToleranceOptions": {"backend": "redis"}})))
            .denied("V-C-36", "spec.gcsFaultToleranceOptions.storage"),
        cluster(&param("redis-username")).denied("V-C-37", below(HEAD, "rayStartParams[redis-username]")),
        cluster(&with_env("REDIS_USERNAME")).denied("V-C-37", &env_at),
        cluster(&both(with_env("REDIS_USERNAME"))).denied("V-C-37", &env_at),
    ]
}

fn embedded() -> Vec<Case> {
    let on = "GCSFaultToleranceEmbeddedStorage=true";
    let base =
        |extra: Value| merged(json!({"gcsFaultToleranceOptions": {"backend": "rocksdb"}}), &json!({"gcsFaultToleranceOptions": extra}));
    let options_at = |field: &str| format!("spec.gcsFaultToleranceOptions.{field}");
    let head_pod = |value: Value| merged(base(json!({})), &json!({"headGroupSpec": {"template": value}}));
    let mount = |name: &str, path: &str| head_pod(template(&json!({"volumeMounts": [{"name": name, "mountPath": path}]})));
    let mut cases = vec![
        cluster(&base(json!({}))).denied("V-C-30", options_at("backend")),
        cluster(&base(json!({}))).gates(on),
        cluster(&base(json!({"redisAddress": "", "storage": {"size": "1Gi", "storageClassName": "s", "accessModes": ["ReadWriteOnce"]}})))
            .gates(on),
        cluster(&base(json!({"storage": {"claimName": "c", "subPath": "p", "size": ""}}))).gates(on),
        cluster(&base(json!({"storage": {"size": "ten"}}))).gates(on).denied("C-14", options_at("storage.size")),
        cluster(&base(json!({"storage": {"size": "0"}}))).gates(on).denied("C-14", options_at("storage.size")),
        cluster(&base(json!({"storage": {"size": 1}}))).gates(on),
        cluster(&head_pod(template(&env("RAY_gcs_storage", "x")))).gates(on).denied("V-C-33", below(HEAD_BOX, "env[0].name")),
        cluster(&head_pod(template(&env("RAY_gcs_storage_path", "x")))).gates(on).denied("V-C-33", below(HEAD_BOX, "env[0].name")),
        head_container(&env("RAY_gcs_storage", "x")).gates(on),
        cluster(&mount("gcs-storage", "/x")).gates(on).denied("V-C-34", below(HEAD_BOX, "volumeMounts[0].name")),
        cluster(&mount("shared-mem", "/data/gcs/")).gates(on).denied("V-C-34", below(HEAD_BOX, "volumeMounts[0].mountPath")),
        cluster(&mount("shared-mem", "/data/gcs2")).gates(on),
        cluster(&head_pod(json!({"spec": {"volumes": [{"name": "v"}, {"name": "gcs-storage"}]}})))
            .gates(on)
            .denied("V-C-35", below(HEAD, "template.spec.volumes[1].name")),
    ];
    for (field, value) in [
        ("redisAddress", json!("r")),
        ("redisUsername", json!({"value": "u"})),
        ("redisPassword", json!({})),
        ("externalStorageNamespace", json!("n")),
    ] {
        cases.push(cluster(&base(json!({field: value}))).gates(on).denied("V-C-31", options_at(field)));
    }
    for (field, value) in [("size", json!("1Gi")), ("storageClassName", json!("s")), ("accessModes", json!(["ReadWriteOnce"]))] {
        cases.push(
            cluster(&base(json!({"storage": {"claimName": "c", field: value}})))
                .gates(on)
                .denied("V-C-32", options_at(&format!("storage.{field}"))),
        );
    }
    cases
}

fn autoscaler() -> Vec<Case> {
    let head = |value: &str| json!({"headGroupSpec": {"template": template(&env("RAY_enable_autoscaler_v2", value))}});
    let auto = |spec: Value| merged(json!({"enableInTreeAutoscaling": true}), &spec);
    let env_at = below(HEAD_BOX, "env[0].name");
    let own = |name: &str| auto(json!({"autoscalerOptions": {"env": [{"name": "A"}, {"name": name}]}}));
    vec![
        cluster(&head("1")).denied("V-C-39", &env_at),
        cluster(&head("true")).denied("V-C-39", &env_at),
        cluster(&head("True")),
        cluster(&auto(head("1"))),
        cluster(&auto(merged(head("0"), &json!({"autoscalerOptions": {"version": "v1"}})))).denied("V-C-41", &env_at),
        cluster(&auto(merged(head("1"), &json!({"autoscalerOptions": {"idleTimeoutSeconds": 1}})))),
        cluster(&json!({"autoscalerOptions": {"idleTimeoutSeconds": 0}})),
        cluster(&json!({"autoscalerOptions": {"idleTimeoutSeconds": -1}})).denied("V-C-44", "spec.autoscalerOptions.idleTimeoutSeconds"),
        cluster(&own("KUBERAY_GEN_AUTOSCALER_START_CMD")).denied("V-C-45", "spec.autoscalerOptions.env[1].name"),
        cluster(&own("B")),
    ]
}

fn history() -> Vec<Case> {
    let on = "RayClusterHistoryServer=true";
    let collector = |env: Value| json!({"historyServerOptions": {"collectorOptions": {"image": "i", "env": env}}});
    let vars = |pairs: &[(&str, &str)]| Value::Array(pairs.iter().map(|(name, value)| json!({"name": name, "value": value})).collect());
    let from = |backend: &str, name: &str| json!([{"name": "STORAGE_BACKEND", "value": backend}, {"name": name, "valueFrom": {}}]);
    let at = "spec.historyServerOptions.collectorOptions.env";
    let with = |env: Value| cluster(&collector(env)).gates(on);
    let good = vars(&[("STORAGE_BACKEND", "s3"), ("S3_REGION", "r")]);
    let named = |name: &str| json!({"template": {"spec": {"containers": [container(&json!({})), container(&json!({"name": name}))]}}});
    let mut cases = vec![
        cluster(&collector(good.clone())).denied("V-C-46", "spec.historyServerOptions"),
        with(good.clone()),
        cluster(&merged(
            collector(good.clone()),
            &json!({"historyServerOptions": {"collectorOptions": {"resources": {"limits": {"cpu": "-1"}}}}}),
        ))
        .gates(on)
        .denied("C-14", "spec.historyServerOptions.collectorOptions.resources.limits[cpu]"),
        cluster(&json!({"historyServerOptions": {}})).gates(on).denied("V-C-47", "spec.historyServerOptions.collectorOptions"),
        cluster(&json!({"historyServerOptions": {"collectorOptions": {"image": "", "env": good}}}))
            .gates(on)
            .denied("V-C-48", "spec.historyServerOptions.collectorOptions.image"),
        with(json!([])).denied("V-C-50", at),
        with(json!([{"name": "STORAGE_BACKEND", "valueFrom": {}}])).denied("V-C-50", at),
        with(vars(&[("STORAGE_BACKEND", "S3"), ("STORAGE_BACKEND", "")])).denied("V-C-50", at),
        with(vars(&[("STORAGE_BACKEND", "tape")])),
        with(vars(&[("STORAGE_BACKEND", "gcs")])).denied("V-C-51", at),
        with(from("GCS", "GCS_BUCKET")),
        with(vars(&[("STORAGE_BACKEND", "S3"), ("S3_BUCKET", "b")])).denied("V-C-52", at),
        with(from("s3", "S3_REGION")),
        with(vars(&[("STORAGE_BACKEND", "AzureBlob")])).denied("V-C-53", at),
        with(from("AzureBlob", "AZURE_STORAGE_ACCOUNT_URL")),
        with(from("AzureBlob", "AZURE_STORAGE_CONNECTION_STRING")),
        with(vars(&[
            ("STORAGE_BACKEND", "azureblob"),
            ("AZURE_STORAGE_AUTH_MODE", " Connection_String "),
            ("AZURE_STORAGE_ACCOUNT_URL", "u"),
        ]))
        .denied("V-C-53", at),
        with(vars(&[("STORAGE_BACKEND", "azureblob"), ("AZURE_STORAGE_AUTH_MODE", "default"), ("AZURE_STORAGE_CONNECTION_STRING", "u")]))
            .denied("V-C-53", at),
        with(vars(&[
            ("STORAGE_BACKEND", "azureblob"),
            ("AZURE_STORAGE_AUTH_MODE", "workload_identity"),
            ("AZURE_STORAGE_ACCOUNT_URL", "u"),
        ])),
        with(vars(&[("STORAGE_BACKEND", "AliyunOSS"), ("OSS_BUCKET", "b"), ("OSS_ENDPOINT", "e"), ("OSS_REGION", "r")])),
        cluster(&merged(collector(good.clone()), &json!({"headGroupSpec": named("ray-history-collector")})))
            .gates(on)
            .denied("V-C-55", below(HEAD, "template.spec.containers[1].name")),
        cluster(&merged(collector(good), &json!({"workerGroupSpecs": [group("a", &named("ray-history-collector"))]})))
            .gates(on)
            .denied("V-C-56", below(GROUP, "template.spec.containers[1].name")),
        head(&named("ray-history-collector")).gates(on),
    ];
    for name in ["POD_IP", "FQ_RAY_IP", "RAY_CLUSTER_NAME", "RAY_CLUSTER_NAMESPACE", "RAY_ROLE", "OWNER_KIND", "OWNER_NAME", "EVENTS_PORT"]
    {
        cases.push(with(vars(&[("STORAGE_BACKEND", "S3"), ("S3_REGION", "r"), (name, "x")])).denied("V-C-49", format!("{at}[2].name")));
    }
    // Each missing variable of this backend has a sentence of its own, all at one place.
    let oss = with(vars(&[("STORAGE_BACKEND", "ALIYUNOSS"), ("OSS_BUCKET", "b"), ("OSS_REGION", "r")])).denied("V-C-54", at);
    cases.push(oss);
    cases
}

fn auth() -> Vec<Case> {
    let with = |version: &str, options: Value| cluster(&json!({"rayVersion": version, "authOptions": options}));
    let token = json!({"mode": "token"});
    let k8s = json!({"mode": "token", "enableK8sTokenAuth": true});
    let at = "spec.rayVersion";
    vec![
        with("2.52.0", token.clone()),
        with("2.51.9", token.clone()).denied("V-C-57", at),
        with("2.51.0", json!({"mode": "disabled"})),
        with("", token.clone()).denied("V-C-57", at),
        with("nightly", token.clone()).denied("V-C-57", at),
        cluster(&json!({"rayVersion": null, "authOptions": token})).denied("V-C-57", at),
        with("v2.55", k8s.clone()),
        with("2.54.9", k8s.clone()).denied("V-C-58", at),
        with("2.51.0", k8s.clone()).denied("V-C-58", at),
        with("2.55.0", merged(k8s.clone(), &json!({"secretName": "s"}))).denied("V-C-58", "spec.authOptions.secretName"),
        with("2.55.0", merged(k8s.clone(), &json!({"secretName": ""}))),
        with("2.55.0", json!({"mode": "token", "secretName": "s"})),
        with("2.55.0", json!({"enableK8sTokenAuth": true})).denied("V-C-59", "spec.authOptions.mode"),
        with("2.55.0", json!({"mode": "disabled", "enableK8sTokenAuth": true})).denied("V-C-59", "spec.authOptions.mode"),
        with("2.55.0", json!({"enableK8sTokenAuth": false})),
        cluster(&json!({"authOptions": {"mode": "token"}, "headGroupSpec": {"template": template(&env("RAY_AUTH_MODE", "disabled"))}}))
            .denied("N-C-8", below(HEAD_BOX, "env[0].name")),
        cluster(&json!({"authOptions": {"mode": "token"}, "workerGroupSpecs": [group("a", &json!({"template": template(&env("RAY_AUTH_MODE", ""))}))]}))
            .denied("N-C-8", below(GROUP_BOX, "env[0].name")),
        cluster(&json!({"authOptions": {"mode": "token"}, "headGroupSpec": {"template": template(&env("RAY_AUTH_MODE", "token"))}})),
        head_container(&env("RAY_AUTH_MODE", "disabled")),
        job(&json!({"rayClusterSpec": {"rayVersion": "2.55.0", "authOptions": k8s}}))
            .denied("V-J-31", "spec.rayClusterSpec.authOptions.enableK8sTokenAuth"),
    ]
}

fn network() -> Vec<Case> {
    let on = "RayClusterNetworkPolicy=true";
    let policy = |value: Value| cluster(&json!({"networkPolicy": value})).gates(on);
    let at = |path: &str| format!("spec.networkPolicy.{path}");
    let rules = |field: &str| json!({field: [{}]});
    let everywhere = |mode: &str, field: &str| json!({"mode": mode, "head": rules(field), "worker": rules(field), "workerGroups": [merged(json!({"groupName": "a"}), &rules(field))]});
    let name = |name: &str| cluster(&json!({"networkPolicy": {}, "workerGroupSpecs": [group(name, &json!({}))]}));
    vec![
        cluster(&json!({"networkPolicy": {}})).denied("V-C-60", "spec.networkPolicy"),
        policy(json!({})),
        policy(everywhere("DenyAll", "ingressRules")),
        policy(everywhere("DenyAllEgress", "egressRules")),
        policy(everywhere("DenyAllEgress", "ingressRules"))
            .denied("V-C-61", at("head.ingressRules"))
            .denied("V-C-61", at("worker.ingressRules"))
            .denied("V-C-61", at("workerGroups[0].ingressRules")),
        policy(everywhere("DenyAllIngress", "egressRules"))
            .denied("V-C-62", at("head.egressRules"))
            .denied("V-C-62", at("worker.egressRules"))
            .denied("V-C-62", at("workerGroups[0].egressRules")),
        policy(json!({"mode": "DenyAllIngress", "head": {"egressRules": []}})),
        name("a-1").gates(on),
        name("A").gates(on).denied("V-C-63", below(GROUP, "groupName")),
        name("a.b").gates(on).denied("V-C-63", below(GROUP, "groupName")),
        policy(json!({"workerGroups": [{"groupName": "a"}, {"groupName": "b"}]})).denied("V-C-64", at("workerGroups[1].groupName")),
    ]
}

fn tls() -> Vec<Case> {
    let on = "RayClusterMTLS=true";
    let enabled =
        |extra: Value| cluster(&merged(json!({"enableInTreeAutoscaling": true, "tlsOptions": {"enabled": true}}), &extra)).gates(on);
    let head = |patch: &Value| json!({"headGroupSpec": {"template": template(patch)}});
    let mounted = |name: &str, path: &str| json!({"volumeMounts": [{"name": name, "mountPath": path}]});
    let mut cases = vec![
        cluster(&json!({"tlsOptions": {"enabled": false}})).denied("V-C-65", "spec.tlsOptions"),
        cluster(&json!({"tlsOptions": {"enabled": false}})).gates(on),
        enabled(json!({})),
        enabled(json!({"headGroupSpec": {"template": {"spec": {"volumes": [{"name": "ray-tls"}]}}}}))
            .denied("N-C-4", below(HEAD, "template.spec.volumes[0].name")),
        enabled(json!({"headGroupSpec": {"template": {"spec": {"volumes": [{"name": "tls"}]}}}})),
        cluster(&merged(json!({"tlsOptions": {"enabled": false}}), &head(&env("RAY_USE_TLS", "1")))).gates(on),
        enabled(json!({"workerGroupSpecs": [group("a", &json!({"template": template(&env("RAY_USE_TLS", "0"))}))]}))
            .denied("V-C-66", below(GROUP_BOX, "env[0].name")),
        enabled(json!({"autoscalerOptions": env("RAY_TLS_CA_CERT", "x")})).denied("V-C-66", "spec.autoscalerOptions.env[0].name"),
        enabled(head(&mounted("ray-tls", "/x"))).denied("V-C-67", below(HEAD_BOX, "volumeMounts[0].name")),
        enabled(head(&mounted("shared-mem", "/etc/ray/tls"))).denied("V-C-67", below(HEAD_BOX, "volumeMounts[0].mountPath")),
        enabled(head(&mounted("shared-mem", "/etc/ray/tls2"))),
        enabled(json!({"autoscalerOptions": mounted("ray-tls", "/x")})).denied("V-C-67", "spec.autoscalerOptions.volumeMounts[0].name"),
    ];
    for name in ["RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"] {
        cases.push(enabled(head(&env(name, "x"))).denied("V-C-66", below(HEAD_BOX, "env[0].name")));
    }
    cases
}

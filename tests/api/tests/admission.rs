//! The webhook in front of a real API server: what users see, and certificates that heal, rotate and never cost an admission.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::time::{Duration, Instant};

use api_tests::admission::{
    Load, Replica, SECRET, Scene, Service, handshake, quick_settling, raycluster, short_lives, until, with_namespace,
};
use certs::bundle;
use k8s_openapi::ByteString;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

async fn ready(scene: &Scene) -> Replica {
    let replica = Replica::start(scene, quick_settling(), &[]).await;
    scene.register(replica.place.admission).await;
    replica.ready().await;
    scene.enforced().await;
    replica
}

fn refused(result: kube::Result<DynamicObject>) -> kube::core::Status {
    match result {
        Err(kube::Error::Api(status)) => *status,
        other => panic!("not refused: {other:?}"),
    }
}

/// Runs `kubectl` with `input` on its standard input; returns success, stdout and stderr.
async fn kubectl(scene: &Scene, arguments: &[&str], input: &Value) -> (bool, String, String) {
    let mut command = scene.server.kubectl();
    command.arg("--namespace").arg(&scene.namespace).args(arguments);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("kubectl");
    child.stdin.take().expect("piped").write_all(input.to_string().as_bytes()).await.expect("written");
    let output = child.wait_with_output().await.expect("ended");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

#[test]
fn admit_good_objects_with_their_gaps_filled() {
    with_namespace("admit-good", async |scene| {
        let _replica = ready(&scene).await;
        let stored = scene.create(&raycluster("good", &["a", "b"]), false).await.expect("admitted");
        assert_eq!(stored.data["spec"]["rayVersion"], "2.54.1", "filled in from the image");

        let again: DynamicObject = serde_json::from_value(raycluster("good", &["a", "b"])).expect("an object");
        let params = PatchParams::apply("test").force();
        let applied = scene.rays("RayCluster").patch("good", &params, &Patch::Apply(&again)).await.expect("applied again");
        assert_eq!(applied.data["spec"]["rayVersion"], "2.54.1");
        assert_eq!(applied.metadata.generation, Some(1), "applying the same again changes nothing");
    });
}

#[test]
fn admit_refuses_with_every_cause_at_once() {
    with_namespace("admit-bad", async |scene| {
        let _replica = ready(&scene).await;
        let mut bad = raycluster("bad", &["a", "a"]);
        bad["spec"]["workerGroupSpecs"][0]["minReplicas"] = json!(5);
        for dry in [true, false] {
            let status = refused(scene.create(&bad, dry).await);
            assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{status:?}");
            let details = status.details.expect("details");
            assert_eq!((details.group.as_str(), details.kind.as_str(), details.name.as_str()), ("ray.io", "RayCluster", "bad"));
            let fields: Vec<_> = details.causes.iter().map(|cause| cause.field.as_str()).collect();
            assert!(fields.contains(&"spec.workerGroupSpecs[1].groupName"), "{fields:?}");
            assert!(fields.iter().any(|field| field.starts_with("spec.workerGroupSpecs[0].m")), "{fields:?}");
            assert!(details.causes.iter().all(|cause| cause.reason.starts_with("FieldValue") && !cause.message.is_empty()));
        }
        let (success, _, stderr) = kubectl(&scene, &["apply", "--filename=-"], &bad).await;
        assert!(!success);
        let lines: Vec<_> = stderr.lines().collect();
        assert!(lines[0].starts_with("The RayCluster \"bad\" is invalid:"), "{stderr}");
        for start in ["* spec.workerGroupSpecs[0].m", "* spec.workerGroupSpecs[1].groupName: "] {
            assert!(lines.iter().any(|line| line.starts_with(start)), "one line for each problem:\n{stderr}");
        }
    });
}

#[test]
fn admit_shows_warnings_to_the_user() {
    with_namespace("admit-warn", async |scene| {
        let _replica = ready(&scene).await;
        let mut object = raycluster("warned", &["a"]);
        object["spec"]["workerGroupSpecs"][0]["replicas"] = json!(50);
        let (success, _, stderr) = kubectl(&scene, &["apply", "--filename=-"], &object).await;
        assert!(success, "{stderr}");
        assert!(stderr.lines().any(|line| line.starts_with("Warning: spec.workerGroupSpecs[0].replicas: ")), "{stderr}");
    });
}

#[test]
fn admit_leaves_stored_objects_alone() {
    with_namespace("admit-old", async |scene| {
        // Stored before there was a webhook.
        let mut bad = raycluster("old", &["a", "a"]);
        bad["metadata"]["finalizers"] = json!(["example.com/held"]);
        scene.create(&bad, false).await.expect("nobody checks yet");
        let _replica = ready(&scene).await;
        let rays = scene.rays("RayCluster");
        let merge = async |patch: Value| rays.patch("old", &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop);

        merge(json!({"metadata": {"labels": {"x": "y"}}})).await.expect("labels");
        let status = json!({"status": {"state": "ready"}});
        rays.patch_status("old", &PatchParams::default(), &Patch::Merge(&status)).await.expect("status");
        let error = merge(json!({"spec": {"rayVersion": "2.54.0"}})).await.expect_err("whoever edits the spec answers for it");
        assert!(error.to_string().contains("groupName"), "{error}");
        rays.delete("old", &DeleteParams::default()).await.expect("deleting is always possible");
        merge(json!({"metadata": {"finalizers": null}})).await.expect("and so is letting go");
        until("it is gone", async || rays.get_opt("old").await.expect("an answer").is_none()).await;
    });
}

#[test]
fn admit_takes_a_large_object() {
    with_namespace("admit-large", async |scene| {
        let _replica = ready(&scene).await;
        let mut large = raycluster("large", &["a"]);
        large["spec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["env"] =
            json!([{"name": "BLOB", "value": "x".repeat(1_200_000)}]);
        scene.create(&large, false).await.expect("admitted");
        // Now old and new object are in the review.
        let patch = json!({"spec": {"workerGroupSpecs": null}});
        scene.rays("RayCluster").patch("large", &PatchParams::default(), &Patch::Merge(&patch)).await.expect("updated");
    });
}

#[test]
fn admit_fleet_defaults_by_the_labels_of_a_namespace() {
    with_namespace("admit-fleet", async |scene| {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let text = "defaults: [{namespaces: {matchLabels: {tier: gpu}}, pods: {nodeSelector: {pool: ray}}}]";
        std::fs::write(file.path(), text).expect("written");
        let flag = format!("--defaults-file={}", file.path().display());
        let replica = Replica::start(&scene, quick_settling(), &[&flag]).await;
        scene.register(replica.place.admission).await;
        replica.ready().await;
        scene.enforced().await;
        until("the label is known", async || {
            let stored = scene.create(&raycluster("fleet", &["a"]), true).await.expect("admitted");
            stored.data["spec"]["headGroupSpec"]["template"]["spec"]["nodeSelector"] == json!({"pool": "ray"})
        })
        .await;
    });
}

#[test]
fn admit_rotates_the_ca_without_losing_an_admission() {
    with_namespace("admit-rotate", async |scene| {
        let replica = Replica::start(&scene, short_lives(), &[]).await;
        scene.register(replica.place.admission).await;
        replica.ready().await;
        scene.enforced().await;
        let first = scene.current_ca().await.expect("a CA");
        let (admissions, handshakes) = (Load::admissions(&scene, 2), Load::handshakes(&scene, replica.place.admission));
        until("the CA is another one", async || scene.current_ca().await.is_some_and(|ca| ca != first)).await;
        let second = scene.current_ca().await.expect("a CA");
        until("the former CA is taken out", async || {
            let bundles = scene.bundles().await;
            bundles.iter().all(|pem| bundle::parse(pem).contains(&second) && !bundle::parse(pem).contains(&first))
        })
        .await;
        admissions.unharmed(100).await;
        handshakes.unharmed(20).await;
    });
}

#[test]
fn admit_heals_a_secret_that_is_deleted_or_corrupted() {
    with_namespace("admit-secret", async |scene| {
        let replica = ready(&scene).await;
        let (admissions, handshakes) = (Load::admissions(&scene, 2), Load::handshakes(&scene, replica.place.admission));
        for damage in ["deleted", "garbage", "emptied", "other key"] {
            let before = scene.current_ca().await.expect("a CA");
            let start = Instant::now();
            hurt(&scene, damage).await;
            until("a new CA", async || scene.current_ca().await.is_some_and(|ca| ca != before)).await;
            println!("{damage}: a new CA after {:?}", start.elapsed());
            assert!(start.elapsed() < Duration::from_secs(5), "{damage}: {:?}", start.elapsed());
            let new = scene.current_ca().await.expect("a CA");
            until("it serves", async || {
                let only_new = bundle::encode([&new]);
                handshake(&scene, replica.place.admission, only_new.as_bytes()).await.is_ok()
            })
            .await;
            let trusted = scene.bundles().await;
            assert!(trusted.iter().all(|pem| bundle::parse(pem).contains(&before)), "{damage}: other replicas may still serve with it");
        }
        admissions.unharmed(100).await;
        handshakes.unharmed(20).await;
    });
}

async fn hurt(scene: &Scene, damage: &str) {
    let secrets = scene.secrets();
    if damage == "deleted" {
        secrets.delete(SECRET, &DeleteParams::default()).await.expect("deleted");
        return;
    }
    let mut secret = scene.secret().await.expect("there");
    let data = secret.data.get_or_insert_default();
    match damage {
        "garbage" => drop(data.insert("tls.crt".into(), ByteString(b"garbage".to_vec()))),
        "emptied" => data.clear(),
        "other key" => {
            let now = certs::Clock::system().now();
            let other = certs::CertificateAuthority::generate("other", &certs::Lifetimes::default(), now).expect("generated");
            drop(data.insert("tls.key".into(), ByteString(other.key_pem().into_bytes())));
        }
        other => panic!("{other}?"),
    }
    secrets.replace(SECRET, &PostParams::default(), &secret).await.expect("replaced");
}

#[test]
fn admit_heals_a_ca_bundle_that_somebody_overwrites() {
    with_namespace("admit-bundle", async |scene| {
        let replica = ready(&scene).await;
        let ours = scene.current_ca().await.expect("a CA");
        let now = certs::Clock::system().now();
        let foreign = certs::CertificateAuthority::generate("foreign", &certs::Lifetimes::default(), now).expect("generated");
        let foreign = foreign.certificate().clone();
        let healed = async |foreign_stays: bool| {
            scene.healed(&ours).await;
            let first = bundle::parse(&scene.bundles().await[0]);
            assert_eq!(first.contains(&foreign), foreign_stays, "certificates of others stay");
            scene.enforced().await;
        };
        scene.overwrite_bundle(&bundle::encode([&foreign])).await;
        healed(true).await;
        scene.overwrite_bundle("").await;
        healed(false).await;
        scene.configure(replica.place.admission).await; // a chart upgrade: does not speak of the caBundle
        healed(false).await;
        scene.delete_configurations().await;
        scene.configure(replica.place.admission).await;
        healed(false).await;
    });
}

/// The rights that a webhook needs, and no more.
async fn grant(scene: &Scene) {
    let rules = json!([
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [SECRET], "verbs": ["get", "list", "watch", "update"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]},
    ]);
    let cluster_rules = json!([{
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
        "resourceNames": [scene.configuration()],
        "verbs": ["get", "list", "watch", "patch"],
    }]);
    let subjects = json!([{"kind": "ServiceAccount", "name": "webhook", "namespace": scene.namespace}]);
    let role_ref = |kind: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": scene.namespace});
    let metadata = json!({"name": scene.namespace});
    use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
    async fn create<K>(api: Api<K>, object: Value)
    where
        K: kube::Resource + Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
    {
        api.create(&PostParams::default(), &serde_json::from_value(object).expect("an object")).await.expect("created");
    }
    let client = || scene.client.clone();
    create::<Role>(Api::namespaced(client(), &scene.namespace), json!({"metadata": metadata, "rules": rules})).await;
    create::<ClusterRole>(Api::all(client()), json!({"metadata": metadata, "rules": cluster_rules})).await;
    let binding = json!({"metadata": metadata, "roleRef": role_ref("Role"), "subjects": subjects});
    create::<RoleBinding>(Api::namespaced(client(), &scene.namespace), binding).await;
    let binding = json!({"metadata": metadata, "roleRef": role_ref("ClusterRole"), "subjects": subjects});
    create::<ClusterRoleBinding>(Api::all(client()), binding).await;
}

#[test]
fn admit_replicas_started_at_once_agree_with_few_rights() {
    with_namespace("admit-replicas", async |scene| {
        let kubeconfig = scene.server.kubeconfig_for_service_account(&scene.namespace, "webhook").await.expect("a token");
        let lonely = Replica::start_as(&scene, &kubeconfig, quick_settling(), &[]).await;
        until("a lack of rights is named", async || {
            lonely
                .unready()
                .await
                .is_some_and(|text| text.contains(SECRET) && text.contains("forbidden") && text.contains("WebhookConfiguration"))
        })
        .await;
        drop(lonely);

        grant(&scene).await;
        let mut replicas = vec![];
        for _ in 0..5 {
            replicas.push(Replica::start_as(&scene, &kubeconfig, quick_settling(), &[]).await);
        }
        let service = Service::start().await;
        service.select(&replicas.iter().map(|replica| replica.place).collect::<Vec<_>>());
        scene.register(service.port).await;
        for replica in &replicas {
            replica.ready().await;
        }
        scene.enforced().await;
        let bundles = scene.bundles().await;
        assert!(bundles.iter().all(|pem| bundle::parse(pem) == bundle::parse(&bundles[0])), "one CA for all");
        assert_eq!(bundle::parse(&bundles[0]), [scene.current_ca().await.expect("a CA")]);
        for replica in &replicas {
            handshake(&scene, replica.place.admission, &bundles[0]).await.expect("every replica is trusted");
        }
        let before = scene.secret().await.expect("there").resource_version();
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(scene.secret().await.expect("there").resource_version(), before, "and nobody writes without need");
    });
}

#[test]
fn admit_survives_a_clock_that_jumps() {
    with_namespace("admit-clock", async |scene| {
        use std::sync::Arc;
        use std::sync::atomic::{AtomicI64, Ordering};
        let ahead = Arc::new(AtomicI64::new(0));
        let clock = {
            let (ahead, system) = (ahead.clone(), certs::Clock::system());
            certs::Clock::from_fn(move || system.now() + jiff::SignedDuration::from_secs(ahead.load(Ordering::Relaxed)))
        };
        scene.register(1).await;
        let settings = certs::authority::Settings {
            namespace: scene.namespace.clone(),
            secret: SECRET.to_owned(),
            hosts: certs::authority::service_hosts("kuberay-webhook", &scene.namespace),
            webhook_configurations: vec![scene.configuration()],
            lifetimes: certs::Lifetimes { check: jiff::SignedDuration::from_millis(200), ..quick_settling() },
        };
        let resolver = certs::Resolver::new();
        let (authority, status) = certs::authority::Authority::new(scene.client.clone(), settings, resolver.clone(), clock.clone());
        let running = tokio::spawn(authority.run());
        until("ready", async || status.borrow().problems(clock.now()).is_empty()).await;
        let first = scene.current_ca().await.expect("a CA");
        let day = 24 * 3600;
        for (days, same_ca) in [(10, true), (400, false)] {
            ahead.store(days * day, Ordering::Relaxed);
            until("a certificate that is valid now", async || {
                let status = status.borrow();
                status.not_after.is_some_and(|end| end > clock.now()) && status.problems(clock.now()).is_empty()
            })
            .await;
            assert_eq!(scene.current_ca().await.expect("a CA") == first, same_ca, "after {days} days");
        }
        running.abort();
    });
}

/// Answers each request on `listener` with the next of `answers`; `UID` in an answer stands for the review's uid. One connection for
/// each request.
async fn scripted(listener: tokio::net::TcpListener, resolver: std::sync::Arc<certs::Resolver>, answers: Vec<&'static str>) {
    use tokio::io::AsyncReadExt;
    let config = certs::server_config(resolver, &["http/1.1"]).expect("valid");
    let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
    for answer in answers {
        let (socket, _) = listener.accept().await.expect("accepts");
        let mut stream = acceptor.accept(socket).await.expect("a handshake");
        let mut text = String::new();
        let review: Value = loop {
            let mut bytes = [0; 65536];
            let length = stream.read(&mut bytes).await.expect("a request");
            text.push_str(std::str::from_utf8(&bytes[..length]).expect("text"));
            if let Some(review) = text.split_once("\r\n\r\n").and_then(|(_, body)| serde_json::from_str(body).ok()) {
                break review;
            }
        };
        let uid = review["request"]["uid"].as_str().expect("a uid");
        stream.write_all(answer.replace("UID", uid).as_bytes()).await.expect("written");
        stream.shutdown().await.expect("closed");
    }
}

/// What the drain of the webhook relies on: an API server that is told "503, retry after a second" asks again.
#[test]
fn admit_is_repeated_by_the_api_server_after_a_last_word() {
    with_namespace("admit-again", async |scene| {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback");
        scene.register(listener.local_addr().expect("bound").port()).await;
        let settings = certs::authority::Settings {
            namespace: scene.namespace.clone(),
            secret: SECRET.to_owned(),
            hosts: certs::authority::service_hosts("kuberay-webhook", &scene.namespace),
            webhook_configurations: vec![scene.configuration()],
            lifetimes: quick_settling(),
        };
        let resolver = certs::Resolver::new();
        let (authority, status) =
            certs::authority::Authority::new(scene.client.clone(), settings, resolver.clone(), certs::Clock::system());
        let running = tokio::spawn(authority.run());
        until("ready", async || status.borrow().problems(certs::Clock::system().now()).is_empty()).await;

        const AWAY: &str = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        const ADMIT: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n\
            {\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"response\":{\"uid\":\"UID\",\"allowed\":true}}";
        // Mutation is turned away once, validation twice.
        let script = tokio::spawn(scripted(listener, resolver, vec![AWAY, ADMIT, AWAY, AWAY, ADMIT]));
        let start = Instant::now();
        scene.create(&raycluster("again", &["a"]), true).await.expect("admitted in the end");
        assert!(start.elapsed() >= Duration::from_secs(3), "it waited as told: {:?}", start.elapsed());
        script.await.expect("every answer was asked for");
        running.abort();
    });
}

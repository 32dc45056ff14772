//! The operator under the chart's roles, with the chart's arguments.

use std::path::PathBuf;
use std::time::Duration;

use api_tests::chart::Rendered;
use api_tests::rbac::{self, Audit};
use api_tests::scene::{Scene, group, spec};
use api_tests::{Program, server};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret, Service, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::ResourceExt;
use kube::api::{Api, ListParams, Patch, PatchParams};
use operator::build::scheduling::pod_group::{Plugins, PodGroup, Volcano};
use serde_json::{Value, json};
use shared::api::{RayCluster, RayCronJob, RayJob};
use testcluster::wait;

use super::{Excuse, assert_nothing_refused, assert_unused, render};

const PATIENCE: Duration = Duration::from_secs(40);

/// An operator with the chart's account and arguments, in a scene of its own.
struct Installed {
    scene: Scene,
    rendered: Rendered,
    audit: Audit,
    operator: Program,
}

async fn install(prefix: &str, values: &[&str]) -> Installed {
    let scene = Scene::without_operator(server(), prefix).await.unwrap();
    let home = scene.namespace.clone();
    let watched = format!(r#"watchNamespace=["{home}"]"#);
    let rendered = render(&home, &[&[watched.as_str(), "webhook.enabled=false"], values].concat());
    let kubeconfig = rbac::install(server(), &rendered, &home, &home).await.unwrap();
    let audit = Audit::of(server(), &home, &home).unwrap();
    let operator = start(&scene, &rendered, kubeconfig).await;
    Installed { scene, rendered, audit, operator }
}

async fn start(scene: &Scene, rendered: &Rendered, kubeconfig: PathBuf) -> Program {
    let mut arguments = rendered.arguments(&scene.namespace).unwrap();
    // A Pod's kubeconfig knows the namespace; this one does not.
    arguments.push(format!("--leader-election-namespace={}", scene.namespace));
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Program::operator(scene.folder(), &kubeconfig, &arguments, &[]).await.unwrap_or_else(|error| panic!("{error:#}"))
}

/// Waits until the operator leads: only then it has asked for everything that it asks for at start.
async fn leads(installed: &Installed) {
    let leases: Api<Lease> = installed.scene.api();
    wait::until("a leader", PATIENCE, || async {
        let lease = leases.get_opt("ray-operator-leader").await?;
        Ok(lease.and_then(|lease| lease.spec?.holder_identity).filter(|holder| !holder.is_empty()))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn the_operator_starts_in_each_way_of_installing() {
    for (way, values) in [
        ("cluster", &[][..]),
        ("single", &["singleNamespaceInstall=true"]),
        ("alone", &["leaderElectionEnabled=false"]),
        ("proxy", &["useKubernetesProxy=true", "singleNamespaceInstall=true"]),
        ("crds", &["crds.manage=true"]),
        ("gates", &[r#"featureGates=[{"name":"RayCronJob","enabled":true},{"name":"SidecarSubmitterRestart","enabled":true}]"#]),
    ] {
        let installed = install(&format!("start-{way}"), values).await;
        if way != "alone" {
            leads(&installed).await;
        }
        installed.scene.cluster("c", spec(&[group("a", 1)], json!({}))).await.unwrap();
        let pods = installed.scene.has_pods("c", 1, 1).await;
        pods.unwrap_or_else(|error| panic!("{way}: {error:#}\n{}", installed.operator.log()));
        assert_nothing_refused(&installed.audit);
        assert!(installed.operator.terminate().await.unwrap() < Duration::from_secs(2), "{way}");
    }
}

/// Gang schedulers that want PodGroups: what the operator may do with them it does, and it may do what it has to.
#[tokio::test]
async fn pod_groups_need_their_rights_and_no_more() {
    api_tests::gang::install(server()).await.unwrap();
    for (name, group_of_kind) in [("volcano", "scheduling.volcano.sh"), ("scheduler-plugins", "scheduling.x-k8s.io")] {
        let scheduler = format!(r#"batchScheduler.name="{name}""#);
        let installed = install("gang", &[&scheduler, "singleNamespaceInstall=true"]).await;
        let scene = &installed.scene;
        leads(&installed).await;
        // Somebody else has the name of a group.
        let taken = json!({ "metadata": { "name": if name == "volcano" { "ray-f-pg" } else { "f" } }, "spec": { "minMember": 1 } });
        match name {
            "volcano" => drop(scene.create::<PodGroup<Volcano>>(taken).await.unwrap()),
            _ => drop(scene.create::<PodGroup<Plugins>>(taken).await.unwrap()),
        }
        for cluster in ["f", "c"] {
            let labels = json!({ "ray.io/gang-scheduling-enabled": "true" });
            let object = json!({ "apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": { "name": cluster, "labels": labels },
                "spec": spec(&[group("a", 1)], json!({})) });
            scene.create::<RayCluster>(object).await.unwrap();
        }
        scene.has_pods("c", 1, 1).await.unwrap_or_else(|error| panic!("{name}: {error:#}\n{}", installed.operator.log()));
        scene.status("f", "the conflict", |status| status.reason.starts_with("NameTaken")).await.unwrap();
        scene.patch_group("c", "replicas", json!(2)).await.unwrap();
        scene.has_pods("c", 1, 2).await.unwrap();
        scene.patch::<RayCluster>("c", json!({ "spec": { "suspend": true } })).await.unwrap();
        scene.has_pods("c", 0, 0).await.unwrap();
        assert_nothing_refused(&installed.audit);
        let mut rights = rbac::granted(&installed.rendered, &scene.namespace, &scene.namespace);
        rights.retain(|right| right.resource == "podgroups");
        assert!(rights.iter().all(|right| right.group == group_of_kind), "{rights:?}");
        let lists = format!("podgroups.{group_of_kind}");
        let asked = installed.audit.asked().unwrap();
        let unused: Vec<String> =
            rbac::unused(&rights, &asked).iter().map(|right| format!("{} {}.{}", right.verb, right.resource, right.group)).collect();
        assert_eq!(unused, [format!("list {lists}")], "API servers before 1.34 are asked for lists");
    }
}

/// `--manage-crds` may bring its four definitions, and touch no other.
#[tokio::test]
async fn definitions_are_managed_by_name() {
    let installed = install("managed", &["crds.manage=true"]).await;
    leads(&installed).await;
    let asked = |verb: &str| {
        let of = |asked: &rbac::Asked| asked.permission.resource == "customresourcedefinitions" && asked.permission.verb == verb;
        installed.audit.asked().unwrap().into_iter().filter(of).filter(|asked| asked.code == 200).count()
    };
    wait::until("all four definitions", PATIENCE, || async { Ok((asked("patch") >= 4).then_some(())) }).await.unwrap();
    assert_nothing_refused(&installed.audit);
    let rights = rbac::granted(&installed.rendered, &installed.scene.namespace, &installed.scene.namespace);
    for right in rights.iter().filter(|right| right.resource == "customresourcedefinitions") {
        assert!(right.name.as_ref().is_some_and(|name| name.ends_with(".ray.io")), "{right}");
    }
}

/// A cluster and a job with everything that makes the operator ask for something, from making to deleting.
#[tokio::test]
async fn the_operator_needs_the_charts_roles_and_no_more() {
    let installed = install("life", &["singleNamespaceInstall=true", r#"featureGates=[{"name":"RayCronJob","enabled":true}]"#]).await;
    let scene = &installed.scene;
    leads(&installed).await;
    what_others_have(scene).await;
    a_cluster(scene).await;
    a_job(scene).await;
    a_cron_job(scene).await;
    assert_nothing_refused(&installed.audit);
    let rights = rbac::granted(&installed.rendered, &scene.namespace, &scene.namespace);
    assert_unused(&rights, &installed.audit, UNUSED, CHANCE);
}

/// Rights that the life above does not need.
const UNUSED: &[Excuse] = &[
    ("update", "rayclusters/finalizers.ray.io", "asked for by an admission plugin of OpenShift, not by us"),
    ("update", "rayjobs/finalizers.ray.io", "as above"),
    ("update", "raycronjobs/finalizers.ray.io", "as above"),
    ("update", "rayservices/finalizers.ray.io", "as above"),
    ("create delete get patch", "routes.route.openshift.io", "OpenShift only"),
    ("patch", "pods/resize", "given on to the autoscaler"),
    ("get list patch watch", "rayservices.ray.io", "RayServices"),
    ("patch", "rayservices/status.ray.io", "RayServices"),
    ("get list watch", "endpointslices.discovery.k8s.io", "RayServices"),
    ("create delete get list patch watch", "gateways.gateway.networking.k8s.io", "RayServices"),
    ("create delete get list patch watch", "httproutes.gateway.networking.k8s.io", "RayServices"),
    ("delete", "rayjobs.ray.io", "finished jobs that are to go by a deletion rule, a limit or a switch"),
    ("get", "jobs.batch", "a submitter's name that somebody else has taken"),
    ("get", "rolebindings.rbac.authorization.k8s.io", "a binding's name that somebody else has taken, but not the role's"),
    ("list", "jobs.batch", "API servers before 1.34 are asked for lists, newer ones for streams"),
    ("list", "persistentvolumeclaims", "as above"),
    ("list", "rayclusters.ray.io", "as above"),
    ("list", "raycronjobs.ray.io", "as above"),
    ("list", "rayjobs.ray.io", "as above"),
    ("list", "ingresses.networking.k8s.io", "as above"),
    ("list", "roles.rbac.authorization.k8s.io", "as above"),
    ("list", "rolebindings.rbac.authorization.k8s.io", "as above"),
    ("list", "secrets", "as above"),
    ("list", "serviceaccounts", "as above"),
    ("list", "services", "as above"),
    ("get patch", "raycronjobs.ray.io", "an object that the watch does not tell of; a finalizer"),
];

/// Rights that one run needs and the next does not.
const CHANCE: &[Excuse] = &[
    ("get list", "pods", "a Pod whose creation had no answer, or that the watch does not tell of in time"),
    ("get", "rayjobs.ray.io", "an object that the watch does not tell of in time"),
    ("get", "rayclusters.ray.io", "as above"),
    ("patch", "events.events.k8s.io", "events that come close together are joined, later ones are counted"),
];

/// Objects of somebody else that have the names which a cluster needs: they are looked at, and left alone.
async fn what_others_have(scene: &Scene) {
    let port = json!([{ "port": 1 }]);
    scene.create::<Service>(json!({ "metadata": { "name": "f-head-svc" }, "spec": { "ports": port } })).await.unwrap();
    scene.create::<ServiceAccount>(json!({ "metadata": { "name": "f" } })).await.unwrap();
    scene.create::<Role>(json!({ "metadata": { "name": "f" }, "rules": [] })).await.unwrap();
    let reference = json!({ "apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "f" });
    scene.create::<RoleBinding>(json!({ "metadata": { "name": "f" }, "roleRef": reference })).await.unwrap();
    let backend = json!({ "service": { "name": "x", "port": { "number": 1 } } });
    scene.create::<Ingress>(json!({ "metadata": { "name": "f-head-ingress" }, "spec": { "defaultBackend": backend } })).await.unwrap();
    let mut spec = spec(&[], json!({ "enableInTreeAutoscaling": true }));
    spec["headGroupSpec"]["enableIngress"] = json!(true);
    scene.cluster("f", spec).await.unwrap();
    scene.until("five conflicts that are told", async || Ok((foreign(scene).await? >= 1).then_some(()))).await.unwrap();
    scene.delete::<RayCluster>("f").await.unwrap();
}

/// Events that speak of objects of others.
async fn foreign(scene: &Scene) -> anyhow::Result<usize> {
    let events = scene.api::<Event>().list(&ListParams::default()).await?;
    Ok(events.items.iter().filter(|event| event.note.as_deref().is_some_and(|note| note.contains("f-head-ingress"))).count())
}

async fn a_cluster(scene: &Scene) {
    let mut workers = group("a", 2);
    workers["numOfHosts"] = json!(2);
    let more = json!({ "enableInTreeAutoscaling": true, "authOptions": { "mode": "token" }, "upgradeStrategy": { "type": "Recreate" } });
    let mut spec = spec(&[workers], more);
    spec["headGroupSpec"]["enableIngress"] = json!(true);
    spec["gcsFaultToleranceOptions"] = json!({ "redisAddress": "redis:6379" });
    scene.cluster("c", spec).await.unwrap();
    scene.run_to_ready("c").await.unwrap();

    // Somebody else's hands on children.
    scene.patch::<Service>("c-head-svc", json!({ "spec": { "selector": { "ray.io/cluster": "other" } } })).await.unwrap();
    let services = scene.api::<Service>();
    let repaired =
        async || Ok(services.get("c-head-svc").await?.spec.and_then(|spec| spec.selector).filter(|all| all["ray.io/cluster"] == "c"));
    scene.until("the Service to be repaired", repaired).await.unwrap();
    // Twice the same: told once, then counted.
    for _ in 0..2 {
        scene.delete::<Service>("c-head-svc").await.unwrap();
        scene.until("the Service again", async || Ok(services.get_opt("c-head-svc").await?)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    scene.patch::<Role>("c", json!({ "rules": [] })).await.unwrap();
    scene.patch::<RoleBinding>("c", json!({ "subjects": [] })).await.unwrap();
    scene.patch::<ServiceAccount>("c", json!({ "metadata": { "labels": { "app.kubernetes.io/name": "other" } } })).await.unwrap();
    scene.patch::<Ingress>("c-head-ingress", json!({ "metadata": { "labels": { "app.kubernetes.io/name": "other" } } })).await.unwrap();
    let account = async || {
        let account = scene.api::<ServiceAccount>().get("c").await?;
        Ok(account.labels().get("app.kubernetes.io/name").filter(|name| *name != "other").map(|_| ()))
    };
    scene.until("the account to be repaired", account).await.unwrap();
    let head = scene.pods("c", "head").await.unwrap().remove(0);
    let old = json!({ "metadata": { "annotations": { "ray.io/kuberay-version": "v1.6.0" } } });
    scene.patch::<Pod>(&head.name_any(), old).await.unwrap();

    // Less of everything.
    let less = json!({ "spec": { "enableInTreeAutoscaling": false, "authOptions": null, "headGroupSpec": { "enableIngress": false } } });
    scene.patch::<RayCluster>("c", less).await.unwrap();
    scene.patch_group("c", "numOfHosts", json!(1)).await.unwrap();
    scene.patch_group("c", "replicas", json!(1)).await.unwrap();
    let gone = async || {
        let left = scene.api::<Ingress>().get_opt("c-head-ingress").await?.into_iter().count()
            + scene.api::<Role>().get_opt("c").await?.into_iter().count();
        Ok((left == 0).then_some(()))
    };
    scene.until("what was switched off to go", gone).await.unwrap();
    scene.has_pods("c", 1, 1).await.unwrap();
    scene.patch::<RayCluster>("c", json!({ "spec": { "suspend": true } })).await.unwrap();
    scene.has_pods("c", 0, 0).await.unwrap();
    let secrets = scene.api::<Secret>();
    scene.until("the Secret to go", async || Ok(secrets.get_opt("c").await?.is_none().then_some(()))).await.unwrap();

    // The end: a Job cleans up Redis.
    scene.delete::<RayCluster>("c").await.unwrap();
    let jobs = scene.api::<Job>();
    let job = async || Ok(jobs.list(&ListParams::default()).await?.items.into_iter().next());
    let job = scene.until("the clean-up Job", job).await.unwrap();
    // Its Pod ends well; the Job's own controller does the rest.
    let selector = ListParams::default().labels(&format!("batch.kubernetes.io/job-name={}", job.name_any()));
    let pod = async || Ok(scene.api::<Pod>().list(&selector).await?.items.into_iter().next());
    let pod = scene.until("the clean-up Pod", pod).await.unwrap();
    scene.set_pod(&pod, json!({ "phase": "Succeeded" })).await.unwrap();
    let clusters = scene.api::<RayCluster>();
    scene.until("the cluster to go", async || Ok(clusters.get_opt("c").await?.is_none().then_some(()))).await.unwrap();
}

async fn a_job(scene: &Scene) {
    let spec = spec(&[group("a", 1)], json!({ "authOptions": { "mode": "token" } }));
    let job: Value = json!({ "apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": { "name": "j" },
        "spec": { "entrypoint": "python a.py", "shutdownAfterJobFinishes": true, "rayClusterSpec": spec } });
    scene.create::<RayJob>(job).await.unwrap();
    let clusters = scene.api::<RayCluster>();
    let name = async || Ok(clusters.list(&ListParams::default()).await?.items.first().map(ResourceExt::name_any));
    let name = scene.until("the job's cluster", name).await.unwrap();
    scene.run_to_ready(&name).await.unwrap();
    let jobs = scene.api::<Job>();
    scene.until("the submitter", async || Ok(jobs.get_opt("j").await?)).await.unwrap();
    scene.patch::<RayJob>("j", json!({ "spec": { "suspend": true } })).await.unwrap();
    let gone = async || Ok((clusters.get_opt(&name).await?.is_none() && jobs.get_opt("j").await?.is_none()).then_some(()));
    scene.until("cluster and submitter to go", gone).await.unwrap();
    scene.delete::<RayJob>("j").await.unwrap();
    let rays = scene.api::<RayJob>();
    scene.until("the job to go", async || Ok(rays.get_opt("j").await?.is_none().then_some(()))).await.unwrap();
}

/// A tick that is due at once, and what it has made.
async fn a_cron_job(scene: &Scene) {
    let spec = spec(&[group("a", 1)], json!({}));
    let job = json!({ "entrypoint": "python a.py", "rayClusterSpec": spec });
    let cron = json!({ "apiVersion": "ray.io/v1", "kind": "RayCronJob", "metadata": { "name": "n" },
        "spec": { "schedule": "* * * * *", "suspend": true, "jobTemplate": job } });
    scene.create::<RayCronJob>(cron).await.unwrap();
    let patch = Patch::Merge(json!({ "status": { "lastScheduleTime": "2020-01-01T00:00:00Z" } }));
    scene.api::<RayCronJob>().patch_status("n", &PatchParams::default(), &patch).await.unwrap();
    // A status alone wakes nobody.
    scene.patch::<RayCronJob>("n", json!({ "spec": { "suspend": false } })).await.unwrap();
    let jobs = scene.api::<RayJob>();
    scene.until("the job of the tick", async || Ok(jobs.list(&ListParams::default()).await?.items.pop())).await.unwrap();
    scene.delete::<RayCronJob>("n").await.unwrap();
}

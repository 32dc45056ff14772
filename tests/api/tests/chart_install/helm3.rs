//! The same charts in the hands of Helm 3, which many still have: what it renders, and a release's whole life.

use api_tests::{Program, chart};
use serde_json::Value;
use testcluster::local::free_port;

use super::site::{Site, site};
use super::{CHART, WAYS};

#[test]
fn helm_3_renders_what_helm_4_renders() {
    let more = [r#"image.tag="2.54.1""#, r#"gcsFaultTolerance={"enabled":true,"redisAddress":"redis:6379"}"#];
    let charts = WAYS.iter().map(|(way, values)| ("kuberay-operator", *way, *values));
    let charts = charts.chain([("ray-cluster", "defaults", &[][..]), ("ray-cluster", "more", &more)]);
    for (name, way, values) in charts {
        let mut arguments = arguments(values.iter().copied());
        arguments.push("--kube-version=1.35");
        let sorted = |rendered: chart::Rendered| {
            let mut objects = rendered.objects().to_vec();
            objects.sort_by_key(|object| {
                ["/kind", "/metadata/namespace", "/metadata/name"].map(|place| chart::text(object, place).to_owned())
            });
            objects
        };
        let four = sorted(chart::render(name, "ray", "home", &arguments).unwrap());
        let three = sorted(chart::render_with(chart::helm3(), name, "ray", "home", &arguments).unwrap());
        assert!(!four.is_empty());
        assert_eq!(three, four, "{name}, {way}");
    }
}

/// Installed, upgraded, rolled back by Helm 3; upgraded by Helm 4, as people do who change their helm; removed by Helm 3.
#[tokio::test]
async fn a_release_lives_with_helm_3() {
    let site = site("helm-three").await;
    let own = site.own_namespace_only();
    let (_, everything) = WAYS.iter().find(|(way, _)| *way == "everything").unwrap();
    // The webhook of this test keeps its own certificate.
    let more = everything.iter().copied().filter(|value| !value.starts_with("webhook.certificates"));
    let plain = arguments([own.as_str()]);
    let more = arguments(more.chain([own.as_str(), "webhook.timeoutSeconds=7"]));

    site.helm3(&["install", RELEASE, CHART], &plain).await.unwrap();
    let webhook = running(&site).await;
    assert_eq!(timeouts(&site).await, [10; 8]);

    site.helm3(&["upgrade", RELEASE, CHART], &more).await.unwrap();
    assert_eq!(replicas(&site).await, 2);
    site.until("the other setting of all webhooks", async || timeouts(&site).await == [7; 8]).await;
    // Again: nothing is new, and nothing of what the webhook has put in is taken out.
    site.helm3(&["upgrade", RELEASE, CHART], &more).await.unwrap();
    assert_eq!(timeouts(&site).await, [7; 8]);

    site.helm3(&["rollback", RELEASE, "1"], &[]).await.unwrap();
    assert_eq!(replicas(&site).await, 1);
    assert!(site.kubectl(&["get", "configmap", "kuberay-operator-dashboard"], "").await.unwrap_err().contains("NotFound"));
    site.until("the first setting of all webhooks", async || timeouts(&site).await == [10; 8]).await;

    site.helm(&["upgrade", RELEASE, CHART], &more).await.unwrap();
    assert_eq!(replicas(&site).await, 2);
    site.until("the other setting once more", async || timeouts(&site).await == [7; 8]).await;
    site.helm3(&["upgrade", RELEASE, CHART], &plain).await.unwrap();
    assert_eq!(replicas(&site).await, 1);

    webhook.terminate().await.unwrap();
    site.helm3(&["uninstall", RELEASE, "--wait"], &[]).await.unwrap();
    site.until("nothing is left", async || site.leftovers().await.is_empty()).await;
}

fn arguments<'a>(values: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    values.into_iter().flat_map(|value| ["--set-json", value]).collect()
}

const RELEASE: &str = "kuberay-operator";
const CONFIGURATION: &str = "kuberay-operator-webhook-helm-three";

/// The webhook of the release, as a process of this machine: it puts the webhooks into their configurations.
async fn running(site: &Site) -> Program {
    let folder = tempfile::tempdir().unwrap().keep();
    let flags = [
        format!("--port={}", free_port().unwrap()),
        format!("--namespace={}", site.namespace),
        "--service-name=kuberay-operator-webhook".to_owned(),
        "--secret-name=kuberay-operator-webhook-ca".to_owned(),
        format!("--webhook-configuration={CONFIGURATION}"),
    ];
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let webhook = Program::webhook(&folder, &site.kubeconfig(), &flags).await.unwrap();
    site.until("all webhooks in their configurations", async || timeouts(site).await.len() == 8).await;
    webhook
}

/// `timeoutSeconds` of every webhook.
async fn timeouts(site: &Site) -> Vec<i64> {
    let mut found = Vec::new();
    for kind in ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"] {
        let webhooks = site.get(kind, CONFIGURATION).await["webhooks"].take();
        found.extend(webhooks.as_array().into_iter().flatten().filter_map(|webhook| webhook["timeoutSeconds"].as_i64()));
    }
    found
}

async fn replicas(site: &Site) -> Value {
    site.get("deployment", "kuberay-operator").await["spec"]["replicas"].take()
}

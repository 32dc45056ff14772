//! The webhook under the chart's roles, with the chart's arguments.

use std::path::Path;
use std::time::Duration;

use api_tests::chart::{Rendered, text};
use api_tests::rbac::{self, Audit, Permission};
use api_tests::{Program, namespace, server};
use k8s_openapi::api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration};
use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;
use testcluster::wait;

use super::{assert_nothing_refused, assert_unused, render};

const PATIENCE: Duration = Duration::from_secs(40);

/// The chart's arguments, but for the ports: several replicas run on one machine.
fn arguments(rendered: &Rendered, deployment: &str) -> Vec<String> {
    let own = ["serve", "--port=", "--metrics-addr=", "--health-probe-bind-address="];
    let all = rendered.arguments(deployment).unwrap();
    let kept = all.into_iter().filter(|argument| !own.iter().any(|own| argument.starts_with(own)));
    kept.chain(["--port=0".to_owned()]).collect()
}

async fn replica(folder: &Path, name: &str, kubeconfig: &Path, arguments: &[String]) -> Program {
    let folder = folder.join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    Program::webhook(&folder, kubeconfig, &arguments).await.unwrap_or_else(|error| panic!("{name}: {error:#}"))
}

/// How many of the eight webhooks have a caBundle.
async fn trusted(client: &Client, name: &str) -> usize {
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
    let validating = validating.get(name).await.unwrap().webhooks.unwrap_or_default().into_iter().map(|webhook| webhook.client_config);
    let mutating = mutating.get(name).await.unwrap().webhooks.unwrap_or_default().into_iter().map(|webhook| webhook.client_config);
    validating.chain(mutating).filter(|config| config.ca_bundle.as_ref().is_some_and(|bundle| !bundle.0.is_empty())).count()
}

async fn until_trusted(client: &Client, name: &str) {
    wait::until("the CA in all webhooks", PATIENCE, || async { Ok((trusted(client, name).await == 8).then_some(())) }).await.unwrap();
}

#[tokio::test]
async fn the_webhook_needs_the_charts_roles_and_no_more() {
    let server = server();
    let client = server.client().await.unwrap();
    let namespace = namespace(&client, "rights").await.unwrap();
    let by_label = r#"webhook.warnOnly=[{"rules":["*"],"namespaces":{"matchLabels":{"team":"x"}}}]"#;
    let rendered = render(&namespace, &[by_label]);
    let account = format!("{namespace}-webhook");
    let configuration = format!("{namespace}-webhook-{namespace}");
    let kubeconfig = rbac::install(server, &rendered, &namespace, &account).await.unwrap();
    let others = ["Secret", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"];
    rbac::apply(server, rendered.objects().iter().filter(|object| others.contains(&text(object, "/kind")))).await.unwrap();

    let folder = tempfile::tempdir().unwrap();
    let rules = rendered.get("ConfigMap", &format!("{account}-policy")).unwrap()["data"]["rules.yaml"].as_str().unwrap();
    let file = folder.path().join("rules.yaml");
    std::fs::write(&file, rules).unwrap();
    let mut arguments = arguments(&rendered, &account);
    for argument in &mut arguments {
        if argument.starts_with("--rules-file=") {
            *argument = format!("--rules-file={}", file.display());
        }
    }

    let audit = Audit::of(server, &namespace, &account).unwrap();
    let path = folder.path();
    // All at once, as a Deployment starts them: one is first, the others find its work done.
    let replicas = tokio::join!(
        replica(path, "1", &kubeconfig, &arguments),
        replica(path, "2", &kubeconfig, &arguments),
        replica(path, "3", &kubeconfig, &arguments)
    );
    until_trusted(&client, &configuration).await;

    // What happens in the life of an installation, until each right was needed once. Which replica loses a race, and has to look what the
    // winner wrote, is up to chance.
    let rights = rbac::granted(&rendered, &namespace, &account);
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &namespace);
    let secret = format!("{account}-ca");
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
    for round in 1..=20 {
        secrets.delete(&secret, &DeleteParams::default()).await.unwrap();
        wait::until("the Secret again", PATIENCE, || async { Ok(secrets.get_opt(&secret).await?) }).await.unwrap();
        let nothing = Patch::Merge(json!({"data": null}));
        secrets.patch(&secret, &PatchParams::default(), &nothing).await.unwrap();
        wait::until("a CA again", PATIENCE, || async {
            Ok(secrets.get_opt(&secret).await?.filter(|secret| secret.data.as_ref().is_some_and(|data| data.contains_key("tls.crt"))))
        })
        .await
        .unwrap();
        let overwrite = json!([{"op": "replace", "path": "/webhooks/0/clientConfig/caBundle", "value": ""}]);
        let overwrite = Patch::Json::<()>(serde_json::from_value(overwrite).unwrap());
        validating.patch(&configuration, &PatchParams::default(), &overwrite).await.unwrap();
        until_trusted(&client, &configuration).await;
        let left = rbac::unused(&rights, &audit.asked().unwrap()).len();
        println!("round {round}: {left} rights unused");
        if left == 0 {
            break;
        }
    }
    assert_nothing_refused(&audit);
    assert_unused(&rights, &audit, LISTS, &[]);
    for replica in [replicas.0, replicas.1, replicas.2] {
        replica.terminate().await.unwrap();
    }
}

/// Lists come as streams of the watch where the API server can; those before Kubernetes 1.34 are asked for lists.
const LISTS: &[super::Excuse] = &[];

/// Without `namespaces` the webhook would fall back to labels that it does not know, and say so in its log only.
#[tokio::test]
async fn what_is_missing_shows() {
    let server = server();
    let client = server.client().await.unwrap();
    let namespace = namespace(&client, "refused").await.unwrap();
    let rendered = render(&namespace, &[]);
    let account = format!("{namespace}-webhook");
    // The account has its name and none of its rights.
    let kubeconfig = server.instance().kubeconfig_for_service_account(&namespace, &account).await.unwrap();
    let audit = Audit::of(server, &namespace, &account).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let arguments = arguments(&rendered, &account);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let starting = Program::webhook(folder.path(), &kubeconfig, &arguments);
    assert!(tokio::time::timeout(Duration::from_secs(5), starting).await.is_err(), "it must not be ready without a certificate");
    let refused: Vec<Permission> = audit.refused().unwrap().into_iter().map(|asked| asked.permission).collect();
    assert!(refused.iter().any(|asked| asked.resource == "secrets" && asked.verb == "list"), "{refused:?}");
    assert!(refused.iter().any(|asked| asked.resource == "validatingwebhookconfigurations"), "{refused:?}");
}

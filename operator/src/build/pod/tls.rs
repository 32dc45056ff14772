//! Certificates in Pods (RC-95..RC-98), behind the gate RayClusterMTLS.

use k8s_openapi::api::core::v1::{Container, SecretVolumeSource, Volume, VolumeMount};
use shared::features::Feature;
use shared::labels::container::{WAIT_GCS_READY, WAIT_TLS_IP_SAN};
use shared::labels::env;
use shared::names;

use super::Node;
use super::draft::Draft;
use crate::build::container::{ContainerExt, fixed_resources, mount};
use crate::build::context::Context;
use crate::build::env::{field, value};

const VOLUME: &str = "ray-tls";
const PATH: &str = "/etc/ray/tls";

fn active(cx: &Context<'_>) -> bool {
    cx.settings.features.enabled(Feature::RayClusterMTLS)
        && cx.cluster.spec.tls_options.as_ref().is_some_and(|options| options.enabled == Some(true))
}

fn mount_of_certificates() -> VolumeMount {
    VolumeMount { read_only: Some(true), ..mount(VOLUME, PATH) }
}

/// Adds the certificates to the Pod, to Ray, and to what waits before it.
pub(super) fn add(pod: &mut Draft, node: Node, cx: &Context<'_>) {
    if !active(cx) {
        return;
    }
    let secret = match node {
        Node::Head => names::head_tls_secret(cx.name),
        Node::Worker => names::worker_tls_secret(cx.name),
    };
    pod.volume_if_absent(Volume {
        name: VOLUME.to_owned(),
        secret: Some(SecretVolumeSource { secret_name: Some(secret), ..SecretVolumeSource::default() }),
        ..Volume::default()
    });
    add_to_container(&mut pod.ray, cx);
    for init in pod.init_containers.iter_mut().filter(|init| init.name == WAIT_GCS_READY) {
        add_to_container(init, cx);
    }
    if !pod.init_containers.iter().any(|init| init.name == WAIT_TLS_IP_SAN) {
        pod.init_containers.insert(0, wait_for_address(&pod.ray));
    }
}

/// Tells one container where the certificates are.
pub(super) fn add_to_container(container: &mut Container, cx: &Context<'_>) {
    if !active(cx) {
        return;
    }
    container.env_if_absent(value(env::RAY_USE_TLS, "1"));
    for (name, file) in [(env::RAY_TLS_SERVER_CERT, "tls.crt"), (env::RAY_TLS_SERVER_KEY, "tls.key"), (env::RAY_TLS_CA_CERT, "ca.crt")] {
        container.env_if_absent(value(name, format!("{PATH}/{file}")));
    }
    if container.mount_at(PATH).is_none() && !container.mounts().iter().any(|mount| mount.name == VOLUME) {
        container.push_mount(mount_of_certificates());
    }
}

/// RC-98: the certificate is issued anew when a Pod gets its address, so Ray must not start before that has reached the volume.
fn wait_for_address(ray: &Container) -> Container {
    Container {
        name: WAIT_TLS_IP_SAN.to_owned(),
        image: ray.image.clone(),
        image_pull_policy: ray.image_pull_policy.clone(),
        security_context: ray.security_context.clone(),
        command: Some(vec!["sh".to_owned(), "-c".to_owned()]),
        args: Some(vec![SCRIPT.to_owned()]),
        env: Some(vec![field("POD_IP", "status.podIP")]),
        volume_mounts: Some(vec![mount_of_certificates()]),
        resources: Some(fixed_resources("50m", "64Mi")),
        ..Container::default()
    }
}

/// The dots of the address are escaped, and what follows it must end it: `10.0.0.1` is neither `10.0.0.11` nor `10.0.0.1.2`.
const SCRIPT: &str = r#"
address="${POD_IP:-$(hostname -i | cut -d ' ' -f 1)}"
if ! command -v openssl > /dev/null 2>&1; then
  echo "openssl is not on the PATH of this image; it is needed to read the certificate." >&2
  exit 1
fi
pattern="IP Address:$(printf '%s' "$address" | sed 's/\./\\./g')([^0-9.]|\$)"
until openssl x509 -in /etc/ray/tls/tls.crt -noout -text 2> /dev/null | grep -Eq "$pattern"; do
  echo "The certificate does not name the address $address yet."
  sleep 5
done
echo "The certificate names the address $address."
"#;

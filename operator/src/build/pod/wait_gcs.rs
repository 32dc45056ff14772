//! The init container of workers that waits for the head's control service (RC-65, RC-66).

use k8s_openapi::api::core::v1::Container;
use shared::labels::container::WAIT_GCS_READY;

use crate::build::container::fixed_resources;
use crate::build::context::Context;
use crate::build::shell;

/// Copies what the user gave the Ray container: the check runs Ray's own program and may need the same variables, files and user.
pub(super) fn container(ray: &Container, cx: &Context<'_>) -> Container {
    Container {
        name: WAIT_GCS_READY.to_owned(),
        image: ray.image.clone(),
        image_pull_policy: ray.image_pull_policy.clone(),
        security_context: ray.security_context.clone(),
        env: ray.env.clone(),
        env_from: ray.env_from.clone(),
        volume_mounts: ray.volume_mounts.clone(),
        command: Some(shell(cx.settings, false)),
        args: Some(vec![script(&cx.gcs_address())]),
        resources: Some(fixed_resources("200m", "256Mi")),
        ..Container::default()
    }
}

/// Asks every five seconds without end: how long a head takes depends on its image. The answers of the first two minutes are
/// expected to be refusals and are not shown.
fn script(gcs: &str) -> String {
    format!(
        r#"
waited=0
while true; do
  if [ "$waited" -le 120 ]; then
    if ray health-check --address {gcs} > /dev/null 2>&1; then
      echo "The GCS server answers."
      break
    fi
    echo "$waited s: the GCS server does not answer yet."
  else
    if ray health-check --address {gcs}; then
      echo "The GCS server answers."
      break
    fi
    echo "$waited s: the GCS server still does not answer; the messages above say why."
  fi
  sleep 5
  waited=$((waited + 5))
done
"#
    )
}

//! The Secret with the token of a cluster (RC-126).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::Secret;
use kube::core::ObjectMeta;
use shared::api::RayCluster;
use shared::api::raycluster::AuthMode;
use shared::labels::label;
use shared::names;

use super::auth::TOKEN_KEY;
use super::owner_reference;

/// Whether the operator makes a token for the cluster. A mode that is not given counts here, so that the token exists before the mode
/// is switched on.
pub fn wanted(cluster: &RayCluster) -> bool {
    cluster.spec.auth_options.as_ref().is_some_and(|options| {
        options.mode != Some(AuthMode::Disabled)
            && options.enable_k8s_token_auth != Some(true)
            && options.secret_name.as_deref().is_none_or(str::is_empty)
    })
}

/// A Secret with a new token made from 32 random bytes. An existing one is never replaced: running Pods hold its token.
pub fn auth_token(cluster: &RayCluster, random: &[u8; 32]) -> Secret {
    let name = cluster.metadata.name.clone().unwrap_or_default();
    Secret {
        metadata: ObjectMeta {
            name: Some(names::auth_secret(&name)),
            namespace: cluster.metadata.namespace.clone(),
            labels: Some([(label::CLUSTER.to_owned(), name)].into()),
            owner_references: Some(vec![owner_reference(cluster)]),
            ..ObjectMeta::default()
        },
        string_data: Some([(TOKEN_KEY.to_owned(), STANDARD.encode(random))].into()),
        ..Secret::default()
    }
}

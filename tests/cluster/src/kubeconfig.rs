//! Kubeconfig files, complete in themselves: certificates and keys are inside.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::pki::Pair;

/// How a client proves who it is.
pub(crate) enum Credentials<'a> {
    /// A client certificate.
    Certificate(&'a Pair),
    /// A client certificate that may act for anybody, acting for this user and these groups.
    Impersonation { by: &'a Pair, user: &'a str, groups: &'a [&'a str] },
    /// A bearer token.
    Token(&'a str),
}

/// The text of a kubeconfig for the API server at `url` with the authority `ca`.
pub(crate) fn render(url: &str, ca: &str, credentials: &Credentials<'_>) -> String {
    let certificate = |pair: &Pair| {
        serde_json::json!({
            "client-certificate-data": STANDARD.encode(&pair.certificate),
            "client-key-data": STANDARD.encode(&pair.key),
        })
    };
    let user = match credentials {
        Credentials::Certificate(pair) => certificate(pair),
        Credentials::Impersonation { by, user, groups } => {
            let mut value = certificate(by);
            if let Some(map) = value.as_object_mut() {
                map.insert("as".to_owned(), (*user).into());
                map.insert("as-groups".to_owned(), serde_json::json!(groups));
            }
            value
        }
        Credentials::Token(token) => serde_json::json!({ "token": token }),
    };
    // JSON is YAML, and needs no writer of its own.
    let config = serde_json::json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{ "name": "testbed", "cluster": { "server": url, "certificate-authority-data": STANDARD.encode(ca) } }],
        "users": [{ "name": "user", "user": user }],
        "contexts": [{ "name": "testbed", "context": { "cluster": "testbed", "user": "user" } }],
        "current-context": "testbed",
    });
    format!("{config:#}\n")
}

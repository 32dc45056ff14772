//! Tokens of dashboards that ask for one, read from Secrets and kept for a short time (RJ-133).

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client};
use tokio::time::Instant;

use super::{job::Endpoint, reply::DashboardError};
use crate::build::auth::TOKEN_KEY;

/// How long a token is used before its Secret is read again.
const KEEP: Duration = Duration::from_secs(60);
/// How long it is remembered that a Secret gives no token.
const KEEP_FAULT: Duration = Duration::from_secs(5);
/// Longest wait for the API server.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

type Key = (Box<str>, Box<str>);
type Kept = (Instant, Result<Arc<str>, String>);

/// Tokens by Secret. Their text never leaves this module but in a request.
pub(super) struct Tokens {
    client: Option<Client>,
    kept: Mutex<HashMap<Key, Kept>>,
}

impl Tokens {
    /// Reads Secrets with `client`; without one, every dashboard that wants a token is out of reach.
    pub(super) fn new(client: Option<Client>) -> Self {
        Self { client, kept: Mutex::default() }
    }

    /// The token for a dashboard; `None` if it wants none.
    pub(super) async fn get(&self, endpoint: &Endpoint) -> Result<Option<Arc<str>>, DashboardError> {
        let Some(name) = &endpoint.token_secret else { return Ok(None) };
        let key = (endpoint.namespace.clone(), name.clone());
        let now = Instant::now();
        let known = self.kept().get(&key).filter(|(until, _)| *until > now).map(|(_, token)| token.clone());
        let token = match known {
            Some(token) => token,
            None => {
                let token = self.read(&endpoint.namespace, name).await;
                let until = now + if token.is_ok() { KEEP } else { KEEP_FAULT };
                let mut kept = self.kept();
                kept.retain(|_, (until, _)| *until > now);
                kept.insert(key, (until, token.clone()));
                token
            }
        };
        token.map(Some).map_err(DashboardError::NoToken)
    }

    /// The dashboard did not like the token: read the Secret anew next time.
    pub(super) fn distrust(&self, endpoint: &Endpoint) {
        if let Some(name) = &endpoint.token_secret {
            self.kept().remove(&(endpoint.namespace.clone(), name.clone()));
        }
    }

    async fn read(&self, namespace: &str, name: &str) -> Result<Arc<str>, String> {
        let client = self.client.clone().ok_or("there is no API server to read it from")?;
        let secrets = Api::<Secret>::namespaced(client, namespace);
        let secret = tokio::time::timeout(READ_TIMEOUT, secrets.get_opt(name))
            .await
            .map_err(|_| "the API server did not answer in time".to_owned())?
            .map_err(|error| format!("Secret {name}: {error}"))?
            .ok_or_else(|| format!("Secret {name} does not exist"))?;
        let token =
            secret.data.and_then(|mut data| data.remove(TOKEN_KEY)).ok_or_else(|| format!("Secret {name} has no key {TOKEN_KEY}"))?;
        let token = String::from_utf8(token.0).map_err(|_| format!("key {TOKEN_KEY} of Secret {name} is not text"))?;
        match token.trim() {
            "" => Err(format!("key {TOKEN_KEY} of Secret {name} is empty")),
            token => Ok(token.into()),
        }
    }

    fn kept(&self) -> std::sync::MutexGuard<'_, HashMap<Key, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! What can be asked of a dashboard, one function each (RJ-131).

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use http::Method;

use super::{
    job::{Endpoint, JobInfo, SubmitRequest},
    reply::{self, DashboardError, RawReply, Submission},
    token::Tokens,
    transport::{Call, Transport, segment},
};

/// Longest description of one job; it holds the runtime environment and a traceback.
const MAX_JOB: usize = 4 << 20;
/// Longest list of jobs. Clusters that have run very many jobs exceed it; their jobs are then asked for one by one.
const MAX_JOBS: usize = 16 << 20;

/// Talks to the dashboards of all clusters. Clones share connections and tokens.
#[derive(Clone)]
pub struct Dashboards {
    transport: Transport,
    tokens: Arc<Tokens>,
}

impl Dashboards {
    /// Uses `transport`; `client` reads the Secrets with tokens.
    pub fn new(transport: Transport, client: Option<kube::Client>) -> Self {
        Self { transport, tokens: Arc::new(Tokens::new(client)) }
    }

    /// State of a job.
    ///
    /// # Errors
    /// See [`DashboardError`]; `NotFound` is the dashboard's own word.
    pub async fn job(&self, endpoint: &Endpoint, id: &str) -> Result<JobInfo, DashboardError> {
        let reply = self.call(endpoint, Call::get(format!("/api/jobs/{}", segment(id)), MAX_JOB)).await?;
        reply::job(&reply, self.transport.is_proxied())
    }

    /// State of every submitted job, by id.
    ///
    /// # Errors
    /// See [`DashboardError`]; `TooLong` asks for single calls.
    pub async fn jobs(&self, endpoint: &Endpoint) -> Result<BTreeMap<String, Result<JobInfo, String>>, DashboardError> {
        let reply = self.call(endpoint, Call::get("/api/jobs/", MAX_JOBS)).await?;
        reply::jobs(&reply, self.transport.is_proxied())
    }

    /// Hands a job to Ray. Doing so twice does no harm: Ray takes an id once.
    ///
    /// # Errors
    /// `Rejected` where no later try can succeed.
    pub async fn submit(&self, endpoint: &Endpoint, request: &SubmitRequest) -> Result<Submission, DashboardError> {
        let body = serde_json::to_vec(request).map_err(|error| DashboardError::Rejected { status: 0, text: error.to_string() })?;
        let call = Call { body: Some(Bytes::from(body)), ..post("/api/jobs/") };
        let reply = self.call(endpoint, call).await?;
        reply::submission(&reply, self.transport.is_proxied())
    }

    /// Asks Ray to stop a job; `false` if there was nothing to stop.
    ///
    /// # Errors
    /// See [`DashboardError`].
    pub async fn stop(&self, endpoint: &Endpoint, id: &str) -> Result<bool, DashboardError> {
        let call = Call { patient: false, ..post(&format!("/api/jobs/{}/stop", segment(id))) };
        let reply = self.call(endpoint, call).await?;
        reply::stopped(&reply, self.transport.is_proxied())
    }

    /// Any other request; the reply is given as it comes, but for one that asks for other credentials.
    ///
    /// # Errors
    /// `Unreachable`, `NoToken` or `TooLong`.
    pub async fn call(&self, endpoint: &Endpoint, call: Call<'_>) -> Result<RawReply, DashboardError> {
        let token = self.tokens.get(endpoint).await?;
        let reply = self.transport.call(endpoint, Call { token: token.as_deref(), ..call }).await?;
        if matches!(reply.status, 401 | 403) {
            self.tokens.distrust(endpoint);
        }
        Ok(reply)
    }

    /// Whether the API server stands between.
    pub fn is_proxied(&self) -> bool {
        self.transport.is_proxied()
    }
}

fn post(path: &str) -> Call<'static> {
    Call { method: Method::POST, path: path.to_owned(), body: Some(Bytes::new()), token: None, limit: MAX_JOB, patient: true }
}

//! The leader lease (RC-244): of all operators of a cluster, KubeRay's included, one reconciles.
//!
//! Exclusion rests on three things. Every write names the version that was read, so that of two candidates one fails. Whether a lease
//! has run out is judged by how long *this* process has seen it unchanged, never by comparing clocks of two machines. And a
//! leader that could not renew for [`RENEW_DEADLINE`], which is shorter than [`DURATION`], stops to be one: the process ends,
//! rather than reconciling beside its successor.

mod decide;

use std::{fmt, time::Duration};

use k8s_openapi::{
    api::coordination::v1::Lease,
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use tokio::time::{Instant, timeout};

use decide::{Action, Record, decide};

use super::clock::Clock;

/// Name of the lease; the same as KubeRay's.
pub const NAME: &str = "ray-operator-leader";
/// How long a lease is good after it was last renewed.
pub const DURATION: Duration = Duration::from_secs(15);
/// How long a leader goes on without a successful renewal.
pub const RENEW_DEADLINE: Duration = Duration::from_secs(10);
/// Pause between two tries.
pub const RETRY: Duration = Duration::from_secs(2);
/// How long one call may take. Shorter than [`RENEW_DEADLINE`], so that a leader gets a second try.
const CALL: Duration = Duration::from_secs(4);
/// How long giving the lease back may take.
const RELEASE: Duration = Duration::from_millis(800);

/// One candidate for the lease.
pub struct Candidate {
    api: Api<Lease>,
    namespace: String,
    identity: String,
    clock: Clock,
    seen: Option<Seen>,
    /// When the last successful write of the lease was sent.
    renewed: Option<Instant>,
}

struct Seen {
    record: Record,
    /// Version to name in the next write.
    version: String,
    /// When this process saw the record change for the last time.
    at: Instant,
}

/// Why a process no longer leads.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Lost {
    /// The lease could not be renewed in time.
    #[error("the lease could not be renewed for {} s", RENEW_DEADLINE.as_secs())]
    Deadline,
    /// Somebody else has it.
    #[error("the lease has gone to {0}")]
    Taken(String),
}

impl Candidate {
    /// A candidate for the lease in `namespace`. `identity` must differ from that of every other process.
    pub fn new(client: Client, namespace: &str, identity: String, clock: Clock) -> Self {
        Self { api: Api::namespaced(client, namespace), namespace: namespace.to_owned(), identity, clock, seen: None, renewed: None }
    }

    /// Waits until this process leads. Also waits for an API server that does not answer.
    pub async fn acquire(&mut self) {
        tracing::info!(lease = %self, identity = %self.identity, "waiting to become the leader");
        let mut failures = 0_u32;
        loop {
            let pause = match self.attempt(CALL).await {
                Ok(Attempt::Leads) => break,
                Ok(Attempt::Waits(pause)) => {
                    failures = 0;
                    pause
                }
                // Somebody else was faster; look at once what they wrote.
                Err(Fault::Conflict) => Duration::ZERO,
                Err(fault) => {
                    if failures.is_multiple_of(30) {
                        tracing::warn!(lease = %self, "cannot get at the lease: {fault}");
                    }
                    failures += 1;
                    RETRY
                }
            };
            // Spread, so that candidates do not write all at once.
            tokio::time::sleep(pause.mul_f64(1.0 + 0.2 * rand::random::<f64>())).await;
        }
        tracing::info!(lease = %self, identity = %self.identity, "this process is the leader");
    }

    /// Renews the lease until that no longer works.
    pub async fn hold(&mut self) -> Lost {
        loop {
            let left = RENEW_DEADLINE.saturating_sub(self.renewed.map_or(RENEW_DEADLINE, |renewed| renewed.elapsed()));
            if left.is_zero() {
                return Lost::Deadline;
            }
            tokio::time::sleep(RETRY.min(left)).await;
            match self.attempt(CALL.min(left)).await {
                Ok(Attempt::Leads) => {}
                Ok(Attempt::Waits(_)) => return Lost::Taken(self.holder()),
                Err(fault) => tracing::info!(lease = %self, "the lease was not renewed: {fault}"),
            }
        }
    }

    /// Gives the lease back, so that another candidate need not wait until it runs out.
    pub async fn release(mut self) {
        let Some(seen) = self.seen.take().filter(|seen| seen.record.holder == self.identity) else { return };
        let record = Record { holder: String::new(), duration: Duration::from_secs(1), renewed: Some(self.clock.now()), ..seen.record };
        let lease = self.lease(&record, Some(seen.version));
        match timeout(RELEASE, self.api.replace(NAME, &PostParams::default(), &lease)).await {
            Ok(Ok(_)) => tracing::info!(lease = %self, "gave the lease back"),
            _ => tracing::info!(lease = %self, "could not give the lease back; it runs out by itself"),
        }
    }

    /// One look and, if need be, one write.
    async fn attempt(&mut self, limit: Duration) -> Result<Attempt, Fault> {
        // A leader knows the version that it wrote last. If that is no longer the current one the write fails, and the next
        // attempt reads.
        let leads = self.seen.as_ref().is_some_and(|seen| seen.record.holder == self.identity);
        timeout(limit, async {
            if !leads {
                self.look().await?;
            }
            let now = Instant::now();
            let seen = self.seen.as_ref().map(|seen| (&seen.record, seen.at));
            let action = decide(seen, now, self.clock.now(), &self.identity);
            match action {
                Action::Wait(pause) => Ok(Attempt::Waits(pause)),
                Action::Write(record) => match self.write(record).await {
                    Err(fault) => {
                        if leads {
                            self.look().await?;
                        }
                        Err(fault)
                    }
                    Ok(()) => Ok(Attempt::Leads),
                },
            }
        })
        .await
        .map_err(|_| Fault::Timeout)?
    }

    async fn look(&mut self) -> Result<(), Fault> {
        let found = self.api.get_opt(NAME).await.map_err(Fault::from)?;
        self.note(found);
        Ok(())
    }

    /// Takes note of what the API server says; the time is noted only if the record has changed.
    fn note(&mut self, found: Option<Lease>) {
        self.seen = found.map(|lease| {
            let version = lease.metadata.resource_version.clone().unwrap_or_default();
            let record = Record::from(lease);
            let unchanged = self.seen.as_ref().filter(|seen| seen.record == record).map(|seen| seen.at);
            Seen { record, version, at: unchanged.unwrap_or_else(Instant::now) }
        });
    }

    async fn write(&mut self, record: Record) -> Result<(), Fault> {
        let lease = self.lease(&record, self.seen.as_ref().map(|seen| seen.version.clone()));
        // What counts is when the write was sent: the answer may be long on its way.
        let sent = Instant::now();
        let written = match self.seen {
            Some(_) => self.api.replace(NAME, &PostParams::default(), &lease).await,
            None => self.api.create(&PostParams::default(), &lease).await,
        };
        self.note(Some(written.map_err(Fault::from)?));
        self.renewed = Some(sent);
        Ok(())
    }

    fn lease(&self, record: &Record, version: Option<String>) -> Lease {
        let metadata = ObjectMeta {
            name: Some(NAME.to_owned()),
            namespace: Some(self.namespace.clone()),
            resource_version: version,
            ..ObjectMeta::default()
        };
        Lease { metadata, spec: Some(record.into()) }
    }

    fn holder(&self) -> String {
        self.seen.as_ref().map(|seen| seen.record.holder.clone()).unwrap_or_default()
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{NAME}", self.namespace)
    }
}

enum Attempt {
    Leads,
    Waits(Duration),
}

#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("somebody else has written it")]
    Conflict,
    #[error("no answer in time")]
    Timeout,
    #[error("{}", super::controller::with_causes(.0))]
    Api(kube::Error),
}

impl From<kube::Error> for Fault {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 409 => Self::Conflict,
            other => Self::Api(other),
        }
    }
}

/// An identity that no other process has: the Pod's name and a random part.
pub fn identity() -> String {
    format!("{}_{:016x}", super::events::host_name(), rand::random::<u64>())
}

impl From<&Record> for k8s_openapi::api::coordination::v1::LeaseSpec {
    fn from(record: &Record) -> Self {
        Self {
            holder_identity: Some(record.holder.clone()),
            lease_duration_seconds: i32::try_from(record.duration.as_secs()).ok(),
            acquire_time: record.acquired.map(MicroTime),
            renew_time: record.renewed.map(MicroTime),
            lease_transitions: Some(record.transitions),
            ..Self::default()
        }
    }
}

//! A CA of our own, kept in a Secret and shared by all replicas: [`Authority::run`].
//!
//! Every replica runs the same loop over the same facts: it signs a serving certificate for itself, in memory, and sees to it that the
//! Secret and the caBundles of the webhook configurations are as they should be. No replica leads. Writes carry the resource version
//! that they were decided on, so that of two replicas doing the same thing one wins and the other finds it done.

mod cluster;
mod world;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use jiff::SignedDuration;
use kube::Client;
use tokio::sync::watch;
use tokio::time::Instant;

use self::cluster::{Cluster, Event, Kind, Outcome, Target};
use self::world::{World, Write};
use crate::clock::Clock;
use crate::configurations::Injection;
use crate::decide::{Action, EXPIRED};
use crate::lifetimes::Lifetimes;
use crate::pace::Pace;
use crate::resolver::Resolver;
use crate::status::Status;

/// A CA that looks expired is replaced at most this often by one process.
const EXPIRED_HOLD: Duration = Duration::from_secs(600);

/// What an authority looks after.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Namespace of the Secret.
    pub namespace: String,
    /// Name of the Secret.
    pub secret: String,
    /// DNS names and IP addresses that the serving certificate is for.
    pub hosts: Vec<String>,
    /// Names of webhook configurations. For each name both the validating and the mutating one are looked after, if they exist.
    pub webhook_configurations: Vec<String>,
    /// How long things live.
    pub lifetimes: Lifetimes,
}

/// The names under which a Service and this machine itself reach a webhook: for [`Settings::hosts`].
pub fn service_hosts(service: &str, namespace: &str) -> Vec<String> {
    vec![
        format!("{service}.{namespace}.svc"),
        format!("{service}.{namespace}.svc.cluster.local"),
        format!("{service}.{namespace}"),
        service.to_owned(),
        "localhost".to_owned(),
        "127.0.0.1".to_owned(),
        "::1".to_owned(),
    ]
}

/// The loop that keeps CA, serving certificate and caBundles right.
pub struct Authority {
    cluster: Cluster,
    world: World,
    settings: Settings,
    resolver: Arc<Resolver>,
    status: watch::Sender<Status>,
    clock: Clock,
    pace: Pace,
    started: Instant,
    replaced_expired: Option<Instant>,
}

impl Authority {
    /// An authority that will hand its certificates to `resolver`. The receiver shows its [`Status`].
    pub fn new(client: Client, settings: Settings, resolver: Arc<Resolver>, clock: Clock) -> (Self, watch::Receiver<Status>) {
        let (status, receiver) = watch::channel(Status::starting());
        let names = settings.webhook_configurations.iter();
        let targets = names.flat_map(|name| [Kind::Validating, Kind::Mutating].map(|kind| Target { kind, name: name.clone() })).collect();
        let authority = Self {
            cluster: Cluster::new(client, settings.namespace.clone(), settings.secret.clone()),
            world: World::new(&settings.namespace, &settings.secret, targets, settings.lifetimes),
            settings,
            resolver,
            status,
            clock,
            pace: Pace::new(),
            started: Instant::now(),
            replaced_expired: None,
        };
        (authority, receiver)
    }

    /// Works until it is dropped. Never fails: errors are logged, reported in the status, and tried again.
    pub async fn run(mut self) {
        let mut events = self.cluster.watch(&self.world.targets);
        loop {
            let pause = self.step().await;
            tokio::select! {
                Some(event) = events.next() => self.learn(event),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn learn(&mut self, event: Event) {
        match &event {
            Event::SecretError(error) => tracing::warn!(error, "cannot watch the CA's Secret"),
            Event::ConfigurationError(index, error) => {
                let target = self.world.targets.get(*index).map(ToString::to_string);
                tracing::warn!(target = target.as_deref(), error, "cannot watch a webhook configuration");
            }
            Event::Secret(_) | Event::Configuration(..) => {}
        }
        self.world.learn(event);
    }

    /// Does everything that is due and returns how long nothing will be.
    async fn step(&mut self) -> Duration {
        loop {
            let now = self.clock.now();
            self.world.note_trust(now);
            self.sign();
            self.publish();
            let until = self.world.next_look(now).duration_since(now).max(SignedDuration::from_millis(10));
            let pause = Duration::try_from(until).unwrap_or(Duration::from_secs(60));
            let may_replace = self.replaced_expired.is_none_or(|at| at.elapsed() >= EXPIRED_HOLD);
            let write = match self.world.next_write(may_replace, now) {
                Ok(Some(write)) => write,
                Ok(None) => return pause,
                Err(error) => {
                    tracing::error!(%error, "cannot make a CA");
                    return pause;
                }
            };
            let wait = self.pace.take(self.started.elapsed());
            if !wait.is_zero() {
                return pause.min(wait);
            }
            self.carry_out(write).await;
        }
    }

    /// Signs a serving certificate if one is due.
    fn sign(&mut self) {
        let now = self.clock.now();
        let Some(signer) = self.world.signer(now) else { return };
        match signer.sign_leaf(&self.settings.hosts, &self.settings.lifetimes, now) {
            Ok(leaf) => {
                let (end, authority_end) = (leaf.certificate.not_after, leaf.issuer.not_after);
                tracing::info!(not_after = %end, authority_not_after = %authority_end, "serving certificate signed");
                self.resolver.set(leaf.served.clone());
                self.world.leaf = Some(leaf);
                self.world.note_trust(now);
            }
            Err(error) => tracing::error!(%error, "cannot sign a serving certificate"),
        }
    }

    fn publish(&self) {
        let status = self.world.status(self.clock.now());
        self.status.send_if_modified(|known| {
            let changed = *known != status;
            *known = status;
            changed
        });
    }

    async fn carry_out(&mut self, write: Write) {
        let failure = match write {
            Write::Secret(secret, action) => match self.cluster.write_secret(*secret).await {
                Outcome::Written(secret) => {
                    tracing::info!(action = ?action, "CA written to its Secret");
                    if action == Action::Issue(EXPIRED) {
                        self.replaced_expired = Some(Instant::now());
                    }
                    self.world.learn(Event::Secret(secret));
                    None
                }
                Outcome::Overtaken(secret) => {
                    self.world.learn(Event::Secret(secret));
                    None
                }
                Outcome::Failed(error) => {
                    tracing::warn!(action = ?action, error, "cannot write the CA's Secret");
                    Some(Event::SecretError(error))
                }
            },
            Write::Inject(index, patch) => {
                let Some(target) = self.world.targets.get(index) else { return };
                match self.cluster.inject(target, &patch).await {
                    Outcome::Written(state) => {
                        let what = if matches!(patch, Injection::Bundles(_)) { "caBundle updated" } else { "webhooks put in" };
                        tracing::info!(target = %target, "{what}");
                        self.world.learn(Event::Configuration(index, state));
                        None
                    }
                    Outcome::Overtaken(state) => {
                        self.world.learn(Event::Configuration(index, state));
                        None
                    }
                    Outcome::Failed(error) => {
                        tracing::warn!(target = %target, error, "cannot update a caBundle");
                        Some(Event::ConfigurationError(index, error))
                    }
                }
            }
        };
        match failure {
            None => self.pace.succeeded(),
            Some(event) => {
                self.world.learn(event);
                self.pace.failed(self.started.elapsed());
            }
        }
    }
}

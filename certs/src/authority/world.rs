//! What the authority knows, and what follows from it. Pure: the loop feeds events in and carries the plan out.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Secret;

use super::cluster::{Event, Target};
use crate::configurations::{ConfigurationState, Injection, TrustLog};
use crate::decide::{self, Action, Trust};
use crate::lifetimes::Lifetimes;
use crate::secret::{self, Material, SecretState};
use crate::status::Status;
use crate::x509::{Certificate, CertificateAuthority, Leaf, X509Error};

/// How long API servers may take to hear of a caBundle that was written just now. Until then they would not believe us.
const HEARD_AFTER: SignedDuration = SignedDuration::from_secs(1);

/// A write that is due.
#[derive(Debug)]
pub(super) enum Write {
    /// Create or replace the Secret; the action says why.
    Secret(Box<Secret>, Action),
    /// Patch the configuration with this index.
    Inject(usize, Injection),
}

/// Everything known at one moment.
pub(super) struct World {
    identity: String,
    secret_name: String,
    lifetimes: Lifetimes,
    pub(super) targets: Vec<Target>,
    /// `None`: not read yet.
    secret: Option<(Option<Box<Secret>>, SecretState)>,
    configurations: Vec<ConfigurationState>,
    pub(super) leaf: Option<Leaf>,
    trust: TrustLog,
    /// The CA of our first serving certificate was not trusted when we came.
    newcomer: bool,
    /// API servers have heard of the CA of our first serving certificate. From then on there is always one that they trust.
    heard: bool,
    secret_error: Option<String>,
    configuration_errors: Vec<Option<String>>,
}

impl World {
    pub(super) fn new(namespace: &str, secret: &str, targets: Vec<Target>, lifetimes: Lifetimes) -> Self {
        // X.520 allows 64 characters; a longer identity is cut, which at worst makes two authorities tidy up after each other.
        let identity: String = format!("{namespace}/{secret}").chars().take(64).collect();
        Self {
            identity,
            secret_name: format!("Secret {namespace}/{secret}"),
            lifetimes,
            configurations: vec![ConfigurationState::Unknown; targets.len()],
            configuration_errors: vec![None; targets.len()],
            targets,
            secret: None,
            leaf: None,
            trust: TrustLog::default(),
            newcomer: false,
            heard: false,
            secret_error: None,
        }
    }

    /// Takes in what the API server reported.
    pub(super) fn learn(&mut self, event: Event) {
        match event {
            Event::Secret(found) => {
                let state = secret::read(found.as_deref());
                self.secret = Some((found, state));
                self.secret_error = None;
            }
            Event::Configuration(index, state) => {
                if let Some(slot) = self.configurations.get_mut(index) {
                    *slot = state;
                }
                self.note_configuration_error(index, None);
            }
            Event::SecretError(text) => self.secret_error = Some(text),
            Event::ConfigurationError(index, text) => self.note_configuration_error(index, Some(text)),
        }
    }

    fn note_configuration_error(&mut self, index: usize, error: Option<String>) {
        if let Some(slot) = self.configuration_errors.get_mut(index) {
            *slot = error;
        }
    }

    /// Counts how long certificates have been trusted. To be called before the decisions below.
    pub(super) fn note_trust(&mut self, now: Timestamp) {
        let mut candidates: Vec<&Certificate> = Vec::new();
        if let Some((_, SecretState::Sound(material))) = &self.secret {
            candidates.push(material.current.certificate());
            candidates.extend(material.next.as_ref().map(|next| next.certificate()));
        }
        candidates.extend(self.leaf.as_ref().map(|leaf| &leaf.issuer));
        self.trust.update(candidates, &self.configurations, now);
        if let Some(leaf) = self.leaf.as_ref().filter(|_| !self.heard) {
            match self.trust.trusted_for(&leaf.issuer, now) {
                Some(trusted) => self.heard = !self.newcomer || trusted >= HEARD_AFTER,
                None => {
                    let lacks = |state: &ConfigurationState| match state {
                        ConfigurationState::Present(_) => !state.trusts(&leaf.issuer),
                        _ => false,
                    };
                    self.newcomer |= self.configurations.iter().any(lacks);
                }
            }
        }
    }

    fn material(&self) -> Option<&Material> {
        match &self.secret {
            Some((_, SecretState::Sound(material))) => Some(material),
            _ => None,
        }
    }

    /// The CA that has to sign a serving certificate now, if one is due.
    pub(super) fn signer(&self, now: Timestamp) -> Option<&CertificateAuthority> {
        let current = &self.material()?.current;
        let trust = Trust {
            current: self.trust.trusted_for(current.certificate(), now),
            serving: self.leaf.as_ref().is_some_and(|leaf| self.trust.trusted_for(&leaf.issuer, now).is_some()),
        };
        let leaf = self.leaf.as_ref().map(|leaf| (&leaf.certificate, &leaf.issuer));
        decide::must_sign(leaf, current.certificate(), trust, &self.lifetimes, now).then_some(current)
    }

    /// What to do with the Secret.
    pub(super) fn action(&self, now: Timestamp) -> Action {
        let Some((_, state)) = &self.secret else { return Action::Keep };
        let next = self.material().and_then(|material| material.next.as_ref());
        let next_trusted = next.and_then(|next| self.trust.trusted_for(next.certificate(), now));
        decide::decide(state, next_trusted, &self.lifetimes, now)
    }

    /// The next write that is due, if any: the Secret first, then the configurations. `may_replace_expired` is false while a CA that
    /// looks expired must not be replaced once more (two machines that disagree about the time would replace it for ever).
    pub(super) fn next_write(&self, may_replace_expired: bool, now: Timestamp) -> Result<Option<Write>, X509Error> {
        let Some((raw, state)) = &self.secret else { return Ok(None) };
        let action = self.action(now);
        let held = action == Action::Issue(decide::EXPIRED) && !may_replace_expired;
        let carried: Vec<Certificate> = self.leaf.iter().map(|leaf| leaf.issuer.clone()).collect();
        if !held && let Some(material) = decide::carry_out(action, state, &carried, &self.identity, &self.lifetimes, now)? {
            let mut secret = raw.as_deref().cloned().unwrap_or_else(|| Secret {
                metadata: kube::api::ObjectMeta { labels: Some(labels()), ..Default::default() },
                type_: Some("Opaque".to_owned()),
                ..Secret::default()
            });
            secret::fill(&mut secret, &material);
            return Ok(Some(Write::Secret(Box::new(secret), action)));
        }
        Ok(self.injection(now))
    }

    fn injection(&self, now: Timestamp) -> Option<Write> {
        let material = self.material()?;
        let mut wanted: Vec<Certificate> = material.bundle.iter().filter(|certificate| certificate.not_after > now).cloned().collect();
        // The certificate in use here may come from a CA that the Secret has forgotten.
        let in_use = self.leaf.iter().filter(|leaf| leaf.certificate.not_after > now).map(|leaf| leaf.issuer.clone());
        for issuer in in_use {
            if !wanted.contains(&issuer) {
                wanted.push(issuer);
            }
        }
        let trusted = self.leaf.as_ref().and_then(|leaf| self.trust.trusted_for(&leaf.issuer, now));
        let settled = trusted.is_some_and(|held| held >= self.depended_after());
        self.configurations.iter().enumerate().find_map(|(index, state)| {
            let ConfigurationState::Present(configuration) = state else { return None };
            let droppable = |certificate: &Certificate| decide::droppable(certificate, &self.identity, material, &self.lifetimes, now);
            configuration.injection(&wanted, droppable, settled).map(|patch| Write::Inject(index, patch))
        })
    }

    /// How long we must have been trusted until others may depend on us: from the moment when we can be ready, every client has had
    /// time to notice that it can reach us.
    fn depended_after(&self) -> SignedDuration {
        self.lifetimes.settle.saturating_add(HEARD_AFTER)
    }

    /// When to look again even if nothing is reported.
    pub(super) fn next_look(&self, now: Timestamp) -> Timestamp {
        let leaf = self.leaf.as_ref().map(|leaf| &leaf.certificate);
        let check = crate::clock::later(now, self.lifetimes.check);
        let Some(material) = self.material() else { return check };
        let settling = material.next.iter().chain([&material.current]);
        let settled = settling.filter_map(|ca| self.trust.settled_at(ca.certificate(), self.lifetimes.settle));
        let issuer = self.leaf.as_ref().map(|leaf| &leaf.issuer);
        let heard = issuer.filter(|_| !self.heard).and_then(|issuer| self.trust.settled_at(issuer, HEARD_AFTER));
        let waits = |state: &ConfigurationState| matches!(state, ConfigurationState::Present(known) if known.waits_to_be_depended_upon());
        let depended = issuer.filter(|_| self.configurations.iter().any(waits));
        let depended = depended.and_then(|issuer| self.trust.settled_at(issuer, self.depended_after()));
        let settled = settled.chain(heard).chain(depended);
        settled.filter(|moment| *moment > now).fold(decide::next_change(material, leaf, &self.lifetimes, now), Ord::min)
    }

    /// What to report to readiness and metrics.
    pub(super) fn status(&self, now: Timestamp) -> Status {
        let because = |error: &Option<String>| error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default();
        let (mut waiting, mut troubles) = (Vec::new(), Vec::new());
        match (&self.leaf, &self.secret) {
            (Some(_), _) => {}
            (None, None) => waiting.push(format!("{} has not been read yet{}", self.secret_name, because(&self.secret_error))),
            (None, Some((_, state))) => {
                let problem = match (state, self.action(now)) {
                    (SecretState::Absent, _) => "does not exist yet",
                    (SecretState::Broken { problem, .. }, _) => problem,
                    (SecretState::Sound(_), Action::Wait(reason) | Action::Issue(reason)) => reason,
                    (SecretState::Sound(_), _) => "holds a CA, a serving certificate is being signed",
                };
                waiting.push(format!("no serving certificate: {}: {problem}{}", self.secret_name, because(&self.secret_error)));
            }
        }
        for ((target, state), error) in self.targets.iter().zip(&self.configurations).zip(&self.configuration_errors) {
            match (state, &self.leaf) {
                (ConfigurationState::Unknown, _) => waiting.push(format!("{target} has not been read yet{}", because(error))),
                (ConfigurationState::Present(configuration), Some(leaf)) => {
                    let lacking: Vec<_> = configuration.lacking(&leaf.issuer).collect();
                    if !lacking.is_empty() {
                        let sentence = format!("{target}: the caBundle of {} lacks our CA{}", lacking.join(", "), because(error));
                        // Who is in service goes away only if others are believed: the other webhooks would be without anybody.
                        let current = self.material().map(|material| material.current.certificate());
                        let others_are_believed = current.is_some_and(|current| configuration.lacking(current).next().is_none());
                        if self.heard && !others_are_believed { troubles.push(sentence) } else { waiting.push(sentence) }
                    }
                }
                _ => {}
            }
        }
        if waiting.is_empty() && !self.heard {
            waiting.push("API servers are still hearing of our CA".to_owned());
        }
        Status {
            not_after: self.leaf.as_ref().map(|leaf| leaf.certificate.not_after),
            authority_not_after: self.material().map(|material| material.current.certificate().not_after),
            waiting,
            troubles,
        }
    }
}

fn labels() -> BTreeMap<String, String> {
    [("app.kubernetes.io/name", "kuberay-webhook"), ("app.kubernetes.io/managed-by", "kuberay-webhook")]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

#[cfg(test)]
#[path = "world_tests.rs"]
mod tests;

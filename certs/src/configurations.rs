//! Webhook configurations as far as trust is concerned: who has which CA certificates in its caBundle, and how to add ours.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::bundle;
use crate::x509::Certificate;

/// What is known about one webhook configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigurationState {
    /// Not read yet.
    Unknown,
    /// There is none of that name: nobody calls us through it, nothing has to be trusted.
    Absent,
    /// It exists.
    Present(Configuration),
}

/// An existing webhook configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Guards the write: it fails if somebody else was faster.
    pub resource_version: Option<String>,
    /// Its webhooks, in order.
    pub entries: Vec<Entry>,
}

/// One webhook of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Unique in its configuration.
    pub name: String,
    /// `clientConfig.caBundle`, a PEM text.
    pub bundle: Vec<u8>,
}

impl ConfigurationState {
    /// Whether API servers that call us through this configuration accept what `certificate` signed.
    pub fn trusts(&self, certificate: &Certificate) -> bool {
        match self {
            Self::Unknown => false,
            Self::Absent => true,
            Self::Present(configuration) => configuration.lacking(certificate).next().is_none(),
        }
    }
}

impl Configuration {
    /// Names of the webhooks whose caBundle lacks `certificate`.
    pub fn lacking<'a>(&'a self, certificate: &'a Certificate) -> impl Iterator<Item = &'a str> {
        self.entries.iter().filter(|entry| !bundle::parse(&entry.bundle).contains(certificate)).map(|entry| entry.name.as_str())
    }

    /// The strategic merge patch that puts `wanted` into every caBundle and takes out what is `droppable`; `None` if nothing changes.
    ///
    /// It carries the resource version that it was made from, so that it never undoes what another writer did in between.
    pub fn injection(&self, wanted: &[Certificate], droppable: impl Fn(&Certificate) -> bool) -> Option<Value> {
        let webhooks: Vec<Value> = self
            .entries
            .iter()
            .filter_map(|entry| {
                let merged = bundle::merge(&entry.bundle, wanted, &droppable)?;
                Some(json!({"name": entry.name, "clientConfig": {"caBundle": ByteString(merged)}}))
            })
            .collect();
        (!webhooks.is_empty()).then(|| json!({"metadata": {"resourceVersion": self.resource_version}, "webhooks": webhooks}))
    }
}

/// Remembers since when each CA certificate has been trusted by every configuration.
#[derive(Debug, Default)]
pub struct TrustLog(Vec<(Certificate, Timestamp)>);

impl TrustLog {
    /// Looks at all configurations again. `candidates` are the certificates of interest; others are forgotten.
    pub fn update<'a>(&mut self, candidates: impl IntoIterator<Item = &'a Certificate>, states: &[ConfigurationState], now: Timestamp) {
        let mut fresh: Vec<(Certificate, Timestamp)> = Vec::new();
        for candidate in candidates {
            if fresh.iter().any(|(known, _)| known == candidate) || !states.iter().all(|state| state.trusts(candidate)) {
                continue;
            }
            let since = self.0.iter().find(|(known, _)| known == candidate).map_or(now, |(_, since)| *since);
            // After a jump back of the clock the count starts again: waiting a little longer does no harm.
            fresh.push((candidate.clone(), since.min(now)));
        }
        self.0 = fresh;
    }

    /// How long every configuration has trusted `certificate`; `None` when one of them does not.
    pub fn trusted_for(&self, certificate: &Certificate, now: Timestamp) -> Option<SignedDuration> {
        self.0.iter().find(|(known, _)| known == certificate).map(|(_, since)| now.duration_since(*since))
    }

    /// When the count of `certificate` reaches `settle`.
    pub fn settled_at(&self, certificate: &Certificate, settle: SignedDuration) -> Option<Timestamp> {
        self.0.iter().find(|(known, _)| known == certificate).map(|(_, since)| crate::clock::later(*since, settle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{authority_at, foreign_at, second};

    fn configuration(bundles: &[(&str, Vec<&Certificate>)]) -> Configuration {
        let entries = bundles
            .iter()
            .map(|(name, list)| Entry { name: (*name).to_owned(), bundle: bundle::encode(list.iter().copied()).into_bytes() })
            .collect();
        Configuration { resource_version: Some("7".into()), entries }
    }

    #[test]
    fn injection_touches_only_entries_that_lack_something() {
        let ours = authority_at(0).certificate().clone();
        let other = foreign_at(0);
        let state = configuration(&[("complete", vec![&other, &ours]), ("empty", vec![]), ("others", vec![&other])]);
        let patch = state.injection(std::slice::from_ref(&ours), |_| false).expect("two entries lack it");
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
        let webhooks = patch["webhooks"].as_array().expect("a list");
        let names: Vec<_> = webhooks.iter().filter_map(|webhook| webhook["name"].as_str()).collect();
        assert_eq!(names, ["empty", "others"]);
        let bundles: Vec<_> = webhooks
            .iter()
            .map(|webhook| {
                let bytes: ByteString = serde_json::from_value(webhook["clientConfig"]["caBundle"].clone()).expect("base64");
                bundle::parse(&bytes.0)
            })
            .collect();
        assert_eq!(bundles, [vec![ours.clone()], vec![other.clone(), ours.clone()]]);
        assert_eq!(configuration(&[("a", vec![&ours])]).injection(&[ours], |_| false), None);
        assert_eq!(configuration(&[]).injection(&[other], |_| false), None);
    }

    #[test]
    fn trust_needs_every_webhook_of_every_configuration() {
        let ours = authority_at(0).certificate().clone();
        let has = || ConfigurationState::Present(configuration(&[("a", vec![&ours])]));
        let half = || ConfigurationState::Present(configuration(&[("a", vec![&ours]), ("b", vec![])]));
        for (name, states, expected) in [
            ("none at all", vec![], true),
            ("absent", vec![ConfigurationState::Absent], true),
            ("unknown", vec![has(), ConfigurationState::Unknown], false),
            ("both", vec![has(), has()], true),
            ("one entry lacks it", vec![has(), half()], false),
        ] {
            assert_eq!(states.iter().all(|state| state.trusts(&ours)), expected, "{name}");
        }
        let lacking = configuration(&[("a", vec![&ours]), ("b", vec![])]);
        assert_eq!(lacking.lacking(&ours).collect::<Vec<_>>(), ["b"]);
    }

    #[test]
    fn trust_is_counted_from_the_moment_it_is_complete() {
        let (ours, next) = (authority_at(0).certificate().clone(), authority_at(1).certificate().clone());
        let with = |list: Vec<&Certificate>| [ConfigurationState::Present(configuration(&[("a", list)]))];
        let mut log = TrustLog::default();
        let held = |log: &TrustLog, certificate, now| log.trusted_for(certificate, second(now)).map(|held| held.as_secs());

        log.update([&ours, &next], &with(vec![&ours]), second(0));
        assert_eq!((held(&log, &ours, 5), held(&log, &next, 5)), (Some(5), None));
        log.update([&ours, &next], &with(vec![&ours, &next]), second(10));
        assert_eq!((held(&log, &ours, 12), held(&log, &next, 12)), (Some(12), Some(2)));
        assert_eq!(log.settled_at(&next, SignedDuration::from_secs(10)), Some(second(20)));
        log.update([&ours, &next], &with(vec![&next]), second(20));
        assert_eq!((held(&log, &ours, 20), held(&log, &next, 20)), (None, Some(10)), "overwritten: counted anew when it is back");
        log.update([&ours, &next], &with(vec![&ours, &next]), second(-100));
        assert_eq!((held(&log, &ours, -100), held(&log, &next, -100)), (Some(0), Some(0)), "the clock jumped back");
    }
}

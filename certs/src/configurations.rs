//! Webhook configurations as far as trust is concerned: who has which CA certificates in its caBundle, and how to add ours.
//!
//! A configuration may come without webhooks, and say in an annotation ([`WANTED`]) which it shall have. Then it is for us to put them in,
//! as soon as there is a certificate to serve with: a webhook that has never served keeps nobody from working. They begin with
//! `failurePolicy: Ignore`, and get the policy that is wanted when every API server has had time to see them. Both is done once for each
//! version of the annotation ([`APPLIED`] says so), so that what somebody changes by hand in an emergency stays changed.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::bundle;
use crate::x509::Certificate;

/// Annotation: the webhooks that the configuration shall have, a JSON list as in its `webhooks`, without caBundles.
pub const WANTED: &str = "webhook.ray.io/webhooks";
/// Annotation: which [`WANTED`] has been put in, and how far: `DIGEST/open` (they only ask) or `DIGEST/done`.
pub const APPLIED: &str = "webhook.ray.io/applied";

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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Guards the write: it fails if somebody else was faster.
    pub resource_version: Option<String>,
    /// Its webhooks, in order.
    pub entries: Vec<Entry>,
    /// Its annotation [`WANTED`].
    pub wanted: Option<String>,
    /// Its annotation [`APPLIED`].
    pub applied: Option<String>,
}

/// A patch of a webhook configuration. It carries the resource version that it was made from, so that it never undoes what another
/// writer did in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Injection {
    /// A strategic merge patch: single caBundles.
    Bundles(Value),
    /// A merge patch: the whole list of webhooks.
    Webhooks(Value),
}

/// One webhook of a configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Names of the webhooks whose caBundle lacks `certificate`, or that are not there yet.
    pub fn lacking<'a>(&'a self, certificate: &'a Certificate) -> impl Iterator<Item = &'a str> {
        let missing = (self.step(false) == Some(Step::Open)).then_some("webhooks that are still to come");
        let lacking = self.entries.iter().filter(|entry| !bundle::parse(&entry.bundle).contains(certificate));
        lacking.map(|entry| entry.name.as_str()).chain(missing)
    }

    /// Whether something is to be written here as soon as clients may depend on us.
    pub fn waits_to_be_depended_upon(&self) -> bool {
        self.step(false).is_none() && self.step(true).is_some()
    }

    /// The patch that puts `wanted` into every caBundle and takes out what is `droppable`; `None` if nothing changes. `settled`: clients
    /// have trusted us for long enough to depend on us.
    pub fn injection(&self, wanted: &[Certificate], droppable: impl Fn(&Certificate) -> bool, settled: bool) -> Option<Injection> {
        if let Some(step) = self.step(settled) {
            return Some(Injection::Webhooks(self.whole(step, wanted, droppable)));
        }
        let webhooks: Vec<Value> = self
            .entries
            .iter()
            .filter_map(|entry| {
                let merged = bundle::merge(&entry.bundle, wanted, &droppable)?;
                Some(json!({"name": entry.name, "clientConfig": {"caBundle": ByteString(merged)}}))
            })
            .collect();
        let patch = json!({"metadata": {"resourceVersion": self.resource_version}, "webhooks": webhooks});
        (!webhooks.is_empty()).then_some(Injection::Bundles(patch))
    }

    /// What the annotation asks for and has not been done.
    fn step(&self, settled: bool) -> Option<Step> {
        let (text, list) = (self.wanted.as_deref()?, self.list()?);
        let (digest, state) = self.applied.as_deref().and_then(|applied| applied.split_once('/')).unwrap_or_default();
        let there = |webhook: &Value| self.entries.iter().any(|entry| webhook.get("name").and_then(Value::as_str) == Some(&entry.name));
        // A list that replaces one on which clients depended already is depended upon at once.
        let depended = state == Step::Done.as_str() && !self.entries.is_empty();
        match (digest == digest_of(text) && list.iter().all(there), state == Step::Open.as_str()) {
            (true, true) => settled.then_some(Step::Done),
            (true, false) => None,
            (false, _) if depended => Some(Step::Done),
            (false, _) => Some(Step::Open),
        }
    }

    /// The webhooks that are wanted; `None` if the annotation is missing or cannot be read.
    fn list(&self) -> Option<Vec<Value>> {
        serde_json::from_str(self.wanted.as_deref()?).ok()
    }

    fn whole(&self, step: Step, wanted: &[Certificate], droppable: impl Fn(&Certificate) -> bool) -> Value {
        let mut list = self.list().unwrap_or_default();
        for webhook in &mut list {
            let name = webhook.get("name").and_then(Value::as_str).unwrap_or_default();
            let existing = self.entries.iter().find(|entry| entry.name == name).map(|entry| entry.bundle.clone()).unwrap_or_default();
            let merged = bundle::merge(&existing, wanted, &droppable).unwrap_or(existing);
            let Some(webhook) = webhook.as_object_mut() else { continue };
            if step == Step::Open {
                webhook.insert("failurePolicy".to_owned(), json!("Ignore"));
            }
            let client = webhook.entry("clientConfig").or_insert_with(|| json!({}));
            if let Some(client) = client.as_object_mut() {
                client.insert("caBundle".to_owned(), json!(ByteString(merged)));
            }
        }
        let applied = format!("{}/{}", digest_of(self.wanted.as_deref().unwrap_or_default()), step.as_str());
        json!({"metadata": {"resourceVersion": self.resource_version, "annotations": {APPLIED: applied}}, "webhooks": list})
    }
}

/// How far the webhooks of an annotation have been put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// They are called; who cannot reach them goes on without.
    Open,
    /// They are as wanted.
    Done,
}

impl Step {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "done",
        }
    }
}

/// Short, and different for different texts.
fn digest_of(text: &str) -> String {
    Sha256::digest(text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
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
        Configuration { resource_version: Some("7".into()), entries, ..Configuration::default() }
    }

    #[test]
    fn injection_touches_only_entries_that_lack_something() {
        let ours = authority_at(0).certificate().clone();
        let other = foreign_at(0);
        let state = configuration(&[("complete", vec![&other, &ours]), ("empty", vec![]), ("others", vec![&other])]);
        let Some(Injection::Bundles(patch)) = state.injection(std::slice::from_ref(&ours), |_| false, true) else {
            panic!("two entries lack it")
        };
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
        assert_eq!(configuration(&[("a", vec![&ours])]).injection(&[ours], |_| false, true), None);
        assert_eq!(configuration(&[]).injection(&[other], |_| false, true), None);
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

    const LIST: &str = r#"[{"name":"a","failurePolicy":"Fail","clientConfig":{"service":{"name":"s"}}},{"name":"b"}]"#;

    /// Does to `state` what an API server does with its next patch; says which list came out.
    fn patched(state: &mut Configuration, ours: &Certificate, settled: bool) -> Option<Value> {
        let Some(Injection::Webhooks(patch)) = state.injection(std::slice::from_ref(ours), |_| false, settled) else { return None };
        state.applied = patch["metadata"]["annotations"][APPLIED].as_str().map(str::to_owned);
        let entries = patch["webhooks"].as_array().expect("a list").iter().map(|webhook| {
            let bundle: ByteString = serde_json::from_value(webhook["clientConfig"]["caBundle"].clone()).expect("base64");
            Entry { name: webhook["name"].as_str().expect("a name").to_owned(), bundle: bundle.0 }
        });
        state.entries = entries.collect();
        Some(patch["webhooks"].clone())
    }

    #[test]
    fn wanted_webhooks_first_ask_and_then_hold() {
        let ours = authority_at(0).certificate().clone();
        let mut state = Configuration { wanted: Some(LIST.into()), ..configuration(&[]) };
        assert_eq!(state.lacking(&ours).count(), 1, "not trusted while nobody calls");
        let policies = |list: &Value| [0, 1].map(|index| list[index]["failurePolicy"].clone());

        let list = patched(&mut state, &ours, false).expect("put in");
        assert_eq!(policies(&list), ["Ignore", "Ignore"]);
        assert_eq!(list[0]["clientConfig"]["service"]["name"], "s");
        assert_eq!(state.lacking(&ours).count(), 0);
        assert_eq!(patched(&mut state, &ours, false), None, "not before they have settled");
        let list = patched(&mut state, &ours, true).expect("settled");
        assert_eq!(policies(&list), [json!("Fail"), Value::Null], "as wanted");
        assert_eq!(state.injection(std::slice::from_ref(&ours), |_| false, true), None, "and that is all");
        assert_eq!(state.lacking(&ours).count(), 0);

        // Bundles are looked after as ever.
        let next = authority_at(1).certificate().clone();
        assert!(matches!(state.injection(&[ours.clone(), next], |_| false, false), Some(Injection::Bundles(_))));
    }

    #[test]
    fn other_wanted_webhooks_hold_at_once_and_lost_ones_come_back() {
        let ours = authority_at(0).certificate().clone();
        let mut state = Configuration { wanted: Some(LIST.into()), ..configuration(&[]) };
        patched(&mut state, &ours, false).expect("put in");
        // Another list before the first has settled begins anew, with the bundles that there are.
        state.wanted = Some(LIST.replace("Fail", "Ignore"));
        patched(&mut state, &ours, false).expect("replaced");
        assert_eq!(state.lacking(&ours).count(), 0);
        assert!(state.applied.as_deref().is_some_and(|applied| applied.ends_with("/open")));
        patched(&mut state, &ours, true).expect("settled");

        state.wanted = Some(LIST.into());
        let list = patched(&mut state, &ours, false).expect("a new version of the chart");
        assert_eq!(list[0]["failurePolicy"], "Fail", "clients depend on it already");
        // Somebody takes one out; somebody takes all out, as a Helm does that had put them in itself.
        state.entries.pop();
        assert_eq!(patched(&mut state, &ours, false).expect("healed")[0]["failurePolicy"], "Fail");
        state.entries.clear();
        assert_eq!(patched(&mut state, &ours, false).expect("healed")[0]["failurePolicy"], "Ignore", "begins anew");
    }

    #[test]
    fn an_annotation_that_cannot_be_read_changes_nothing() {
        let ours = authority_at(0).certificate().clone();
        for text in ["", "{", r#"{"name":"a"}"#] {
            let state = Configuration { wanted: Some(text.into()), ..configuration(&[("a", vec![&ours])]) };
            assert_eq!(state.injection(std::slice::from_ref(&ours), |_| false, true), None, "{text}");
            assert_eq!(state.lacking(&ours).count(), 0, "{text}");
        }
    }
}

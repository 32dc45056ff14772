//! What to do with the CA's Secret and with the serving certificate: pure decisions, time as an argument.
//!
//! A CA lives like this. It is *issued*; when two thirds of its life have passed, a successor is *staged* (stored and published in
//! the bundle, but it signs nothing yet); when every webhook configuration has trusted the successor for the settling time, it is
//! *promoted*; one leaf life later the former CA is *retired* from the bundle. Every step is one write of the Secret, guarded by its
//! resource version: replicas may run all this at once, one of them wins, the others see the result and find nothing left to do.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use crate::lifetimes::{Lifetimes, renewal_point};
use crate::secret::{Material, SecretState};
use crate::x509::{Certificate, CertificateAuthority, X509Error, leaf_end};

/// By how much the clocks of two machines may differ before one of them counts as wrong.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// The reason of an [`Action::Issue`] that rests on the clock of this machine alone.
pub const EXPIRED: &str = "the CA has expired";

/// The next write to the Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// All is as it should be.
    Keep,
    /// Nothing may be done now; the text says why.
    Wait(&'static str),
    /// Make a new CA and let it sign at once: there is none that could.
    Issue(&'static str),
    /// Store and publish a successor.
    Stage,
    /// Let the successor sign.
    Promote,
    /// Write the bundle anew: something is missing, or of no use any more.
    Rebundle,
}

/// Decides over the Secret. `next_trusted` is how long every webhook configuration has trusted the successor (`None`: not all do).
pub fn decide(state: &SecretState, next_trusted: Option<SignedDuration>, lifetimes: &Lifetimes, now: Timestamp) -> Action {
    let material = match state {
        SecretState::Absent => return Action::Issue("there is no CA yet"),
        SecretState::Broken { .. } => return Action::Issue("the CA in the Secret cannot be used"),
        SecretState::Sound(material) => material,
    };
    let current = material.current.certificate();
    if now < current.not_before {
        // Either our clock is behind, then we must not touch anything, or the clock of the maker was ahead. The API server's own
        // time stamps tell: no honest CA starts later than the write that stored it.
        let ahead = material.written.is_some_and(|written| current.not_before.duration_since(written) > CLOCK_TOLERANCE);
        return if ahead {
            Action::Issue("the CA was made by a machine whose clock is ahead")
        } else {
            Action::Wait("the CA is not valid yet: the clock of this machine seems to be behind")
        };
    }
    let next = material.next.as_ref().map(|next| next.certificate()).filter(|next| now < next.not_after);
    let next_valid = next.is_some_and(|next| next.valid_at(now));
    if now >= current.not_after {
        return if next_valid { Action::Promote } else { Action::Issue(EXPIRED) };
    }
    if next.is_none() && now >= current.renew_at() {
        return Action::Stage;
    }
    if next_valid && next_trusted.is_some_and(|trusted| trusted >= lifetimes.settle) {
        return Action::Promote;
    }
    let wanted = wanted_bundle(material, &[], lifetimes, now);
    if wanted == material.bundle { Action::Keep } else { Action::Rebundle }
}

/// The bundle as it should be: current, successor, then earlier ones and `carried` while they may still be needed.
fn wanted_bundle(material: &Material, carried: &[Certificate], lifetimes: &Lifetimes, now: Timestamp) -> Vec<Certificate> {
    let retired = material.activated.is_some_and(|activated| now >= lifetimes.retired_at(activated));
    let mut wanted = vec![material.current.certificate().clone()];
    wanted.extend(material.next.as_ref().map(|next| next.certificate().clone()));
    let earlier = if retired { &[][..] } else { &material.bundle };
    for certificate in earlier.iter().chain(carried) {
        if certificate.not_after > now && !wanted.contains(certificate) {
            wanted.push(certificate.clone());
        }
    }
    wanted
}

/// Carries `action` out on paper: what the Secret has to hold afterwards. `None` for actions that write nothing.
/// `carried` are certificates that somebody may still be served with (in use here, or named in the old Secret).
pub fn carry_out(
    action: Action,
    state: &SecretState,
    carried: &[Certificate],
    identity: &str,
    lifetimes: &Lifetimes,
    now: Timestamp,
) -> Result<Option<Material>, X509Error> {
    let generate = || CertificateAuthority::generate(identity, lifetimes, now).map(Arc::new);
    let mut material = match (action, state) {
        (Action::Keep | Action::Wait(_), _) => return Ok(None),
        (Action::Issue(_), state) => {
            let bundle = match state {
                SecretState::Absent => vec![],
                SecretState::Broken { bundle, .. } => bundle.clone(),
                SecretState::Sound(material) => material.bundle.clone(),
            };
            Material { current: generate()?, next: None, bundle, activated: Some(now), written: None }
        }
        (Action::Stage, SecretState::Sound(material)) => Material { next: Some(generate()?), ..material.clone() },
        (Action::Promote, SecretState::Sound(material)) => {
            let Some(next) = material.next.clone() else { return Ok(None) };
            Material { current: next, next: None, activated: Some(now), ..material.clone() }
        }
        (Action::Rebundle, SecretState::Sound(material)) => material.clone(),
        (Action::Stage | Action::Promote | Action::Rebundle, _) => return Ok(None),
    };
    material.bundle = wanted_bundle(&material, carried, lifetimes, now);
    Ok(Some(material))
}

/// Whether a CA certificate in somebody's caBundle is ours and of no use any more. `material` is the Secret's content.
pub fn droppable(certificate: &Certificate, identity: &str, material: &Material, lifetimes: &Lifetimes, now: Timestamp) -> bool {
    let ours = certificate.is_authority && certificate.unit.as_deref() == Some(identity);
    let retired = material.activated.is_some_and(|activated| now >= lifetimes.retired_at(activated));
    ours && (certificate.not_after <= now || (retired && !material.bundle.contains(certificate)))
}

/// What is known about trust when the serving certificate is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Trust {
    /// How long every configuration has trusted the CA that signs now; `None`: not all do.
    pub current: Option<SignedDuration>,
    /// Whether every configuration trusts the CA that signed the serving certificate.
    pub serving: bool,
}

/// Whether the serving certificate has to be signed anew by `current`. `leaf` is the serving certificate and its issuer.
///
/// A certificate that works is never given up for one that is not trusted everywhere yet.
pub fn must_sign(
    leaf: Option<(&Certificate, &Certificate)>,
    current: &Certificate,
    trust: Trust,
    lifetimes: &Lifetimes,
    now: Timestamp,
) -> bool {
    if !current.valid_at(now) {
        return false;
    }
    let Some((leaf, issuer)) = leaf else { return true };
    if !leaf.valid_at(now) {
        return true;
    }
    if issuer == current {
        // Close to the end of its CA a leaf cannot be made to live longer: then signing again and again would gain nothing.
        return now >= leaf.renew_at() && leaf_end(current, lifetimes.leaf, now) > leaf.not_after;
    }
    match trust.current {
        Some(trusted) => trusted >= lifetimes.settle || !trust.serving,
        None => false,
    }
}

/// The next moment at which one of the decisions above may change by time alone; loops sleep no longer than until then.
pub fn next_change(material: &Material, leaf: Option<&Certificate>, lifetimes: &Lifetimes, now: Timestamp) -> Timestamp {
    let current = material.current.certificate();
    let mut moments = vec![current.renew_at(), current.not_after];
    moments.extend(material.activated.map(|activated| lifetimes.retired_at(activated)));
    moments.extend(material.bundle.iter().map(|certificate| certificate.not_after));
    moments.extend(leaf.into_iter().flat_map(|leaf| [renewal_point(leaf.not_before, leaf.not_after), leaf.not_after]));
    let check = crate::clock::later(now, lifetimes.check);
    moments.into_iter().filter(|moment| *moment > now).fold(check, Ord::min)
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;

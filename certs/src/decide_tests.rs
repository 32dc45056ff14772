//! Tables over the life of a CA and of a serving certificate. The fixture CA lives 900 s, a leaf 90 s, settling takes 10 s.

use super::*;
use crate::testing::{IDENTITY, authority_at, foreign_at, lifetimes, second};

const UNTRUSTED: Option<SignedDuration> = None;

fn seconds(count: i64) -> Option<SignedDuration> {
    Some(SignedDuration::from_secs(count))
}

/// A CA made at second 0 and, if asked for, a successor made at `next`; the bundle holds both.
fn material(next: Option<i64>) -> Material {
    let current = authority_at(0);
    let next = next.map(authority_at);
    let mut bundle = vec![current.certificate().clone()];
    bundle.extend(next.iter().map(|next| next.certificate().clone()));
    Material { current, next, bundle, activated: Some(second(0)), written: Some(second(0)) }
}

#[test]
fn decisions_over_the_secret() {
    let sound = |next| SecretState::Sound(material(next));
    let with = |change: &dyn Fn(&mut Material)| {
        let mut material = material(None);
        change(&mut material);
        SecretState::Sound(material)
    };
    let earlier = authority_at(-100).certificate().clone();
    let broken = SecretState::Broken { problem: "x".into(), bundle: vec![] };
    let issue = |part: &str| Some(part.to_owned());
    let plain = |action| (action, None::<String>);
    let issued = |text: &'static str| (Action::Issue(""), issue(text));
    let waits = |text: &'static str| (Action::Wait(""), issue(text));

    let cases = vec![
        ("no Secret", SecretState::Absent, UNTRUSTED, 0, issued("no CA yet")),
        ("broken Secret", broken, seconds(99), 0, issued("cannot be used")),
        ("young CA", sound(None), UNTRUSTED, 10, plain(Action::Keep)),
        ("just before two thirds", sound(None), UNTRUSTED, 599, plain(Action::Keep)),
        ("at two thirds", sound(None), UNTRUSTED, 600, plain(Action::Stage)),
        ("successor published, not trusted everywhere", sound(Some(600)), UNTRUSTED, 700, plain(Action::Keep)),
        ("successor trusted, settling", sound(Some(600)), seconds(9), 620, plain(Action::Keep)),
        ("successor trusted and settled", sound(Some(600)), seconds(10), 620, plain(Action::Promote)),
        ("the CA runs out before anybody trusts the successor", sound(Some(600)), UNTRUSTED, 900, plain(Action::Promote)),
        ("the clock jumps past the CA", sound(None), UNTRUSTED, 900, issued("expired")),
        ("the clock jumps past CA and successor", sound(Some(600)), seconds(99), 1500, issued("expired")),
        ("a successor of a machine slightly ahead is left alone", sound(Some(603)), seconds(99), 602, plain(Action::Keep)),
        ("the clock jumps back", sound(None), UNTRUSTED, -1, waits("behind")),
        (
            "a CA from the future, stored by an honest API server",
            with(&|material| material.written = Some(second(-3600))),
            UNTRUSTED,
            -1,
            issued("clock is ahead"),
        ),
        ("a CA not valid yet, age of the Secret unknown", with(&|material| material.written = None), UNTRUSTED, -1, waits("behind")),
        ("bundle lost", with(&|material| material.bundle.clear()), UNTRUSTED, 10, plain(Action::Rebundle)),
        (
            "earlier CA while its leaves may live",
            with(&|material| material.bundle.push(earlier.clone())),
            UNTRUSTED,
            89,
            plain(Action::Keep),
        ),
        ("earlier CA afterwards", with(&|material| material.bundle.push(earlier.clone())), UNTRUSTED, 90, plain(Action::Rebundle)),
        (
            "earlier CA, nobody knows since when it is retired",
            with(&|material| {
                material.bundle.push(earlier.clone());
                material.activated = None;
            }),
            UNTRUSTED,
            500,
            plain(Action::Keep),
        ),
        (
            "earlier CA that has expired",
            with(&|material| {
                material.bundle.push(authority_at(-890).certificate().clone());
                material.activated = None;
            }),
            UNTRUSTED,
            11,
            plain(Action::Rebundle),
        ),
    ];
    for (name, state, trusted, now, (expected, text)) in cases {
        let action = decide(&state, trusted, &lifetimes(), second(now));
        match (action, expected, text) {
            (Action::Issue(reason), Action::Issue(_), Some(text)) | (Action::Wait(reason), Action::Wait(_), Some(text)) => {
                assert!(reason.contains(&text), "{name}: {reason}");
            }
            (action, expected, _) => assert_eq!(action, expected, "{name}"),
        }
    }
}

/// Runs `decide` and `carry_out` until nothing is left to do.
fn settle(mut state: SecretState, carried: &[Certificate], trusted: Option<SignedDuration>, now: Timestamp) -> Material {
    for _ in 0..4 {
        let action = decide(&state, trusted, &lifetimes(), now);
        match carry_out(action, &state, carried, IDENTITY, &lifetimes(), now).expect("keys can be made") {
            Some(material) => state = SecretState::Sound(Material { written: Some(now), ..material }),
            None => break,
        }
    }
    assert_eq!(decide(&state, trusted, &lifetimes(), now), Action::Keep, "one pass is enough");
    let SecretState::Sound(material) = state else { panic!("{state:?}") };
    material
}

#[test]
fn a_whole_life_without_a_gap_of_trust() {
    let first = settle(SecretState::Absent, &[], UNTRUSTED, second(0));
    assert_eq!(first.bundle, [first.current.certificate().clone()]);

    let staged = settle(SecretState::Sound(first.clone()), &[], UNTRUSTED, second(600));
    let next = staged.next.clone().expect("staged");
    assert_eq!(staged.current.certificate(), first.current.certificate(), "the successor signs nothing yet");
    assert_eq!(staged.bundle, [first.current.certificate().clone(), next.certificate().clone()]);

    let promoted = settle(SecretState::Sound(staged), &[], seconds(10), second(615));
    assert_eq!(promoted.current.certificate(), next.certificate());
    assert!(promoted.next.is_none());
    assert_eq!(promoted.bundle, [next.certificate().clone(), first.current.certificate().clone()], "leaves of the former CA stay trusted");
    assert_eq!(promoted.activated, Some(second(615)));

    let later = settle(SecretState::Sound(promoted), &[], seconds(10), second(615 + 90));
    assert_eq!(later.bundle, [next.certificate().clone()]);
}

#[test]
fn a_new_ca_carries_what_is_still_in_use() {
    let served = authority_at(-50).certificate().clone();
    let expired = authority_at(-900).certificate().clone();
    let readable = authority_at(-20).certificate().clone();
    let states = [
        ("deleted", SecretState::Absent, vec![served.clone()]),
        (
            "corrupted",
            SecretState::Broken { problem: "x".into(), bundle: vec![readable.clone(), expired.clone()] },
            vec![readable.clone(), served.clone()],
        ),
        (
            "expired with a valid one in the bundle",
            SecretState::Sound(Material {
                current: authority_at(-900),
                next: None,
                bundle: vec![expired.clone(), readable.clone()],
                activated: Some(second(-900)),
                written: None,
            }),
            vec![readable.clone(), served.clone()],
        ),
    ];
    for (name, state, expected) in states {
        let material = settle(state, &[served.clone(), expired.clone()], UNTRUSTED, second(0));
        let (first, rest) = material.bundle.split_first().expect("never empty");
        assert_eq!(first, material.current.certificate(), "{name}");
        assert_eq!(rest, expected, "{name}");
    }
}

#[test]
fn certificates_of_others_are_never_dropped() {
    let mut material = material(None);
    let ours_earlier = authority_at(-100).certificate().clone();
    let ours_expired = authority_at(-890).certificate().clone();
    let foreign_expired = foreign_at(-890);
    let current = material.current.certificate().clone();
    let leaf = material.current.sign_leaf(&["a".into()], &lifetimes(), second(0)).expect("signs").certificate;
    let check =
        |certificate: &Certificate, material: &Material, now: i64| droppable(certificate, IDENTITY, material, &lifetimes(), second(now));
    for (name, certificate, now, expected) in [
        ("current", &current, 10, false),
        ("current, long after", &current, 899, false),
        ("ours, earlier, leaves may live", &ours_earlier, 89, false),
        ("ours, earlier, leaves are gone", &ours_earlier, 90, true),
        ("ours, expired", &ours_expired, 11, true),
        ("foreign, expired", &foreign_expired, 11, false),
        ("not a CA", &leaf, 500, false),
    ] {
        assert_eq!(check(certificate, &material, now), expected, "{name}");
    }
    material.activated = None;
    assert!(!check(&ours_earlier, &material, 500), "without a date nothing is retired");
}

#[test]
fn when_the_serving_certificate_is_signed_anew() {
    let current = authority_at(0);
    let former = authority_at(-500);
    let leaf_of = |ca: &CertificateAuthority, at| {
        let leaf = ca.sign_leaf(&["a.b.svc".into()], &lifetimes(), second(at)).expect("signs");
        (leaf.certificate, leaf.issuer)
    };
    let young = leaf_of(&current, 0);
    let of_former = leaf_of(&former, 0);
    let last = leaf_of(&current, 830); // would end at 920, ends with its CA at 900
    let trust = |current: Option<i64>, serving| Trust { current: current.map(SignedDuration::from_secs), serving };

    let cases = [
        ("none yet", None, trust(None, false), 0, true),
        ("none yet, and the CA is not valid", None, trust(Some(99), true), -1, false),
        ("none yet, and the CA has expired", None, trust(Some(99), true), 900, false),
        ("young", Some(&young), trust(Some(99), true), 59, false),
        ("two thirds of its life", Some(&young), trust(None, false), 60, true),
        ("expired after a jump of the clock", Some(&young), trust(Some(99), true), 500, true),
        ("not valid yet after a jump back", Some(&last), trust(Some(99), true), 500, true),
        ("cannot be made to live longer", Some(&last), trust(Some(99), true), 880, false),
        ("new CA, not trusted everywhere", Some(&of_former), trust(None, true), 10, false),
        ("new CA, settling", Some(&of_former), trust(Some(9), true), 10, false),
        ("new CA, settled", Some(&of_former), trust(Some(10), true), 10, true),
        ("new CA, and the former is not trusted any more", Some(&of_former), trust(Some(0), false), 10, true),
        ("nobody trusts either: keep what there is", Some(&of_former), trust(None, false), 10, false),
        ("the former's leaf has expired", Some(&of_former), trust(None, true), 90, true),
    ];
    for (name, leaf, trust, now, expected) in cases {
        let leaf = leaf.map(|(leaf, issuer)| (leaf, issuer));
        assert_eq!(must_sign(leaf, current.certificate(), trust, &lifetimes(), second(now)), expected, "{name}");
    }
}

#[test]
fn loops_wake_up_when_something_is_due() {
    let material = material(None);
    let leaf = material.current.sign_leaf(&["a".into()], &lifetimes(), second(0)).expect("signs").certificate;
    for (now, expected) in [(0, 60), (45, 60), (60, 90), (61, 90), (91, 151), (550, 600), (880, 900)] {
        assert_eq!(next_change(&material, Some(&leaf), &lifetimes(), second(now)), second(expected), "at {now}");
    }
}

#[test]
fn production_lives_are_those_that_the_documentation_names() {
    let lifetimes = Lifetimes::default();
    let now = second(0);
    let ca = CertificateAuthority::generate(IDENTITY, &lifetimes, now).expect("generates");
    let leaf = ca.sign_leaf(&["kuberay-webhook.ray-system.svc".into(), "127.0.0.1".into()], &lifetimes, now).expect("signs");
    assert_eq!(leaf.certificate.not_before, now - SignedDuration::from_hours(1));
    assert_eq!(leaf.certificate.not_after, now + SignedDuration::from_hours(7 * 24));
    assert_eq!(ca.certificate().not_after, now + SignedDuration::from_hours(365 * 24));
    assert_eq!(ca.certificate().unit.as_deref(), Some(IDENTITY));
    assert!(ca.certificate().is_authority && !leaf.certificate.is_authority);
}

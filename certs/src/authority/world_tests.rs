//! The authority's plan over whole situations: what is written, in which order, and what readiness says.

use k8s_openapi::ByteString;

use super::super::cluster::Kind;
use super::*;
use crate::bundle;
use crate::configurations::{APPLIED, Configuration, Entry, Injection};
use crate::testing::{IDENTITY, authority_at, lifetimes, second};

fn world() -> World {
    let target = |kind| Target { kind, name: "kuberay-webhook".into() };
    World::new("ray-system", "kuberay-webhook-ca", vec![target(Kind::Validating), target(Kind::Mutating)], lifetimes())
}

fn configuration(bundle: &[&Certificate]) -> ConfigurationState {
    let entries = vec![Entry { name: "vraycluster.ray.io".into(), bundle: bundle::encode(bundle.iter().copied()).into_bytes() }];
    ConfigurationState::Present(Configuration { resource_version: Some("1".into()), entries, ..Configuration::default() })
}

/// Carries the plan out the way an API server would, until nothing is due; returns the writes made.
fn converge(world: &mut World, now: Timestamp) -> Vec<String> {
    let mut log = vec![];
    for _ in 0..10 {
        world.note_trust(now);
        if let Some(signer) = world.signer(now) {
            world.leaf = Some(signer.sign_leaf(&["a.b.svc".into()], &lifetimes(), now).expect("signs"));
            world.note_trust(now);
            log.push("sign".to_owned());
        }
        match world.next_write(true, now).expect("keys can be made") {
            Some(Write::Secret(mut secret, action)) => {
                secret.metadata.resource_version = Some("2".into());
                world.learn(Event::Secret(Some(secret)));
                log.push(format!("{action:?}").split('(').next().unwrap_or_default().to_owned());
            }
            Some(Write::Inject(index, injection)) => {
                let ConfigurationState::Present(mut present) = world.configurations[index].clone() else {
                    panic!("patched what is absent")
                };
                let (patch, what) = match injection {
                    Injection::Bundles(patch) => (patch, "inject"),
                    Injection::Webhooks(patch) => (patch, "list"),
                };
                if what == "list" {
                    present.applied = patch["metadata"]["annotations"][APPLIED].as_str().map(str::to_owned);
                    let names = patch["webhooks"].as_array().expect("a list").iter().map(|webhook| webhook["name"].as_str());
                    present.entries = names.map(|name| Entry { name: name.expect("a name").to_owned(), ..Entry::default() }).collect();
                }
                for webhook in patch["webhooks"].as_array().expect("a list") {
                    let bytes: ByteString = serde_json::from_value(webhook["clientConfig"]["caBundle"].clone()).expect("base64");
                    for entry in present.entries.iter_mut().filter(|entry| Some(entry.name.as_str()) == webhook["name"].as_str()) {
                        entry.bundle = bytes.0.clone();
                    }
                }
                world.learn(Event::Configuration(index, ConfigurationState::Present(present)));
                log.push(format!("{what} {index}"));
            }
            None => return log,
        }
    }
    panic!("does not converge: {log:?}");
}

fn served_by(world: &World) -> &Certificate {
    &world.leaf.as_ref().expect("a leaf").issuer
}

#[test]
fn from_nothing_to_ready() {
    let mut world = world();
    assert!(world.status(second(0)).waiting[0].contains("Secret ray-system/kuberay-webhook-ca has not been read yet"));
    assert!(converge(&mut world, second(0)).is_empty(), "nothing is done before anything was read");

    world.learn(Event::Secret(None));
    world.learn(Event::ConfigurationError(1, "forbidden".into()));
    world.learn(Event::Configuration(0, configuration(&[])));
    assert_eq!(converge(&mut world, second(0)), ["Issue", "sign", "inject 0"]);
    let waiting = world.status(second(0)).waiting;
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert!(waiting[0].contains("MutatingWebhookConfiguration kuberay-webhook has not been read yet (forbidden)"), "{waiting:?}");

    world.learn(Event::Configuration(1, ConfigurationState::Absent));
    assert!(converge(&mut world, second(0)).is_empty());
    // Written just now: an API server that has not heard of it would not believe us.
    assert_eq!(world.status(second(0)).waiting, ["API servers are still hearing of our CA"]);
    assert_eq!(world.next_look(second(0)), second(1));
    assert!(converge(&mut world, second(1)).is_empty());
    assert!(world.status(second(1)).problems(second(1)).is_empty());
}

#[test]
fn whoever_comes_to_a_ca_that_is_trusted_is_ready_at_once() {
    let first = ready();
    let mut world = world();
    world.learn(Event::Secret(first.secret.as_ref().and_then(|(secret, _)| secret.clone())));
    for (index, state) in first.configurations.iter().enumerate() {
        world.learn(Event::Configuration(index, state.clone()));
    }
    assert_eq!(converge(&mut world, second(5)), ["sign"]);
    assert!(world.status(second(5)).waiting.is_empty());
}

/// A world in which all is well at second 0.
fn ready() -> World {
    let mut world = world();
    world.learn(Event::Secret(None));
    world.learn(Event::Configuration(0, configuration(&[])));
    world.learn(Event::Configuration(1, configuration(&[])));
    assert_eq!(converge(&mut world, second(0)), ["Issue", "sign", "inject 0", "inject 1"]);
    world.note_trust(second(1));
    world
}

#[test]
fn an_overwritten_bundle_is_healed_and_named() {
    let mut world = ready();
    world.learn(Event::Configuration(0, configuration(&[])));
    let status = world.status(second(1));
    assert_eq!(status.troubles, ["ValidatingWebhookConfiguration kuberay-webhook: the caBundle of vraycluster.ray.io lacks our CA"]);
    assert!(status.waiting.is_empty(), "every replica would go away at once, for all webhooks");
    assert_eq!(converge(&mut world, second(1)), ["inject 0"]);
    assert!(world.status(second(1)).troubles.is_empty());
}

/// Another replica makes the Secret anew, and puts its CA into the first configuration in place of the one that was there.
fn made_anew(world: &mut World) -> Material {
    let other = authority_at(1);
    let mut secret = Secret::default();
    let material =
        Material { bundle: vec![other.certificate().clone()], current: other, next: None, activated: Some(second(1)), written: None };
    secret::fill(&mut secret, &material);
    world.learn(Event::Secret(Some(Box::new(secret))));
    world.learn(Event::Configuration(0, configuration(&[material.current.certificate()])));
    material
}

#[test]
fn a_replica_that_is_not_believed_goes_away_if_others_are() {
    let mut world = ready();
    made_anew(&mut world);
    world.note_trust(second(2));
    let status = world.status(second(2));
    assert!(status.troubles.is_empty() && status.waiting[0].contains("lacks our CA"), "{status:?}");
}

#[test]
fn a_deleted_secret_gives_a_new_ca_and_the_old_leaf_serves_until_that_is_trusted() {
    for (name, event) in [
        ("deleted", Event::Secret(None)),
        (
            "corrupted",
            Event::Secret(Some(Box::new(Secret {
                metadata: kube::api::ObjectMeta { resource_version: Some("9".into()), ..Default::default() },
                ..Secret::default()
            }))),
        ),
    ] {
        let mut world = ready();
        let former = served_by(&world).clone();
        world.learn(event);
        assert_eq!(converge(&mut world, second(5)), ["Issue", "inject 0", "inject 1"], "{name}");
        assert_eq!(served_by(&world), &former, "{name}: not before the new CA has settled");
        assert_eq!(world.next_look(second(5)), second(15), "{name}");
        assert_eq!(converge(&mut world, second(15)), ["sign"], "{name}");
        assert_ne!(served_by(&world), &former, "{name}");
        // The former CA goes when the last leaf that it can have signed has expired.
        assert!(converge(&mut world, second(60)).is_empty(), "{name}");
        assert_eq!(converge(&mut world, second(95)), ["sign", "Rebundle", "inject 0", "inject 1"], "{name}");
        assert!(!world.configurations[0].trusts(&former), "{name}");
    }
}

#[test]
fn a_planned_rotation_publishes_first_and_signs_later() {
    let mut world = ready();
    let former = served_by(&world).clone();
    let mut now = 0;
    while now < 600 {
        now += 10;
        assert!(converge(&mut world, second(now)).iter().all(|step| step == "sign" || step == "Stage" || step.starts_with("inject")));
    }
    assert_eq!(served_by(&world), &former, "the successor is only published");
    let ConfigurationState::Present(present) = &world.configurations[0] else { panic!("present") };
    assert_eq!(bundle::parse(&present.entries[0].bundle).len(), 2);

    assert_eq!(converge(&mut world, second(609)), Vec::<String>::new());
    assert_eq!(converge(&mut world, second(610)), ["Promote", "sign"]);
    let current = served_by(&world).clone();
    assert_ne!(current, former);
    assert!(world.configurations.iter().all(|state| state.trusts(&current) && state.trusts(&former)), "no moment without trust");
}

#[test]
fn jumps_of_the_clock() {
    let mut world = ready();
    let former = served_by(&world).clone();
    assert_eq!(converge(&mut world, second(300)), ["sign"], "the leaf had expired, the CA had not");
    assert_eq!(converge(&mut world, second(5_000)), ["Issue", "sign", "inject 0", "inject 1"], "everything had expired");
    assert_ne!(served_by(&world), &former);
    assert!(!world.configurations[0].trusts(&former), "expired and ours: taken out");
    // Back again: the new CA is not valid yet, and nothing tells that its maker was wrong.
    assert!(converge(&mut world, second(10)).is_empty());
}

#[test]
fn machines_that_disagree_about_the_time_do_not_fight_for_ever() {
    let mut world = ready();
    world.note_trust(second(5_000));
    assert!(matches!(world.next_write(false, second(5_000)), Ok(Some(Write::Inject(..)) | None)), "held back");
    assert!(matches!(world.next_write(true, second(5_000)), Ok(Some(Write::Secret(..)))));
}

#[test]
fn a_leaf_of_a_forgotten_ca_keeps_its_trust() {
    // Another replica, which knew nothing of our CA, was first to make the Secret anew.
    let mut world = ready();
    let former = served_by(&world).clone();
    let material = made_anew(&mut world);
    assert_eq!(converge(&mut world, second(2)), ["inject 0", "inject 1"]);
    assert!(world.configurations.iter().all(|state| state.trusts(&former) && state.trusts(material.current.certificate())));
    assert_eq!(IDENTITY, world.identity);
}

#[test]
fn webhooks_that_are_wanted_come_with_the_first_certificate_and_hold_when_it_is_trusted() {
    let mut world = world();
    let wanted = |list: &str| {
        ConfigurationState::Present(Configuration {
            resource_version: Some("1".into()),
            wanted: Some(list.into()),
            ..Configuration::default()
        })
    };
    world.learn(Event::Configuration(0, wanted(r#"[{"name":"v"}]"#)));
    world.learn(Event::Configuration(1, wanted(r#"[{"name":"m"}]"#)));
    assert!(converge(&mut world, second(0)).is_empty(), "nobody is called before there is a CA");
    assert!(!world.status(second(0)).waiting.is_empty());
    world.learn(Event::Secret(None));
    assert_eq!(converge(&mut world, second(0)), ["Issue", "sign", "list 0", "list 1"]);
    assert_eq!(world.next_look(second(0)), second(1));
    assert!(converge(&mut world, second(1)).is_empty());
    assert!(world.status(second(1)).problems(second(1)).is_empty(), "ready when it is called: {:?}", world.status(second(1)));
    assert!(converge(&mut world, second(10)).is_empty(), "the time to settle begins when we can be ready");
    assert_eq!(world.next_look(second(10)), second(11));
    assert_eq!(converge(&mut world, second(11)), ["list 0", "list 1"]);
    assert!(converge(&mut world, second(12)).is_empty());
}

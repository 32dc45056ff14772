//! Two replicas of the webhook behind one Service, and clients that never pause: what happens to admissions when a replica is killed,
//! drained or started, when the CA is rotated, and when somebody overwrites what the API server trusts.
#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail by panicking")]

use std::time::{Duration, Instant};

use api_tests::admission::{
    Failure, Load, Place, Program, Replica, SECRET, Scene, Service, handshake, quick_settling, raycluster, until, with_namespace,
};
use certs::{Certificate, bundle};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

/// Clients of the API server.
const CLIENTS: usize = 8;
/// How long it takes on a busy machine until the other end of a connection knows that it has ended.
const NEWS: Duration = Duration::from_millis(300);
/// Time for the Service to find a change, and for connections to reach every replica.
const PAUSE: Duration = Duration::from_secs(1);

/// Two programs behind a Service.
struct Pair {
    service: Service,
    programs: Vec<Program>,
}

impl Pair {
    async fn start(scene: &Scene) -> Self {
        let service = Service::start().await;
        scene.register(service.port).await;
        let mut pair = Self { service, programs: vec![] };
        pair.add(scene).await;
        pair.add(scene).await;
        scene.enforced().await;
        pair
    }

    /// Starts one more replica.
    async fn add(&mut self, scene: &Scene) {
        self.programs.push(Program::start(scene, &[]).await);
        self.select();
    }

    /// Takes the oldest replica out of the Service, as the end of its Pod does.
    fn take(&mut self) -> Program {
        let program = self.programs.remove(0);
        self.select();
        program
    }

    fn select(&self) {
        self.service.select(&self.programs.iter().map(|program| program.place).collect::<Vec<_>>());
    }
}

/// Nobody can answer what a process had in hand when it was killed: those requests fail, and no other. The API server cannot send them
/// again (a review is a POST, and its connection ended in the middle), so that the client sees it, and may try again.
#[test]
fn admit_goes_on_when_a_replica_is_killed() {
    with_namespace("available-kill", async |scene| {
        let mut pair = Pair::start(&scene).await;
        let load = Load::admissions(&scene, CLIENTS);
        let mut kills = vec![];
        for _ in 0..3 {
            tokio::time::sleep(PAUSE).await;
            let victim = pair.programs.remove(0);
            let moment = Instant::now();
            victim.kill().await;
            kills.push((moment, Instant::now() + NEWS));
            // The Service still knows it: connections to it are refused until the probe has noticed.
            tokio::time::sleep(PAUSE).await;
            pair.add(&scene).await;
        }
        tokio::time::sleep(PAUSE).await;
        let (done, failures) = load.stop().await;
        println!("{done} admissions, {} failed because their replica was killed", failures.len());
        for (from, to) in &kills {
            let lost: Vec<&Failure> = failures.iter().filter(|lost| lost.sent <= *to && lost.failed >= *from).collect();
            assert!(lost.len() <= 2 * CLIENTS, "more than can have been in hand: {lost:?}");
            assert!(lost.iter().all(|lost| cut_off(&lost.error)), "{lost:?}");
        }
        let others: Vec<_> =
            failures.iter().filter(|lost| !kills.iter().any(|(from, to)| lost.sent <= *to && lost.failed >= *from)).collect();
        assert!(others.is_empty(), "not in hand when a replica was killed: {others:?}");
        assert!(done > 50, "only {done}: too little load to mean anything");
    });
}

/// The connection ended in the middle of a review.
fn cut_off(error: &str) -> bool {
    ["EOF", "connection reset by peer", "closed network connection", "closed idle connection", "broken pipe"]
        .iter()
        .any(|end| error.contains(end))
}

#[test]
fn admit_loses_nothing_when_replicas_are_replaced_one_by_one() {
    with_namespace("available-drain", async |scene| {
        let mut pair = Pair::start(&scene).await;
        let load = Load::admissions(&scene, CLIENTS);
        for _ in 0..3 {
            tokio::time::sleep(PAUSE).await; // both have connections by now
            pair.add(&scene).await;
            pair.take().terminate().await;
        }
        // And with less notice: it ends before the Service knows.
        tokio::time::sleep(PAUSE).await;
        pair.programs.remove(0).terminate().await;
        pair.select();
        tokio::time::sleep(PAUSE).await;
        load.unharmed(50).await;
    });
}

/// Waits until every replica serves with a certificate of `ca`.
async fn served_by(scene: &Scene, places: &[Place], ca: &Certificate) {
    let trusted = bundle::encode([ca]);
    until("every replica serves with the new CA", async || {
        for place in places {
            if handshake(scene, place.admission, trusted.as_bytes()).await.is_err() {
                return false;
            }
        }
        true
    })
    .await;
}

#[test]
fn admit_loses_nothing_while_the_ca_is_rotated() {
    with_namespace("available-rotate", async |scene| {
        let service = Service::start().await;
        scene.register(service.port).await;
        let mut replicas = vec![];
        for _ in 0..2 {
            replicas.push(Replica::start(&scene, quick_settling(), &[]).await);
        }
        let select = |replicas: &[Replica]| {
            let places: Vec<Place> = replicas.iter().map(|replica| replica.place).collect();
            service.select(&places);
            places
        };
        let mut places = select(&replicas);
        scene.enforced().await;
        let load = Load::admissions(&scene, CLIENTS);
        // Once in peace, once again before the first rotation has settled, and once while a replica starts.
        for trouble in ["none", "deleted again", "a new replica"] {
            let before = scene.current_ca().await.expect("a CA");
            let start = Instant::now();
            let delete = async || drop(scene.secrets().delete(SECRET, &DeleteParams::default()).await.expect("deleted"));
            delete().await;
            until("a new CA", async || scene.current_ca().await.is_some_and(|ca| ca != before)).await;
            if trouble == "deleted again" {
                let between = scene.current_ca().await.expect("a CA");
                delete().await;
                until("a newer CA", async || scene.current_ca().await.is_some_and(|ca| ca != between)).await;
            }
            if trouble == "a new replica" {
                replicas.push(Replica::start(&scene, quick_settling(), &[]).await);
                places = select(&replicas);
                replicas[2].ready().await;
            }
            let after = scene.current_ca().await.expect("a CA");
            served_by(&scene, &places, &after).await;
            println!("trouble: {trouble}; every replica serves with the new CA after {:?}", start.elapsed());
        }
        tokio::time::sleep(PAUSE).await;
        load.unharmed(50).await;
    });
}

#[test]
fn admit_goes_on_after_somebody_overwrote_a_ca_bundle() {
    with_namespace("available-bundle", async |scene| {
        let pair = Pair::start(&scene).await;
        let ours = scene.current_ca().await.expect("a CA");
        let now = certs::Clock::system().now();
        let foreign = certs::CertificateAuthority::generate("foreign", &certs::Lifetimes::default(), now).expect("generated");
        let load = Load::admissions(&scene, CLIENTS);
        let mut hurt = vec![];
        for bundle in [bundle::encode([foreign.certificate()]), String::new()] {
            tokio::time::sleep(PAUSE).await;
            let start = Instant::now();
            scene.overwrite_bundle(&bundle).await;
            scene.healed(&ours).await;
            // The API server hears of it a moment later.
            tokio::time::sleep(PAUSE).await;
            hurt.push((start, Instant::now()));
        }
        // A chart that is applied again does not speak of the caBundle, and hurts nobody.
        scene.configure(pair.service.port).await;
        tokio::time::sleep(PAUSE).await;
        let (done, failures) = load.stop().await;
        println!("{done} admissions, {} failed while the API server trusted somebody else", failures.len());
        let unexplained: Vec<_> =
            failures.iter().filter(|lost| !hurt.iter().any(|(from, to)| lost.failed >= *from && lost.failed <= *to)).collect();
        assert!(unexplained.is_empty(), "{unexplained:?}");
        assert!(failures.iter().all(|lost| lost.error.contains("certificate")), "{failures:?}");
        assert!(done > 50, "only {done}: too little load to mean anything");
    });
}

/// A finalizer is taken off by an update, which nobody could make while the webhook is away.
#[test]
fn admit_nothing_that_is_being_deleted_waits_for_the_webhook() {
    with_namespace("available-deletion", async |scene| {
        let mut pair = Pair::start(&scene).await;
        let mut held = raycluster("held", &["a"]);
        held["metadata"]["finalizers"] = json!(["example.com/held"]);
        scene.create(&held, false).await.expect("created");
        while !pair.programs.is_empty() {
            pair.take().terminate().await;
        }
        let error = scene.create(&raycluster("new", &["a"]), true).await.expect_err("nobody can say whether it is right");
        assert!(error.to_string().contains("failed calling webhook"), "{error}");
        let clusters = scene.rays("RayCluster");
        let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let error = clusters.patch("held", &PatchParams::default(), &release).await.expect_err("it stays, so it is reviewed");
        assert!(error.to_string().contains("failed calling webhook"), "{error}");
        clusters.delete("held", &DeleteParams::default()).await.expect("deletion begins");
        clusters.patch("held", &PatchParams::default(), &release).await.expect("it is let go");
        until("it is gone", async || clusters.get_opt("held").await.expect("an answer").is_none()).await;
    });
}

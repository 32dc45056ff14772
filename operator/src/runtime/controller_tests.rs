use std::sync::{
    Mutex,
    atomic::{AtomicUsize, Ordering},
};

use kube::ResourceExt as _;
use serde_json::json;
use shared::api::RayCluster;
use tokio::sync::{Notify, oneshot};

use super::*;
use crate::runtime::cache::{Lazy, Scope};

#[derive(Debug, thiserror::Error)]
#[error("a test failed")]
struct TestError(Retry);

impl Failure for TestError {
    fn kind(&self) -> &'static str {
        "test"
    }

    fn retry(&self) -> Retry {
        self.0
    }
}

/// Does what the object's name says, and counts.
#[derive(Default)]
struct Script {
    looks: Mutex<Vec<String>>,
    gone: Mutex<Vec<ObjectKey>>,
    now: AtomicUsize,
    most: AtomicUsize,
    open: Notify,
}

impl Reconciler for Script {
    type Object = RayCluster;
    type Error = TestError;
    const NAME: &'static str = "script";

    async fn reconcile(&self, object: Arc<RayCluster>) -> Result<Next, TestError> {
        let name = object.metadata.name.clone().unwrap();
        let earlier = {
            let mut looks = self.looks.lock().unwrap();
            let earlier = looks.iter().filter(|look| **look == name).count();
            looks.push(name.clone());
            earlier
        };
        let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
        self.most.fetch_max(now, Ordering::SeqCst);
        tokio::task::yield_now().await;
        if name.starts_with("slow") {
            self.open.notified().await;
        }
        self.now.fetch_sub(1, Ordering::SeqCst);
        match name.as_str() {
            "panics" if earlier < 2 => panic!("on purpose"),
            "fails" if earlier < 2 => Err(TestError(Retry::BackOff)),
            "gives-up" => Err(TestError(Retry::OnChange)),
            "again" if earlier < 2 => Ok(Next::After(Duration::from_millis(1))),
            _ => Ok(Next::OnChange),
        }
    }

    async fn unreadable(&self, object: &Lazy<RayCluster>, _fault: &Undecodable) -> Result<(), TestError> {
        self.looks.lock().unwrap().push(format!("unreadable {}", object.name_any()));
        Ok(())
    }

    fn gone(&self, key: &ObjectKey) {
        self.gone.lock().unwrap().push(key.clone());
    }
}

struct World {
    script: Arc<Script>,
    queue: Queue,
    metrics: Metrics,
    stop: oneshot::Sender<()>,
    task: tokio::task::JoinHandle<()>,
}

fn run(names: &[&str], concurrency: u32) -> World {
    let roots: Roots<RayCluster> = Roots::new(|_| None, &[Scope::Cluster]);
    let queue = Queue::default();
    for name in names {
        let head = if *name == "bad" { json!(7) } else { json!({ "rayStartParams": {}, "template": { "spec": { "containers": [] } } }) };
        let object = json!({ "metadata": { "namespace": "ns", "name": name, "uid": name }, "spec": { "headGroupSpec": head } });
        if !name.starts_with("missing") {
            roots.cache().observe(serde_json::from_str::<Lazy<RayCluster>>(&object.to_string()).unwrap());
        }
        queue.wake(ObjectKey::new("ns", *name));
    }
    let (script, metrics) = (Arc::new(Script::default()), Metrics::default());
    let (stop, stopped) = oneshot::channel::<()>();
    let end = async {
        let _ = stopped.await;
    };
    let grace = Duration::from_millis(300);
    let task = tokio::spawn(run_controller(Arc::clone(&script), roots, queue.clone(), metrics.clone(), concurrency, (end, grace)));
    World { script, queue, metrics, stop, task }
}

impl World {
    async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(5);
        while !holds(self) {
            assert!(Instant::now() < deadline, "{what}: {:?}\n{}", self.script.looks.lock().unwrap(), self.metrics.render());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    fn looks(&self, name: &str) -> usize {
        self.script.looks.lock().unwrap().iter().filter(|look| *look == name).count()
    }

    fn has(&self, line: &str) -> bool {
        self.metrics.render().lines().any(|found| found == line)
    }
}

#[tokio::test]
async fn every_outcome_leads_to_the_right_next_look() {
    let world = run(&["fine", "panics", "fails", "gives-up", "again", "bad", "missing"], 2);
    world.until("three looks each", |world| ["panics", "fails", "again"].iter().all(|name| world.looks(name) == 3)).await;
    world.until("all counted", |world| world.has(r#"controller_runtime_reconcile_total{controller="script",result="success"} 5"#)).await;
    assert_eq!((world.looks("fine"), world.looks("gives-up"), world.looks("bad"), world.looks("missing")), (1, 1, 0, 0));
    assert_eq!(world.looks("unreadable bad"), 1, "its author is told, and it is let go");
    assert_eq!(*world.script.gone.lock().unwrap(), [ObjectKey::new("ns", "missing")]);
    for line in [
        r#"controller_runtime_reconcile_total{controller="script",result="requeue_after"} 2"#,
        r#"controller_runtime_reconcile_total{controller="script",result="error"} 6"#,
        r#"controller_runtime_reconcile_panics_total{controller="script"} 2"#,
    ] {
        assert!(world.has(line), "{line}\n{}", world.metrics.render());
    }
    world.stop.send(()).unwrap();
    world.task.await.unwrap();
}

#[tokio::test]
async fn only_so_many_objects_are_looked_at_side_by_side() {
    let names: Vec<String> = (0..20).map(|number| format!("slow-{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let world = run(&names, 3);
    world.until("three at work", |world| world.script.now.load(Ordering::SeqCst) == 3).await;
    assert_eq!(world.queue.depth(), 17);
    let all = |world: &World| {
        world.script.open.notify_waiters();
        world.script.looks.lock().unwrap().len() == 20
    };
    world.until("all of them", all).await;
    assert_eq!(world.script.most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn stopping_waits_for_what_is_in_progress_but_not_for_ever() {
    let world = run(&["slow"], 2);
    world.until("it at work", |world| world.looks("slow") == 1).await;
    world.stop.send(()).unwrap();
    world.queue.wake(ObjectKey::new("ns", "fine"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!world.task.is_finished(), "it waits");
    world.script.open.notify_waiters();
    tokio::time::timeout(Duration::from_millis(200), world.task).await.unwrap().unwrap();

    let world = run(&["slow"], 2);
    world.until("it at work", |world| world.looks("slow") == 1).await;
    world.stop.send(()).unwrap();
    tokio::time::timeout(Duration::from_secs(2), world.task).await.unwrap().unwrap();
}

#[test]
fn causes_are_told_once() {
    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct Outer(#[source] Inner);
    #[derive(Debug, thiserror::Error)]
    #[error("inner")]
    struct Inner;
    #[derive(Debug, thiserror::Error)]
    #[error("told: {0}")]
    struct Repeats(#[source] Inner);
    assert_eq!(with_causes(&Outer(Inner)), "outer: inner");
    assert_eq!(with_causes(&Repeats(Inner)), "told: inner");
}

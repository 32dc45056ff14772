#![allow(clippy::needless_pass_by_value)] // `json!` in the place of an argument reads better

use serde_json::{Value, json};

use super::*;

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

struct World {
    cron: RayCronJob,
    problem: Option<&'static str>,
    children: Vec<Child>,
    now: Timestamp,
}

impl World {
    /// Made at midnight of the first of January 2024.
    fn new(spec: Value) -> Self {
        let mut all = json!({"schedule": "*/5 * * * *", "jobTemplate": {"entrypoint": "e"}});
        for (key, value) in spec.as_object().unwrap() {
            all[key] = value.clone();
        }
        let cron = json!({
            "metadata": {"name": "k", "namespace": "n", "uid": "u", "generation": 3, "creationTimestamp": "2024-01-01T00:00:00Z"}, "spec": all,
        });
        Self { cron: serde_json::from_value(cron).unwrap(), problem: None, children: Vec::new(), now: time("2024-01-01T00:00:30Z") }
    }

    fn at(mut self, now: &str) -> Self {
        self.now = time(now);
        self
    }

    fn last(mut self, tick: &str) -> Self {
        self.cron.status.get_or_insert_default().last_schedule_time = Some(Time(time(tick)));
        self
    }

    fn child(mut self, name: &str, state: &str, created: &str) -> Self {
        let job = json!({
            "metadata": {"name": name, "uid": format!("uid-{name}"), "creationTimestamp": created},
            "spec": {}, "status": {"jobDeploymentStatus": state, "endTime": created},
        });
        self.children.push(Child::of(&serde_json::from_value(job).unwrap()));
        self
    }

    fn think(&self) -> Plan {
        plan_of(self, &TimeZone::UTC)
    }

    /// Thinks and keeps the status.
    fn look(&mut self) -> Plan {
        let plan = self.think();
        self.cron.status = Some(plan.status.clone());
        plan
    }
}

fn plan_of(world: &World, local: &TimeZone) -> Plan {
    plan(&View { cron: &world.cron, problem: world.problem, children: &world.children, local, now: world.now })
}

fn created(plan: &Plan) -> Option<String> {
    plan.create.as_ref().map(|job| job.name_any())
}

fn tick(plan: &Plan) -> Option<String> {
    plan.status.last_schedule_time.as_ref().map(|time| shown(time.0))
}

fn reason(plan: &Plan, name: &str) -> Option<(String, String)> {
    plan.status.conditions.iter().find(|condition| condition.type_ == name).map(|found| (found.status.clone(), found.reason.clone()))
}

#[test]
fn rcj_7_rcj_9_t_13_the_next_tick_is_waited_for_and_then_run() {
    let plan = World::new(json!({})).at("2024-01-01T00:04:59Z").think();
    assert_eq!((created(&plan), plan.wake.unwrap()), (None, time("2024-01-01T00:05:00Z")));
    let plan = World::new(json!({})).at("2024-01-01T00:05:30Z").think();
    assert_eq!((created(&plan).unwrap(), tick(&plan).unwrap().as_str()), ("k-28401125".to_owned(), "2024-01-01T00:05:00Z"));
    assert_eq!(plan.wake.unwrap().duration_since(time("2024-01-01T00:05:30Z")), SignedDuration::from_secs(270));
    assert_eq!(plan.status.active, ["k-28401125"]);
    assert_eq!(plan.status.observed_generation, 3);
}

#[test]
fn rcj_8_a_tick_is_run_once() {
    let mut world = World::new(json!({})).at("2024-01-01T00:05:00Z");
    assert!(world.look().create.is_some());
    for seconds in ["01", "59"] {
        world.now = time(&format!("2024-01-01T00:05:{seconds}Z"));
        assert_eq!(world.look().create, None);
    }
}

#[test]
fn rcj_10_the_rayjob() {
    let plan = World::new(json!({"jobTemplate": {"entrypoint": "python x.py", "backoffLimit": 2}})).at("2024-01-01T00:05:00Z").think();
    let job = plan.create.unwrap();
    assert_eq!(job.metadata.name.as_deref(), Some("k-28401125"));
    assert_eq!(job.metadata.namespace.as_deref(), Some("n"));
    assert_eq!(job.metadata.labels.unwrap()["ray.io/cronjob-name"], "k");
    assert_eq!(job.metadata.annotations.unwrap()["ray.io/cronjob-scheduled-timestamp"], "2024-01-01T00:05:00Z");
    let owner = &job.metadata.owner_references.unwrap()[0];
    assert_eq!((owner.kind.as_str(), owner.uid.as_str(), owner.controller), ("RayCronJob", "u", Some(true)));
    assert_eq!((job.spec.entrypoint.as_deref(), job.spec.backoff_limit), (Some("python x.py"), Some(2)));
}

#[test]
fn weak_23_c_56_of_many_missed_ticks_the_latest_is_run() {
    for schedule in ["*/1 * * * *", "@every 1m"] {
        let mut world = World::new(json!({"schedule": schedule})).last("2024-01-01T01:00:00Z").at("2024-01-01T02:00:20Z");
        let plan = world.look();
        assert_eq!((created(&plan).is_some(), tick(&plan).unwrap().as_str()), (true, "2024-01-01T02:00:00Z"), "{schedule}");
        assert_eq!(plan.wake.unwrap(), time("2024-01-01T02:01:00Z"), "{schedule}");
        assert_eq!(world.look().create, None, "{schedule}");
    }
}

#[test]
fn rcj_6_a_suspended_schedule_makes_nothing_and_says_so_once() {
    let mut world = World::new(json!({"suspend": true})).last("2023-12-31T00:00:00Z");
    let plan = world.look();
    assert_eq!((plan.create.is_some(), plan.wake), (false, None));
    assert_eq!(plan.notes.iter().filter(|note| note.reason == "SuspendedRayCronJob").count(), 1);
    assert_eq!(reason(&plan, SUSPENDED), Some(("True".into(), "SuspendedByUser".into())));
    assert_eq!(world.look().notes, []);
    world.cron.spec.suspend = Some(false);
    let plan = world.look();
    assert_eq!((plan.create.is_some(), reason(&plan, SUSPENDED).unwrap().0.as_str()), (true, "False"));
}

#[test]
fn rcj_5_an_invalid_schedule_makes_nothing_and_shows_why() {
    let mut world = World::new(json!({"schedule": "0 0 30 2 *"})).at("2030-01-01T00:00:00Z");
    world.problem = Some("spec.schedule: no such date");
    let plan = world.look();
    assert_eq!((plan.create.is_some(), plan.wake), (false, None));
    assert_eq!(plan.notes, [Note::warning("InvalidRayCronJobSpec", "Validate", "spec.schedule: no such date")]);
    assert_eq!(reason(&plan, SPEC_VALID), Some(("False".into(), "InvalidSpec".into())));
    assert_eq!(world.look().notes, [], "told once");
    world.problem = None;
    assert_eq!(reason(&world.look(), SPEC_VALID), Some(("True".into(), "Accepted".into())));
}

#[test]
fn weak_24_a_date_that_never_comes_has_no_tick() {
    let plan = World::new(json!({"schedule": "0 0 30 2 *"})).at("2030-01-01T00:00:00Z").think();
    assert_eq!((plan.create.is_some(), plan.wake), (false, None));
}

#[test]
fn rcj_13_time_zones() {
    let tokyo = json!({"schedule": "0 1 * * *", "timeZone": "Asia/Tokyo"});
    let plan = World::new(tokyo).last("2024-01-01T00:00:00Z").at("2024-01-01T16:00:00Z").think();
    assert_eq!(tick(&plan).unwrap(), "2024-01-01T16:00:00Z");
    let local = cron::zone("America/New_York").unwrap();
    let world = World::new(json!({"schedule": "0 1 * * *"})).at("2024-01-01T06:00:00Z");
    let there = plan_of(&world, &local);
    assert_eq!(tick(&there).unwrap(), "2024-01-01T06:00:00Z", "without a zone it is the machine's");
}

#[test]
fn rcj_13_daylight_saving_time() {
    let new_york = |schedule: &str| json!({"schedule": schedule, "timeZone": "America/New_York"});
    // 02:30 does not exist on the tenth of March.
    let plan = World::new(new_york("30 2 * * *")).last("2024-03-09T07:30:00Z").at("2024-03-10T12:00:00Z").think();
    assert_eq!((plan.create.is_some(), plan.wake.unwrap()), (false, time("2024-03-11T06:30:00Z")));
    // 01:30 exists twice on the third of November, and has two names.
    let first = World::new(new_york("30 1 * * *")).last("2024-11-02T05:30:00Z").at("2024-11-03T05:30:00Z").think();
    assert_eq!((tick(&first).unwrap().as_str(), first.wake.unwrap()), ("2024-11-03T05:30:00Z", time("2024-11-03T06:30:00Z")));
    let second = World::new(new_york("30 1 * * *")).last("2024-11-03T05:30:00Z").at("2024-11-03T06:30:00Z").think();
    assert_eq!(tick(&second).unwrap(), "2024-11-03T06:30:00Z");
    assert_ne!(created(&first), created(&second));
}

#[test]
fn rcj_14_ticks_have_names_of_their_own() {
    let mut world = World::new(json!({"schedule": "@every 90s"})).last("2024-01-01T00:00:00Z");
    let mut names = std::collections::BTreeSet::new();
    for seconds in 1..1800 {
        world.now = time("2024-01-01T00:00:00Z") + SignedDuration::from_secs(seconds);
        if let Some(name) = created(&world.look()) {
            assert!(names.insert(name));
        }
    }
    assert_eq!(names.len(), 19);
}

#[test]
fn starting_deadline_leaves_a_late_tick_out() {
    let spec = json!({"schedule": "0 * * * *", "startingDeadlineSeconds": 60});
    let mut world = World::new(spec.clone()).at("2024-01-01T05:02:00Z");
    let plan = world.look();
    assert_eq!((plan.create.is_some(), tick(&plan), plan.wake.unwrap()), (false, None, time("2024-01-01T06:00:00Z")));
    assert_eq!(plan.notes.iter().filter(|note| note.reason == "MissedSchedule").count(), 1);
    assert_eq!(world.look().notes, []);
    let plan = World::new(spec).at("2024-01-01T05:01:00Z").think();
    assert_eq!(tick(&plan).unwrap(), "2024-01-01T05:00:00Z");
}

#[test]
fn concurrency_policies() {
    let at = "2024-01-01T00:10:00Z";
    for (policy, state, makes, deletes) in [
        ("Allow", "Running", true, 0),
        ("Forbid", "Running", false, 0),
        ("Replace", "Running", true, 1),
        ("Forbid", "Complete", true, 0),
        ("Replace", "Failed", true, 0),
        ("Forbid", "Suspended", false, 0),
        ("Forbid", "ValidationFailed", true, 0),
    ] {
        let world = World::new(json!({"concurrencyPolicy": policy})).child("k-1", state, "2024-01-01T00:05:00Z").at(at);
        let plan = world.think();
        assert_eq!((plan.create.is_some(), plan.delete.len()), (makes, deletes), "{policy} {state}");
        assert_eq!(plan.wake.unwrap(), time("2024-01-01T00:15:00Z"));
    }
    // The tick that had to wait is run when the earlier RayJob has ended.
    let mut world = World::new(json!({"concurrencyPolicy": "Forbid"})).child("k-1", "Running", "2024-01-01T00:05:00Z").at(at);
    let plan = world.look();
    assert_eq!((tick(&plan), reason(&plan, UP_TO_DATE).unwrap().1.as_str()), (None, "EarlierRayJobActive"));
    assert_eq!(plan.status.active, ["k-1"]);
    world.children[0].state = JobDeploymentStatus::Complete;
    world.now = time("2024-01-01T00:12:00Z");
    let plan = world.look();
    assert_eq!((tick(&plan).unwrap().as_str(), reason(&plan, UP_TO_DATE).unwrap().0.as_str()), (at, "True"));
    let replaced = World::new(json!({"concurrencyPolicy": "Replace"})).child("k-1", "Running", "2024-01-01T00:05:00Z").at(at).think();
    assert_eq!(replaced.delete, [("k-1".to_owned(), "uid-k-1".to_owned())]);
    assert_eq!(replaced.status.active.len(), 1);
}

#[test]
fn a_rayjob_that_cannot_be_read_counts_as_running() {
    let metadata: ObjectMeta =
        serde_json::from_value(json!({"name": "k-1", "uid": "uid-k-1", "creationTimestamp": "2024-01-01T00:05:00Z"})).unwrap();
    for (policy, makes, deletes) in [("Allow", true, 0), ("Forbid", false, 0), ("Replace", true, 1)] {
        let spec = json!({"concurrencyPolicy": policy, "successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 0});
        let mut world = World::new(spec).at("2024-01-01T00:10:00Z");
        world.children.push(Child::unreadable(&metadata));
        let plan = world.think();
        assert_eq!((plan.create.is_some(), plan.delete.len()), (makes, deletes), "{policy}");
        assert_eq!(plan.status.active.contains(&"k-1".to_owned()), policy != "Replace", "{policy}");
        let waits = plan.status.conditions.iter().find(|condition| condition.reason == "EarlierRayJobActive");
        assert_eq!(waits.map(|found| found.message.contains("RayJob k-1, which cannot be read")), (policy == "Forbid").then_some(true));
    }
    // One that is going still may run.
    let mut world = World::new(json!({"concurrencyPolicy": "Forbid"})).at("2024-01-01T00:10:00Z");
    let going = ObjectMeta { deletion_timestamp: Some(Time(world.now)), ..metadata };
    world.children.push(Child::unreadable(&going));
    assert_eq!(created(&world.think()), None);
}

#[test]
fn history_limits() {
    let world = |spec: Value| {
        World::new(spec)
            .child("k-1", "Complete", "2024-01-01T00:01:00Z")
            .child("k-2", "Failed", "2024-01-01T00:02:00Z")
            .child("k-3", "Complete", "2024-01-01T00:03:00Z")
            .child("k-4", "Complete", "2024-01-01T00:04:00Z")
            .child("k-5", "Running", "2024-01-01T00:04:00Z")
    };
    let deleted = |spec: Value| world(spec).think().delete.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(deleted(json!({})), Vec::<String>::new());
    assert_eq!(deleted(json!({"successfulJobsHistoryLimit": 1})), ["k-3", "k-1"]);
    assert_eq!(deleted(json!({"successfulJobsHistoryLimit": 5, "failedJobsHistoryLimit": 0})), ["k-2"]);
    let mut invalid = world(json!({"successfulJobsHistoryLimit": 0}));
    invalid.problem = Some("something");
    assert_eq!(invalid.think().delete, [], "an invalid spec is no order to delete");
    let status = world(json!({})).think().status;
    assert_eq!(status.last_successful_time.unwrap().0, time("2024-01-01T00:04:00Z"));
    assert_eq!(status.active, ["k-5"]);
}

#[test]
fn rcj_4_a_schedule_that_is_being_deleted_makes_nothing() {
    let mut world = World::new(json!({})).at("2024-01-01T00:05:00Z");
    world.cron.metadata.deletion_timestamp = Some(Time(world.now));
    let plan = world.think();
    assert_eq!((plan.create.is_some(), plan.notes.len(), plan.wake), (false, 0, None));
}

#[test]
fn nothing_new_means_nothing_to_write() {
    let mut world = World::new(json!({})).at("2024-01-01T00:05:00Z");
    world.look();
    world = world.child("k-28401125", "Running", "2024-01-01T00:05:00Z");
    let before = serde_json::to_value(world.look().status).unwrap();
    world.now = time("2024-01-01T00:07:00Z");
    let plan = world.look();
    assert_eq!((serde_json::to_value(plan.status).unwrap(), plan.notes), (before, vec![]));
}

//! RayCronJobs (C-17, C-56, T-13, X-40).

use shared::api::RayCronJob;

use super::*;

/// Seconds between two ticks of the schedule that [`Cron::make`] uses.
const EVERY: i64 = 300;
/// Seconds that a test takes at most on a busy machine.
const TEST: i64 = 40;

struct Cron {
    play: Play,
}

impl Cron {
    /// Begins when no tick comes in the middle of the test.
    async fn new(prefix: &str) -> Option<Self> {
        let to_next = EVERY - now().as_second() % EVERY;
        if to_next < TEST {
            tokio::time::sleep(Duration::from_secs(u64::try_from(to_next).unwrap() + 1)).await;
        }
        Some(Self { play: Play::new(prefix).await? })
    }

    /// Makes a suspended RayCronJob `k` that makes suspended RayJobs.
    async fn make(&self, more: Value) {
        let template = json!({
            "entrypoint": "e", "submissionMode": "HTTPMode", "suspend": true, "shutdownAfterJobFinishes": true, "rayClusterSpec": spec(&[], json!({})),
        });
        let mut object = json!({ "schedule": "*/5 * * * *", "suspend": true, "jobTemplate": template });
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let object = json!({ "apiVersion": "ray.io/v1", "kind": "RayCronJob", "metadata": { "name": "k" }, "spec": object });
        self.play.scene.create::<RayCronJob>(object).await.unwrap();
    }

    /// Has it go on as if the operator had been away since so many seconds ago.
    async fn resume(&self, ago: i64) {
        let since = now() - jiff::SignedDuration::from_secs(ago);
        let api: Api<RayCronJob> = self.play.scene.api();
        let status = json!({ "status": { "lastScheduleTime": format!("{since:.0}") } });
        let params = kube::api::PatchParams::default();
        api.patch_status("k", &params, &kube::api::Patch::Merge(status)).await.unwrap();
        self.play.scene.patch::<RayCronJob>("k", json!({ "spec": { "suspend": false } })).await.unwrap();
    }

    async fn jobs(&self) -> Vec<RayJob> {
        self.play.scene.api::<RayJob>().list(&ListParams::default()).await.unwrap().items
    }

    async fn status(&self) -> shared::api::RayCronJobStatus {
        self.play.scene.api::<RayCronJob>().get("k").await.unwrap().status.unwrap_or_default()
    }
}

#[tokio::test]
async fn reconcile_c_56_x_40_of_many_missed_ticks_the_latest_is_run() {
    let Some(cron) = Cron::new("cron").await else { return };
    cron.make(json!({})).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(cron.jobs().await.is_empty(), "a suspended schedule makes nothing");
    cron.resume(18_000).await;
    let job = cron.play.scene.until("a RayJob", async || Ok(cron.jobs().await.pop())).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(cron.jobs().await.len(), 1);
    let status = cron.status().await;
    let tick = status.last_schedule_time.unwrap().0;
    assert_eq!(tick.as_second() % 300, 0);
    assert!(now().duration_since(tick).as_secs() < 320, "the latest of 60");
    assert_eq!(job.name_any(), format!("k-{}", tick.as_second() / 60));
    assert_eq!(job.labels()["ray.io/cronjob-name"], "k");
    assert_eq!(job.annotations()["ray.io/cronjob-scheduled-timestamp"], format!("{tick:.0}"));
    assert_eq!(status.active, [job.name_any()]);
    cron.play.scene.until("the event", async || Ok((cron.play.told("CreatedRayJob").await == 1).then_some(()))).await.unwrap();
    cron.play.scene.delete::<RayCronJob>("k").await.unwrap();
    cron.play.scene.until("its RayJobs to go along", async || Ok(cron.jobs().await.is_empty().then_some(()))).await.unwrap();
}

#[tokio::test]
async fn reconcile_c_17_a_schedule_that_breaks_rules_makes_nothing_and_says_so() {
    let Some(cron) = Cron::new("badcron").await else { return };
    cron.make(json!({ "schedule": "0 0 30 2 *" })).await;
    cron.resume(9_000).await;
    let problem = async || {
        let conditions = cron.status().await.conditions;
        Ok(conditions.into_iter().find(|condition| condition.type_ == "SpecValid" && condition.status == "False"))
    };
    let found = cron.play.scene.until("the problem", problem).await.unwrap();
    assert!(found.message.contains("schedule"), "{}", found.message);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(cron.jobs().await.is_empty());
    assert_eq!(cron.play.told("InvalidRayCronJobSpec").await, 1);
    // Corrected, it runs.
    cron.play.scene.patch::<RayCronJob>("k", json!({ "spec": { "schedule": "*/5 * * * *" } })).await.unwrap();
    cron.play.scene.until("a RayJob", async || Ok(cron.jobs().await.pop())).await.unwrap();
}

#[tokio::test]
async fn reconcile_rayjobs_that_run_and_those_that_ended() {
    let Some(cron) = Cron::new("policy").await else { return };
    cron.make(json!({ "concurrencyPolicy": "Forbid", "successfulJobsHistoryLimit": 0 })).await;
    cron.resume(400).await;
    let first = cron.play.scene.until("a RayJob", async || Ok(cron.jobs().await.pop())).await.unwrap();
    // A second tick is due, but the first RayJob has not ended.
    cron.play.scene.patch::<RayCronJob>("k", json!({ "spec": { "suspend": true } })).await.unwrap();
    cron.resume(400).await;
    cron.play.scene.patch::<RayJob>(&first.name_any(), json!({ "metadata": { "labels": { "touched": "1" } } })).await.unwrap();
    let waits = async || Ok(cron.status().await.conditions.into_iter().find(|found| found.reason == "EarlierRayJobActive"));
    cron.play.scene.until("a word about it", waits).await.unwrap();
    // The first one runs and succeeds: it is not kept.
    cron.play.dashboard.submitted("SUCCEEDED");
    cron.play.scene.patch::<RayJob>(&first.name_any(), json!({ "spec": { "suspend": false } })).await.unwrap();
    let gone = async || {
        Ok(cron.play.scene.api::<RayJob>().get_opt(&first.name_any()).await?.filter(|job| job.uid() == first.uid()).is_none().then_some(()))
    };
    cron.play.scene.until("the first RayJob to go", gone).await.unwrap();
    assert!(cron.status().await.last_successful_time.is_some());
}

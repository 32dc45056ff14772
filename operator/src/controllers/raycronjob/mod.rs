//! RayCronJob: makes a RayJob at each tick of a schedule. Runs only with the feature gate `RayCronJob` (RCJ-1).

pub mod apply;
pub mod plan;

use std::{sync::Arc, time::Duration};

use jiff::tz::TimeZone;
use kube::ResourceExt as _;
use shared::{
    api::RayCronJob,
    validation::{self, Kind},
};

use self::plan::{Child, Plan, View};
use super::rayjob::notes::Note;
use crate::runtime::{
    Context, Next, ObjectKey, Reconciler,
    api::{ApiError, StatusWrite},
    cache::{Lazy, Undecodable},
    events::Recorder,
};

/// Problems named in an event and a condition.
const SHOWN_PROBLEMS: usize = 5;
/// Longest time without a look. A clock that jumps, or a machine that sleeps, must not hold up a tick for longer.
const HEARTBEAT: Duration = Duration::from_secs(300);

/// Reconciles RayCronJobs.
pub struct RayCronJobController {
    context: Arc<Context>,
    recorder: Recorder,
    /// Time zone of the machine.
    local: TimeZone,
}

impl RayCronJobController {
    /// A controller in the time zone of the machine.
    pub fn new(context: Arc<Context>) -> Self {
        let recorder = context.events.recorder("raycronjob-controller");
        Self { context, recorder, local: TimeZone::system() }
    }

    fn tell(&self, cron: &RayCronJob, notes: Vec<Note>) {
        for Note { warning, reason, action, text } in notes {
            if warning {
                self.recorder.warning(cron, &reason, action, text);
            } else {
                self.recorder.normal(cron, &reason, action, text);
            }
        }
    }
}

/// What the rules have against a RayCronJob.
async fn problem(cron: &RayCronJob, context: &Context) -> Option<String> {
    let object = match serde_json::to_value(cron) {
        Ok(object) => object,
        Err(error) => return Some(format!("the object cannot be read: {error}")),
    };
    let report = context.judge(Kind::RayCronJob, &object).await.report;
    (!report.allowed()).then(|| validation::render(&report, SHOWN_PROBLEMS))
}

impl Reconciler for RayCronJobController {
    type Object = RayCronJob;
    type Error = ApiError;
    const NAME: &'static str = "raycronjob";

    async fn reconcile(&self, cron: Arc<RayCronJob>) -> Result<Next, ApiError> {
        let (context, now) = (&*self.context, self.context.clock.now());
        let owned = context.jobs.each_in_group(&cron.namespace().unwrap_or_default(), &cron.uid().unwrap_or_default());
        let children: Vec<Child> =
            owned.iter().map(|job| job.as_ref().map_or_else(|metadata| Child::unreadable(metadata), |job| Child::of(job))).collect();
        let problem = problem(&cron, context).await;
        let view = View { cron: &cron, problem: problem.as_deref(), children: &children, local: &self.local, now };
        let Plan { delete, create, status, notes, wake } = plan::plan(&view);

        let mut done = Vec::new();
        let applied = apply::apply(context, &cron, delete, create.as_deref(), &mut done).await;
        self.tell(&cron, done);
        applied?;
        if let StatusWrite::Written(_) = context.write_status(&*cron, &status).await? {
            self.tell(&cron, notes);
        }
        Ok(match wake {
            Some(wake) => Next::After(Duration::try_from(wake.duration_since(now)).unwrap_or_default().min(HEARTBEAT)),
            // What only warns is decided anew at any time, and nobody tells of that.
            None if problem.is_some() => Next::After(HEARTBEAT),
            None => Next::OnChange,
        })
    }

    async fn unreadable(&self, cron: &Lazy<RayCronJob>, fault: &Undecodable) -> Result<(), ApiError> {
        self.context.tend_unreadable(&self.recorder, cron, fault, None).await
    }

    fn gone(&self, _key: &ObjectKey) {}
}

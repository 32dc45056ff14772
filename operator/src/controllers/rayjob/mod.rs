//! RayJob: a job for Ray, the cluster it runs on, and a status that tells the truth about both.
//!
//! One look is one straight walk: [`observe`] reads, the rules judge, [`plan`] decides, [`apply`] writes, and the status is written if
//! it says anything new; only then events and metrics tell of it. `plan`, [`conditions`] and [`notes`] are pure.
//!
//! What Ray says is asked off this path, by the [`Inquirer`]: the plan says what it wants to know, and is woken by news.

pub mod apply;
pub mod conditions;
pub mod notes;
pub mod observe;
pub mod plan;
pub mod seen;
pub mod submitter;
pub mod terms;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use shared::{
    api::{RayJob, RayJobStatus, managed_elsewhere},
    labels::finalizer,
    names,
};

use self::{
    apply::{Applied, HeldUp},
    notes::Note,
    observe::Judged,
    plan::{Ended, Plan, View},
};
use crate::{
    dashboard::{Dashboards, Inquirer, Transport},
    runtime::{
        Context, DashboardAccess, Next, ObjectKey, Reconciler,
        api::{ApiError, StatusWrite},
        cache::{Lazy, Undecodable},
        events::Recorder,
        unreadable::Hold,
    },
};

/// Reconciles RayJobs.
pub struct RayJobController {
    context: Arc<Context>,
    recorder: Recorder,
    inquirer: Inquirer,
    /// What the rules said last about each RayJob.
    judged: Mutex<HashMap<ObjectKey, Judged>>,
}

impl RayJobController {
    /// A controller that knows nothing yet. [`Inquirer::run`] has to run beside it.
    pub fn new(context: Arc<Context>) -> Self {
        let transport = match context.dashboard {
            DashboardAccess::Direct => Transport::direct(),
            DashboardAccess::ApiServerProxy => Transport::proxied(context.client.clone()),
        };
        let dashboards = Dashboards::new(transport, Some(context.client.clone()));
        let queue = context.queues.jobs.clone();
        let inquirer = Inquirer::new(dashboards, context.clock.clone(), Arc::new(move |key| queue.wake(key.clone())));
        let recorder = context.events.recorder("rayjob-controller");
        Self { context, recorder, inquirer, judged: Mutex::default() }
    }

    /// What asks the dashboards.
    pub fn inquirer(&self) -> &Inquirer {
        &self.inquirer
    }

    async fn judge(&self, key: &ObjectKey, job: &RayJob) -> Judged {
        let known = self.judged().get(key).cloned();
        let judged = observe::judged(&self.context, job, known).await;
        self.judged().insert(key.clone(), judged.clone());
        judged
    }

    fn judged(&self) -> std::sync::MutexGuard<'_, HashMap<ObjectKey, Judged>> {
        self.judged.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn walk(&self, job: Arc<RayJob>) -> Result<Next, ApiError> {
        let (context, now) = (&*self.context, self.context.clock.now());
        let key = ObjectKey::of(&*job);
        let seen = observe::observe(context, &self.inquirer, &job).await?;
        let judged = self.judge(&key, &job).await;
        let random: [[u8; 5]; 2] = rand::random();
        let suffixes = random.map(|bytes| names::suffix(&bytes));
        let view = View {
            job: &job,
            seen: &seen,
            problem: judged.problem.as_ref(),
            settings: &context.settings,
            now,
            suffixes: [&suffixes[0], &suffixes[1]],
        };

        let Plan { actions, status, notes, inquiry, wake, ended } = plan::plan(&view);
        self.inquirer.set(&key, inquiry);
        let Applied { notes: done, version, gone, unfinished, held_up } = apply::apply(context, &job, actions).await;
        self.tell(&job, done);
        if gone {
            return Ok(Next::OnChange);
        }
        if let Some(HeldUp { blocked, error }) = held_up {
            if let Some(blocked) = blocked {
                let status = plan::held_up(&view, blocked);
                let notes = notes::between(&job.status.clone().unwrap_or_default(), &status);
                self.write(&job, version, &status, notes, None).await?;
            }
            return error.map_or(Ok(Next::After(RETRY)), Err);
        }
        let deletes = job.metadata.deletion_timestamp.is_some();
        let before = job.status.as_ref().map(|status| status.job_deployment_status).unwrap_or_default();
        let moved = before != status.job_deployment_status;
        if !deletes {
            self.write(&job, version, &status, notes, ended).await?;
        }
        // Nobody is woken by a status alone, and the next state has something to do.
        Ok(match next(wake, now) {
            _ if moved => Next::After(Duration::ZERO),
            _ if unfinished => Next::After(RETRY),
            Next::OnChange if judged.may_change() => Next::After(RECONSIDER),
            next => next,
        })
    }

    async fn write(
        &self,
        job: &Arc<RayJob>,
        version: Option<String>,
        status: &RayJobStatus,
        notes: Vec<Note>,
        ended: Option<Ended>,
    ) -> Result<(), ApiError> {
        let mut known = RayJob::clone(job);
        if version.is_some() {
            known.metadata.resource_version = version;
        }
        if let StatusWrite::Written(_) = self.context.write_status(&known, status).await? {
            self.tell(job, notes);
            if let Some(Ended { status, retry, took }) = ended {
                let key = ObjectKey::of(&**job);
                let took = Duration::try_from(took).unwrap_or_default();
                self.context.metrics.job_ran(&key.namespace, &key.name, seen::uid(job), status.as_str(), retry, took);
            }
        }
        Ok(())
    }

    fn tell(&self, job: &Arc<RayJob>, notes: Vec<Note>) {
        for Note { warning, reason, action, text } in notes {
            if warning {
                self.recorder.warning(&**job, &reason, action, text);
            } else {
                self.recorder.normal(&**job, &reason, action, text);
            }
        }
    }
}

/// How soon a RayJob is judged again whose problem may one day only be worth a warning: nobody tells of that.
const RECONSIDER: Duration = Duration::from_secs(60);
/// Pause before another try at something that somebody else has to make possible.
const RETRY: Duration = Duration::from_secs(5);

fn next(wake: Option<Timestamp>, now: Timestamp) -> Next {
    match wake {
        // Times of a status are whole seconds; a moment more makes sure that they are over.
        Some(time) => Next::After(Duration::try_from(time.duration_since(now)).unwrap_or_default() + Duration::from_millis(50)),
        None => Next::OnChange,
    }
}

impl Reconciler for RayJobController {
    type Object = RayJob;
    type Error = ApiError;
    const NAME: &'static str = "rayjob";

    async fn reconcile(&self, job: Arc<RayJob>) -> Result<Next, ApiError> {
        if managed_elsewhere(job.spec.managed_by.as_deref()) {
            return Ok(Next::OnChange); // RJ-21
        }
        self.walk(job).await
    }

    async fn unreadable(&self, job: &Lazy<RayJob>, fault: &Undecodable) -> Result<(), ApiError> {
        let hold = Hold { finalizer: finalizer::RAY_JOB, left_behind: "on a cluster that stays the job may go on" };
        self.context.tend_unreadable(&self.recorder, job, fault, Some(hold)).await
    }

    fn gone(&self, key: &ObjectKey) {
        self.inquirer.set(key, None);
        self.judged().remove(key);
        self.context.metrics.job_gone(&key.namespace, &key.name);
    }
}

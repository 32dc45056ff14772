//! Decides what becomes of a RayJob: pure, from the object, what was seen, the settings and the time (RJ-20..RJ-107).
//!
//! One look moves a RayJob by at most one state. Events and conditions are not decided here state by state: they follow from the old
//! and the new status ([`super::conditions`], [`super::notes`]).

mod deadlines;
mod ending;
mod finished;
mod gang;
mod initializing;
mod removal;
mod running;
mod start;
mod teardown;
mod verdict;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::{batch::v1::Job, core::v1::Service},
    apimachinery::pkg::apis::meta::v1::Time,
};
use shared::{
    api::{
        RayCluster, RayJob, RayJobStatus,
        rayjob::{JobDeploymentStatus, job_status},
    },
    labels::finalizer,
};

use super::{
    conditions::{self, Blocked, Facts},
    notes::{self, Note},
    seen::{Problem, Seen},
    submitter::Submitter,
    terms::Terms,
};
use crate::{
    build::{auth, head_service_name, job_cluster, scheduling::Group},
    dashboard::{Answer, Endpoint, Inquiry, Occasion, Purpose, Reply},
    settings::Settings,
};

/// Longest time without a look at a RayJob that may change. Watches and timers come first; this is for what they may have missed.
const HEARTBEAT: SignedDuration = SignedDuration::from_mins(5);

/// All that a plan is made from.
pub struct View<'a> {
    /// The object.
    pub job: &'a RayJob,
    /// What was seen around it.
    pub seen: &'a Seen,
    /// What the rules have against it.
    pub problem: Option<&'a Problem>,
    /// What was decided at start.
    pub settings: &'a Settings,
    /// Now.
    pub now: Timestamp,
    /// Two random suffixes, for a job id and a cluster name (RJ-31).
    pub suffixes: [&'a str; 2],
}

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is done first, in this order.
    pub actions: Vec<Action>,
    /// The status afterwards, unless an action fails.
    pub status: RayJobStatus,
    /// What is told once the status is written.
    pub notes: Vec<Note>,
    /// What Ray is asked from now on.
    pub inquiry: Option<Inquiry>,
    /// When time alone makes a difference.
    pub wake: Option<Timestamp>,
    /// A try that ended, for metrics.
    pub ended: Option<Ended>,
}

/// A try that ended (RJ-170).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How it ended: `Complete`, `Failed` or `Retrying`.
    pub status: JobDeploymentStatus,
    /// Number of failed tries before.
    pub retry: i32,
    /// How long it took.
    pub took: SignedDuration,
}

/// Something to be done to the world.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Hold the RayJob until its Ray job was told to stop (RJ-30).
    AddFinalizer,
    /// Let the RayJob go (RJ-22).
    RemoveFinalizer,
    /// Make the cluster (RJ-82).
    CreateCluster(Box<RayCluster>),
    /// Delete the cluster of this name, which the RayJob made (RJ-51, RJ-106).
    DeleteCluster {
        /// Name.
        name: String,
        /// Uid.
        uid: String,
    },
    /// Suspend every worker group of the cluster (RJ-106).
    SuspendWorkers(Arc<RayCluster>),
    /// Make the Job that submits (RJ-110).
    CreateSubmitter(Box<Job>),
    /// Delete the Job that submits, which the RayJob made (RJ-51).
    DeleteSubmitter {
        /// Uid.
        uid: String,
    },
    /// Have the RayJob's own head Service lead to the cluster (RJ-90).
    EnsureHeadService(Box<Service>),
    /// Have the PodGroup like this (RJ-35).
    HoldGroup {
        /// The group.
        group: Box<Group>,
        /// Whether what comes next needs it: then nothing happens before it is there.
        needed: bool,
    },
    /// Have the PodGroup, if it is there, ask for this much (RJ-52, RJ-100).
    SettleGroup(Box<Group>),
    /// Delete the RayJob (RJ-105, RJ-106).
    DeleteSelf,
}

/// Makes the plan.
pub fn plan(view: &View<'_>) -> Plan {
    let mut draft = Draft::new(view);
    if view.job.metadata.deletion_timestamp.is_some() {
        removal::plan(&mut draft);
        return draft.plan;
    }
    match draft.state() {
        JobDeploymentStatus::Unknown => return draft.plan, // left alone, RJ-25
        JobDeploymentStatus::New => start::new(&mut draft),
        JobDeploymentStatus::ValidationFailed => start::invalid(&mut draft),
        JobDeploymentStatus::Suspended => start::suspended(&mut draft),
        JobDeploymentStatus::Initializing => initializing::initializing(&mut draft),
        JobDeploymentStatus::Waiting => initializing::waiting(&mut draft),
        JobDeploymentStatus::Running => running::plan(&mut draft),
        JobDeploymentStatus::Suspending | JobDeploymentStatus::Retrying => teardown::plan(&mut draft),
        JobDeploymentStatus::Complete | JobDeploymentStatus::Failed => finished::plan(&mut draft),
    }
    ending::count(&mut draft);
    gang::plan(&mut draft);
    draft.settle()
}

/// The status when an action of the plan has failed: where it was, and why it does not go on.
pub fn held_up(view: &View<'_>, blocked: Blocked) -> RayJobStatus {
    let mut draft = Draft::new(view);
    draft.facts.blocked = Some(blocked);
    draft.settle().status
}

/// A plan in the making.
struct Draft<'a> {
    view: &'a View<'a>,
    terms: Terms<'a>,
    submitter: Submitter,
    facts: Facts,
    plan: Plan,
}

impl<'a> Draft<'a> {
    fn new(view: &'a View<'a>) -> Self {
        let terms = Terms::of(view.job, view.problem.is_none(), view.seen.cluster.as_deref(), view.settings);
        let submitter = Submitter::of(view.job, view.seen, &terms);
        let status = view.job.status.clone().unwrap_or_default();
        let facts = Facts { problem: view.problem.cloned(), ..Facts::default() };
        let plan = Plan { actions: Vec::new(), status, notes: Vec::new(), inquiry: None, wake: None, ended: None };
        Self { view, terms, submitter, facts, plan }
    }

    fn old(&self) -> Option<&'a RayJobStatus> {
        self.view.job.status.as_ref()
    }

    fn status(&mut self) -> &mut RayJobStatus {
        &mut self.plan.status
    }

    fn state(&self) -> JobDeploymentStatus {
        self.plan.status.job_deployment_status
    }

    fn go(&mut self, state: JobDeploymentStatus) {
        self.plan.status.job_deployment_status = state;
    }

    fn act(&mut self, action: Action) {
        self.plan.actions.push(action);
    }

    /// Says why the RayJob does not go on.
    fn blocked(&mut self, reason: &str, message: impl Into<String>) {
        self.facts.blocked = Some(Blocked { reason: reason.to_owned(), message: message.into() });
    }

    /// Asks for a look at this time at the latest.
    fn look_at(&mut self, time: Timestamp) {
        self.plan.wake = Some(self.plan.wake.map_or(time, |wake| wake.min(time)));
    }

    fn look_in(&mut self, seconds: i64) {
        self.look_at(later(self.view.now, SignedDuration::from_secs(seconds)));
    }

    /// Whether Ray knows, or has known, the job.
    fn is_known(&self) -> bool {
        !self.plan.status.job_status.is_empty()
    }

    /// Whether Ray has ended the job.
    fn is_over(&self) -> bool {
        job_status::is_terminal(&self.plan.status.job_status)
    }

    /// What Ray said last about the job of this try.
    fn answer(&self) -> Option<&'a Answer> {
        self.view.seen.answer.as_ref().filter(|answer| answer.inquiry.job_id == self.plan.status.job_id)
    }

    fn reply(&self) -> Option<&'a Reply> {
        self.answer().map(|answer| &answer.reply)
    }

    /// Whether the last answer was given for this occasion, and thus after it arose.
    fn is_answered_for(&self, occasion: Occasion) -> bool {
        self.answer().is_some_and(|answer| answer.inquiry.occasion == occasion)
    }

    /// Where the dashboard of the job's cluster answers; `None` as long as that is not known, or once the cluster is gone.
    fn endpoint(&self) -> Option<Endpoint> {
        let cluster = self.view.seen.live_cluster()?;
        let address = &self.plan.status.dashboard_url;
        (!address.is_empty() && !self.plan.status.job_id.is_empty()).then(|| Endpoint {
            namespace: self.view.job.metadata.namespace.as_deref().unwrap_or_default().into(),
            service: head_service_name(cluster).into(),
            address: address.as_str().into(),
            token_secret: (auth::uses_tokens(cluster) && !auth::uses_service_account_tokens(cluster))
                .then(|| auth::secret_name(cluster).into()),
        })
    }

    /// Has Ray asked from now on. `false` if there is nobody to ask.
    fn ask(&mut self, purpose: Purpose, occasion: Occasion) -> bool {
        let Some(endpoint) = self.endpoint() else { return false };
        let job_id = self.plan.status.job_id.clone();
        let announced = self.submitter == Submitter::Active;
        self.plan.inquiry = Some(Inquiry { endpoint, job_id, purpose, occasion, announced });
        true
    }

    /// Notes the address of the dashboard.
    fn locate_dashboard(&mut self, cluster: &RayCluster) {
        if self.plan.status.dashboard_url.is_empty() {
            self.plan.status.dashboard_url = job_cluster::dashboard_address(cluster, self.view.settings);
        }
    }

    /// Shows the cluster's status in that of the RayJob, unless all that changed is when it was written.
    fn mirror(&mut self, cluster: &RayCluster) {
        let mut new = cluster.status.clone().unwrap_or_default();
        let shown = &mut self.plan.status.ray_cluster_status;
        let written = std::mem::replace(&mut new.last_update_time, shown.last_update_time.clone());
        if new != *shown {
            new.last_update_time = written;
            *shown = new;
        }
    }

    /// Ends the look: conditions, events, metrics.
    fn settle(self) -> Plan {
        let Self { view, facts, mut plan, .. } = self;
        let old = view.job.status.clone().unwrap_or_default();
        plan.status.observed_generation = view.job.metadata.generation.unwrap_or_default();
        conditions::update(&mut plan.status, &facts, view.now);
        plan.notes = notes::between(&old, &plan.status);
        plan.notes.extend(notes::objection(&old, view.problem));
        let state = plan.status.job_deployment_status;
        let rests = matches!(state, JobDeploymentStatus::ValidationFailed | JobDeploymentStatus::Suspended) || state.is_terminal();
        if !rests || plan.wake.is_some() {
            let heartbeat = later(view.now, HEARTBEAT);
            plan.wake = Some(plan.wake.map_or(heartbeat, |wake| wake.min(heartbeat)));
        }
        plan
    }

    fn has_finalizer(&self) -> bool {
        self.view.job.metadata.finalizers.iter().flatten().any(|name| name == finalizer::RAY_JOB)
    }
}

/// A time plus a duration, at the end of time at the latest.
fn later(time: Timestamp, duration: SignedDuration) -> Timestamp {
    time.saturating_add(duration).unwrap_or(Timestamp::MAX)
}

/// A time of a status field.
fn instant(time: Option<&Time>) -> Option<Timestamp> {
    time.map(|time| time.0)
}

/// A time as a status field holds it: to the second.
fn field(time: Timestamp) -> Option<Time> {
    Timestamp::from_second(time.as_second()).ok().map(Time)
}

#[cfg(test)]
#[path = "plan_tests/mod.rs"]
mod tests;

//! Decides what becomes of a RayCronJob: pure, from the object, its RayJobs and the time (RCJ-1..RCJ-15).
//!
//! As with Kubernetes' own CronJobs: of several missed ticks only the latest is made up for, a tick that is too late is left out, and
//! a tick that must wait for an earlier RayJob is run when that has ended, unless a later tick has come by then.

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::{ResourceExt as _, core::ObjectMeta};
use shared::{
    api::{RayCronJob, RayCronJobStatus, RayJob, raycronjob::ConcurrencyPolicy, rayjob::JobDeploymentStatus},
    cron::{self, Schedule},
    labels::{annotation, label},
};

use crate::{build::owner_reference, controllers::rayjob::notes::Note};

/// The spec breaks no rule.
pub const SPEC_VALID: &str = "SpecValid";
/// No RayJobs are made because of `spec.suspend`.
pub const SUSPENDED: &str = "Suspended";
/// The latest tick was run, or none has come yet.
pub const UP_TO_DATE: &str = "UpToDate";

/// A RayJob that the RayCronJob made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// Name.
    pub name: String,
    /// Uid.
    pub uid: String,
    /// How it stands.
    pub state: JobDeploymentStatus,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// When it ended.
    pub ended: Option<Timestamp>,
    /// Whether it is being deleted.
    pub going: bool,
    /// Whether no more than its metadata can be read.
    pub unreadable: bool,
}

impl Child {
    /// What is to be known of a RayJob.
    pub fn of(job: &RayJob) -> Self {
        let status = job.status.as_ref();
        Self {
            name: job.name_any(),
            uid: job.uid().unwrap_or_default(),
            state: status.map(|status| status.job_deployment_status).unwrap_or_default(),
            created: job.metadata.creation_timestamp.as_ref().map(|time| time.0),
            ended: status.and_then(|status| status.end_time.as_ref()).map(|time| time.0),
            going: job.metadata.deletion_timestamp.is_some(),
            unreadable: false,
        }
    }

    /// What is to be known of a RayJob of which no more than its metadata can be read. Nobody knows whether it runs, so it counts as
    /// running: a second one beside it is what `Forbid` is there to prevent.
    pub fn unreadable(metadata: &ObjectMeta) -> Self {
        Self {
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            state: JobDeploymentStatus::Unknown,
            created: metadata.creation_timestamp.as_ref().map(|time| time.0),
            ended: None,
            going: metadata.deletion_timestamp.is_some(),
            unreadable: true,
        }
    }

    /// Whether it may still run. One that the rules refuse does not, until somebody corrects it.
    fn is_active(&self) -> bool {
        !self.state.is_terminal() && self.state != JobDeploymentStatus::ValidationFailed
    }
}

/// All that a plan is made from.
pub struct View<'a> {
    /// The object.
    pub cron: &'a RayCronJob,
    /// What the rules have against it.
    pub problem: Option<&'a str>,
    /// The RayJobs that it made.
    pub children: &'a [Child],
    /// Time zone of a schedule that names none (RCJ-13).
    pub local: &'a TimeZone,
    /// Now.
    pub now: Timestamp,
}

/// What is to be done.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// RayJobs to delete first, by name and uid.
    pub delete: Vec<(String, String)>,
    /// RayJob to make then.
    pub create: Option<Box<RayJob>>,
    /// The status afterwards.
    pub status: RayCronJobStatus,
    /// What is told once the status is written.
    pub notes: Vec<Note>,
    /// When the next tick comes.
    pub wake: Option<Timestamp>,
}

/// Makes the plan.
pub fn plan(view: &View<'_>) -> Plan {
    let spec = &view.cron.spec;
    let mut plan = Plan { status: view.cron.status.clone().unwrap_or_default(), ..Plan::default() };
    if view.cron.metadata.deletion_timestamp.is_some() {
        return plan; // its RayJobs go with it
    }
    let suspended = spec.suspend == Some(true);
    plan.status.observed_generation = view.cron.metadata.generation.unwrap_or_default();
    let mut verdict = Verdict::Kept;
    if view.problem.is_none() {
        prune(view, &mut plan);
        if !suspended {
            verdict = schedule(view, &mut plan);
        }
    }
    tell(view, &mut plan, suspended, &verdict);
    plan
}

/// What became of the latest tick.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// Nothing new to say.
    Kept,
    /// It was run now, or had been.
    Run,
    /// It waits for an earlier RayJob, of which perhaps only the metadata can be read.
    Waits { tick: Timestamp, for_job: String, unreadable: bool },
    /// It is too late for it.
    Late { tick: Timestamp },
}

/// RCJ-7..RCJ-11, C-56.
fn schedule(view: &View<'_>, plan: &mut Plan) -> Verdict {
    let spec = &view.cron.spec;
    // The rules have read both before.
    let (Ok(schedule), Some(zone)) = (Schedule::parse(&spec.schedule), zone(view)) else { return Verdict::Kept };
    plan.wake = schedule.next_after(view.now, &zone);
    let Some(base) = base(view) else { return Verdict::Kept };
    if let Schedule::Every { .. } = schedule {
        // Counted from the last run, not from now.
        plan.wake = schedule.next_after(schedule.latest_at_or_before(view.now, base, &zone).unwrap_or(base), &zone);
    }
    let Some(tick) = schedule.latest_at_or_before(view.now, base, &zone) else { return Verdict::Run };
    if let Some(limit) = spec.starting_deadline_seconds.filter(|limit| *limit >= 0)
        && view.now.duration_since(tick) > SignedDuration::from_secs(limit)
    {
        return Verdict::Late { tick };
    }
    let active: Vec<&Child> = view.children.iter().filter(|child| child.is_active()).collect();
    match (spec.concurrency_policy.unwrap_or_default(), active.first()) {
        (ConcurrencyPolicy::Forbid, Some(first)) => {
            return Verdict::Waits { tick, for_job: first.name.clone(), unreadable: first.unreadable };
        }
        (ConcurrencyPolicy::Replace, Some(_)) => {
            plan.delete.extend(active.iter().filter(|child| !child.going).map(|child| (child.name.clone(), child.uid.clone())));
        }
        _ => {}
    }
    plan.status.last_schedule_time = Some(Time(tick));
    plan.create = Some(Box::new(child(view.cron, tick)));
    Verdict::Run
}

/// Since when ticks count (RCJ-7).
fn base(view: &View<'_>) -> Option<Timestamp> {
    let last = view.cron.status.as_ref().and_then(|status| status.last_schedule_time.as_ref());
    last.or(view.cron.metadata.creation_timestamp.as_ref()).map(|time| time.0)
}

fn zone(view: &View<'_>) -> Option<TimeZone> {
    match view.cron.spec.time_zone.as_deref() {
        Some(name) => cron::zone(name).ok(),
        None => Some(view.local.clone()),
    }
}

/// The RayJob of a tick. Its name is the tick's, so that a tick is run once (RCJ-10).
fn child(cron: &RayCronJob, tick: Timestamp) -> RayJob {
    let name = cron.name_any();
    RayJob {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{}", tick.as_second().div_euclid(60))),
            namespace: cron.namespace(),
            labels: Some([(label::CRONJOB_NAME.to_owned(), name)].into()),
            annotations: Some([(annotation::CRONJOB_SCHEDULED_TIMESTAMP.to_owned(), shown(tick))].into()),
            owner_references: Some(vec![owner_reference(cron)]),
            ..ObjectMeta::default()
        },
        spec: cron.spec.job_template.clone(),
        status: None,
    }
}

/// Deletes ended RayJobs beyond those that are to be kept, the oldest first.
fn prune(view: &View<'_>, plan: &mut Plan) {
    let limits = [
        (JobDeploymentStatus::Complete, view.cron.spec.successful_jobs_history_limit),
        (JobDeploymentStatus::Failed, view.cron.spec.failed_jobs_history_limit),
    ];
    for (state, limit) in limits {
        let Some(limit) = limit.and_then(|limit| usize::try_from(limit).ok()) else { continue };
        let mut ended: Vec<&Child> = view.children.iter().filter(|child| child.state == state && !child.going).collect();
        ended.sort_by(|a, b| (b.created, &b.name).cmp(&(a.created, &a.name)));
        plan.delete.extend(ended.into_iter().skip(limit).map(|child| (child.name.clone(), child.uid.clone())));
    }
}

/// Status, conditions and events.
fn tell(view: &View<'_>, plan: &mut Plan, suspended: bool, verdict: &Verdict) {
    let made = plan.create.as_ref().map(|job| job.name_any());
    let deleted = |name: &str| plan.delete.iter().any(|(deleted, _)| deleted == name);
    let mut active: Vec<String> =
        view.children.iter().filter(|child| child.is_active() && !deleted(&child.name)).map(|child| child.name.clone()).collect();
    active.extend(made);
    active.sort();
    active.dedup();
    plan.status.active = active;
    let succeeded = view.children.iter().filter(|child| child.state == JobDeploymentStatus::Complete).filter_map(|child| child.ended).max();
    let known = plan.status.last_successful_time.as_ref().map(|time| time.0);
    plan.status.last_successful_time = succeeded.max(known).map(Time);

    let generation = plan.status.observed_generation;
    let mut set = |name: &str, holds: bool, reason: &str, message: &str| {
        set(&mut plan.status.conditions, name, holds, reason, message, generation, view.now)
    };
    match view.problem {
        Some(problem) if set(SPEC_VALID, false, "InvalidSpec", problem) => {
            plan.notes.push(Note::warning("InvalidRayCronJobSpec", "Validate", problem));
        }
        Some(_) => {}
        None => {
            set(SPEC_VALID, true, "Accepted", "");
        }
    }
    let news = set(SUSPENDED, suspended, if suspended { "SuspendedByUser" } else { "Active" }, "");
    if suspended && news {
        plan.notes.push(Note::normal("SuspendedRayCronJob", "Suspend", "no RayJobs are made until spec.suspend is false"));
    }
    match verdict {
        Verdict::Kept => {}
        Verdict::Run => {
            set(UP_TO_DATE, true, "OnSchedule", "");
        }
        Verdict::Waits { tick, for_job, unreadable } => {
            let counts = if *unreadable { ", which cannot be read and so may still run," } else { "" };
            let text = format!("the tick of {} waits for RayJob {for_job}{counts} to end, as concurrencyPolicy is Forbid", shown(*tick));
            if set(UP_TO_DATE, false, "EarlierRayJobActive", &text) {
                plan.notes.push(Note::normal("EarlierRayJobActive", "Schedule", text));
            }
        }
        Verdict::Late { tick } => {
            let text = format!("the tick of {} was left out: it could not be run within startingDeadlineSeconds", shown(*tick));
            if set(UP_TO_DATE, false, "MissedSchedule", &text) {
                plan.notes.push(Note::warning("MissedSchedule", "Schedule", text));
            }
        }
    }
}

/// Sets a condition; whether it says something new.
fn set(conditions: &mut Vec<Condition>, name: &str, holds: bool, reason: &str, message: &str, generation: i64, now: Timestamp) -> bool {
    let status = if holds { "True" } else { "False" };
    let new = Condition {
        type_: name.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: Time(now),
        observed_generation: Some(generation),
    };
    match conditions.iter_mut().find(|known| known.type_ == name) {
        Some(known) => {
            let news = known.status != new.status || known.reason != new.reason || known.message != new.message;
            let since = if known.status == new.status { known.last_transition_time.clone() } else { new.last_transition_time };
            *known = Condition { last_transition_time: since, ..new };
            news
        }
        None => {
            conditions.push(new);
            true
        }
    }
}

/// A tick as it stands in annotations and messages.
fn shown(tick: Timestamp) -> String {
    format!("{tick:.0}")
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;

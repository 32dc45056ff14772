//! Complete and Failed: what is left is cleaned up when its time has come (RJ-100..RJ-106).

use jiff::{SignedDuration, Timestamp};
use shared::api::{
    RayCluster,
    rayjob::{
        DeletionCondition, DeletionJobDeploymentStatus, DeletionJobStatus, DeletionPolicyType, DeletionRule, JobDeploymentStatus,
        job_status,
    },
};

use super::{Action, Draft, instant, later, verdict};
use crate::{
    controllers::rayjob::submitter::Submitter,
    dashboard::{Occasion, Purpose, Reply},
};

/// How long after the end of a RayJob its Ray job is told to stop (WEAK-27). A submitter may hand it over late.
const STOP_WINDOW: SignedDuration = SignedDuration::from_mins(5);

pub(super) fn plan(draft: &mut Draft<'_>) {
    stop_what_goes_on(draft);
    let decision = decide(draft);
    if let Some(due) = decision.next {
        draft.look_at(due);
    }
    match decision.now {
        Some(DeletionPolicyType::DeleteSelf) => draft.act(Action::DeleteSelf),
        Some(DeletionPolicyType::DeleteCluster) => delete_cluster(draft),
        Some(DeletionPolicyType::DeleteWorkers) => {
            if let Some(cluster) = draft.view.seen.own_cluster(draft.view.job) {
                draft.act(Action::SuspendWorkers(cluster.clone()));
            }
        }
        Some(DeletionPolicyType::DeleteNone) | None => {}
    }
}

/// A RayJob that failed for another reason than its Ray job leaves that running, or about to be submitted. Where the job was lost with
/// its head, a submitter that is started anew would hand it to the new head.
fn stop_what_goes_on(draft: &mut Draft<'_>) {
    let may_come_back = draft.is_over() && draft.submitter == Submitter::Active;
    if draft.state() != JobDeploymentStatus::Failed || (draft.is_over() && !may_come_back) {
        return;
    }
    if let Some(Reply::Job(info)) = draft.reply()
        && info.is_terminal()
    {
        if !may_come_back {
            let message = draft.plan.status.message.clone();
            let reason = draft.plan.status.reason.clone();
            verdict::absorb(draft);
            draft.status().message = message;
            draft.status().reason = reason;
        }
        return;
    }
    if !draft.is_known()
        && draft.submitter == Submitter::Active
        && let Some(submitter) = draft.view.seen.own_submitter(draft.view.job)
    {
        let uid = submitter.metadata.uid.clone().unwrap_or_default();
        draft.act(Action::DeleteSubmitter { uid });
    }
    let Some(end) = instant(draft.plan.status.end_time.as_ref()) else { return };
    let until = later(end, STOP_WINDOW);
    if draft.view.now < until && draft.ask(Purpose::Stop, Occasion::Routine) {
        draft.look_at(until);
    }
}

fn delete_cluster(draft: &mut Draft<'_>) {
    let cluster = draft.view.seen.own_cluster(draft.view.job).filter(|cluster| cluster.metadata.deletion_timestamp.is_none());
    if let Some(cluster) = cluster {
        let (name, uid) = (cluster.metadata.name.clone().unwrap_or_default(), cluster.metadata.uid.clone().unwrap_or_default());
        draft.act(Action::DeleteCluster { name, uid });
    }
}

/// What is to be deleted now, and when it is to be thought about again.
#[derive(Debug, Default, PartialEq, Eq)]
struct Decision {
    now: Option<DeletionPolicyType>,
    next: Option<Timestamp>,
}

fn decide(draft: &Draft<'_>) -> Decision {
    let Some(end) = instant(draft.plan.status.end_time.as_ref()) else { return Decision::default() };
    let shared = draft.terms.selector.is_some();
    let cluster = draft.view.seen.own_cluster(draft.view.job).map(|cluster| &**cluster).filter(|_| !shared);
    match draft.terms.strategy {
        Some(strategy) => match &strategy.deletion_rules {
            Some(rules) => by_rules(rules, draft, end, cluster),
            None => {
                let succeeded = draft.state() == JobDeploymentStatus::Complete;
                // A job that was stopped or never ran has no outcome of its own; that of the RayJob counts (WEAK-9).
                let side = if succeeded { &strategy.on_success } else { &strategy.on_failure };
                let policy = side.as_ref().and_then(|side| side.policy);
                after_ttl(draft, end, policy.filter(|policy| !is_done(*policy, cluster)))
            }
        },
        None if draft.terms.shutdown => {
            // A shared cluster is left alone, but the RayJob may go (WEAK-8).
            let policy = if draft.view.settings.switches.delete_ray_job_after_finish {
                DeletionPolicyType::DeleteSelf
            } else {
                DeletionPolicyType::DeleteCluster
            };
            after_ttl(draft, end, Some(policy).filter(|policy| !is_done(*policy, cluster)))
        }
        None => Decision::default(),
    }
}

/// RJ-104, RJ-105.
fn after_ttl(draft: &Draft<'_>, end: Timestamp, policy: Option<DeletionPolicyType>) -> Decision {
    let due = later(end, draft.terms.ttl);
    match policy {
        None => Decision::default(),
        Some(_) if draft.view.now < due => Decision { now: None, next: Some(due) },
        Some(policy) => Decision { now: Some(policy), next: None },
    }
}

/// RJ-103: of the rules that are due and not done, the one that deletes most; one a look.
fn by_rules(rules: &[DeletionRule], draft: &Draft<'_>, end: Timestamp, cluster: Option<&RayCluster>) -> Decision {
    let mut decision = Decision::default();
    for rule in rules.iter().filter(|rule| applies(&rule.condition, draft)) {
        let ttl = SignedDuration::from_secs(rule.condition.ttl_seconds.unwrap_or_default().max(0).into());
        let due = later(end, ttl);
        if draft.view.now < due {
            decision.next = Some(decision.next.map_or(due, |next| next.min(due)));
        } else if !is_done(rule.policy, cluster) && decision.now.is_none_or(|now| weight(rule.policy) > weight(now)) {
            decision.now = Some(rule.policy);
        }
    }
    decision
}

fn applies(condition: &DeletionCondition, draft: &Draft<'_>) -> bool {
    let by_job = condition.job_status.is_some_and(|wanted| {
        let wanted = match wanted {
            DeletionJobStatus::Succeeded => job_status::SUCCEEDED,
            DeletionJobStatus::Failed => job_status::FAILED,
        };
        wanted == draft.plan.status.job_status
    });
    let by_deployment =
        condition.job_deployment_status.is_some_and(|DeletionJobDeploymentStatus::Failed| draft.state() == JobDeploymentStatus::Failed);
    by_job || by_deployment
}

/// Whether there is nothing left to delete. `cluster` is the one that the RayJob made, if it is there.
fn is_done(policy: DeletionPolicyType, cluster: Option<&RayCluster>) -> bool {
    let cluster = cluster.filter(|cluster| cluster.metadata.deletion_timestamp.is_none());
    match policy {
        DeletionPolicyType::DeleteSelf => false,
        DeletionPolicyType::DeleteCluster => cluster.is_none(),
        DeletionPolicyType::DeleteWorkers => {
            cluster.is_none_or(|cluster| cluster.spec.worker_groups().iter().all(|group| group.suspend == Some(true)))
        }
        DeletionPolicyType::DeleteNone => true,
    }
}

const fn weight(policy: DeletionPolicyType) -> u8 {
    match policy {
        DeletionPolicyType::DeleteSelf => 3,
        DeletionPolicyType::DeleteCluster => 2,
        DeletionPolicyType::DeleteWorkers => 1,
        DeletionPolicyType::DeleteNone => 0,
    }
}

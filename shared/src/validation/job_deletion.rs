//! `deletionStrategy` of a job: what becomes of the cluster and the job at the end (V-J-6..V-J-21).

use std::fmt;

use serde_json::Value;

use super::{ErrorType, Findings, Path, Subject, json::Json};
use crate::features::Feature;

pub(super) fn examine(subject: &Subject<'_>, spec: &Value, path: &Path<'_>, out: &mut Findings) {
    let strategy = spec.at("deletionStrategy");
    if !strategy.is_set() {
        return;
    }
    let strategy_path = path.field("deletionStrategy");
    if !subject.features.enabled(Feature::RayJobDeletionPolicy) {
        return out.forbidden(
            &strategy_path,
            "V-J-6",
            "deletion strategies are behind the feature gate RayJobDeletionPolicy, which is off: switch it on, or remove this",
        );
    }
    let legacy = strategy.at("onSuccess").is_set() || strategy.at("onFailure").is_set();
    let rules = strategy.at("deletionRules").items();
    let shutdown = spec.at("shutdownAfterJobFinishes").is_true();
    if !rules.is_empty() {
        if shutdown {
            out.forbidden(
                &path.field("shutdownAfterJobFinishes"),
                "V-J-7",
                "deletionStrategy.deletionRules decides what is deleted at the end: remove this, and ttlSecondsAfterFinished",
            );
        }
        if legacy {
            out.forbidden(
                &strategy_path.field("deletionRules"),
                "V-J-8",
                "onSuccess and onFailure say the same in the older way, and only one way can be used: remove them",
            );
        }
        examine_rules(spec, rules, &strategy_path.field("deletionRules"), out);
    } else if !legacy {
        out.required(&strategy_path, "V-J-9", "the strategy is empty: list deletionRules, or remove it");
    }
    if legacy {
        examine_legacy(spec, strategy, shutdown, &strategy_path, out);
    }
}

/// Why a policy cannot be used in this job: V-J-12/V-J-18 (a cluster of somebody else), V-J-13/V-J-19 (the autoscaler).
fn conflict(spec: &Value, policy: &str, rules: [&'static str; 2]) -> Option<(&'static str, String)> {
    let [selector_rule, autoscaling_rule] = rules;
    let borrowed = spec.at("clusterSelector").has_entries();
    let autoscaling = spec.at("rayClusterSpec").at("enableInTreeAutoscaling").is_true();
    match policy {
        "DeleteCluster" | "DeleteWorkers" if borrowed => Some((
            selector_rule,
            format!("the cluster chosen by clusterSelector is not the job's to delete ({policy}): use DeleteSelf or DeleteNone"),
        )),
        "DeleteWorkers" if autoscaling => Some((
            autoscaling_rule,
            "the autoscaler would start workers again (DeleteWorkers): use DeleteCluster, or switch enableInTreeAutoscaling off".to_owned(),
        )),
        _ => None,
    }
}

/// The older way, one policy for success and one for failure (V-J-10..V-J-14).
fn examine_legacy(spec: &Value, strategy: &Value, shutdown: bool, path: &Path<'_>, out: &mut Findings) {
    for (field, other) in [("onSuccess", "onFailure"), ("onFailure", "onSuccess")] {
        let outcome = strategy.at(field);
        let path = path.field(field);
        if !outcome.is_set() {
            out.required(&path, "V-J-10", format!("{other} is given without it: give both, or list deletionRules instead"));
            continue;
        }
        let path = path.field("policy");
        let Some(policy) = outcome.at("policy").filled() else {
            out.required(&path, "V-J-11", "the policy is missing: use DeleteCluster, DeleteWorkers, DeleteSelf or DeleteNone");
            continue;
        };
        if let Some((rule, message)) = conflict(spec, policy, ["V-J-12", "V-J-13"]) {
            out.forbidden(&path, rule, message);
        } else if shutdown && policy == "DeleteNone" {
            out.invalid(&path, "V-J-14", "shutdownAfterJobFinishes deletes the cluster, DeleteNone keeps it: change one of them");
        }
    }
}

/// What a rule waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition<'a> {
    JobStatus(&'a str),
    DeploymentStatus(&'a str),
}

impl fmt::Display for Condition<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::JobStatus(value) => write!(f, "jobStatus {value}"),
            Self::DeploymentStatus(value) => write!(f, "jobDeploymentStatus {value}"),
        }
    }
}

struct Rule<'a> {
    index: usize,
    condition: Condition<'a>,
    policy: &'a str,
    ttl: i64,
}

fn examine_rules(spec: &Value, rules: &[Value], path: &Path<'_>, out: &mut Findings) {
    let mut sound: Vec<Rule<'_>> = Vec::with_capacity(rules.len());
    for (index, value) in rules.iter().enumerate() {
        let path = path.index(index);
        let Some(rule) = examine_rule(spec, index, value, &path, out) else { continue };
        let twin = sound.iter().find(|other| (other.condition, other.policy) == (rule.condition, rule.policy));
        match twin {
            Some(twin) => out.error(
                &path,
                ErrorType::Duplicate,
                "V-J-20",
                format!("rule {} says {} on {}, too: keep one of them", twin.index, rule.policy, rule.condition),
            ),
            // An object holds few distinct (condition, policy) pairs; whatever is sent, the list stays short.
            None if sound.len() < MAX_PAIRS => sound.push(rule),
            None => {}
        }
    }
    examine_order(&sound, path, out);
}

/// Four policies on four conditions are all there is; unknown values are the schema's business.
const MAX_PAIRS: usize = 64;

fn examine_rule<'a>(spec: &Value, index: usize, value: &'a Value, path: &Path<'_>, out: &mut Findings) -> Option<Rule<'a>> {
    let condition = value.at("condition");
    let condition_path = path.field("condition");
    let policy = value.at("policy").text().unwrap_or_default();
    let found = match (condition.at("jobStatus").filled(), condition.at("jobDeploymentStatus").filled()) {
        (Some(status), None) => Some(Condition::JobStatus(status)),
        (None, Some(status)) => Some(Condition::DeploymentStatus(status)),
        (Some(_), Some(_)) => {
            out.invalid(
                &condition_path,
                "V-J-15",
                "a rule waits for one thing, but both jobStatus and jobDeploymentStatus are given: remove one, or write two rules",
            );
            None
        }
        (None, None) => {
            out.required(
                &condition_path,
                "V-J-16",
                "the rule does not say what it waits for: give jobStatus (SUCCEEDED or FAILED) or jobDeploymentStatus (Failed)",
            );
            None
        }
    };
    let ttl = condition.at("ttlSeconds").int().unwrap_or(0);
    if ttl < 0 {
        out.invalid(&condition_path.field("ttlSeconds"), "V-J-17", format!("{ttl} is negative: use 0 or more seconds"));
    }
    let conflict = conflict(spec, policy, ["V-J-18", "V-J-19"]);
    if let Some((rule, message)) = &conflict {
        out.forbidden(&path.field("policy"), rule, message.clone());
    }
    found.filter(|_| ttl >= 0 && conflict.is_none()).map(|condition| Rule { index, condition, policy, ttl })
}

/// V-J-21: for one condition the workers go first, then the cluster, then the job.
fn examine_order(rules: &[Rule<'_>], path: &Path<'_>, out: &mut Findings) {
    let stage = |policy: &str| ["DeleteWorkers", "DeleteCluster", "DeleteSelf"].iter().position(|stage| *stage == policy);
    for later in rules {
        let Some(later_stage) = stage(later.policy) else { continue };
        // The nearest earlier stage that is there, as each stage is compared with the one before it.
        let earlier = rules
            .iter()
            .filter(|rule| rule.condition == later.condition)
            .filter_map(|rule| stage(rule.policy).filter(|stage| *stage < later_stage).map(|stage| (stage, rule)))
            .max_by_key(|(stage, _)| *stage);
        if let Some((_, earlier)) = earlier
            && later.ttl < earlier.ttl
        {
            let rule_path = path.index(later.index);
            let condition = rule_path.field("condition");
            out.invalid(
                &condition.field("ttlSeconds"),
                "V-J-21",
                format!(
                    "on {} {} comes after {} seconds, before {} of rule {} after {} seconds: let it wait at least as long",
                    later.condition, later.policy, later.ttl, earlier.policy, earlier.index, earlier.ttl
                ),
            );
        }
    }
}

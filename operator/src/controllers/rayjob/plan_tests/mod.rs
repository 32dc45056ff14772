//! Tables over the state machine. [`World`] is the smallest model of what surrounds a RayJob: it carries actions out on plain data.

mod ends;
mod gang;
mod heads;
mod modes;
mod rules;
mod transitions;
mod weak;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use shared::{
    api::{RayCluster, RayJob, RayJobStatus},
    labels::finalizer,
};

use super::*;
use crate::{
    controllers::rayjob::seen::{Problem, Seen},
    dashboard::{JobInfo, Reply},
    runtime::{pod_view::PodView, views::JobView},
};

pub(super) use shared::api::rayjob::JobDeploymentStatus as State;

pub(super) const START: &str = "2026-01-01T00:00:00Z";

/// A RayJob and what surrounds it.
pub(super) struct World {
    pub(super) job: RayJob,
    pub(super) seen: Seen,
    pub(super) problem: Option<Problem>,
    pub(super) settings: Settings,
    pub(super) now: Timestamp,
    /// The last plan.
    pub(super) plan: Option<Plan>,
    /// Uids given out.
    serial: u32,
    /// Events so far.
    pub(super) events: Vec<Note>,
}

impl World {
    /// A new RayJob `j` with these fields of the spec besides a cluster of one head.
    pub(super) fn new(mode: &str, spec: Value) -> Self {
        let mut job = json!({
            "apiVersion": "ray.io/v1", "kind": "RayJob",
            "metadata": {"name": "j", "namespace": "n", "uid": "job-uid", "generation": 1},
            "spec": {
                "entrypoint": "python x.py", "submissionMode": mode,
                "rayClusterSpec": {"headGroupSpec": {"template": {"spec": {"containers": [{"name": "ray-head", "image": "ray:1"}]}}}},
            },
        });
        merge(&mut job["spec"], spec);
        let job = serde_json::from_value(job).unwrap();
        let mut settings = Settings::default();
        settings.features = settings.features.with(shared::features::Feature::SidecarSubmitterRestart, true);
        Self { job, seen: Seen::default(), problem: None, settings, now: START.parse().unwrap(), plan: None, serial: 0, events: Vec::new() }
    }

    /// The same in a later state: with a ready cluster, and its submitter where the mode has one.
    pub(super) fn running(mode: &str, spec: Value) -> Self {
        let mut world = Self::new(mode, spec);
        world.until(State::Initializing);
        world.look();
        world.cluster_ready();
        world.until(State::Running);
        world
    }

    /// The same with a job that Ray runs.
    pub(super) fn in_ray(mode: &str, spec: Value) -> Self {
        let mut world = Self::running(mode, spec);
        world.look();
        world.says("RUNNING");
        world.look();
        assert_eq!((world.state(), world.status().job_status.as_str()), (State::Running, "RUNNING"));
        world
    }

    pub(super) fn status(&self) -> RayJobStatus {
        self.job.status.clone().unwrap_or_default()
    }

    pub(super) fn state(&self) -> State {
        self.status().job_deployment_status
    }

    /// State, reason and job status in one text.
    pub(super) fn summary(&self) -> String {
        let status = self.status();
        format!("{}/{}/{}", status.job_deployment_status.as_str(), status.reason, status.job_status)
    }

    pub(super) fn edit(&mut self, spec: Value) {
        let mut whole = serde_json::to_value(&self.job.spec).unwrap();
        merge(&mut whole, spec);
        self.job.spec = serde_json::from_value(whole).unwrap();
        *self.job.metadata.generation.get_or_insert(1) += 1;
    }

    pub(super) fn patch_status(&mut self, patch: Value) {
        let mut whole = serde_json::to_value(self.status()).unwrap();
        merge(&mut whole, patch);
        self.job.status = Some(serde_json::from_value(whole).unwrap());
    }

    pub(super) fn view<'a>(&'a self, suffixes: &'a [String; 2]) -> View<'a> {
        View {
            job: &self.job,
            seen: &self.seen,
            problem: self.problem.as_ref(),
            settings: &self.settings,
            now: self.now,
            suffixes: [&suffixes[0], &suffixes[1]],
        }
    }

    /// What would be done now.
    pub(super) fn think(&self) -> Plan {
        let suffixes = [format!("id{}", self.serial), format!("cl{}", self.serial)];
        plan(&self.view(&suffixes))
    }

    /// One look: plans, carries out, writes the status as the API server would store it.
    pub(super) fn look(&mut self) -> Plan {
        self.serial += 1;
        let plan = self.think();
        for action in plan.actions.clone() {
            self.carry_out(action);
        }
        self.events.extend(plan.notes.clone());
        let stored = serde_json::to_string(&plan.status).unwrap();
        self.job.status = Some(serde_json::from_str(&stored).unwrap());
        if plan.inquiry.as_ref().map(|inquiry| &inquiry.job_id) != self.seen.answer.as_ref().map(|answer| &answer.inquiry.job_id) {
            self.seen.answer = None;
        }
        self.plan = Some(plan.clone());
        plan
    }

    /// Looks until the state is reached.
    pub(super) fn until(&mut self, state: State) {
        for _ in 0..6 {
            if self.state() == state {
                return;
            }
            self.look();
        }
        panic!("{} instead of {}", self.summary(), state.as_str());
    }

    pub(super) fn after(&mut self, seconds: i64) -> &mut Self {
        self.now = later(self.now, SignedDuration::from_secs(seconds));
        self
    }

    fn carry_out(&mut self, action: Action) {
        let uid = format!("uid-{}", self.serial);
        match action {
            Action::AddFinalizer => self.job.metadata.finalizers = Some(vec![finalizer::RAY_JOB.to_owned()]),
            Action::RemoveFinalizer => self.job.metadata.finalizers = None,
            Action::CreateCluster(mut cluster) => {
                cluster.metadata.uid = Some(uid);
                self.seen.cluster = Some(Arc::new(*cluster));
            }
            Action::DeleteCluster { .. } => (self.seen.cluster, self.seen.head) = (None, None),
            Action::CreateSubmitter(mut job) => {
                job.metadata.uid = Some(uid);
                let view: JobView = serde_json::from_value(serde_json::to_value(*job).unwrap()).unwrap();
                self.seen.submitter = Some(Arc::new(view));
            }
            Action::DeleteSubmitter { .. } => self.seen.submitter = None,
            Action::SuspendWorkers(cluster) => {
                let mut cluster = RayCluster::clone(&cluster);
                for group in cluster.spec.worker_group_specs.iter_mut().flatten() {
                    group.suspend = Some(true);
                }
                self.seen.cluster = Some(Arc::new(cluster));
            }
            Action::EnsureHeadService(_) | Action::HoldGroup { .. } | Action::SettleGroup(_) | Action::DeleteSelf => {}
        }
    }

    pub(super) fn cluster(&self) -> RayCluster {
        RayCluster::clone(self.seen.cluster.as_deref().unwrap())
    }

    pub(super) fn set_cluster(&mut self, change: impl FnOnce(&mut RayCluster)) {
        let mut cluster = self.cluster();
        change(&mut cluster);
        self.seen.cluster = Some(Arc::new(cluster));
    }

    /// The cluster is ready and its head runs.
    pub(super) fn cluster_ready(&mut self) {
        self.set_cluster(|cluster| {
            let status = json!({"state": "ready", "head": {"podName": "head-1"}});
            cluster.status = Some(serde_json::from_value(status).unwrap());
        });
        self.head("head-1", json!({}));
    }

    /// A running head Pod with this state of the submitter's container.
    pub(super) fn head(&mut self, name: &str, submitter: Value) {
        self.head_that_is(true, name, submitter);
    }

    /// The same, whose Ray container passes its readiness probe or does not.
    pub(super) fn head_that_is(&mut self, ready: bool, name: &str, submitter: Value) {
        let mut submitter_status = json!({"name": "ray-job-submitter", "state": {"running": {}}});
        merge(&mut submitter_status, submitter);
        let pod = json!({
            "metadata": {"name": name, "namespace": "n", "labels": {"ray.io/node-type": "head"}},
            "spec": {"containers": [{"name": "ray-head"}], "nodeName": "node"},
            "status": {"phase": "Running", "containerStatuses": [{"name": "ray-head", "ready": ready, "state": {"running": {}}}, submitter_status]},
        });
        let pod: PodView = serde_json::from_value(pod).unwrap();
        self.seen.head = Some(Arc::new(pod));
    }

    pub(super) fn set_head_phase(&mut self, phase: &str) {
        let mut head = PodView::clone(self.seen.head.as_deref().unwrap());
        head.status.phase = serde_json::from_value(json!(phase)).unwrap();
        self.seen.head = Some(Arc::new(head));
    }

    /// The submitter of the mode ends.
    pub(super) fn submitter_ends(&mut self, well: bool) {
        if let Some(job) = self.seen.submitter.clone() {
            let name = if well { "Complete" } else { "Failed" };
            let mut job = JobView::clone(&job);
            let condition = json!({"type": name, "status": "True", "reason": "R", "lastTransitionTime": self.now.to_string()});
            job.status.conditions = vec![serde_json::from_value(condition).unwrap()];
            self.seen.submitter = Some(Arc::new(job));
        } else {
            let code = i32::from(!well);
            self.head("head-1", json!({"state": {"running": null, "terminated": {"exitCode": code, "finishedAt": self.now.to_string()}}}));
        }
    }

    /// The dashboard answers the question of the last plan.
    pub(super) fn replies(&mut self, reply: Reply) {
        let inquiry = self.plan.as_ref().and_then(|plan| plan.inquiry.clone()).expect("nothing is asked");
        let since = self.seen.answer.as_ref().filter(|old| old.reply.same_kind(&reply)).map_or(self.now, |old| old.since);
        self.seen.answer = Some(Answer { inquiry: Arc::new(inquiry), reply, asked: self.now, since });
    }

    /// The dashboard says that the job is in this state.
    pub(super) fn says(&mut self, status: &str) {
        let end = matches!(status, "SUCCEEDED" | "FAILED" | "STOPPED").then_some(self.now);
        let info = JobInfo { status: status.to_owned(), message: format!("said {status}"), start: Some(START.parse().unwrap()), end };
        self.replies(Reply::Job(info));
    }

    pub(super) fn silence(&mut self) {
        self.replies(Reply::NoAnswer("connection refused".to_owned()));
    }

    pub(super) fn spec_breaks(&mut self) {
        self.problem = Some(Problem { reason: "InvalidRayJobSpec", message: "spec.backoffLimit: -1".to_owned() });
    }

    pub(super) fn is_asked(&self) -> Option<&Inquiry> {
        self.plan.as_ref().and_then(|plan| plan.inquiry.as_ref())
    }

    pub(super) fn condition(&self, name: &str) -> Option<(String, String)> {
        conditions::find(&self.status(), name).map(|condition| (condition.status.clone(), condition.reason.clone()))
    }

    pub(super) fn told(&self, reason: &str) -> usize {
        self.events.iter().filter(|note| note.reason == reason).count()
    }
}

/// Merge patch; `null` removes.
fn merge(into: &mut Value, patch: Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (key, value) in patch {
                if value.is_null() {
                    into.remove(&key);
                } else if value.is_object() {
                    merge(into.entry(key).or_insert_with(|| json!({})), value);
                } else {
                    into.insert(key, value);
                }
            }
        }
        (into, patch) => *into = patch,
    }
}

pub(super) fn actions(plan: &Plan) -> Vec<&'static str> {
    plan.actions
        .iter()
        .map(|action| match action {
            Action::AddFinalizer => "AddFinalizer",
            Action::RemoveFinalizer => "RemoveFinalizer",
            Action::CreateCluster(_) => "CreateCluster",
            Action::DeleteCluster { .. } => "DeleteCluster",
            Action::SuspendWorkers(_) => "SuspendWorkers",
            Action::CreateSubmitter(_) => "CreateSubmitter",
            Action::DeleteSubmitter { .. } => "DeleteSubmitter",
            Action::EnsureHeadService(_) => "EnsureHeadService",
            Action::HoldGroup { .. } => "HoldGroup",
            Action::SettleGroup(_) => "SettleGroup",
            Action::DeleteSelf => "DeleteSelf",
        })
        .collect()
}

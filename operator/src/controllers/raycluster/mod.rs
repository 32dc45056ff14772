//! RayCluster: one head Pod, groups of worker Pods, and what is around them.
//!
//! One pass is one straight walk: [`observe`] reads, [`plan`] decides, [`apply`] writes, [`status`] tells, and the status is written
//! if it says anything new. `plan` and `status` are pure. [`memory`] is what one pass leaves for the next.
//!
//! Everything is level-triggered: a pass starts from what is there, never from what has happened. Watches of the children wake the
//! cluster; there is no polling but one slow look in case a watch has missed something.

pub mod apply;
pub mod memory;
pub mod notes;
pub mod observe;
pub mod plan;
pub mod pods;
pub mod status;
#[cfg(test)]
mod testing;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use shared::api::{RayCluster, managed_elsewhere};
use shared::features::Feature;
use shared::labels::finalizer;

use self::apply::Applied;
use self::memory::ClusterMemory;
use self::notes::{Note, news};
use self::observe::identity;
use self::plan::{FinalizerStep, Stage};
use self::status::{Write, condition};
use crate::runtime::api::{ApiError, StatusWrite};
use crate::runtime::cache::{Lazy, Undecodable};
use crate::runtime::events::Recorder;
use crate::runtime::unreadable::Hold;
use crate::runtime::{Context, Next, ObjectKey, Reconciler};

/// Reconciles RayClusters.
pub struct RayClusterController {
    context: Arc<Context>,
    recorder: Recorder,
    /// What is remembered of each cluster, with its uid: a cluster of the same name is not the same cluster.
    memories: Mutex<HashMap<ObjectKey, Box<(String, ClusterMemory)>>>,
}

impl RayClusterController {
    /// A controller that remembers nothing yet.
    pub fn new(context: Arc<Context>) -> Self {
        let recorder = context.events.recorder("raycluster-controller");
        Self { context, recorder, memories: Mutex::default() }
    }

    fn memories(&self) -> MutexGuard<'_, HashMap<ObjectKey, Box<(String, ClusterMemory)>>> {
        // A memory is taken out whole and put back whole, so a poisoned map is still right.
        self.memories.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn walk(&self, cluster: Arc<RayCluster>, memory: &mut ClusterMemory) -> Result<Next, ApiError> {
        let (context, now) = (&*self.context, self.context.clock.now());
        let mut observed = observe::observe(context, cluster, memory).await;
        let mut plan = plan::plan(&observed, memory, &context.settings, now);
        if plan.pods.needs_live_view() {
            observe::refresh_pods(context, &observed.cluster).await?;
            observed.pods = observe::pods(context, &observed.cluster);
            plan = plan::plan(&observed, memory, &context.settings, now);
        }
        let finalizer_changes = plan.finalizer != FinalizerStep::Keep;
        let mut applied = apply::apply(context, &observed, plan, memory, now).await?;
        let mut cluster = observed.cluster;
        self.tell(&cluster, applied.take_notes(), memory);
        if finalizer_changes {
            let (namespace, name, _) = identity(&cluster);
            match context.clusters.get(namespace, name) {
                Ok(Some(changed)) => cluster = changed,
                _ => return Ok(Next::OnChange),
            }
        }
        let again = self.write_status(&cluster, &applied, memory, now).await?;
        let wake = [again, applied.wake(), memory.retry_at(now)].into_iter().flatten().min();
        match applied.into_error() {
            Some(error) => Err(error),
            None => Ok(self.next(wake, now)),
        }
    }

    /// Writes the status if it says anything new. Answers when it has to be looked at again, if that is before anything else happens.
    async fn write_status(
        &self,
        cluster: &RayCluster,
        applied: &Applied,
        memory: &mut ClusterMemory,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, ApiError> {
        if applied.stage() == Stage::Deleting {
            return Ok(None);
        }
        let context = &*self.context;
        let mut new = status::status(cluster, applied, memory, &context.settings, now);
        match status::worth_writing(cluster.status.as_ref(), &new) {
            Write::No => {
                memory.unwritten_since = None;
                return Ok(None);
            }
            Write::Within(patience) => {
                let since = *memory.unwritten_since.get_or_insert(now);
                let due = since.saturating_add(patience).unwrap_or(now);
                if now < due {
                    return Ok(Some(due));
                }
            }
            Write::Now => {}
        }
        new.last_update_time = Some(Time(now));
        if let StatusWrite::Written(_) = context.write_status(cluster, &new).await? {
            self.note_provisioned(cluster, &new, now);
        }
        memory.unwritten_since = None;
        // What the status now says can itself be a reason to go on (RC-151).
        let gated = context.settings.features.enabled(Feature::RayClusterStatusConditions);
        let phase = plan::phase::phase(&new.conditions, cluster.spec.suspend == Some(true), !applied.pods().is_empty(), gated);
        let goes_on = matches!(applied.stage(), Stage::In(before) if before != phase);
        Ok(goes_on.then_some(now))
    }

    /// RC-481.
    fn note_provisioned(&self, cluster: &RayCluster, new: &shared::api::RayClusterStatus, now: Timestamp) {
        let first =
            !condition::holds(cluster.status.as_ref(), condition::PROVISIONED) && condition::holds(Some(new), condition::PROVISIONED);
        if let (true, Some(created)) = (first, cluster.metadata.creation_timestamp.as_ref()) {
            let (namespace, name, uid) = identity(cluster);
            let took = Duration::try_from(now.duration_since(created.0)).unwrap_or_default();
            self.context.metrics.cluster_provisioned(namespace, name, uid, took);
        }
    }

    fn tell(&self, cluster: &RayCluster, mut notes: Vec<Note>, memory: &mut ClusterMemory) {
        notes.extend(memory.refusal_notes());
        for note in news(notes, &mut memory.told) {
            if note.warning {
                self.recorder.warning(cluster, note.reason, note.action, note.text);
            } else {
                self.recorder.normal(cluster, note.reason, note.action, note.text);
            }
        }
    }

    /// RC-107.
    fn next(&self, wake: Option<Timestamp>, now: Timestamp) -> Next {
        let resync = Duration::from_secs(self.context.settings.switches.cluster_requeue_seconds);
        let wake = wake.map(|time| Duration::try_from(time.duration_since(now)).unwrap_or_default());
        Next::After(wake.map_or(resync, |wake| wake.min(resync)))
    }
}

impl Reconciler for RayClusterController {
    type Object = RayCluster;
    type Error = ApiError;
    const NAME: &'static str = "raycluster";

    async fn reconcile(&self, cluster: Arc<RayCluster>) -> Result<Next, ApiError> {
        // RC-101: somebody else works on it.
        if managed_elsewhere(cluster.spec.managed_by.as_deref()) {
            return Ok(Next::OnChange);
        }
        let key = ObjectKey::of(&*cluster);
        let uid = cluster.metadata.uid.clone().unwrap_or_default();
        let known = self.memories().remove(&key).filter(|known| known.0 == uid);
        let mut memory = known.map(|known| known.1).unwrap_or_default();
        let result = self.walk(cluster, &mut memory).await;
        memory.compact();
        self.memories().insert(key, Box::new((uid, memory)));
        result
    }

    async fn unreadable(&self, cluster: &Lazy<RayCluster>, fault: &Undecodable) -> Result<(), ApiError> {
        let hold = Hold { finalizer: finalizer::GCS_FT_REDIS_CLEANUP, left_behind: "the cluster's keys may be left in Redis" };
        self.context.tend_unreadable(&self.recorder, cluster, fault, Some(hold)).await
    }

    fn gone(&self, key: &ObjectKey) {
        self.memories().remove(key);
        self.context.metrics.cluster_gone(&key.namespace, &key.name);
    }
}

//! Creates and deletes Pods.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::{StreamExt as _, stream};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, ServiceAccount};
use serde_json::json;
use shared::api::RayCluster;
use shared::api::raycluster::WorkerGroupSpec;
use shared::labels::annotation;

use super::{Applied, Of, children::foreign};
use crate::build::{GcsStore, gcs_store, pod, pvc, rbac, spec_hash};
use crate::controllers::raycluster::memory::{ClusterMemory, GroupMemory, Refusal};
use crate::controllers::raycluster::notes::Note;
use crate::controllers::raycluster::plan::names::UsedNames;
use crate::controllers::raycluster::plan::{Deletion, NewHead, NewWorker, NewWorkers, Why};
use crate::controllers::raycluster::pods::{ClusterPod, Role, Trouble};
use crate::runtime::Context;
use crate::runtime::api::{ApiError, Created, Deleted, is_controlled_by};
use crate::runtime::pod_view::PodView;
use crate::runtime::views::Meta;
use crate::settings::VERSION;

/// Pods of one group that are created or deleted at the same time.
const WIDTH: usize = 8;

/// What the API server made of a Pod.
enum Fate {
    /// It is there.
    Made,
    /// A Pod of this name that somebody else made for the same purpose is there, or was until a moment ago.
    WasThere,
    /// A Pod of this name belongs to somebody else.
    Taken,
    /// A Pod of this name is gone since a moment ago, so another name is to be drawn.
    Used,
    /// An earlier one was refused, so this one was not tried.
    Skipped,
    /// It was refused, or nobody knows.
    Failed(ApiError),
}

/// Creates Pods, the head first. Workers that no head can take in are not made.
pub(super) async fn create(
    context: &Context,
    cluster: &RayCluster,
    head: Option<NewHead>,
    workers: &[NewWorkers],
    memory: &mut ClusterMemory,
    applied: &mut Applied,
    now: Timestamp,
) {
    if let Some(head) = head
        && !create_head(context, cluster, head, memory, applied, now).await
    {
        return;
    }
    for group in workers {
        create_workers(context, cluster, group, memory, applied, now).await;
    }
}

async fn create_head(
    context: &Context,
    cluster: &RayCluster,
    head: NewHead,
    memory: &mut ClusterMemory,
    applied: &mut Applied,
    now: Timestamp,
) -> bool {
    const REASON: &str = "FailedCreateHeadPod";
    let ClusterMemory { head: memory, names, .. } = memory;
    if let Some(missing) = missing_account(context, cluster).await {
        applied.notes.push(Note::warning("AutoscalerServiceAccountNotFound", "Validate", missing.clone()).about("service account"));
        memory.refusal = Some(Refusal::after(memory.refusal.as_ref(), REASON, missing, now));
        return false;
    }
    warn_of_missing_claim(context, cluster, applied).await;
    let mut pod = match pod::head(cluster, &context.settings) {
        Ok(pod) => pod,
        Err(error) => {
            memory.refusal = Some(Refusal::after(memory.refusal.as_ref(), REASON, error.to_string(), now));
            return false;
        }
    };
    let drawn = head.name.is_some();
    if let Some(name) = head.name {
        rename(&mut pod, name);
    }
    let name = pod.metadata.name.clone().unwrap_or_default();
    let fate = create_one(context, cluster, &pod, drawn).await;
    remember(&fate, &name, memory, names);
    match fate {
        Fate::Made => {
            memory.refusal = None;
            applied.notes.push(Note::normal("CreatedHeadPod", "Create", format!("Created head Pod {name}")));
            true
        }
        Fate::WasThere => true,
        Fate::Taken => {
            foreign(applied, "Pod", &name, "FailedToCreateHeadPod", now);
            false
        }
        Fate::Used => {
            applied.wake_at(soon(now));
            false
        }
        Fate::Skipped => false,
        Fate::Failed(error) => {
            memory.refusal = Some(Refusal::after(memory.refusal.as_ref(), REASON, text(&error, &name), now));
            false
        }
    }
}

async fn create_workers(
    context: &Context,
    cluster: &RayCluster,
    new: &NewWorkers,
    memory: &mut ClusterMemory,
    applied: &mut Applied,
    now: Timestamp,
) {
    const REASON: &str = "FailedCreateWorkerPod";
    let Some(group) = cluster.spec.worker_groups().get(new.group) else { return };
    let ClusterMemory { groups, names, .. } = memory;
    let memory: &mut GroupMemory = groups.entry(group.group_name.clone()).or_default();
    // After a refusal, one Pod shows whether it still holds.
    let width = if memory.refusal.is_some() { 1 } else { WIDTH };
    let refused = AtomicBool::new(false);
    let mut tasks = Vec::with_capacity(new.workers.len());
    for worker in &new.workers {
        tasks.push(create_worker(context, cluster, group, worker, &refused));
    }
    let mut fates = stream::iter(tasks).buffer_unordered(width);
    let (mut made, mut problem) = (Vec::new(), None);
    while let Some((worker, fate, unbuildable)) = fates.next().await {
        remember(&fate, &worker.name, memory, names);
        if let (Fate::Made | Fate::WasThere, Some(replica)) = (&fate, worker.replica.as_ref().filter(|replica| !replica.name.is_empty())) {
            // A host that was there once is not made again if it goes (RC-186).
            memory.hosts.entry(replica.name.clone()).or_default().insert(replica.host_index);
        }
        match fate {
            Fate::Made => made.push(worker.name.as_str()),
            Fate::WasThere | Fate::Skipped => {}
            // Another name is drawn at the next look.
            Fate::Taken | Fate::Used => applied.wake_at(soon(now)),
            Fate::Failed(error) => problem = Some(text(&error, &worker.name)),
        }
        problem = problem.or(unbuildable);
    }
    if !made.is_empty() {
        let text = format!("Created {} of group {}", pods_named(&mut made), group.group_name);
        applied.notes.push(Note::normal("CreatedWorkerPod", "Create", text));
        memory.refusal = None;
    }
    if let Some(problem) = problem {
        memory.refusal = Some(Refusal::after(memory.refusal.as_ref(), REASON, problem, now));
    }
}

async fn create_worker<'a>(
    context: &Context,
    cluster: &RayCluster,
    group: &WorkerGroupSpec,
    worker: &'a NewWorker,
    refused: &AtomicBool,
) -> (&'a NewWorker, Fate, Option<String>) {
    if refused.load(Ordering::Relaxed) {
        return (worker, Fate::Skipped, None);
    }
    let mut pod = match pod::worker(cluster, group, worker.replica.as_ref(), &context.settings) {
        Ok(pod) => pod,
        Err(error) => return (worker, Fate::Skipped, Some(error.to_string())),
    };
    rename(&mut pod, worker.name.clone());
    let fate = create_one(context, cluster, &pod, true).await;
    refused.fetch_or(matches!(fate, Fate::Failed(_)), Ordering::Relaxed);
    (worker, fate, None)
}

async fn create_one(context: &Context, cluster: &RayCluster, pod: &Pod, drawn: bool) -> Fate {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    if drawn && context.pods.is_gone_lately(Of::cluster(cluster).namespace, name) {
        return Fate::Used;
    }
    let error = match context.create(pod).await {
        Ok(Created::New(_)) => return Fate::Made,
        Ok(Created::Exists) => None,
        Err(error) if error.is_outcome_unknown() => Some(error),
        Err(error) => return Fate::Failed(error),
    };
    // Somebody else has made it, or nobody knows what became of it: the API server does.
    let Of { namespace, uid } = Of::cluster(cluster);
    match (context.calls.get::<Pod, PodView>(namespace, name).await, error) {
        (Ok(Some(view)), _) if is_controlled_by(&view.metadata, uid) => {
            context.pods.observe(view);
            Fate::WasThere
        }
        (Ok(Some(_)), _) => Fate::Taken,
        (_, Some(error)) => Fate::Failed(error),
        (Ok(None), None) => Fate::Used,
        (Err(error), None) => Fate::Failed(error),
    }
}

/// Keeps in mind which names have been used, and which may have been.
fn remember(fate: &Fate, name: &str, memory: &mut GroupMemory, names: &mut UsedNames) {
    let known = memory.uncertain.iter().position(|uncertain| uncertain == name);
    match fate {
        Fate::Made | Fate::WasThere | Fate::Taken | Fate::Used => {
            if matches!(fate, Fate::Taken | Fate::Used) {
                names.add(name);
            }
            if let Some(known) = known {
                memory.uncertain.swap_remove(known);
            }
        }
        Fate::Failed(error) if error.is_outcome_unknown() && known.is_none() => memory.uncertain.push(name.to_owned()),
        Fate::Failed(_) | Fate::Skipped => {}
    }
}

/// When another name is drawn.
fn soon(now: Timestamp) -> Timestamp {
    now.saturating_add(SignedDuration::from_millis(200)).unwrap_or(now)
}

fn rename(pod: &mut Pod, name: String) {
    pod.metadata.name = Some(name);
    pod.metadata.generate_name = None;
}

/// What the API server says, without the name of the Pod: the next one that is refused for the same reason has another name, and
/// the same thing is not to be told again for each.
fn text(error: &ApiError, name: &str) -> String {
    let stem = name.rfind('-').and_then(|end| name.get(..=end)).unwrap_or(name);
    error.to_string().replace(name, &format!("{stem}*"))
}

/// RC-120: an account that the user names must be the user's work.
async fn missing_account(context: &Context, cluster: &RayCluster) -> Option<String> {
    let account = rbac::users_service_account(cluster).filter(|_| cluster.spec.autoscaling())?;
    let found = context.calls.get::<ServiceAccount, Meta<ServiceAccount>>(Of::cluster(cluster).namespace, account).await;
    // If the API server cannot be asked, it will say what it thinks of the Pod.
    matches!(found, Ok(None)).then(|| format!("the head's template names ServiceAccount {account}, which does not exist: create it"))
}

/// RC-145.
async fn warn_of_missing_claim(context: &Context, cluster: &RayCluster, applied: &mut Applied) {
    let Some(claim) = pvc::users_claim(cluster).filter(|_| gcs_store(cluster) == Some(GcsStore::Embedded)) else { return };
    let found = context.calls.get::<PersistentVolumeClaim, Meta<PersistentVolumeClaim>>(Of::cluster(cluster).namespace, claim).await;
    if matches!(found, Ok(None)) {
        let text =
            format!("PersistentVolumeClaim {claim}, which gcsFaultToleranceOptions.storage names, does not exist; the head waits for it");
        applied.notes.push(Note::warning("FailedToCreatePVC", "Validate", text).about("users claim"));
    }
}

/// Takes over a head that another version of the operator made: from now on its hash can be compared (RC-156).
pub(super) async fn refresh(context: &Context, cluster: &RayCluster, head: &ClusterPod, applied: &mut Applied) {
    let annotations = json!({
        annotation::KUBERAY_VERSION: VERSION,
        annotation::UPGRADE_STRATEGY_RECREATE_HASH: spec_hash(&cluster.spec),
    });
    match context.patch::<Pod>(&head.view().metadata, json!({ "metadata": { "annotations": annotations } })).await {
        Ok(_) => {}
        Err(error) if error.is_not_found() => {}
        Err(error) => applied.fail(error),
    }
}

/// Deletes Pods. Those that come last in a plan to delete everything go when the others have been deleted.
pub(super) async fn delete(context: &Context, deletions: Vec<Deletion>, applied: &mut Applied) {
    let is_last = |deletion: &Deletion| deletion.pod.role() == Role::Head && spans_cluster(deletion.why);
    let (last, first): (Vec<_>, Vec<_>) = deletions.into_iter().partition(is_last);
    if delete_all(context, first, applied).await {
        delete_all(context, last, applied).await;
    }
}

async fn delete_one<'a>(context: &Context, deletion: &'a Deletion) -> (&'a Deletion, Result<Deleted, ApiError>) {
    let pod = &deletion.pod;
    let namespace = pod.view().metadata.namespace.as_deref().unwrap_or_default();
    (deletion, context.delete::<Pod>(namespace, pod.name(), pod.uid()).await)
}

/// Answers whether all went.
async fn delete_all(context: &Context, deletions: Vec<Deletion>, applied: &mut Applied) -> bool {
    let mut tasks = Vec::with_capacity(deletions.len());
    for deletion in &deletions {
        tasks.push(delete_one(context, deletion));
    }
    let mut outcomes = stream::iter(tasks).buffer_unordered(WIDTH);
    let mut gone: BTreeMap<(Why, bool, &str), Vec<&str>> = BTreeMap::new();
    let mut all = true;
    while let Some((deletion, outcome)) = outcomes.next().await {
        let (pod, why) = (&deletion.pod, deletion.why);
        match outcome {
            Ok(_) => gone.entry((why, pod.role() == Role::Head, pod.group())).or_default().push(pod.name()),
            Err(error) => {
                all = false;
                let reasons = reasons(why, pod.role());
                applied.notes.push(Note::warning(reasons.failed, "Delete", error.to_string()).about(reasons.failed));
                applied.failure = Some(Trouble { reason: reasons.condition.to_owned(), message: error.to_string() });
                applied.fail(error);
            }
        }
    }
    if spans_any(&gone) {
        let mut names: Vec<&str> = gone.values().flatten().copied().collect();
        let why = gone.keys().next().map(|(why, ..)| why.words()).unwrap_or_default();
        applied.notes.push(Note::normal("DeletedPod", "Delete", format!("Deleted {}: {why}", pods_named(&mut names))));
        return all;
    }
    for ((why, is_head, group), mut names) in gone {
        let role = if is_head { Role::Head } else { Role::Worker };
        let of = if is_head { String::new() } else { format!(" of group {group}") };
        let text = format!("Deleted {}{of}: {}", pods_named(&mut names), why.words());
        applied.notes.push(Note::normal(reasons(why, role).done, "Delete", text));
    }
    all
}

fn spans_cluster(why: Why) -> bool {
    matches!(why, Why::ClusterSuspended | Why::OutOfDate | Why::ClusterDeleted)
}

fn spans_any(gone: &BTreeMap<(Why, bool, &str), Vec<&str>>) -> bool {
    gone.keys().any(|(why, ..)| spans_cluster(*why))
}

struct DeleteReasons {
    done: &'static str,
    failed: &'static str,
    condition: &'static str,
}

fn reasons(why: Why, role: Role) -> DeleteReasons {
    match (why, role) {
        _ if spans_cluster(why) => {
            DeleteReasons { done: "DeletedPod", failed: "FailedToDeletePodCollection", condition: "FailedDeleteAllPods" }
        }
        (_, Role::Head) => DeleteReasons { done: "DeletedHeadPod", failed: "FailedToDeleteHeadPod", condition: "FailedDeleteHeadPod" },
        (Why::GroupSuspended, Role::Worker) => {
            DeleteReasons { done: "DeletedWorkerPod", failed: "FailedToDeleteWorkerPodCollection", condition: "FailedDeleteWorkerPod" }
        }
        (_, Role::Worker) => {
            DeleteReasons { done: "DeletedWorkerPod", failed: "FailedToDeleteWorkerPod", condition: "FailedDeleteWorkerPod" }
        }
    }
}

/// Names shown in one event.
const SHOWN: usize = 5;

fn pods_named(names: &mut [&str]) -> String {
    names.sort_unstable();
    let shown = names.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    match names.len() {
        1 => format!("Pod {shown}"),
        count if count <= SHOWN => format!("Pods {shown}"),
        count => format!("Pods {shown} and {} more", count - SHOWN),
    }
}

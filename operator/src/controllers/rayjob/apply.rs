//! Carries actions out. The only file of the kind that writes, but for the status.

use k8s_openapi::{
    api::{batch::v1::Job, core::v1::Service},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::ResourceExt as _;
use serde_json::{Value, json};
use shared::{
    api::{RayCluster, RayJob},
    labels::finalizer,
};

use super::{conditions::Blocked, notes::Note, plan::Action, seen::uid};
use crate::build::scheduling::Group;
use crate::controllers::gang::{self, Outcome};
use crate::runtime::{
    Context,
    api::{ApiError, Created, Deleted, Ensured, is_controlled_by},
    views::JobView,
};

/// What came of the actions.
#[derive(Debug, Default)]
pub struct Applied {
    /// What is to be told.
    pub notes: Vec<Note>,
    /// Version of the RayJob, if an action changed it.
    pub version: Option<String>,
    /// Whether the RayJob was deleted or let go, so that there is no status to write.
    pub gone: bool,
    /// Whether something is left to be tried again that nothing else waits for.
    pub unfinished: bool,
    /// Why the plan could not be carried out to its end.
    pub held_up: Option<HeldUp>,
}

/// Why a plan could not be carried out to its end.
#[derive(Debug)]
pub struct HeldUp {
    /// What to show, where it is more than a disturbance.
    pub blocked: Option<Blocked>,
    /// The failure, if it is one.
    pub error: Option<ApiError>,
}

/// Carries the actions out in order, up to the first that fails.
pub async fn apply(context: &Context, job: &RayJob, actions: Vec<Action>) -> Applied {
    let mut applied = Applied::default();
    for action in actions {
        if let Err(held_up) = carry_out(context, job, action, &mut applied).await {
            applied.held_up = Some(held_up);
            break;
        }
    }
    applied
}

async fn carry_out(context: &Context, job: &RayJob, action: Action, applied: &mut Applied) -> Result<(), HeldUp> {
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    match action {
        Action::AddFinalizer => {
            let names = job.finalizers().iter().cloned().chain([finalizer::RAY_JOB.to_owned()]).collect();
            applied.version = set_finalizers(context, job, names).await.map_err(disturbance)?;
        }
        Action::RemoveFinalizer => {
            let names = job.finalizers().iter().filter(|name| *name != finalizer::RAY_JOB).cloned().collect();
            set_finalizers(context, job, names).await.map_err(disturbance)?;
            applied.gone = true;
        }
        Action::CreateCluster(cluster) => {
            let name = cluster.name_any();
            match context.create::<RayCluster>(&cluster).await {
                Ok(Created::New(_)) => {
                    applied.notes.push(Note::normal("CreatedRayCluster", "Create", format!("created RayCluster {name}")));
                }
                Ok(Created::Exists) => {}
                Err(error) => return Err(refused(applied, "FailedToCreateRayCluster", "Create", error)),
            }
        }
        Action::DeleteCluster { name, uid } => match context.delete::<RayCluster>(namespace, &name, &uid).await {
            Ok(Deleted::Begun) => applied.notes.push(Note::normal("DeletedRayCluster", "Delete", format!("deleted RayCluster {name}"))),
            Ok(Deleted::Gone) => {}
            Err(error) => return Err(refused(applied, "FailedToDeleteRayCluster", "Delete", error)),
        },
        Action::SuspendWorkers(cluster) => {
            let name = cluster.name_any();
            match suspend_workers(context, &cluster).await {
                Ok(()) => applied.notes.push(Note::normal(
                    "UpdatedRayCluster",
                    "Update",
                    format!("suspended the worker groups of RayCluster {name}"),
                )),
                Err(error) => return Err(refused(applied, "FailedToUpdateRayCluster", "Update", error)),
            }
        }
        Action::CreateSubmitter(submitter) => create_submitter(context, job, &submitter, applied).await?,
        Action::DeleteSubmitter { uid } => {
            let name = job.name_any();
            match context.delete::<Job>(namespace, &name, &uid).await {
                Ok(Deleted::Begun) => {
                    applied.notes.push(Note::normal("DeletedRayJobSubmitter", "Delete", format!("deleted submitter Job {name}")));
                }
                Ok(Deleted::Gone) => {}
                Err(error) => return Err(refused(applied, "FailedToDeleteRayJobSubmitter", "Delete", error)),
            }
        }
        Action::EnsureHeadService(service) => ensure_head_service(context, &service, applied).await,
        Action::HoldGroup { group, needed } => hold_group(context, &group, needed, applied).await?,
        Action::SettleGroup(group) => settle_group(context, &group, applied).await,
        Action::DeleteSelf => {
            context.delete::<RayJob>(namespace, &job.name_any(), uid(job)).await.map_err(disturbance)?;
            applied.gone = true;
        }
    }
    Ok(())
}

/// RJ-35. Pods without their group would start one by one, or never; a job whose Pods are there goes on without a change of its group.
async fn hold_group(context: &Context, group: &Group, needed: bool, applied: &mut Applied) -> Result<(), HeldUp> {
    let name = gang::name(group);
    match gang::hold(context, group).await {
        Ok(Outcome::Made) => applied.notes.push(Note::normal("CreatedPodGroup", "Create", format!("created PodGroup {name}"))),
        Ok(Outcome::Changed) => applied.notes.push(Note::normal("UpdatedPodGroup", "Update", format!("updated PodGroup {name}"))),
        Ok(Outcome::Same) => {}
        Ok(Outcome::Kept(refusal)) => {
            let text = format!("PodGroup {name} keeps its queue, priority and topology: {refusal}");
            applied.notes.push(Note::warning("FailedToUpdatePodGroup", "Update", text));
        }
        Ok(Outcome::Foreign) if needed => {
            let message =
                format!("a PodGroup called {name} exists and belongs to somebody else; delete it, or give the RayJob another name");
            return Err(HeldUp { blocked: Some(Blocked { reason: "PodGroupNameTaken".to_owned(), message }), error: None });
        }
        Ok(Outcome::Foreign) => {}
        Err(error) if needed => return Err(refused(applied, "FailedToCreatePodGroup", "Create", error)),
        Err(error) => {
            applied.notes.push(Note::warning("FailedToUpdatePodGroup", "Update", error.to_string()));
            applied.unfinished = true;
        }
    }
    Ok(())
}

/// RJ-52, RJ-100. What cannot be cleaned up is tried again, and keeps nothing else from happening.
async fn settle_group(context: &Context, group: &Group, applied: &mut Applied) {
    match gang::settle(context, group).await {
        Ok(Outcome::Changed) => {
            let text = format!("PodGroup {} no longer asks for what is not needed any more", gang::name(group));
            applied.notes.push(Note::normal("BatchSchedulerCleanedUp", "Cleanup", text));
        }
        Ok(_) => {}
        Err(error) => {
            applied.notes.push(Note::warning("FailedToCleanupBatchScheduler", "Cleanup", error.to_string()));
            applied.unfinished = true;
        }
    }
}

async fn set_finalizers(context: &Context, job: &RayJob, names: Vec<String>) -> Result<Option<String>, ApiError> {
    let changed = context.patch::<RayJob>(&job.metadata, json!({ "metadata": { "finalizers": names } })).await?;
    Ok(changed.resource_version())
}

async fn create_submitter(context: &Context, job: &RayJob, submitter: &Job, applied: &mut Applied) -> Result<(), HeldUp> {
    let name = submitter.name_any();
    match context.create::<Job>(submitter).await {
        Ok(Created::New(_)) => {
            applied.notes.push(Note::normal("CreatedRayJobSubmitter", "Create", format!("created submitter Job {name}")));
            return Ok(());
        }
        Ok(Created::Exists) => {}
        Err(error) => return Err(refused(applied, "FailedToCreateRayJobSubmitter", "Create", error)),
    }
    // The cache lags behind, or it does not see the Job because it lacks the label of ours: then it is not ours (WEAK-10).
    let namespace = job.metadata.namespace.as_deref().unwrap_or_default();
    let found = context.calls.get::<Job, JobView>(namespace, &name).await.map_err(disturbance)?;
    match found {
        Some(found) if is_controlled_by(&found.metadata, uid(job)) && found.metadata.deletion_timestamp.is_none() => {
            context.batch_jobs.observe(found);
            Ok(())
        }
        _ => {
            let message = format!("a Job called {name} exists and belongs to somebody else; delete it, or give the RayJob another name");
            Err(HeldUp { blocked: Some(Blocked { reason: "SubmitterNameTaken".to_owned(), message }), error: None })
        }
    }
}

/// The Service is for clients; a job does not wait for it.
async fn ensure_head_service(context: &Context, service: &Service, applied: &mut Applied) {
    let name = service.name_any();
    let note = match context.ensure::<Service>(service).await {
        Ok(Ensured::Unchanged(_)) => return,
        Ok(Ensured::Created(_)) => Note::normal("CreatedService", "Create", format!("created Service {name}")),
        Ok(Ensured::Updated(_)) => Note::normal("UpdatedService", "Update", format!("updated Service {name}")),
        Ok(Ensured::Foreign) => Note::warning(
            "FailedToCreateService",
            "Create",
            format!("a Service called {name} exists and belongs to somebody else; it was left alone"),
        ),
        Err(error) => Note::warning("FailedToCreateService", "Create", error.to_string()),
    };
    applied.notes.push(note);
}

/// Suspends every worker group of the cluster as it is now. The groups are taken as they stand at the API server, so that nothing in
/// their templates is lost that this program does not know.
async fn suspend_workers(context: &Context, cluster: &RayCluster) -> Result<(), ApiError> {
    let namespace = cluster.metadata.namespace.as_deref().unwrap_or_default();
    let Some(mut found) = context.calls.get::<RayCluster, Value>(namespace, &cluster.name_any()).await? else { return Ok(()) };
    let version = found.pointer("/metadata/resourceVersion").and_then(Value::as_str).map(str::to_owned);
    let Some(Value::Array(mut groups)) = found.pointer_mut("/spec/workerGroupSpecs").map(Value::take) else { return Ok(()) };
    for group in groups.iter_mut().filter_map(Value::as_object_mut) {
        group.insert("suspend".to_owned(), Value::Bool(true));
    }
    let known = ObjectMeta { resource_version: version, ..cluster.metadata.clone() };
    context.patch::<RayCluster>(&known, json!({ "spec": { "workerGroupSpecs": groups } })).await.map(drop)
}

/// Somebody has to know.
fn refused(applied: &mut Applied, reason: &'static str, action: &'static str, error: ApiError) -> HeldUp {
    // What only came in between is tried again before anybody can read about it.
    if !error.is_conflict() {
        applied.notes.push(Note::warning(reason, action, error.to_string()));
    }
    let blocked = error.refusal().map(|message| Blocked { reason: reason.to_owned(), message: message.to_owned() });
    HeldUp { blocked, error: Some(error) }
}

fn disturbance(error: ApiError) -> HeldUp {
    HeldUp { blocked: None, error: Some(error) }
}

//! Carries a plan out. The only file of the kind that writes, but for the status.

use kube::ResourceExt as _;
use shared::api::{RayCronJob, RayJob};

use crate::{
    controllers::rayjob::notes::Note,
    runtime::{
        Context,
        api::{ApiError, Created, Deleted, is_controlled_by},
        cache::Lazy,
    },
};

/// Deletes RayJobs, then makes the one of the tick. Answers with what is to be told.
///
/// # Errors
/// When the RayJob cannot be made; the tick then is still to be run. The notes hold what was done until then.
pub async fn apply(
    context: &Context,
    cron: &RayCronJob,
    delete: Vec<(String, String)>,
    create: Option<&RayJob>,
    notes: &mut Vec<Note>,
) -> Result<(), ApiError> {
    let namespace = cron.namespace().unwrap_or_default();
    for (name, uid) in delete {
        match context.delete::<RayJob>(&namespace, &name, &uid).await {
            Ok(Deleted::Begun) => notes.push(Note::normal("DeletedRayJob", "Delete", format!("deleted RayJob {name}"))),
            Ok(Deleted::Gone) => {}
            Err(error) => {
                notes.push(Note::warning("FailedToDeleteRayJob", "Delete", error.to_string()));
                return Err(error);
            }
        }
    }
    let Some(job) = create else { return Ok(()) };
    let name = job.name_any();
    match context.create::<RayJob>(job).await {
        Ok(Created::New(_)) => notes.push(Note::normal("CreatedRayJob", "Create", format!("created RayJob {name}"))),
        Ok(Created::Exists) => {
            // Made before the status could say so, or by somebody else; either way this tick has had its turn.
            let found = context.calls.get::<RayJob, Lazy<RayJob>>(&namespace, &name).await?;
            let own = found.is_some_and(|found| is_controlled_by(kube::Resource::meta(&found), &cron.uid().unwrap_or_default()));
            if !own {
                notes.push(Note::warning(
                    "NameConflict",
                    "Create",
                    format!("RayJob {name} exists and belongs to somebody else; the tick was left out"),
                ));
            }
        }
        Err(error) => {
            notes.push(Note::warning("FailedToCreateRayJob", "Create", error.to_string()));
            return Err(error);
        }
    }
    Ok(())
}

//! What happens to a Ray object that is stored and cannot be read: its author is told, nothing it has is touched, and its deletion is
//! not held up. A deletion must not depend on anything that its author can break.

use kube::{Resource as _, ResourceExt as _};
use serde::Deserialize;
use serde_json::json;
use shared::api::managed_elsewhere;

use super::{
    Context,
    api::{ApiError, Mirrored},
    cache::{Lazy, Root, Undecodable},
    events::Recorder,
};

/// What holds an object of a kind while it is being deleted.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// The finalizer.
    pub finalizer: &'static str,
    /// What may be left behind when it is taken off without the work that it stands for.
    pub left_behind: &'static str,
}

impl Context {
    /// Tells the author of an object that cannot be read, and lets the object go if it is being deleted.
    ///
    /// # Errors
    /// When the finalizer cannot be taken off.
    pub async fn tend_unreadable<K>(
        &self,
        recorder: &Recorder,
        object: &Lazy<K>,
        fault: &Undecodable,
        hold: Option<Hold>,
    ) -> Result<(), ApiError>
    where
        K: Root + Mirrored<View = Lazy<K>>,
    {
        // RC-101: somebody else works on it.
        if object.spec::<Manager>().is_some_and(|manager| managed_elsewhere(manager.managed_by.as_deref())) {
            return Ok(());
        }
        if object.meta().deletion_timestamp.is_none() {
            recorder.warning(object, "CannotBeRead", "Validate", fault.to_string());
            return Ok(());
        }
        let Some(hold) = hold.filter(|hold| object.finalizers().iter().any(|name| name == hold.finalizer)) else { return Ok(()) };
        let others: Vec<&String> = object.finalizers().iter().filter(|name| *name != hold.finalizer).collect();
        match self.patch::<K>(object.meta(), json!({ "metadata": { "finalizers": others } })).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        let Hold { finalizer, left_behind } = hold;
        let problem = &fault.problem;
        tracing::warn!(kind = %fault.kind, namespace = %fault.namespace, name = %fault.name, finalizer, problem, "let an unreadable object go");
        recorder.warning(
            object,
            "ReleasedUnreadable",
            "Delete",
            format!("Took off {finalizer} without its work being done, since {problem}; {left_behind}"),
        );
        Ok(())
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manager {
    managed_by: Option<String>,
}

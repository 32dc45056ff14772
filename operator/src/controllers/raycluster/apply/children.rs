//! The objects around the Pods, each compared with what is wanted and put right (C-32, C-33, C-34).

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::ResourceExt as _;
use serde::Serialize;
use shared::api::RayCluster;

use super::{Applied, Of, claim, gang, route};
use crate::build::secret;
use crate::controllers::raycluster::memory::ClusterMemory;
use crate::controllers::raycluster::notes::Note;
use crate::controllers::raycluster::observe;
use crate::controllers::raycluster::plan::{DesiredChildren, Wanted};
use crate::controllers::raycluster::pods::Trouble;
use crate::runtime::Context;
use crate::runtime::api::{ApiError, Created, Ensured, Mirrored, is_controlled_by};
use crate::runtime::cache::{Cache, Kept};

/// How long until an object of somebody else is looked at again.
const CONFLICT_RETRY: SignedDuration = SignedDuration::from_secs(30);

/// Event reasons of a kind (RC-199).
struct Reasons {
    created: &'static str,
    failed_to_create: &'static str,
    updated: &'static str,
    failed_to_update: &'static str,
    deleted: &'static str,
    failed_to_delete: &'static str,
}

macro_rules! reasons {
    ($kind:literal) => {
        Reasons {
            created: concat!("Created", $kind),
            failed_to_create: concat!("FailedToCreate", $kind),
            updated: concat!("Updated", $kind),
            failed_to_update: concat!("FailedToUpdate", $kind),
            deleted: concat!("Deleted", $kind),
            failed_to_delete: concat!("FailedToDelete", $kind),
        }
    };
}

const SERVICE: Reasons = reasons!("Service");
const INGRESS: Reasons = reasons!("Ingress");
const SERVICE_ACCOUNT: Reasons = reasons!("ServiceAccount");
const ROLE: Reasons = reasons!("Role");
const ROLE_BINDING: Reasons = reasons!("RoleBinding");
const SECRET: Reasons = reasons!("Secret");

/// Has every object as it is wanted. Answers with what keeps Pods from being made.
pub(super) async fn apply(
    context: &Context,
    cluster: &RayCluster,
    children: DesiredChildren,
    memory: &mut ClusterMemory,
    applied: &mut Applied,
    now: Timestamp,
) -> Option<Trouble> {
    let DesiredChildren {
        head_service,
        headless_service,
        serve_service,
        ingress,
        route,
        service_account,
        role,
        role_binding,
        auth_secret,
        gcs_claim,
        pod_group,
    } = children;
    let owned = &context.owned;
    let mut pass = Pass { context, cluster, applied, now };
    pass.service_account(service_account).await;
    let role_is_ours = pass.keep(role, &owned.roles, &ROLE).await.is_ok();
    // A binding to a Role of somebody else would give the autoscaler rights that nobody meant it to have.
    if role_is_ours {
        let _ = pass.keep(role_binding, &owned.role_bindings, &ROLE_BINDING).await;
    }
    let _ = pass.keep(ingress, &owned.ingresses, &INGRESS).await;
    pass.secret(auth_secret, memory).await;
    let head_service = pass.keep(head_service, &context.services, &SERVICE).await.ok().flatten();
    let _ = pass.keep(headless_service, &context.services, &SERVICE).await;
    let _ = pass.keep(serve_service, &context.services, &SERVICE).await;
    route::apply(context, cluster, route, memory, applied, now).await;
    claim::apply(context, cluster, gcs_claim, memory, applied, now).await;
    applied.head_service = head_service.or_else(|| observe::head_service(context, cluster));
    gang::apply(context, cluster, pod_group, applied, now).await
}

/// An object of the wanted name belongs to somebody else, or could not be had.
struct NotOurs;

struct Pass<'a> {
    context: &'a Context,
    cluster: &'a RayCluster,
    applied: &'a mut Applied,
    now: Timestamp,
}

impl Pass<'_> {
    /// Has one object as it is wanted, and answers with it.
    async fn keep<K>(
        &mut self,
        wanted: Wanted<K>,
        cache: &Cache<K::View>,
        reasons: &Reasons,
    ) -> Result<Option<std::sync::Arc<K::View>>, NotOurs>
    where
        K: Mirrored + Serialize,
    {
        let object = match wanted {
            Wanted::Untouched => return Ok(None),
            Wanted::Nowhere { name } => {
                self.remove::<K>(&name, cache, reasons).await;
                return Ok(None);
            }
            Wanted::Here(object) => object,
        };
        let (kind, name) = (K::kind(&()).into_owned(), object.meta().name.clone().unwrap_or_default());
        let existed = cache.get(Of::cluster(self.cluster).namespace, &name).is_some();
        match self.context.ensure(&*object).await {
            Ok(Ensured::Created(view)) => {
                self.note(Note::normal(reasons.created, "Create", format!("Created {kind} {name}")));
                Ok(Some(view))
            }
            Ok(Ensured::Updated(view)) => {
                self.note(Note::normal(reasons.updated, "Update", format!("Updated {kind} {name}")));
                Ok(Some(view))
            }
            Ok(Ensured::Unchanged(view)) => Ok(Some(view)),
            Ok(Ensured::Foreign) => {
                self.foreign(&kind, &name, reasons.failed_to_create);
                Err(NotOurs)
            }
            Err(error) => {
                let (reason, action) = if existed { (reasons.failed_to_update, "Update") } else { (reasons.failed_to_create, "Create") };
                self.failed(reason, action, &kind, &name, error);
                Err(NotOurs)
            }
        }
    }

    /// Deletes an object of the cluster that is no longer wanted.
    async fn remove<K: Mirrored>(&mut self, name: &str, cache: &Cache<K::View>, reasons: &Reasons) {
        let Of { namespace, uid } = Of::cluster(self.cluster);
        let Some(known) = cache.get(namespace, name).filter(|known| is_ours(&**known, uid)) else { return };
        let kind = K::kind(&());
        match self.context.delete::<K>(namespace, name, &known.uid().unwrap_or_default()).await {
            Ok(_) => self.note(Note::normal(reasons.deleted, "Delete", format!("Deleted {kind} {name}, which is no longer wanted"))),
            Err(error) => self.failed(reasons.failed_to_delete, "Delete", &kind, name, error),
        }
    }

    /// RC-120. The account that the user names is the user's: it is used as it is.
    async fn service_account(&mut self, wanted: Wanted<ServiceAccount>) {
        let _ = self.keep(wanted, &self.context.owned.service_accounts, &SERVICE_ACCOUNT).await;
    }

    /// RC-126. The token is drawn once; one that somebody else put there is used as it is.
    async fn secret(&mut self, wanted: Wanted<()>, memory: &mut ClusterMemory) {
        let cache = &self.context.owned.secrets;
        let name = match wanted {
            Wanted::Untouched => return,
            Wanted::Nowhere { name } => return self.remove::<Secret>(&name, cache, &SECRET).await,
            Wanted::Here(_) => shared::names::auth_secret(&self.cluster.name_any()),
        };
        let checked = memory.checked.get("auth secret").is_some_and(|(_, at)| self.now.duration_since(*at) < CONFLICT_RETRY);
        if checked || cache.get(Of::cluster(self.cluster).namespace, &name).is_some() {
            return;
        }
        match self.context.create(&secret::auth_token(self.cluster, &rand::random())).await {
            Ok(Created::New(_)) => {}
            Ok(Created::Exists) => {
                memory.checked.insert("auth secret", (0, self.now));
            }
            Err(error) => self.failed(SECRET.failed_to_create, "Create", "Secret", &name, error),
        }
    }

    fn foreign(&mut self, kind: &str, name: &str, reason: &'static str) {
        foreign(self.applied, kind, name, reason, self.now);
    }

    fn failed(&mut self, reason: &'static str, action: &'static str, kind: &str, name: &str, error: ApiError) {
        self.note(Note::warning(reason, action, error.to_string()).about(&format!("{kind} {name}")));
        self.applied.fail(error);
    }

    fn note(&mut self, note: Note) {
        self.applied.notes.push(note);
    }
}

fn is_ours(object: &impl Kept, uid: &str) -> bool {
    is_controlled_by(object.meta(), uid)
}

/// Tells that an object of somebody else has a name that the cluster needs. It is not touched, now or later.
pub(super) fn foreign(applied: &mut Applied, kind: &str, name: &str, reason: &'static str, now: Timestamp) {
    let message = format!("{kind} {name} exists and does not belong to this RayCluster; it was left as it is");
    applied.notes.push(Note::warning(reason, "Create", message.clone()).about(&format!("{kind} {name}")));
    applied.conflict.get_or_insert(Trouble { reason: "NameTaken".to_owned(), message });
    applied.wake_at(now.saturating_add(CONFLICT_RETRY).unwrap_or(now));
}

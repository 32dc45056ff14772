//! Rights: what a chart grants, what a program asks for, and the difference.
//!
//! A suite that runs a program under exactly the chart's roles: render the chart, [`install`] its roles, start the program with the
//! kubeconfig that this returns, work with it, and at the end compare: [`Audit::refused`] must be empty, and [`unused`] must hold
//! nothing without a reason.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncWriteExt;

use crate::chart::{Rendered, text};
use crate::server::Server;

/// One verb on one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// Where it holds; `None` for the whole cluster.
    pub namespace: Option<String>,
    /// API group; empty for the core group.
    pub group: String,
    /// Resource, with its subresource after a slash.
    pub resource: String,
    /// Name of the only object that it is about, if there is such a limit.
    pub name: Option<String>,
    /// Verb.
    pub verb: String,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { namespace, group, resource, name, verb } = self;
        write!(f, "{verb} {resource}{}{group}", if group.is_empty() { "" } else { "." })?;
        if let Some(name) = name {
            write!(f, " {name}")?;
        }
        if let Some(namespace) = namespace {
            write!(f, " in {namespace}")?;
        }
        Ok(())
    }
}

/// Everything that bindings among `objects` give to a service account.
pub fn granted(objects: &Rendered, namespace: &str, account: &str) -> BTreeSet<Permission> {
    let mut all = BTreeSet::new();
    for (binding, scope) in [("ClusterRoleBinding", None), ("RoleBinding", Some(()))] {
        for binding in objects.of_kind(binding) {
            let subjects = binding.pointer("/subjects").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let bound = |subject: &Value| {
                (text(subject, "/kind"), text(subject, "/namespace"), text(subject, "/name")) == ("ServiceAccount", namespace, account)
            };
            if !subjects.iter().any(bound) {
                continue;
            }
            let place = scope.map(|()| text(binding, "/metadata/namespace").to_owned());
            let (kind, name) = (text(binding, "/roleRef/kind"), text(binding, "/roleRef/name"));
            let role = objects.of_kind(kind).find(|role| {
                text(role, "/metadata/name") == name
                    && (kind == "ClusterRole" || place.as_deref() == Some(text(role, "/metadata/namespace")))
            });
            all.extend(role.into_iter().flat_map(|role| rules(role, place.as_deref())));
        }
    }
    all
}

/// The rules of a role taken apart, as they hold in a namespace or everywhere.
pub fn rules(role: &Value, namespace: Option<&str>) -> Vec<Permission> {
    let list = |rule: &Value, key: &str| -> Vec<String> {
        let values = rule.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        values.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut all = Vec::new();
    for rule in role.pointer("/rules").and_then(Value::as_array).into_iter().flatten() {
        let names = list(rule, "resourceNames");
        let names: Vec<Option<String>> = if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
        for group in list(rule, "apiGroups") {
            for resource in list(rule, "resources") {
                for verb in list(rule, "verbs") {
                    all.extend(names.iter().map(|name| Permission {
                        namespace: namespace.map(str::to_owned),
                        group: group.clone(),
                        resource: resource.clone(),
                        name: name.clone(),
                        verb: verb.clone(),
                    }));
                }
            }
        }
    }
    all
}

/// One request of a service account, as the API server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// What was asked. A missing namespace is the whole cluster, a missing name every object.
    pub permission: Permission,
    /// Whether the API server found it authorized.
    pub allowed: bool,
    /// HTTP code of the answer.
    pub code: u16,
}

/// Whether a right covers a request.
pub fn covers(granted: &Permission, asked: &Permission) -> bool {
    granted.verb == asked.verb
        && granted.group == asked.group
        && granted.resource == asked.resource
        && (granted.namespace.is_none() || granted.namespace == asked.namespace)
        && (granted.name.is_none() || granted.name == asked.name)
}

/// The rights that no request has used.
pub fn unused<'a>(granted: &'a BTreeSet<Permission>, asked: &[Asked]) -> Vec<&'a Permission> {
    granted.iter().filter(|right| !asked.iter().any(|asked| asked.allowed && covers(right, &asked.permission))).collect()
}

/// Applies the chart's service accounts, roles and bindings, as the administrator, and gives a kubeconfig of one of the accounts.
///
/// # Errors
/// When the API server refuses one of them, or there is no such account.
pub async fn install(server: &Server, objects: &Rendered, namespace: &str, account: &str) -> Result<PathBuf> {
    const KINDS: [&str; 5] = ["ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"];
    let rights = objects.objects().iter().filter(|object| KINDS.contains(&text(object, "/kind")));
    apply(server, rights).await?;
    server.instance().kubeconfig_for_service_account(namespace, account).await
}

/// Applies objects with kubectl as the administrator.
///
/// # Errors
/// What kubectl says.
pub async fn apply<'a>(server: &Server, objects: impl IntoIterator<Item = &'a Value>) -> Result<()> {
    let manifest: String = objects.into_iter().map(|object| format!("---\n{object}\n")).collect();
    let mut kubectl = server.instance().kubectl();
    kubectl.args(["apply", "--server-side", "--force-conflicts", "--filename=-"]);
    kubectl.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = kubectl.spawn().context("starting kubectl")?;
    child.stdin.take().context("no input")?.write_all(manifest.as_bytes()).await?;
    let output = child.wait_with_output().await?;
    if !output.status.success() {
        bail!("{}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The requests of one service account from now on, out of the API server's audit log.
pub struct Audit {
    log: PathBuf,
    begin: usize,
    user: String,
}

/// An audit event, as far as it matters.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    verb: String,
    user: User,
    #[serde(default)]
    object_ref: Option<ObjectRef>,
    #[serde(default)]
    response_status: Code,
    #[serde(default)]
    annotations: std::collections::BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Deserialize, Default)]
struct Code {
    #[serde(default)]
    code: u16,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct ObjectRef {
    resource: String,
    subresource: String,
    namespace: Option<String>,
    name: Option<String>,
    api_group: String,
}

impl Audit {
    /// Begins to listen.
    ///
    /// # Errors
    /// When there is no log.
    pub fn of(server: &Server, namespace: &str, account: &str) -> Result<Self> {
        let log = server.instance().dir().join("log/kube-apiserver.log");
        let begin = std::fs::metadata(&log).with_context(|| log.display().to_string())?.len();
        Ok(Self { log, begin: usize::try_from(begin)?, user: format!("system:serviceaccount:{namespace}:{account}") })
    }

    /// What the account has asked for so far. Requests for things that are not resources, such as versions, are left out: every
    /// account may make them.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn asked(&self) -> Result<Vec<Asked>> {
        let log = std::fs::read(&self.log)?;
        let log = String::from_utf8_lossy(log.get(self.begin..).unwrap_or_default()).into_owned();
        let events = log.lines().filter(|line| line.contains(&self.user)).filter_map(|line| serde_json::from_str::<Event>(line).ok());
        Ok(events.filter(|event| event.user.username == self.user).filter_map(Event::asked).collect())
    }

    /// Requests that the account had no right to.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn refused(&self) -> Result<Vec<Asked>> {
        Ok(self.asked()?.into_iter().filter(|asked| !asked.allowed).collect())
    }
}

impl Event {
    fn asked(self) -> Option<Asked> {
        let object = self.object_ref?;
        let resource = match object.subresource.as_str() {
            "" => object.resource,
            sub => format!("{}/{sub}", object.resource),
        };
        Some(Asked {
            permission: Permission { namespace: object.namespace, group: object.api_group, resource, name: object.name, verb: self.verb },
            allowed: self.annotations.get("authorization.k8s.io/decision").is_none_or(|decision| decision == "allow"),
            code: self.response_status.code,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECTS: &str = "
kind: Role
metadata: {name: r, namespace: a}
rules:
- {apiGroups: [''], resources: [secrets], resourceNames: [one, two], verbs: [get]}
---
kind: Role
metadata: {name: r, namespace: b}
rules:
- {apiGroups: [x], resources: [things/status], verbs: [patch]}
---
kind: RoleBinding
metadata: {name: r, namespace: b}
roleRef: {kind: Role, name: r}
subjects: [{kind: ServiceAccount, namespace: home, name: me}]
---
kind: ClusterRole
metadata: {name: r}
rules:
- {apiGroups: [''], resources: [pods], verbs: [get, list]}
---
kind: RoleBinding
metadata: {name: c, namespace: c}
roleRef: {kind: ClusterRole, name: r}
subjects: [{kind: ServiceAccount, namespace: home, name: me}]
---
kind: ClusterRoleBinding
metadata: {name: d}
roleRef: {kind: ClusterRole, name: r}
subjects: [{kind: ServiceAccount, namespace: home, name: other}]
";

    #[test]
    fn rights_follow_the_bindings() {
        let objects = Rendered::read(OBJECTS).unwrap();
        let shown = |account| granted(&objects, "home", account).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(shown("me"), ["patch things/status.x in b", "get pods in c", "list pods in c"]);
        assert_eq!(shown("other"), ["get pods", "list pods"]);
        assert!(shown("nobody").is_empty());
        let named: Vec<String> = rules(&objects.objects()[0], Some("a")).iter().map(ToString::to_string).collect();
        assert_eq!(named, ["get secrets one in a", "get secrets two in a"]);
    }

    #[test]
    fn a_right_covers_its_namespace_and_name_only() {
        let right = |namespace: Option<&str>, name: Option<&str>, verb: &str| Permission {
            namespace: namespace.map(str::to_owned),
            group: String::new(),
            resource: "pods".to_owned(),
            name: name.map(str::to_owned),
            verb: verb.to_owned(),
        };
        for (granted, asked, covered) in [
            (right(None, None, "get"), right(Some("a"), Some("x"), "get"), true),
            (right(Some("a"), None, "list"), right(Some("a"), None, "list"), true),
            (right(Some("a"), None, "list"), right(None, None, "list"), false),
            (right(Some("a"), None, "list"), right(Some("b"), None, "list"), false),
            (right(None, Some("x"), "get"), right(Some("a"), Some("y"), "get"), false),
            (right(None, None, "get"), right(None, None, "list"), false),
        ] {
            assert_eq!(covers(&granted, &asked), covered, "{granted} / {asked}");
        }
        let granted = BTreeSet::from([right(None, None, "get"), right(None, None, "list")]);
        let asked = |verb, allowed| Asked { permission: right(Some("a"), None, verb), allowed, code: 200 };
        let left = unused(&granted, &[asked("get", true), asked("list", false)]);
        assert_eq!(left.iter().map(ToString::to_string).collect::<Vec<_>>(), ["list pods"], "what was refused was not used");
    }
}

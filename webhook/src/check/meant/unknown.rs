//! What an unknown field was meant to be.

use serde_json::Value;
use shared::nearest::nearest;
use shared::schema::{Field, Schema, UnknownField};
use shared::validation::Kind;
use shared::yaml::Step;

use super::search::elsewhere;

/// Objects with at most this many fields are explained by listing them.
const SHORT_LIST: usize = 12;

/// The message for an unknown field.
pub(in crate::check) fn unknown(kind: Kind, schema: &'static Schema, field: &UnknownField<'_>) -> String {
    format!("unknown field; {}", remedy(kind, schema, field))
}

fn remedy(kind: Kind, schema: &'static Schema, field: &UnknownField<'_>) -> String {
    let UnknownField { path, name, value, parent } = field;
    let mut steps = Step::parse(path);
    steps.pop();
    let place = Place::of(*parent);
    if let Some(note) = note(place, name) {
        return note.to_owned();
    }
    if let Some(remark) = resources(place, name, value) {
        return remark;
    }
    let siblings = || parent.properties().map(|(known, _)| known);
    if let Some(meant) = siblings().find(|known| same_letters(known, name)) {
        return format!("did you mean {meant}?");
    }
    if let Some(inner) = needless_level(*parent, value) {
        return format!("leave this level out: its fields ({inner}) belong one level up");
    }
    let owner = owner_of(kind, name).filter(|_| matches!(place, Place::Spec(_)) || steps.is_empty());
    if let Some(path) = elsewhere(schema.root(), &steps, name) {
        return match owner {
            Some(owner) => format!("it is a field of a {owner}; in a {kind} it belongs in {path}{}", consequence(name)),
            None => format!("it belongs in {path}"),
        };
    }
    if let Some(meant) = nearest(name, siblings()) {
        return format!("did you mean {meant}?");
    }
    if let Some(owner) = owner {
        return format!("it is a field of a {owner}, and a {kind} has nothing like it");
    }
    let known: Vec<&str> = siblings().collect();
    match known.len() {
        0 => "no field is known here".to_owned(),
        1..=SHORT_LIST => format!("the fields here are {}", known.join(", ")),
        _ => "no field of this name is known".to_owned(),
    }
}

/// Which object has an unknown field, recognised by the fields it does have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    /// The spec of one of our kinds, also inside another.
    Spec(Kind),
    HeadGroup,
    WorkerGroup,
    Resources,
    /// `metadata` of a Pod template or another embedded object.
    InnerMetadata,
    Other,
}

impl Place {
    fn of(parent: Field<'_>) -> Self {
        let has = |name| parent.property(name).is_some();
        if has("headGroupSpec") {
            Place::Spec(Kind::RayCluster)
        } else if has("submissionMode") {
            Place::Spec(Kind::RayJob)
        } else if has("serveConfigV2") {
            Place::Spec(Kind::RayService)
        } else if has("schedule") && has("jobTemplate") {
            Place::Spec(Kind::RayCronJob)
        } else if has("rayStartParams") {
            if has("groupName") { Place::WorkerGroup } else { Place::HeadGroup }
        } else if has("limits") && has("requests") {
            Place::Resources
        } else if has("labels") && has("annotations") && has("finalizers") && !has("uid") {
            Place::InnerMetadata
        } else {
            Place::Other
        }
    }
}

/// Fields that were renamed, belong to another kind under another name, or that people expect to be there.
fn note(place: Place, name: &str) -> Option<&'static str> {
    use Kind::{RayCluster, RayCronJob, RayJob, RayService};
    Some(match (place, name) {
        (Place::Spec(RayService), "serveConfig" | "serveConfigs" | "serveDeploymentGraphSpec" | "serveDeploymentGraphConfig") => {
            "it belongs to an older API; its successor is serveConfigV2, a text that holds Serve's own YAML (`serveConfigV2: |`), without which no application is deployed"
        }
        (Place::Spec(RayService), "rayClusterSpec") => "a RayService has rayClusterConfig, with the same fields",
        (Place::Spec(RayService), "entrypoint" | "runtimeEnvYAML" | "submissionMode") => {
            "it is a field of a RayJob; a RayService runs the applications in serveConfigV2, each with an import_path and a runtime_env"
        }
        (Place::Spec(RayJob), "rayClusterConfig") => "a RayJob has rayClusterSpec, with the same fields",
        (Place::Spec(RayJob), "runtimeEnv") => {
            "it belongs to an older API; its successor is runtimeEnvYAML, a text that holds YAML (not base64), without which the job runs in the bare image"
        }
        (Place::Spec(RayJob), "deletionPolicy") => "it belongs to an older API; its successor is deletionStrategy.deletionRules",
        (Place::Spec(RayJob), "serveConfigV2") => "it is a field of a RayService; a RayJob runs the command in entrypoint",
        (
            Place::Spec(RayJob),
            "template" | "containers" | "completions" | "parallelism" | "completionMode" | "podFailurePolicy" | "restartPolicy",
        ) => {
            "it is a field of a batch/v1 Job; a RayJob has a command (entrypoint) and a cluster (rayClusterSpec), and the submitter's Pod is submitterPodTemplate"
        }
        (Place::Spec(RayJob), "spec") => "leave this level out: the fields of a job belong one level up",
        (Place::Spec(RayCronJob), "concurrencyPolicies") => "did you mean concurrencyPolicy?",
        (Place::Spec(RayCluster), "head" | "headGroup" | "headSpec") => "did you mean headGroupSpec?",
        (Place::Spec(RayCluster), "worker" | "workers" | "workerGroups" | "workerGroup" | "workerGroupSpec") => {
            "did you mean workerGroupSpecs (a list)?"
        }
        (Place::HeadGroup, "replicas" | "minReplicas" | "maxReplicas" | "numOfHosts" | "scaleStrategy" | "suspend") => {
            "a cluster has exactly one head: remove it"
        }
        (
            Place::InnerMetadata,
            "creationTimestamp" | "generateName" | "uid" | "resourceVersion" | "generation" | "ownerReferences" | "managedFields"
            | "selfLink",
        ) => "the metadata of a template has only name, namespace, labels, annotations and finalizers: remove it",
        (Place::WorkerGroup, "name" | "group") => "did you mean groupName?",
        (Place::HeadGroup, "groupName") => "the head's group has a fixed name: remove it",
        (Place::HeadGroup, "service" | "headServiceAnnotations") => {
            "the head's Service is described by headService, its annotations by headServiceAnnotations of the cluster"
        }
        _ => return None,
    })
}

/// `resources: {cpu: 1}`.
fn resources(place: Place, name: &str, value: &Value) -> Option<String> {
    if place != Place::Resources {
        return None;
    }
    let shown = match value {
        Value::String(text) => format!("{text:?}"),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let entry = if name.contains('/') { format!("{name:?}") } else { name.to_owned() };
    let compute = matches!(name, "cpu" | "memory" | "ephemeral-storage");
    let place = if compute { "requests and limits" } else { "limits" };
    Some(format!("amounts belong in {place}: `limits: {{{entry}: {shown}}}`"))
}

fn same_letters(one: &str, other: &str) -> bool {
    let letters = |text: &str| text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect::<String>();
    letters(one) == letters(other)
}

/// The fields of a mapping that would all be known one level up.
fn needless_level(parent: Field<'_>, value: &Value) -> Option<String> {
    let map = value.as_object().filter(|map| !map.is_empty())?;
    if !map.keys().all(|key| parent.property(key).is_some()) {
        return None;
    }
    Some(map.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
}

/// The other kind whose spec has this field at its top.
fn owner_of(kind: Kind, name: &str) -> Option<Kind> {
    let has = |other: &Kind| {
        Schema::of(*other, "v1").and_then(|schema| schema.root().property("spec")).is_some_and(|spec| spec.property(name).is_some())
    };
    Kind::ALL.into_iter().filter(|other| *other != kind).find(has)
}

fn consequence(name: &str) -> &'static str {
    match name {
        "workerGroupSpecs" => "; without it the cluster has no workers",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(kind: Kind, spec: &Value) -> Vec<(String, String)> {
        let schema = Schema::of(kind, "v1").unwrap();
        let mut object = json!({"apiVersion": "ray.io/v1", "kind": kind.as_str(), "metadata": {"name": "a"}});
        for (key, value) in spec.as_object().unwrap() {
            object[key] = value.clone();
        }
        schema.settle(&mut object).iter().map(|field| (field.path.clone(), remedy(kind, schema, field))).collect()
    }

    #[test]
    fn each_kind_of_slip_gets_the_right_place() {
        use Kind::{RayCluster, RayCronJob, RayJob, RayService};
        let container = |extra: Value| json!({"spec": {"headGroupSpec": {"template": {"spec": {"containers": [extra]}}}}});
        let table = [
            (RayService, json!({"spec": {"serveConfig": {}}}), "spec.serveConfig", "serveConfigV2"),
            (RayJob, json!({"spec": {"runtimeEnv": "x"}}), "spec.runtimeEnv", "runtimeEnvYAML"),
            (
                RayCluster,
                container(json!({"resources": {"cpu": "1"}})),
                "spec.headGroupSpec.template.spec.containers[0].resources.cpu",
                "`limits: {cpu: \"1\"}`",
            ),
            (
                RayCluster,
                container(json!({"resources": {"nvidia.com/gpu": 1}})),
                "spec.headGroupSpec.template.spec.containers[0].resources[nvidia.com/gpu]",
                "`limits: {\"nvidia.com/gpu\": 1}`",
            ),
            (RayCluster, json!({"spec": {"headGroupSpec": {"replicas": 1}}}), "spec.headGroupSpec.replicas", "exactly one head"),
            (
                RayCluster,
                json!({"spec": {"headGroupSpec": {"serviceAccountName": "x"}}}),
                "spec.headGroupSpec.serviceAccountName",
                "it belongs in spec.headGroupSpec.template.spec.serviceAccountName",
            ),
            (
                RayCluster,
                json!({"spec": {"workerGroupSpecs": [{"groupname": "x"}]}}),
                "spec.workerGroupSpecs[0].groupname",
                "did you mean groupName?",
            ),
            (
                RayCluster,
                json!({"spec": {"workerGroupSpecs": [{"minReplica": 1}]}}),
                "spec.workerGroupSpecs[0].minReplica",
                "did you mean minReplicas?",
            ),
            (
                RayCluster,
                json!({"spec": {"workerGroupSpecs": [{"name": "x"}]}}),
                "spec.workerGroupSpecs[0].name",
                "did you mean groupName?",
            ),
            (
                RayCluster,
                json!({"spec": {"headGroupSpec": {"image": "x"}}}),
                "spec.headGroupSpec.image",
                "it belongs in spec.headGroupSpec.template.spec.containers[].image",
            ),
            (
                RayCluster,
                json!({"spec": {"spec": {"rayVersion": "2.52.0"}}}),
                "spec.spec",
                "leave this level out: its fields (rayVersion) belong one level up",
            ),
            (RayCluster, json!({"rayVersion": "2.52.0"}), "rayVersion", "it belongs in spec.rayVersion"),
            (RayCluster, json!({"spec": {"nonsense": 1}}), "spec.nonsense", "no field of this name is known"),
            (
                RayJob,
                json!({"spec": {"workerGroupSpecs": []}}),
                "spec.workerGroupSpecs",
                "it is a field of a RayCluster; in a RayJob it belongs in spec.rayClusterSpec.workerGroupSpecs; without it the cluster has no workers",
            ),
            (RayService, json!({"spec": {"rayClusterSpec": {}}}), "spec.rayClusterSpec", "rayClusterConfig"),
            (RayService, json!({"spec": {"entrypoint": "x"}}), "spec.entrypoint", "a field of a RayJob"),
            (RayJob, json!({"spec": {"template": {}}}), "spec.template", "batch/v1 Job"),
            (
                RayService,
                json!({"spec": {"rayClusterConfig": {"headService": {}}}}),
                "spec.rayClusterConfig.headService",
                "it belongs in spec.rayClusterConfig.headGroupSpec.headService",
            ),
            (RayCronJob, json!({"spec": {"jobTemplate": {"spec": {"entrypoint": "x"}}}}), "spec.jobTemplate.spec", "one level up"),
            (
                RayCronJob,
                json!({"spec": {"entrypoint": "x"}}),
                "spec.entrypoint",
                "in a RayCronJob it belongs in spec.jobTemplate.entrypoint",
            ),
            (
                RayJob,
                json!({"spec": {"schedule": "* * * * *"}}),
                "spec.schedule",
                "it is a field of a RayCronJob, and a RayJob has nothing like it",
            ),
            (
                RayCluster,
                json!({"spec": {"headGroupSpec": {"template": {"metadata": {"creationTimestamp": null}}}}}),
                "spec.headGroupSpec.template.metadata.creationTimestamp",
                "remove it",
            ),
            (RayCluster, json!({"metadata": {"label": {}}}), "metadata.label", "did you mean labels?"),
            (
                RayCluster,
                json!({"spec": {"upgradeStrategy": {"nonsense": 1}}}),
                "spec.upgradeStrategy.nonsense",
                "the fields here are type",
            ),
        ];
        for (kind, object, path, words) in table {
            let told = told(kind, &object);
            let [(told_path, remedy)] = told.as_slice() else { panic!("{kind} {path}: {told:?}") };
            assert_eq!(told_path, path);
            assert!(remedy.contains(words), "{kind} {path}: {remedy}");
        }
    }
}

//! What Kubernetes adds to the schemas of its own types and k8s-openapi leaves out: keys of lists, atomic maps, defaults, bounds.
//!
//! Without list keys a second applier of a Pod template would replace whole lists; without the defaults a manifest that
//! KubeRay's definitions accept would be refused.

use serde_json::{Map, Value, json};

use super::{clean, for_each_child};

/// Fields of our types whose value is a Kubernetes type.
const ENTRIES: &[&str] = &[
    "template",
    "submitterPodTemplate",
    "headService",
    "serveService",
    "env",
    "envFrom",
    "volumeMounts",
    "securityContext",
    "resources",
    "tls",
    "valueFrom",
    "ingressRules",
    "egressRules",
];

/// Metadata of an embedded object that is kept; everything else is set by the API server, never by a template.
const METADATA: &[&str] = &["annotations", "finalizers", "labels", "name", "namespace"];

/// Lists whose items have keys.
const LIST_KEYS: &[(&str, &[&str])] = &[
    ("claims", &["name"]),
    ("conditions", &["type"]),
    ("containers", &["name"]),
    ("env", &["name"]),
    ("ephemeralContainers", &["name"]),
    ("hostAliases", &["ip"]),
    ("imagePullSecrets", &["name"]),
    ("initContainers", &["name"]),
    ("resourceClaims", &["name"]),
    ("schedulingGates", &["name"]),
    ("topologySpreadConstraints", &["topologyKey", "whenUnsatisfiable"]),
    ("volumeDevices", &["devicePath"]),
    ("volumeMounts", &["mountPath"]),
    ("volumes", &["name"]),
];

/// Objects that are replaced as a whole, by the name of their field or, for items, of their list.
const ATOMIC_OBJECTS: &[&str] = &[
    "configMap",
    "configMapKeyRef",
    "configMapRef",
    "dataSource",
    "fieldRef",
    "fileKeyRef",
    "labelSelector",
    "namespaceSelector",
    "nodePublishSecretRef",
    "nodeSelector",
    "podSelector",
    "preference",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "resourceFieldRef",
    "secretKeyRef",
    "secretRef",
    "selector",
];
const ATOMIC_ITEMS: &[&str] = &["imagePullSecrets", "nodeSelectorTerms"];

/// References whose `name` may be left out.
const REFERENCES: &[&str] =
    &["configMap", "configMapKeyRef", "configMapRef", "nodePublishSecretRef", "secret", "secretKeyRef", "secretRef"];

/// Quantities: values of these maps, and these fields.
const QUANTITY_MAPS: &[&str] = &["limits", "requests", "overhead"];
const QUANTITIES: &[&str] = &["divisor", "sizeLimit"];

/// Defaults of fields, by the object that has them.
fn defaults(object: &str) -> &'static [(&'static str, &'static str)] {
    match object {
        "azureDisk" => &[("fsType", "ext4")],
        "scaleIO" => &[("fsType", "xfs"), ("storageMode", "ThinProvisioned")],
        "iscsi" => &[("iscsiInterface", "default")],
        "rbd" => &[("keyring", "/etc/ceph/keyring"), ("pool", "rbd"), ("user", "admin")],
        "grpc" => &[("service", "")],
        _ => &[],
    }
}

const QUALIFIED_NAME: &str =
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Whether a field of our types has a Kubernetes type.
pub(super) fn is_entry(name: &str) -> bool {
    ENTRIES.contains(&name)
}

/// Finishes the schema of a Kubernetes type. The description of the field itself is ours and stays.
pub(super) fn entry(schema: &mut Map<String, Value>) {
    let description = schema.remove("description");
    inside(schema, "");
    // A Service in a spec is a pattern for one: its name may be left to the operator, and with it the whole metadata.
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != "metadata");
    }
    if schema.get("required").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        schema.remove("required");
    }
    if let Some(items) = schema.get_mut("items").and_then(Value::as_object_mut) {
        inside(items, "");
    }
    if let Some(description) = description {
        schema.insert("description".into(), description);
    }
}

/// Finishes a list of conditions, with the bounds of `metav1.Condition`.
pub(super) fn conditions(schema: &mut Map<String, Value>) {
    schema.insert("x-kubernetes-list-type".into(), "map".into());
    schema.insert("x-kubernetes-list-map-keys".into(), json!(["type"]));
    let Some(items) = schema.get_mut("items").and_then(Value::as_object_mut) else { return };
    items.remove("description");
    for_each_child(items, |child, name| {
        let Some(field) = child.as_object_mut() else { return };
        field.remove("description");
        let bounds = match name {
            "message" => json!({"maxLength": 32768}),
            "observedGeneration" => json!({"minimum": 0}),
            "reason" => json!({"maxLength": 1024, "minLength": 1, "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"}),
            "status" => json!({"enum": ["True", "False", "Unknown"]}),
            "type" => json!({"maxLength": 316, "pattern": QUALIFIED_NAME}),
            _ => return,
        };
        field.extend(bounds.as_object().cloned().unwrap_or_default());
    });
}

/// Finishes a quantity.
pub(super) fn quantity(schema: &mut Map<String, Value>) {
    schema.insert("pattern".into(), QUANTITY.into());
}

/// Finishes everything inside a Kubernetes type; `name` is the field that holds `schema`.
fn inside(schema: &mut Map<String, Value>, name: &str) {
    clean(schema, "");
    schema.remove("description");
    if name == "metadata" {
        slim_metadata(schema);
    }
    if QUANTITIES.contains(&name) {
        quantity(schema);
    }
    if QUANTITY_MAPS.contains(&name)
        && let Some(values) = schema.get_mut("additionalProperties").and_then(Value::as_object_mut)
    {
        quantity(values);
    }
    if schema.get("type").and_then(Value::as_str) == Some("array") {
        list(schema, name);
    } else if is_atomic_object(schema, name) {
        schema.insert("x-kubernetes-map-type".into(), "atomic".into());
    }
    let mut given: Vec<(&str, Value)> = defaults(name).iter().map(|(field, value)| (*field, json!(value))).collect();
    if name == "azureDisk" {
        given.push(("readOnly", json!(false)));
    }
    if name == "fileKeyRef" {
        given.push(("optional", json!(false)));
    }
    if REFERENCES.contains(&name) {
        given.push(("name", json!("")));
    }
    for (field, value) in given {
        default(schema, field, value);
    }
    if name == "error" {
        schema.insert("pattern".into(), QUALIFIED_NAME.into());
        schema.insert("maxLength".into(), 316.into());
    }
    for_each_child(schema, |child, child_name| {
        let Some(child) = child.as_object_mut() else { return };
        match (name, child_name) {
            ("status", "conditions") => conditions(child),
            _ => inside(child, child_name),
        }
    });
}

fn is_atomic_object(schema: &Map<String, Value>, name: &str) -> bool {
    let projected_secret = name == "secret" && schema.get("properties").is_some_and(|properties| properties.get("name").is_some());
    ATOMIC_OBJECTS.contains(&name) || projected_secret
}

fn list(schema: &mut Map<String, Value>, name: &str) {
    let item_has = |field: &str| schema.get("items").and_then(|items| items.pointer(&format!("/properties/{field}"))).is_some();
    let keys: Option<&[&str]> = match name {
        "ports" if item_has("containerPort") => Some(&["containerPort", "protocol"]),
        "ports" if item_has("targetPort") => Some(&["port", "protocol"]),
        _ => LIST_KEYS.iter().find(|(list, _)| *list == name).map(|(_, keys)| *keys),
    };
    let kind = match (name, keys) {
        ("" | "finalizers", _) => return,
        (_, Some(_)) => "map",
        // Exit codes of a container restart rule are the one set among Kubernetes' lists of values.
        ("values", None) if schema.get("items").and_then(|items| items.get("format")).is_some() => "set",
        _ => "atomic",
    };
    schema.insert("x-kubernetes-list-type".into(), kind.into());
    if let Some(keys) = keys {
        schema.insert("x-kubernetes-list-map-keys".into(), json!(keys));
    }
    let Some(items) = schema.get_mut("items").and_then(Value::as_object_mut) else { return };
    if keys.is_some_and(|keys| keys.contains(&"protocol")) {
        // A key must be required or have a default, or the API server refuses the definition.
        default(items, "protocol", json!("TCP"));
    }
    if name == "imagePullSecrets" {
        default(items, "name", json!(""));
    }
    if ATOMIC_ITEMS.contains(&name) {
        items.insert("x-kubernetes-map-type".into(), "atomic".into());
    }
}

/// Gives `field` a default and lifts its requirement.
fn default(schema: &mut Map<String, Value>, field: &str, value: Value) {
    let Some(property) = schema.get_mut("properties").and_then(|properties| properties.get_mut(field)).and_then(Value::as_object_mut)
    else {
        return;
    };
    property.insert("default".into(), value);
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != field);
        if required.is_empty() {
            schema.remove("required");
        }
    }
}

fn slim_metadata(schema: &mut Map<String, Value>) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| METADATA.contains(&name.as_str()));
        for (_, property) in properties.iter_mut() {
            if let Some(property) = property.as_object_mut() {
                property.remove("description");
            }
        }
    }
    schema.remove("required");
}

//! Objects as the API server would give them back, so that what it fills in is no difference.

use serde_json::{Map, Value, json};

/// The object with the API server's defaults, without what only the API server knows, empty values left out on both sides.
pub(crate) fn normal(kind: &str, object: &Value) -> Value {
    let mut object = object.clone();
    for key in ["apiVersion", "kind", "status"] {
        object.as_object_mut().unwrap().remove(key);
    }
    metadata(kind, &mut object["metadata"]);
    match kind {
        "Pod" => pod_spec(&mut object["spec"]),
        "Service" => service_spec(&mut object["spec"]),
        "PersistentVolumeClaim" => default(&mut object["spec"], "volumeMode", json!("Filesystem")),
        "Secret" => secret(&mut object),
        _ => {}
    }
    clean(&mut object);
    object
}

fn metadata(kind: &str, metadata: &mut Value) {
    let metadata = metadata.as_object_mut().unwrap();
    metadata.remove("namespace");
    if metadata.contains_key("generateName") {
        metadata.remove("name");
    }
    for owner in metadata.get_mut("ownerReferences").and_then(Value::as_array_mut).into_iter().flatten() {
        owner.as_object_mut().unwrap().remove("uid");
    }
    if kind == "PersistentVolumeClaim" {
        metadata.insert("finalizers".to_owned(), json!(["kubernetes.io/pvc-protection"]));
    }
}

fn pod_spec(spec: &mut Value) {
    default(spec, "dnsPolicy", json!("ClusterFirst"));
    default(spec, "restartPolicy", json!("Always"));
    default(spec, "schedulerName", json!("default-scheduler"));
    default(spec, "securityContext", json!({}));
    default(spec, "terminationGracePeriodSeconds", json!(30));
    default(spec, "serviceAccountName", json!("default"));
    default(spec, "priority", json!(0));
    for volume in items(spec, "volumes") {
        for (source, mode) in [("configMap", 420), ("secret", 420), ("projected", 420), ("downwardAPI", 420)] {
            if volume[source].is_object() {
                default(&mut volume[source], "defaultMode", json!(mode));
            }
        }
        for source in items(&mut volume["projected"], "sources") {
            if source["serviceAccountToken"].is_object() {
                default(&mut source["serviceAccountToken"], "expirationSeconds", json!(3600));
            }
        }
    }
    for list in ["containers", "initContainers"] {
        for container in items(spec, list) {
            self::container(container);
        }
    }
}

fn container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let tag = image.rsplit_once('/').map_or(image, |(_, last)| last).split_once(':').map_or("latest", |(_, tag)| tag);
    let policy = if tag == "latest" { "Always" } else { "IfNotPresent" };
    default(container, "imagePullPolicy", json!(policy));
    for port in items(container, "ports") {
        default(port, "protocol", json!("TCP"));
    }
    for variable in items(container, "env") {
        if variable["valueFrom"]["fieldRef"].is_object() {
            default(&mut variable["valueFrom"]["fieldRef"], "apiVersion", json!("v1"));
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if container[probe].is_object() {
            let probe = &mut container[probe];
            for (key, value) in [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)] {
                default(probe, key, json!(value));
            }
            if probe["httpGet"].is_object() {
                default(&mut probe["httpGet"], "scheme", json!("HTTP"));
            }
        }
    }
    let limits = container["resources"]["limits"].as_object().cloned().unwrap_or_default();
    if !limits.is_empty() {
        default(&mut container["resources"], "requests", json!({}));
        for (name, limit) in limits {
            default(&mut container["resources"]["requests"], &name, limit);
        }
    }
}

fn service_spec(spec: &mut Value) {
    default(spec, "type", json!("ClusterIP"));
    if spec["type"] == "LoadBalancer" {
        default(spec, "allocateLoadBalancerNodePorts", json!(true));
    }
    if spec["type"] != "ClusterIP" {
        default(spec, "externalTrafficPolicy", json!("Cluster"));
    }
    for port in items(spec, "ports") {
        default(port, "protocol", json!("TCP"));
        let number = port["port"].clone();
        default(port, "targetPort", number);
        // Given by the API server.
        port.as_object_mut().unwrap().remove("nodePort");
    }
    // KubeRay puts its ports behind those of a user's Service in the order of a Go map, which is another one each time.
    if let Some(ports) = spec.get_mut("ports").and_then(Value::as_array_mut) {
        ports.sort_by_key(|port| port["name"].as_str().unwrap_or_default().to_owned());
    }
}

/// The API server stores texts encoded; the record shows the text.
fn secret(object: &mut Value) {
    let object = object.as_object_mut().unwrap();
    if let Some(data) = object.remove("data") {
        object.insert("stringData".to_owned(), data);
    }
    object.entry("type").or_insert_with(|| json!("Opaque"));
}

fn default(object: &mut Value, key: &str, value: Value) {
    if !object.is_object() {
        *object = json!({});
    }
    let object = object.as_object_mut().unwrap();
    if object.get(key).is_none_or(Value::is_null) {
        object.insert(key.to_owned(), value);
    }
}

fn items<'a>(object: &'a mut Value, key: &str) -> impl Iterator<Item = &'a mut Value> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

/// Leaves out what Go leaves out, and writes quantities one way.
fn clean(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                if matches!(key.as_str(), "limits" | "requests") {
                    canonical(field.as_object_mut());
                } else if key == "sizeLimit" {
                    *field = quantity(field);
                }
                clean(field);
            }
            fields.retain(|key, field| key == "emptyDir" || !is_empty(field));
        }
        Value::Array(items) => items.iter_mut().for_each(clean),
        _ => {}
    }
}

fn canonical(resources: Option<&mut Map<String, Value>>) {
    for amount in resources.into_iter().flat_map(Map::values_mut) {
        *amount = quantity(amount);
    }
}

fn quantity(value: &Value) -> Value {
    shared::quantity::Quantity::of_json(value).map_or_else(|| value.clone(), |amount| json!(amount.to_string()))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        _ => false,
    }
}

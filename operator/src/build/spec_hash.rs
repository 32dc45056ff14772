//! The hash that tells whether running Pods were made from another spec (RC-156, RC-157).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Service;
use kube::core::ObjectMeta;
use serde_json::Value;
use sha1::{Digest, Sha1};
use shared::api::RayClusterSpec;

use super::resources::hosts_per_replica;

/// Hash of everything in the spec that running Pods cannot take on: 32 characters of base 32 (`0`-`9`, `A`-`V`), as KubeRay writes
/// them, but with a value of our own.
///
/// It is the SHA-1 of the spec as compact JSON with sorted keys and without empty fields, so neither the order of fields in the
/// source nor in the object counts, and absent, empty and unknown to this version are all the same. Left out is what is applied in place or
/// concerns no running Pod: numbers of replicas, `scaleStrategy`, `suspend`, `upgradeStrategy`, `managedBy`, tolerations and
/// scheduling gates, the Services and the Ingress (but the head Service's name counts, since workers are told it), network
/// policies, and what the autoscaler reads from the RayCluster by itself.
pub fn spec_hash(spec: &RayClusterSpec) -> String {
    let mut text = String::new();
    // Numbers, strings, lists and string-keyed maps always serialize.
    write_canonical(&serde_json::to_value(reduced(spec)).unwrap_or_default(), &mut text);
    base32_hex(&Sha1::digest(text.as_bytes()))
}

fn reduced(spec: &RayClusterSpec) -> RayClusterSpec {
    let mut spec = spec.clone();
    spec.upgrade_strategy = None;
    spec.suspend = None;
    spec.managed_by = None;
    spec.head_service_annotations = None;
    spec.network_policy = None;
    if let Some(options) = &mut spec.autoscaler_options {
        (options.idle_timeout_seconds, options.upscaling_mode) = (None, None);
    }
    let head = &mut spec.head_group_spec;
    (head.service_type, head.enable_ingress, head.ingress_options) = (None, None, None);
    let service_name = head.head_service.take().and_then(|service| service.metadata.name).filter(|name| !name.is_empty());
    head.head_service =
        service_name.map(|name| Service { metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() }, ..Service::default() });
    let groups = spec.worker_group_specs.iter_mut().flatten();
    let templates = groups.map(|group| {
        (group.replicas, group.min_replicas, group.max_replicas) = (None, None, None);
        (group.scale_strategy, group.suspend, group.idle_timeout_seconds, group.priority) = (None, None, None, None);
        // Absent is what the API server fills in, and an API server that learns to do so must restart nothing.
        group.num_of_hosts = Some(hosts_per_replica(group));
        &mut group.template
    });
    for template in templates.chain([&mut head.template]) {
        if let Some(pod) = &mut template.spec {
            (pod.tolerations, pod.scheduling_gates) = (None, None);
        }
    }
    spec
}

/// Writes a value unless it is empty; tells whether it did.
fn write_canonical(value: &Value, text: &mut String) -> bool {
    let start = text.len();
    let mut filled = false;
    match value {
        Value::Null => return false,
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, &Value> = fields.iter().collect();
            text.push('{');
            for (key, value) in sorted {
                let before = text.len();
                text.push_str(if filled { "," } else { "" });
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                if write_canonical(value, text) {
                    filled = true;
                } else {
                    text.truncate(before);
                }
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for item in items {
                text.push_str(if filled { "," } else { "" });
                // An empty item still holds its place.
                if !write_canonical(item, text) {
                    text.push_str("{}");
                }
                filled = true;
            }
            text.push(']');
        }
        scalar => {
            filled = true;
            text.push_str(&scalar.to_string());
        }
    }
    if !filled {
        text.truncate(start);
    }
    filled
}

/// Five bits a character; 20 bytes make 32 characters without padding.
fn base32_hex(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHIJKLMNOPQRSTUV";
    let mut text = String::new();
    let (mut buffer, mut bits) = (0_usize, 0_u32);
    for byte in bytes {
        (buffer, bits) = ((buffer << 8) | usize::from(*byte), bits + 8);
        while bits >= 5 {
            bits -= 5;
            text.extend(ALPHABET.get((buffer >> bits) & 31).map(|letter| char::from(*letter)));
        }
        buffer &= (1 << bits) - 1;
    }
    text
}

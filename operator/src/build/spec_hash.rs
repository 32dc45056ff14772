//! The hash that tells whether running Pods were made from another spec (RC-156, RC-157).

use serde_json::Value;
use sha1::{Digest, Sha1};
use shared::api::RayClusterSpec;

/// Hash of everything in the spec that running Pods cannot take on: 32 characters of base 32 (`0`-`9`, `A`-`V`), as KubeRay writes
/// them, but with a value of our own.
///
/// It is the SHA-1 of the spec as compact JSON with sorted keys, so neither the order of fields in the source nor in the object
/// counts, and an absent field is the same as a field that this version does not know. Left out is what is applied in place or
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
    if let Some(service) = &mut head.head_service {
        let name = service.metadata.name.take();
        *service = Default::default();
        service.metadata.name = name;
    }
    head.head_service = head.head_service.take().filter(|service| service.metadata.name.as_deref().is_some_and(|name| !name.is_empty()));
    let groups = spec.worker_group_specs.iter_mut().flatten();
    let templates = groups.map(|group| {
        (group.replicas, group.min_replicas, group.max_replicas) = (None, None, None);
        (group.scale_strategy, group.suspend, group.idle_timeout_seconds, group.priority) = (None, None, None, None);
        if group.ray_start_params.as_ref().is_some_and(std::collections::BTreeMap::is_empty) {
            group.ray_start_params = None;
        }
        &mut group.template
    });
    for template in templates.chain([&mut head.template]) {
        if let Some(pod) = &mut template.spec {
            (pod.tolerations, pod.scheduling_gates) = (None, None);
        }
    }
    if head.ray_start_params.as_ref().is_some_and(std::collections::BTreeMap::is_empty) {
        head.ray_start_params = None;
    }
    spec
}

fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().filter(|(_, value)| !value.is_null()).collect();
            sorted.sort_by_key(|(key, _)| key.as_str());
            text.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(key.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        scalar => text.push_str(&scalar.to_string()),
    }
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

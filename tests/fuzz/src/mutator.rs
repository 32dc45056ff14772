//! Varies JSON by its structure and along the schema: random bytes hardly ever give an object.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::{Map, Value, json};
use shared::schema::{Field, Schema, ValueType};
use shared::validation::Kind;

/// Texts that mean something to some rule.
const TEXTS: &[&str] = &[
    "",
    "a",
    "headgroup",
    "redis",
    "rocksdb",
    "token",
    "v1",
    "v2",
    "true",
    "1",
    "-1",
    "0.5",
    "500m",
    "9Gi",
    "1e3",
    "Always",
    "Never",
    "OnFailure",
    "Recreate",
    "None",
    "NewCluster",
    "NewClusterWithIncrementalUpgrade",
    "K8sJobMode",
    "HTTPMode",
    "InteractiveMode",
    "SidecarMode",
    "DeleteCluster",
    "DeleteWorkers",
    "DeleteSelf",
    "DeleteNone",
    "SUCCEEDED",
    "FAILED",
    "Waiting",
    "Running",
    "Suspended",
    "Complete",
    "rayproject/ray:2.53.0",
    "ray@sha256:0",
    "2.53.0",
    "nightly",
    "applications: [{name: a, route_prefix: /}]",
    "a: [",
    "- b",
    "*/5 * * * *",
    "@every 10s",
    "0 0 30 2 *",
    "CRON_TZ=UTC @daily",
    "UTC",
    "Local",
    "ray.io/kuberay-operator",
    "kueue.x-k8s.io/multikueue",
    "{\"x\": 1}",
    "é\u{202e}\0",
];
/// Keys of maps.
const KEYS: &[&str] = &[
    "ray.io/cluster",
    "ray.io/ft-enabled",
    "ray.io/overwrite-container-cmd",
    "num-cpus",
    "num-gpus",
    "memory",
    "resources",
    "labels",
    "cpu",
    "nvidia.com/gpu",
    "kubectl.kubernetes.io/last-applied-configuration",
    "a/b~c",
    "",
    "é",
];
const MAX_DEPTH: u32 = 6;

/// Varies an input of a target for objects of `kind`, or of the target for reviews. Returns its new size.
pub fn mutate(kind: Option<Kind>, data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    let mut dice = Dice(u64::from(seed));
    let parsed = data.get(..size).and_then(|bytes| serde_json::from_slice::<Value>(bytes).ok());
    let Some(mut value) = parsed.filter(|_| dice.below(8) > 0) else { return fuzzer_mutate(data, size, max_size) };
    for _ in 0..=dice.below(3) {
        match kind {
            Some(kind) => vary_object(kind, &mut value, &mut dice),
            None => vary_review(&mut value, &mut dice),
        }
    }
    let bytes = value.to_string().into_bytes();
    match data.get_mut(..bytes.len()).filter(|_| bytes.len() <= max_size) {
        Some(place) => {
            place.copy_from_slice(&bytes);
            bytes.len()
        }
        None => fuzzer_mutate(data, size, max_size),
    }
}

fn vary_object(kind: Kind, value: &mut Value, dice: &mut Dice) {
    let root = Schema::of(kind, "v1").map(Schema::root);
    match value {
        Value::Array(pair) if pair.len() == 2 => {
            let index = dice.below(2);
            match dice.below(12) {
                0 => *value = pair[index].take(),
                1 => pair.swap(0, 1),
                2 => pair[index] = pair[1 - index].clone(),
                _ => vary(&mut pair[index], root, dice),
            }
        }
        _ if dice.below(24) == 0 => *value = json!([value.clone(), value.clone()]),
        _ => vary(value, root, dice),
    }
}

fn vary_review(value: &mut Value, dice: &mut Dice) {
    let kind = value.pointer("/request/kind/kind").and_then(Value::as_str).and_then(|kind| kind.parse::<Kind>().ok());
    let place = ["/request/object", "/request/oldObject", "/request"][dice.below(3)];
    let root = kind.filter(|_| place != "/request").and_then(|kind| Schema::of(kind, "v1")).map(Schema::root);
    let place = if dice.below(8) > 0 && value.pointer(place).is_some() { place } else { "" };
    if let Some(part) = value.pointer_mut(place) {
        vary(part, root.filter(|_| !place.is_empty()), dice);
    }
}

/// Changes something at or below `value`, which is described by `field`.
fn vary(value: &mut Value, field: Option<Field<'_>>, dice: &mut Dice) {
    let deeper = dice.below(5) > 0;
    match value {
        Value::Object(map) if deeper && !map.is_empty() => {
            let index = dice.below(map.len());
            if let Some((key, inner)) = map.iter_mut().nth(index) {
                let field = field.and_then(|field| field.property(key).or_else(|| field.values()));
                vary(inner, field, dice);
            }
        }
        Value::Array(list) if deeper && !list.is_empty() => {
            let index = dice.below(list.len());
            vary(&mut list[index], field.and_then(Field::items), dice);
        }
        Value::Object(map) if dice.below(6) > 0 => vary_map(map, field, dice),
        Value::Array(list) if dice.below(4) > 0 => vary_list(list, field.and_then(Field::items), dice),
        _ if dice.below(3) == 0 => *value = oddity(dice),
        _ => *value = shaped(field, dice, 0),
    }
}

fn vary_map(map: &mut Map<String, Value>, field: Option<Field<'_>>, dice: &mut Dice) {
    let some_key = |map: &Map<String, Value>, dice: &mut Dice| map.keys().nth(dice.below(map.len().max(1))).cloned();
    match dice.below(4) {
        0 => drop(some_key(map, dice).and_then(|key| map.remove(&key))),
        1 => {
            // A value under another name.
            if let Some(value) = some_key(map, dice).and_then(|key| map.remove(&key)) {
                map.insert(name(field, dice), value);
            }
        }
        _ => {
            let key = name(field, dice);
            let value = shaped(field.and_then(|field| field.property(&key).or_else(|| field.values())), dice, 0);
            map.insert(key, value);
        }
    }
}

fn vary_list(list: &mut Vec<Value>, items: Option<Field<'_>>, dice: &mut Dice) {
    let index = dice.below(list.len().max(1));
    match dice.below(3) {
        0 if !list.is_empty() => drop(list.remove(index)),
        1 if !list.is_empty() => list.insert(index, list[index].clone()),
        _ => list.push(shaped(items, dice, 0)),
    }
}

/// A name that fits, as a rule.
fn name(field: Option<Field<'_>>, dice: &mut Dice) -> String {
    let names: Vec<&str> = field.map(|field| field.properties().map(|(name, _)| name).collect()).unwrap_or_default();
    if names.is_empty() || dice.below(16) == 0 { dice.pick(KEYS).to_string() } else { dice.pick(&names).to_string() }
}

/// A value as the schema wants it.
fn shaped(field: Option<Field<'_>>, dice: &mut Dice, depth: u32) -> Value {
    let Some(field) = field.filter(|_| depth < MAX_DEPTH) else { return oddity(dice) };
    match field.kind_of_value() {
        ValueType::Object => {
            let mut map = Map::new();
            for (name, inner) in field.properties() {
                if field.requires(name) || dice.below(12) == 0 {
                    map.insert(name.to_owned(), shaped(Some(inner), dice, depth + 1));
                }
            }
            if let Some(values) = field.values() {
                for _ in 0..dice.below(3) {
                    map.insert(dice.pick(KEYS).to_string(), shaped(Some(values), dice, depth + 1));
                }
            }
            Value::Object(map)
        }
        ValueType::Array => (0..dice.below(3)).map(|_| shaped(field.items(), dice, depth + 1)).collect(),
        ValueType::String => json!(dice.pick(TEXTS)),
        ValueType::Boolean => json!(dice.below(2) == 0),
        ValueType::Integer => json!([-1, 0, 1, 2, 100, 101, i64::from(i32::MAX), i64::MIN][dice.below(8)]),
        _ => oddity(dice),
    }
}

fn oddity(dice: &mut Dice) -> Value {
    match dice.below(10) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(0.5),
        4 => json!(1e300),
        5 => json!({}),
        6 => json!([]),
        7 => json!("x".repeat(300)),
        8 => json!([{"name": dice.pick(TEXTS)}]),
        _ => json!(dice.pick(TEXTS)),
    }
}

/// SplitMix64: small, and the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

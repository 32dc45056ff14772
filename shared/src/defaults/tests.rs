use std::collections::BTreeMap;

use super::*;
use crate::validation::Kind::{RayCluster, RayCronJob, RayJob, RayService};

fn head(image: &str) -> Value {
    json!({"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "head", "image": image}]}}})
}

fn cluster(spec: Value) -> Value {
    let mut whole = json!({"headGroupSpec": head("rayproject/ray:2.53.0-py312")});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({"metadata": {"name": "c"}, "spec": whole})
}

fn job(spec: Value) -> Value {
    let mut whole = json!({"entrypoint": "e", "rayClusterSpec": {"rayVersion": "2.53.0", "headGroupSpec": head("rayproject/ray:2.53.0")}});
    whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    json!({"metadata": {"name": "j"}, "spec": whole})
}

fn fleet(text: &str) -> FleetDefaults {
    FleetDefaults::parse(text).unwrap()
}

fn settings(text: &str) -> Settings {
    fleet(text).settings(RayCluster, "ns", &BTreeMap::new())
}

/// The object after CREATE; also proves that a second pass changes nothing.
fn created(kind: Kind, object: &Value, fleet: &Settings) -> Value {
    let mut once = object.clone();
    apply(kind, &mut once, None, fleet);
    let mut twice = once.clone();
    apply(kind, &mut twice, None, fleet);
    assert_eq!(once, twice, "a second pass must change nothing");
    once
}

fn updated(kind: Kind, old: &Value, new: &Value, fleet: &Settings) -> Value {
    let mut once = new.clone();
    apply(kind, &mut once, Some(old), fleet);
    let mut twice = once.clone();
    apply(kind, &mut twice, Some(old), fleet);
    assert_eq!(once, twice, "a second pass must change nothing");
    once
}

fn plain(kind: Kind, object: &Value) -> Value {
    created(kind, object, &Settings::default())
}

#[test]
fn start_parameters_become_an_empty_map_in_every_kind() {
    let spec = json!({
        "rayVersion": "2.53.0",
        "headGroupSpec": {"rayStartParams": null, "template": {}},
        "workerGroupSpecs": [{"groupName": "a"}, {"groupName": "b", "rayStartParams": {"num-cpus": "1"}}, 7],
    });
    for (kind, object, pointer) in [
        (RayCluster, json!({"spec": spec}), "/spec"),
        (RayJob, json!({"spec": {"rayClusterSpec": spec}}), "/spec/rayClusterSpec"),
        (RayService, json!({"spec": {"rayClusterConfig": spec}}), "/spec/rayClusterConfig"),
        (RayCronJob, json!({"spec": {"jobTemplate": {"rayClusterSpec": spec}}}), "/spec/jobTemplate/rayClusterSpec"),
    ] {
        let cluster = plain(kind, &object).pointer(pointer).unwrap().clone();
        assert_eq!(cluster["headGroupSpec"]["rayStartParams"], json!({}), "{kind}");
        assert_eq!(cluster["workerGroupSpecs"][0]["rayStartParams"], json!({}), "{kind}");
        assert_eq!(cluster["workerGroupSpecs"][1]["rayStartParams"], json!({"num-cpus": "1"}), "{kind}");
        assert_eq!(cluster["workerGroupSpecs"][2], json!(7), "{kind}");
    }
}

#[test]
fn the_version_comes_from_the_image_unless_a_rule_asks_for_it() {
    let table = [
        (json!({}), json!("2.53.0")),
        (json!({"rayVersion": null}), json!("2.53.0")),
        (json!({"rayVersion": "2.9.0"}), json!("2.9.0")),
        (json!({"rayVersion": ""}), json!("")),
        (json!({"headGroupSpec": head("registry/app:2.53.0")}), Value::Null),
        (json!({"headGroupSpec": head("rayproject/ray:latest")}), Value::Null),
        (json!({"authOptions": {"mode": "token"}}), Value::Null),
        (json!({"authOptions": {"mode": "disabled"}}), json!("2.53.0")),
        (json!({"workerGroupSpecs": [{"groupName": "a", "priority": 1, "rayStartParams": {}}]}), Value::Null),
        (json!({"workerGroupSpecs": [{"groupName": "a", "priority": 0, "rayStartParams": {}}]}), json!("2.53.0")),
    ];
    for (spec, wanted) in table {
        assert_eq!(plain(RayCluster, &cluster(spec.clone()))["spec"]["rayVersion"], wanted, "{spec}");
    }
}

#[test]
fn gaps_of_a_submitter_template_are_filled() {
    let template = |pod: Value| json!({"submitterPodTemplate": {"spec": pod}});
    let done = plain(RayJob, &job(template(json!({"nodeSelector": {"pool": "cpu"}, "containers": [{"name": "s", "resources": {}}]}))));
    assert_eq!(
        done["spec"]["submitterPodTemplate"]["spec"],
        json!({
            "nodeSelector": {"pool": "cpu"},
            "restartPolicy": "Never",
            "containers": [{"name": "s", "image": "rayproject/ray:2.53.0", "resources": submitter_resources()}],
        })
    );
    let own =
        template(json!({"restartPolicy": "OnFailure", "containers": [{"name": "s", "image": "i", "resources": {"limits": {"cpu": "2"}}}]}));
    assert_eq!(plain(RayJob, &job(own.clone())), job(own), "what is given wins");
    for untouched in [
        json!({"submissionMode": "HTTPMode", "submitterPodTemplate": {"spec": {"containers": [{"name": "s"}]}}}),
        template(json!({"restartPolicy": "Never", "containers": []})),
        json!({}),
    ] {
        assert_eq!(plain(RayJob, &job(untouched.clone())), job(untouched));
    }
    // The image of somebody else's cluster is unknown here.
    let selected =
        json!({"spec": {"clusterSelector": {"ray.io/cluster": "x"}, "submitterPodTemplate": {"spec": {"containers": [{"name": "s"}]}}}});
    let done = plain(RayJob, &selected);
    assert_eq!(done["spec"]["submitterPodTemplate"]["spec"]["containers"][0].get("image"), None);
    assert_eq!(done["spec"]["submitterPodTemplate"]["spec"]["restartPolicy"], "Never");
}

#[test]
fn deleted_and_owned_objects_stay_as_they_are() {
    let fleet = settings("defaults: [{object: {labels: {a: b}}, pods: {labels: {a: b}}}]");
    for metadata in [
        json!({"deletionTimestamp": "2031-01-01T00:00:00Z"}),
        json!({"ownerReferences": [{"apiVersion": "ray.io/v1", "kind": "RayJob", "controller": true}]}),
    ] {
        let object =
            json!({"metadata": metadata, "spec": {"headGroupSpec": {"template": {"spec": {"containers": [{"image": "ray:2.53.0"}]}}}}});
        assert_eq!(created(RayCluster, &object, &fleet), object);
    }
    // An owner of another group is no reason.
    let object = json!({"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "controller": true}]}, "spec": {"headGroupSpec": {}}});
    assert_eq!(created(RayCluster, &object, &fleet)["metadata"]["labels"]["a"], "b");
}

#[test]
fn an_update_introduces_nothing_in_parts_that_exist() {
    let old = json!({"metadata": {}, "spec": {
        "headGroupSpec": {"template": {"spec": {"containers": [{"name": "h", "image": "rayproject/ray:2.53.0"}]}}},
        "workerGroupSpecs": [{"groupName": "a", "template": {"spec": {"containers": [{"name": "w"}]}}}],
    }});
    let fleet = settings("defaults: [{pods: {labels: {team: x}, env: [{name: E, value: '1'}], priorityClassName: p}}]");
    let mut new = old.clone();
    new["spec"]["workerGroupSpecs"] = json!([
        {"groupName": "b", "template": {"spec": {"containers": [{"name": "w"}]}}},
        {"groupName": "a", "replicas": 3, "template": {"spec": {"containers": [{"name": "w"}]}}},
    ]);
    let done = updated(RayCluster, &old, &new, &fleet);
    assert_eq!(done["spec"]["headGroupSpec"], old["spec"]["headGroupSpec"]);
    assert_eq!(done["spec"].get("rayVersion"), None);
    assert_eq!(done["spec"]["workerGroupSpecs"][1], new["spec"]["workerGroupSpecs"][1], "group a exists");
    let added = &done["spec"]["workerGroupSpecs"][0];
    assert_eq!(added["rayStartParams"], json!({}), "group b is new");
    assert_eq!(added["template"]["metadata"]["labels"]["team"], "x");
    assert_eq!(added["template"]["spec"]["priorityClassName"], "p");
    assert_eq!(added["template"]["spec"]["containers"][0]["env"], json!([{"name": "E", "value": "1"}]));
}

#[test]
fn what_was_filled_in_stays_when_the_object_is_sent_again_without_it() {
    let fleet = settings(
        "defaults: [{object: {labels: {q: main}}, pods: {labels: {team: x}, tolerations: [{key: ray, operator: Exists}], nodeSelector: {pool: ray},
          imagePullSecrets: [{name: reg}], priorityClassName: p, env: [{name: E, value: '1'}]},
          resources: {autoscaler: {limits: {cpu: 1}}, submitter: {limits: {cpu: 2}}, historyCollector: {limits: {cpu: 3}}}}]",
    );
    let sent = json!({"metadata": {"name": "j"}, "spec": {"entrypoint": "e", "rayClusterSpec": {
        "enableInTreeAutoscaling": true,
        "historyServerOptions": {"collectorOptions": {"image": "i"}},
        "headGroupSpec": {"template": {"spec": {"containers": [{"name": "h", "image": "rayproject/ray:2.53.0"}]}}},
        "workerGroupSpecs": [{"groupName": "a", "template": {"spec": {"containers": [{"name": "w", "image": "i"}]}}}],
    }}});
    let stored = created(RayJob, &sent, &fleet);
    assert_ne!(stored, sent);
    assert_eq!(updated(RayJob, &stored, &sent, &fleet), stored, "sending it again changes nothing");
    let mut edited = sent.clone();
    edited["spec"]["entrypoint"] = json!("f");
    let mut wanted = stored.clone();
    wanted["spec"]["entrypoint"] = json!("f");
    assert_eq!(updated(RayJob, &stored, &edited, &fleet), wanted, "an edit elsewhere keeps them");
}

#[test]
fn the_version_follows_the_image_where_the_user_never_wrote_it() {
    let old = plain(RayCluster, &cluster(json!({})));
    let newer = head("rayproject/ray:2.54.0");
    // The field is gone, as after a replace or a server-side apply.
    let sent = cluster(json!({"headGroupSpec": newer}));
    assert_eq!(updated(RayCluster, &old, &sent, &Settings::default())["spec"]["rayVersion"], "2.54.0");
    // `kubectl apply` carries it along, but its record says that the user did not write it.
    let mut carried = sent.clone();
    carried["spec"]["rayVersion"] = json!("2.53.0");
    assert_eq!(updated(RayCluster, &old, &carried, &Settings::default())["spec"]["rayVersion"], "2.53.0", "no record: the user's");
    carried["metadata"]["annotations"] = json!({annotation::LAST_APPLIED: sent.to_string()});
    assert_eq!(updated(RayCluster, &old, &carried, &Settings::default())["spec"]["rayVersion"], "2.54.0");
    carried["metadata"]["annotations"] = json!({annotation::LAST_APPLIED: old.to_string()});
    assert_eq!(updated(RayCluster, &old, &carried, &Settings::default())["spec"]["rayVersion"], "2.53.0", "the record has it");
    // A version of the user's own, and one that is taken away on purpose.
    let own = cluster(json!({"rayVersion": "2.9.0"}));
    assert_eq!(updated(RayCluster, &own, &cluster(json!({"suspend": true})), &Settings::default())["spec"].get("rayVersion"), None);
}

#[test]
fn fleet_defaults_fill_gaps_and_never_override() {
    let fleet = settings(
        "defaults:
        - pods:
            labels: {team: x, tier: t}
            annotations: {a.example/b: c}
            nodeSelector: {pool: ray}
            tolerations: [{key: ray, operator: Exists, effect: NoSchedule}]
            imagePullSecrets: [{name: reg}]
            priorityClassName: low
            env: [{name: PROXY, value: p}, {name: TOKEN, valueFrom: {secretKeyRef: {name: s, key: k}}}]
          head: {priorityClassName: high}
          resources: {autoscaler: {requests: {cpu: 250m}}}",
    );
    let object = json!({"metadata": {"name": "c"}, "spec": {"rayVersion": "2.53.0", "enableInTreeAutoscaling": true,
        "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [{"name": "h"}, {"name": "side"}]}}},
        "workerGroupSpecs": [{"groupName": "a", "rayStartParams": {}, "template": {
            "metadata": {"labels": {"team": "mine"}},
            "spec": {
                "nodeSelector": {"pool": "gpu", "x": "y"},
                "tolerations": [{"key": "ray", "operator": "Equal", "value": "v", "effect": "NoSchedule"}, {"key": "gpu"}],
                "imagePullSecrets": [{"name": "own"}],
                "priority": 5,
                "containers": [{"name": "w", "env": [{"name": "PROXY", "value": "mine"}]}]}}}],
    }});
    let done = created(RayCluster, &object, &fleet);
    let head = &done["spec"]["headGroupSpec"]["template"];
    assert_eq!(head["metadata"], json!({"labels": {"team": "x", "tier": "t"}, "annotations": {"a.example/b": "c"}}));
    assert_eq!(head["spec"]["priorityClassName"], "high");
    assert_eq!(head["spec"]["containers"][1], json!({"name": "side"}), "only the Ray container gets variables");
    assert_eq!(head["spec"]["containers"][0]["env"][1]["name"], "TOKEN");
    let worker = &done["spec"]["workerGroupSpecs"][0]["template"];
    assert_eq!(worker["metadata"]["labels"], json!({"team": "mine", "tier": "t"}));
    assert_eq!(worker["spec"]["nodeSelector"], json!({"pool": "gpu", "x": "y"}));
    assert_eq!(worker["spec"]["tolerations"].as_array().unwrap().len(), 2, "the taint is spoken for");
    assert_eq!(worker["spec"]["imagePullSecrets"], json!([{"name": "own"}, {"name": "reg"}]));
    assert_eq!(worker["spec"].get("priorityClassName"), None, "a priority is given");
    assert_eq!(worker["spec"]["containers"][0]["env"][0], json!({"name": "PROXY", "value": "mine"}));
    assert_eq!(worker["spec"]["containers"][0]["env"].as_array().unwrap().len(), 2);
    assert_eq!(done["spec"]["autoscalerOptions"], json!({"resources": {"requests": {"cpu": "250m"}}}));
}

#[test]
fn fleet_defaults_reach_the_submitter() {
    let fleet = settings("defaults: [{submitter: {nodeSelector: {pool: cpu}}, resources: {submitter: {limits: {memory: 300Mi}}}}]");
    let made = &created(RayJob, &job(json!({})), &fleet)["spec"]["submitterPodTemplate"]["spec"];
    assert_eq!(
        *made,
        json!({"restartPolicy": "Never", "nodeSelector": {"pool": "cpu"}, "containers": [{
            "name": "ray-job-submitter", "image": "rayproject/ray:2.53.0", "resources": {"limits": {"memory": "300Mi"}}}]})
    );
    let own = job(json!({"submitterPodTemplate": {"spec": {"containers": [{"name": "s", "image": "i"}]}}}));
    assert_eq!(
        created(RayJob, &own, &fleet)["spec"]["submitterPodTemplate"]["spec"]["containers"][0]["resources"],
        json!({"limits": {"memory": "300Mi"}})
    );
    for mode in ["HTTPMode", "InteractiveMode", "SidecarMode"] {
        let object = job(json!({"submissionMode": mode}));
        assert_eq!(created(RayJob, &object, &fleet), object, "{mode}");
    }
}

#[test]
fn settings_depend_on_namespace_and_kind_and_later_entries_count() {
    let fleet = fleet(
        "defaults:
        - object: {labels: {a: all, b: all}}
        - namespaces: {names: [ml-*]}
          object: {labels: {b: ml}}
        - namespaces: {matchLabels: {tier: gpu}}
          kinds: [RayJob]
          object: {labels: {c: gpu}}",
    );
    let gpu = BTreeMap::from([("tier".to_owned(), "gpu".to_owned())]);
    let labels = |kind, namespace: &str, labels: &BTreeMap<String, String>| {
        created(kind, &json!({"spec": {}}), &fleet.settings(kind, namespace, labels))["metadata"]["labels"].clone()
    };
    assert_eq!(labels(RayCluster, "x", &BTreeMap::new()), json!({"a": "all", "b": "all"}));
    assert_eq!(labels(RayCluster, "ml-1", &gpu), json!({"a": "all", "b": "ml"}));
    assert_eq!(labels(RayJob, "ml-1", &gpu), json!({"a": "all", "b": "ml", "c": "gpu"}));
    assert!(fleet.reads_labels() && !fleet.is_empty());
    assert!(FleetDefaults::parse("# nothing\n").unwrap().is_empty());
}

#[test]
fn a_file_that_would_break_every_object_is_refused() {
    for text in [
        "defaults: [{pod: {}}]",
        "default: []",
        "defaults: [{pods: {env: [{name: A, value: x, valueFrom: {}}]}}]",
        "defaults: [{pods: {env: [{value: x}]}}]",
        "defaults: [{pods: {env: [{name: A, val: x}]}}]",
        "defaults: [{pods: {labels: {a b: c}}}]",
        "defaults: [{object: {labels: {a: 'b c'}}}]",
        "defaults: [{pods: {tolerations: [{key: a, operator: Is}]}}]",
        "defaults: [{pods: {tolerations: [{keys: a}]}}]",
        "defaults: [{resources: {autoscaler: {limits: {cpu: lots}}}}]",
        "defaults: [{resources: {autoscaler: {limit: {}}}}]",
        "defaults: [{kinds: [RayTask]}]",
        "defaults: [",
    ] {
        assert!(FleetDefaults::parse(text).is_err(), "{text}");
    }
}

#[test]
fn unknown_fields_survive_and_odd_shapes_do_no_harm() {
    let fleet =
        settings("defaults: [{object: {labels: {a: b}}, pods: {labels: {a: b}, env: [{name: E, value: v}], nodeSelector: {a: b}}}]");
    for object in [
        json!({"metadata": {"labels": 7}, "spec": {"headGroupSpec": {"template": {"metadata": [], "spec": {"containers": 3, "nodeSelector": "x"}}}}}),
        json!({"metadata": [], "spec": {"headGroupSpec": {"template": 1}, "workerGroupSpecs": {"a": 1}}}),
        json!({"spec": []}),
        json!([1, 2]),
        json!(null),
    ] {
        created(RayCluster, &object, &fleet);
    }
    let mut object = cluster(json!({"someday": {"x": [1]}}));
    object["spec"]["headGroupSpec"]["template"]["spec"]["new"] = json!(1);
    let done = created(RayCluster, &object, &fleet);
    assert_eq!(done["spec"]["someday"], json!({"x": [1]}));
    assert_eq!(done["spec"]["headGroupSpec"]["template"]["spec"]["new"], 1);
}

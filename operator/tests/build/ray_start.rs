//! RC-43..RC-52, RC-303..RC-306: options of `ray start`.

use serde_json::{Value, json};

use crate::fixture::{PodExt, head, head_group, limits, ray, worker, worker_group};

/// The options of the command line without those that every node has.
fn options(start: &str) -> String {
    let common = [
        " --address=demo-head-svc.ml.svc.cluster.local:6379 ",
        " --block ",
        " --dashboard-agent-listen-port=52365 ",
        " --dashboard-host=0.0.0.0 ",
        " --metrics-export-port=8080 ",
    ];
    common.iter().fold(start.to_owned(), |text, common| text.replacen(common, "", 1))
}

fn head_options(edit: impl FnOnce(&mut Value)) -> String {
    options(head(edit).start())
}

fn worker_options(edit: impl FnOnce(&mut Value)) -> String {
    options(worker(edit).start())
}

#[test]
fn rc_43_options_are_sorted_and_spaced() {
    assert_eq!(
        head(|_| ()).start(),
        "ray start --head  --block  --dashboard-agent-listen-port=52365  --dashboard-host=0.0.0.0  --memory=4294967296  --metrics-export-port=8080  --num-cpus=2 "
    );
    assert_eq!(
        worker(|_| ()).start(),
        "ray start  --address=demo-head-svc.ml.svc.cluster.local:6379  --block  --dashboard-agent-listen-port=52365  --memory=4294967296  --metrics-export-port=8080  --num-cpus=2 "
    );
}

#[test]
fn rc_43_and_305_switches() {
    let table = [
        (json!({"verbose": "true"}), " --verbose "),
        (json!({"verbose": "TRUE"}), " --verbose "),
        (json!({"verbose": "False"}), ""),
        (json!({"verbose": "1"}), " --verbose=1 "),
        (json!({"log-color": "true"}), " --log-color=true "),
        (json!({"include-dashboard": "false"}), " --include-dashboard=false "),
        (json!({"include-log-monitor": "false"}), " --include-log-monitor=false "),
        (json!({"temp-dir": "/tmp/a b"}), " --temp-dir=/tmp/a b "),
        (json!({"b": "2", "a": "1"}), " --a=1  --b=2 "),
    ];
    for (params, wanted) in table {
        let start = head_options(|c| {
            head_group(c)["rayStartParams"] = params.clone();
            limits(head_group(c), &json!({}));
        });
        assert_eq!(start, format!("ray start --head {wanted}"), "{params}");
    }
}

#[test]
fn rc_45_defaults_give_way_to_the_user_but_for_block() {
    let start = head(|c| {
        head_group(c)["rayStartParams"] =
            json!({"block": "false", "dashboard-host": "::", "metrics-export-port": "9000", "dashboard-agent-listen-port": "1"});
        limits(head_group(c), &json!({}));
    });
    assert_eq!(
        start.start(),
        "ray start --head  --block  --dashboard-agent-listen-port=1  --dashboard-host=::  --metrics-export-port=9000 "
    );
    let worker = worker(|c| {
        head_group(c)["rayStartParams"] = json!({"port": "7000"});
        limits(worker_group(c), &json!({}));
    });
    assert!(worker.start().contains("--address=demo-head-svc.ml.svc.cluster.local:7000 "), "{}", worker.start());
    let own = crate::fixture::worker(|c| worker_group(c)["rayStartParams"] = json!({"address": "elsewhere:1"}));
    assert!(own.start().contains("--address=elsewhere:1 "), "{}", own.start());
    let null = head(|c| head_group(c)["rayStartParams"] = Value::Null);
    assert!(null.start().contains(" --block "), "an absent map is an empty one (RC-6)");
}

#[test]
fn rc_46_cpu_and_memory() {
    let table = [
        (json!({"limits": {"cpu": "500m"}}), " --num-cpus=1 "),
        (json!({"limits": {"cpu": "1500m"}}), " --num-cpus=2 "),
        (json!({"limits": {"cpu": 3}}), " --num-cpus=3 "),
        (json!({"limits": {"cpu": "0"}, "requests": {"cpu": "2"}}), " --num-cpus=2 "),
        (json!({"requests": {"cpu": "2", "memory": "2Gi"}}), " --num-cpus=2 "),
        (json!({"limits": {"memory": "1G"}}), " --memory=1000000000 "),
        (json!({"limits": {"memory": "0"}}), ""),
        (json!({"requests": {"nvidia.com/gpu": "2"}}), ""),
        (json!({}), ""),
    ];
    for (resources, wanted) in table {
        let start = worker_options(|c| ray(worker_group(c))["resources"] = resources.clone());
        assert_eq!(start, format!("ray start {wanted}"), "{resources}");
    }
    let start = worker_options(|c| worker_group(c)["rayStartParams"] = json!({"num-cpus": "7", "memory": "1"}));
    assert_eq!(start, "ray start  --memory=1  --num-cpus=7 ");
}

/// RC-47, RC-48, RC-49, RC-303, RC-304.
#[test]
fn rc_303_accelerators_from_limits() {
    let table = [
        ("worker", json!({}), json!({"nvidia.com/gpu": "1"}), " --num-gpus=1 "),
        ("worker", json!({}), json!({"nvidia.com/mig-2g.32gb": "1"}), " --num-gpus=1 "),
        ("worker", json!({}), json!({"nvidia.com/mig-1g.5gb.shared": "1"}), ""),
        ("worker", json!({}), json!({"nvidia.com/mig-1g.5gb+me": "1"}), ""),
        ("worker", json!({}), json!({"amd.com/gpu": "2"}), " --num-gpus=2 "),
        ("worker", json!({}), json!({"amd.com/gpu": "0", "nvidia.com/gpu": "3"}), " --num-gpus=3 "),
        ("worker", json!({"num-gpus": "5"}), json!({"nvidia.com/gpu": "1"}), " --num-gpus=5 "),
        ("worker", json!({}), json!({"google.com/tpu": "4"}), " --resources='{\"TPU\":4}' "),
        (
            "head",
            json!({}),
            json!({"google.com/tpu": "8", "aws.amazon.com/neuroncore": "4", "nvidia.com/gpu": "1"}),
            " --num-gpus=1  --resources='{\"neuron_cores\":4}' ",
        ),
        (
            "head",
            json!({"resources": "\"{\"custom_resource\":2}\""}),
            json!({"aws.amazon.com/neuroncore": "4"}),
            " --resources='{\"custom_resource\":2,\"neuron_cores\":4}' ",
        ),
        (
            "head",
            json!({"resources": "'{\"custom_resource\":2,\"TPU\":4}'"}),
            json!({"google.com/tpu": "8"}),
            " --resources='{\"custom_resource\":2,\"TPU\":4}' ",
        ),
        ("head", json!({"resources": "{"}), json!({"google.com/tpu": "8", "nvidia.com/gpu": "1"}), " --resources={ "),
        ("head", json!({"resources": "'{\"a\":\"x\"}'"}), json!({"nvidia.com/gpu": "1"}), " --resources='{\"a\":\"x\"}' "),
        ("head", json!({"resources": "'{\"a\":0.5}'"}), json!({"google.com/tpu": "1"}), " --resources='{\"TPU\":1,\"a\":0.5}' "),
        ("head", json!({"resources": "'{\"a\":1}'"}), json!({}), " --resources='{\"a\":1}' "),
    ];
    for (node, params, limit, wanted) in table {
        let edit = |group: &mut Value| {
            group["rayStartParams"] = params.clone();
            limits(group, &limit);
        };
        let (start, command) = match node {
            "head" => (head_options(|c| edit(head_group(c))), "ray start --head "),
            _ => (worker_options(|c| edit(worker_group(c))), "ray start "),
        };
        assert_eq!(start, format!("{command}{wanted}"), "{params} {limit}");
    }
}

/// RC-50, RC-51, RC-306.
#[test]
fn rc_50_top_level_resources_win() {
    let table = [
        (json!({"CPU": "500m", "memory": "4Gi"}), " --memory=4294967296  --num-cpus=1 "),
        (json!({"GPU": "1"}), " --memory=4294967296  --num-cpus=2  --num-gpus=1 "),
        (json!({"nvidia.com/gpu": "2"}), " --memory=4294967296  --num-cpus=2  --num-gpus=2 "),
        (json!({"Custom-Resource": "5"}), " --memory=4294967296  --num-cpus=2  --resources='{\"Custom-Resource\":5}' "),
        (json!({"a": "500m", "b": "2"}), " --memory=4294967296  --num-cpus=2  --resources='{\"a\":0.5,\"b\":2}' "),
        (json!({"cpu": "many"}), " --memory=4294967296  --num-cpus=2 "),
    ];
    for (resources, wanted) in table {
        let start = worker_options(|c| worker_group(c)["resources"] = resources.clone());
        assert_eq!(start, format!("ray start {wanted}"), "{resources}");
    }
    let start = worker_options(|c| {
        worker_group(c)["resources"] = json!({"x": "1"});
        worker_group(c)["rayStartParams"] = json!({"resources": "'{\"y\":1}'", "num-cpus": "9"});
    });
    assert_eq!(start, "ray start  --memory=4294967296  --num-cpus=9  --resources='{\"x\":1}' ", "`resources` is replaced, the rest stays");
}

/// A name with a quote must not end the shell's word.
#[test]
fn names_of_resources_stay_one_word_of_the_shell() {
    let start = worker_options(|c| {
        worker_group(c)["resources"] = json!({"x'; touch /tmp/p; '": "1"});
        limits(worker_group(c), &json!({}));
    });
    assert_eq!(start, "ray start  --resources='{\"x\\u0027; touch /tmp/p; \\u0027\":1}' ");
}

#[test]
fn rc_52_top_level_labels() {
    let start = worker_options(|c| {
        worker_group(c)["labels"] = json!({"zone": "b", "accelerator": "a100"});
        limits(worker_group(c), &json!({}));
    });
    assert_eq!(start, "ray start  --labels=accelerator=a100,zone=b ");
    let start = worker_options(|c| {
        worker_group(c)["labels"] = json!({});
        limits(worker_group(c), &json!({}));
    });
    assert_eq!(start, "ray start ");
}

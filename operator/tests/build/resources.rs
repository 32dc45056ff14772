//! RC-47, RC-176, RC-308, RC-464.

use operator::build::resources::{desired_amounts, desired_pods, desired_resources, is_gpu};
use serde_json::{Value, json};

use crate::fixture::{cluster, head_group, ray, worker_group};

#[test]
fn rc_176_308_desired_pods() {
    let max = i32::MAX;
    // replicas, min, max, hosts, suspend, wanted
    let table = [
        (json!([3, 0, 5, 1, null]), 3),
        (json!([0, 2, 5, 1, null]), 2),
        (json!([9, 2, 5, 1, null]), 5),
        (json!([9, 8, 5, 1, null]), 5),
        (json!([null, 2, 5, 1, null]), 2),
        (json!([null, null, null, null, null]), 0),
        (json!([7, null, null, 2, null]), 14),
        (json!([3, 0, 5, 0, null]), 3),
        (json!([3, 0, 5, -1, null]), 3),
        (json!([-3, null, 5, 1, null]), 0),
        (json!([3, 0, 5, 4, true]), 0),
        (json!([max, 0, max, 4, null]), max),
    ];
    for (values, wanted) in table {
        let cluster = cluster(|c| {
            for (key, value) in ["replicas", "minReplicas", "maxReplicas", "numOfHosts", "suspend"].iter().zip(values.as_array().unwrap()) {
                worker_group(c)[*key] = value.clone();
            }
        });
        assert_eq!(desired_pods(&cluster.spec.worker_groups()[0]), wanted, "{values}");
    }
}

#[test]
fn rc_464_totals() {
    let totals = |edit: &dyn Fn(&mut Value)| {
        let totals = desired_resources(&cluster(edit).spec);
        [totals.cpu.0, totals.memory.0, totals.gpu.0, totals.tpu.0].join(" ")
    };
    let workers = |replicas: i32, hosts: i32, resources: Value| {
        move |c: &mut Value| {
            worker_group(c)["replicas"] = replicas.into();
            worker_group(c)["numOfHosts"] = hosts.into();
            ray(worker_group(c))["resources"] = resources.clone();
        }
    };
    assert_eq!(totals(&|_| ()), "2 4Gi 0 0", "requests count before limits");
    assert_eq!(totals(&workers(2, 1, json!({"limits": {"cpu": "500m", "memory": "1Gi"}}))), "2 4Gi 0 0");
    assert_eq!(totals(&workers(2, 4, json!({"limits": {"google.com/tpu": "4"}}))), "1 2Gi 0 32");
    assert_eq!(
        totals(&workers(2, 1, json!({"limits": {"nvidia.com/gpu": "4", "nvidia.com/mig-1g.5gb": "2", "amd.com/gpu": "1"}}))),
        "1 2Gi 14 0"
    );
    assert_eq!(totals(&workers(9, 1, json!({"requests": {"cpu": "1"}}))), "6 2Gi 0 0", "within the bounds, like the number of workers");
    let suspended = |c: &mut Value| {
        workers(2, 1, json!({"requests": {"cpu": "8"}}))(c);
        worker_group(c)["suspend"] = true.into();
    };
    assert_eq!(totals(&suspended), "1 2Gi 0 0");
    let sidecars = |c: &mut Value| {
        let more = json!({"name": "more", "resources": {"requests": {"cpu": "250m"}, "limits": {"cpu": "1", "memory": "1Gi"}}});
        head_group(c)["template"]["spec"]["containers"].as_array_mut().unwrap().push(more.clone());
        head_group(c)["template"]["spec"]["initContainers"] = json!([more]);
        worker_group(c)["replicas"] = 0.into();
        c["spec"]["enableInTreeAutoscaling"] = true.into();
    };
    assert_eq!(totals(&sidecars), "1250m 3Gi 0 0");
    assert_eq!(totals(&|c| head_group(c)["template"] = json!({})), "1 2Gi 0 0");
}

/// BS-7: every resource, for gang schedulers.
#[test]
fn bs_7_all_resources() {
    let cluster = cluster(|c| ray(worker_group(c))["resources"]["limits"]["vendor.com/nic"] = "2".into());
    let amounts: Vec<String> = desired_amounts(&cluster.spec).iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    assert_eq!(amounts, ["cpu=2", "memory=4Gi", "vendor.com/nic=2"]);
}

#[test]
fn rc_47_gpu_names() {
    for name in ["nvidia.com/gpu", "amd.com/gpu", "gpu", "nvidia.com/mig-2g.32gb", "x/nvidia.com/mig-1g.5gb"] {
        assert!(is_gpu(name), "{name}");
    }
    for name in [
        "cpu",
        "google.com/tpu",
        "nvidia.com/gpu.shared",
        "nvidia.com/mig-2g",
        "nvidia.com/mig-g.5gb",
        "nvidia.com/mig-1g.gb",
        "gpu.intel.com/i915",
        "nvidia.com/mig-1g.5gb.me",
    ] {
        assert!(!is_gpu(name), "{name}");
    }
}

use serde_json::{Value, json};
use shared::validation::Kind::{RayCluster, RayCronJob, RayJob, RayService};

use crate::build::*;

pub(crate) fn cases() -> Vec<Case> {
    [names(), head_and_settings(), counts(), autoscaling(), names_of_groups(), clashes(), quantities(), containers(), advice()].concat()
}

fn names() -> Vec<Case> {
    let (n36, n37) = ("a".repeat(36), "a".repeat(37));
    let (n47, n48) = ("a".repeat(47), "a".repeat(48));
    let (n53, n54) = ("a".repeat(53), "a".repeat(54));
    let at = "metadata.name";
    vec![
        named(RayCluster, &n53),
        named(RayCluster, &n54).denied("V-C-1", at),
        named(RayCluster, "a-1"),
        named(RayCluster, "a.b").denied("V-C-2", at),
        named(RayCluster, "1a").denied("V-C-2", at),
        named(RayCluster, "A").denied("V-C-2", at),
        named(RayCluster, "").denied("V-C-2", at),
        named(RayCluster, &"a.".repeat(40)).denied("V-C-1", at).denied("V-C-2", at),
        named(RayJob, &n47),
        named(RayJob, &n48).denied("V-J-1", at),
        named(RayJob, "a_b").denied("V-J-2", at),
        named(RayService, &n47),
        named(RayService, &n48).denied("V-S-1", at),
        named(RayService, "a-").denied("V-S-2", at),
        named(RayCronJob, &n36).gates("RayCronJob=true"),
        named(RayCronJob, &n37).denied("V-CJ-1", at),
        named(RayCronJob, "a.b").denied("C-06", at),
        // With generateName the server appends five characters.
        generated(&"a".repeat(48)),
        generated(&"a".repeat(49)).denied("V-C-1", "metadata.generateName"),
        generated("a-"),
        generated("a.").denied("V-C-2", "metadata.generateName"),
        Case::of(RayCluster, merged(cluster_object(&json!({})), &json!({"apiVersion": "ray.io/v1alpha1"}))).warned("W-X-1", "apiVersion"),
    ]
}

fn generated(prefix: &str) -> Case {
    let object = merged(cluster_object(&json!({})), &json!({"metadata": {"name": null, "generateName": prefix}}));
    Case::of(RayCluster, object)
}

fn head_and_settings() -> Vec<Case> {
    let no_containers = json!({"template": {"spec": {"containers": []}}});
    let both = |parameter: &str| json!({"rayStartParams": {parameter: "2"}, "resources": {"CPU": "2"}});
    let mut cases = vec![
        cluster(&json!({})),
        cluster(&json!({"headGroupSpec": null})).denied("V-C-10", HEAD),
        Case::of(RayCluster, json!({"kind": "RayCluster", "metadata": {"name": "c"}})).denied("V-C-10", HEAD),
        head(&no_containers).denied("V-C-10", "spec.headGroupSpec.template.spec.containers"),
        worker(&no_containers).denied("V-C-14", "spec.workerGroupSpecs[0].template.spec.containers"),
        head(&json!({"rayStartParams": {"num-cpus": ""}, "resources": {"CPU": "2"}})),
        head(&json!({"rayStartParams": {"num-cpus": "2"}, "resources": {}})),
        head(&json!({"rayStartParams": {"labels": ""}})).denied("V-C-12", below(HEAD, "rayStartParams[labels]")),
        worker(&json!({"rayStartParams": {"labels": "a=b"}})).denied("V-C-20", below(GROUP, "rayStartParams[labels]")),
        head(&json!({"labels": {"a.b/c": "d", "x": ""}})),
        head(&json!({"labels": {"a/b/c": "d"}})).denied("V-C-13", below(HEAD, "labels[a/b/c]")),
        worker(&json!({"labels": {"x": "y".repeat(63)}})),
        worker(&json!({"labels": {"x": "y".repeat(64), "-": "ok"}}))
            .denied("V-C-21", below(GROUP, "labels[x]"))
            .denied("V-C-21", below(GROUP, "labels[-]")),
    ];
    for parameter in ["num-cpus", "num-gpus", "memory"] {
        cases.push(head(&both(parameter)).denied("V-C-11", below(HEAD, &format!("rayStartParams[{parameter}]"))));
        cases.push(worker(&both(parameter)).denied("V-C-19", below(GROUP, &format!("rayStartParams[{parameter}]"))));
    }
    let resources = json!({"rayStartParams": {"resources": "'{\"x\": 1}'", "port": "6380"}, "resources": {"CPU": "2"}});
    cases.push(head(&resources).denied("V-C-11", below(HEAD, "rayStartParams[resources]")));
    cases
}

fn counts() -> Vec<Case> {
    let auto = |patch: &Value| cluster(&json!({"enableInTreeAutoscaling": true, "workerGroupSpecs": [group("a", patch)]}));
    let none = json!({"minReplicas": null, "maxReplicas": null});
    vec![
        worker(&none).denied("V-C-15", below(GROUP, "minReplicas")).denied("V-C-15", below(GROUP, "maxReplicas")),
        auto(&none),
        worker(&json!({"minReplicas": -1})).denied("V-C-16", below(GROUP, "minReplicas")),
        worker(&json!({"maxReplicas": -1})).denied("V-C-17", below(GROUP, "maxReplicas")),
        worker(&json!({"minReplicas": 2, "maxReplicas": 2})).warned("C-04", below(GROUP, "replicas")),
        worker(&json!({"minReplicas": 3, "maxReplicas": 2})).denied("V-C-18", below(GROUP, "minReplicas")),
        worker(&json!({"replicas": 2, "maxReplicas": 2})).not_warned("C-04"),
        worker(&json!({"replicas": 3, "maxReplicas": 2})).warned("C-04", below(GROUP, "replicas")),
        worker(&json!({"replicas": 0, "minReplicas": 1})).not_warned("C-04"),
        worker(&json!({"numOfHosts": 1})),
        worker(&json!({"numOfHosts": null})),
        worker(&json!({"numOfHosts": 0})).denied("C-03", below(GROUP, "numOfHosts")),
        worker(&json!({"numOfHosts": -1})).denied("C-03", below(GROUP, "numOfHosts")),
        // C-04: one answer for all groups.
        groups(&[
            group("a", &json!({"minReplicas": 5})),
            group("b", &json!({"rayStartParams": {"num-cpus": "2"}, "resources": {"CPU": "2"}})),
            group("c", &json!({"minReplicas": -1})),
            group("d", &json!({"replicas": 9})),
        ])
        .denied("V-C-18", "spec.workerGroupSpecs[0].minReplicas")
        .denied("V-C-19", "spec.workerGroupSpecs[1].rayStartParams[num-cpus]")
        .denied("V-C-16", "spec.workerGroupSpecs[2].minReplicas")
        .warned("C-04", "spec.workerGroupSpecs[3].replicas"),
    ]
}

fn autoscaling() -> Vec<Case> {
    let with = |spec: Value, patch: &Value| cluster(&merged(json!({"workerGroupSpecs": [group("a", patch)]}), &spec));
    let v2 = json!({"enableInTreeAutoscaling": true, "autoscalerOptions": {"version": "v2"}, "rayVersion": "2.56.0"});
    let by_env = |value: &str| json!({"enableInTreeAutoscaling": true, "headGroupSpec": {"template": template(&env("RAY_enable_autoscaler_v2", value))}});
    let idle = |seconds: i32| json!({"idleTimeoutSeconds": seconds});
    let priority = |value: i32| json!({"priority": value});
    let always = json!({"template": {"spec": {"restartPolicy": "Always"}}});
    let version = |text: Value| merged(v2.clone(), &json!({"rayVersion": text}));
    let (idle_at, priority_at) = (below(GROUP, "idleTimeoutSeconds"), below(GROUP, "priority"));
    let suspended = json!({"suspend": true});
    vec![
        with(v2.clone(), &idle(0)),
        with(v2.clone(), &idle(-1)).denied("V-C-22", &idle_at),
        with(json!({"enableInTreeAutoscaling": true}), &idle(5)).denied("V-C-22", &idle_at),
        with(json!({"enableInTreeAutoscaling": true, "autoscalerOptions": {"version": "v1"}}), &idle(5)).denied("V-C-22", &idle_at),
        with(by_env("1"), &idle(5)),
        with(by_env("true"), &idle(5)),
        with(by_env("True"), &idle(5)).denied("V-C-22", &idle_at),
        // The version counts, not whether autoscaling is on.
        with(json!({"autoscalerOptions": {"version": "v2"}}), &idle(5)),
        with(v2.clone(), &priority(-3)),
        with(v2.clone(), &priority(0)),
        with(version(json!("2.55.9")), &priority(1)).denied("V-C-23", &priority_at),
        with(version(json!("2.55.9")), &priority(0)),
        with(version(json!("nightly")), &priority(1)).denied("V-C-23", &priority_at),
        with(version(json!("")), &priority(1)).denied("V-C-23", &priority_at),
        with(json!({"rayVersion": "2.56.0", "enableInTreeAutoscaling": true}), &priority(1)).denied("V-C-23", &priority_at),
        worker(&suspended),
        worker(&json!({"suspend": false})).gates("RayJobDeletionPolicy=false"),
        worker(&suspended).gates("RayJobDeletionPolicy=false").denied("V-C-38", below(GROUP, "suspend")),
        with(json!({"enableInTreeAutoscaling": true}), &suspended).denied("V-C-40", below(GROUP, "suspend")),
        with(json!({"enableInTreeAutoscaling": true}), &json!({"suspend": false})),
        with(v2.clone(), &json!({"template": {"spec": {"restartPolicy": "Never"}}})),
        with(v2.clone(), &always).denied("V-C-43", below(GROUP, "template.spec.restartPolicy")),
        with(merged(v2.clone(), &json!({"headGroupSpec": always})), &json!({}))
            .denied("V-C-42", below(HEAD, "template.spec.restartPolicy")),
        with(merged(v2.clone(), &json!({"enableInTreeAutoscaling": false})), &always),
        with(json!({"enableInTreeAutoscaling": true, "autoscalerOptions": {"version": "v1"}}), &always)
            .warned("V-C-69", below(GROUP, "template.spec.restartPolicy")),
        with(json!({"enableInTreeAutoscaling": true}), &always).not_warned("V-C-69"),
    ]
}

fn names_of_groups() -> Vec<Case> {
    let named = |name: &str| groups(&[group(name, &json!({}))]);
    let hosts = json!({"numOfHosts": 2});
    let at = below(GROUP, "groupName");
    let second = "spec.workerGroupSpecs[1].groupName";
    vec![
        groups(&[group("a", &json!({})), group("b", &json!({}))]),
        groups(&[group("a", &json!({})), group("a", &json!({}))]).denied("V-C-70", second),
        job(&json!({"rayClusterSpec": {"workerGroupSpecs": [group("a", &json!({})), group("a", &json!({}))]}}))
            .denied("V-C-70", "spec.rayClusterSpec.workerGroupSpecs[1].groupName"),
        service(&json!({"rayClusterConfig": {"workerGroupSpecs": [group("a", &json!({})), group("a", &json!({}))]}}))
            .denied("V-C-70", "spec.rayClusterConfig.workerGroupSpecs[1].groupName"),
        cron(&json!({"jobTemplate": {"rayClusterSpec": {"workerGroupSpecs": [group("a", &json!({})), group("a", &json!({}))]}}}))
            .denied("V-C-70", "spec.jobTemplate.rayClusterSpec.workerGroupSpecs[1].groupName"),
        named("headgroup").denied("C-02", &at),
        named("headgroups"),
        named("submittergroup"),
        job(&json!({"rayClusterSpec": {"workerGroupSpecs": [group("submittergroup", &json!({}))]}}))
            .denied("C-02", "spec.rayClusterSpec.workerGroupSpecs[0].groupName"),
        named("").denied("N-C-1", &at),
        named("A100-80g"),
        named("a.b"),
        named("a_b").denied("N-C-1", &at),
        named("a.-b").denied("N-C-1", &at),
        named("a b").denied("N-C-1", &at),
        named(&"a".repeat(63)),
        named(&"a".repeat(64)).denied("N-C-1", &at),
        // What is cut off does not reach the Pod names.
        named(&format!("{}_", "a".repeat(60))).denied("N-C-1", &at),
        named(&format!("{}_b", "a".repeat(60))),
        groups(&[group(&"a".repeat(57), &hosts)]),
        groups(&[group(&"a".repeat(58), &hosts)]).denied("N-C-2", &at),
        groups(&[group(&"a".repeat(58), &hosts)]).gates("RayMultiHostIndexing=false"),
        groups(&[group(&format!("{}-x", "a".repeat(50)), &json!({})), group(&format!("{}-y", "a".repeat(50)), &json!({}))])
            .warned("W-C-11", second),
        groups(&[group(&format!("{}-x", "a".repeat(40)), &json!({})), group(&format!("{}-y", "a".repeat(40)), &json!({}))])
            .not_warned("W-C-11"),
    ]
}

fn clashes() -> Vec<Case> {
    let pod = |containers: &[&str], init: &[&str]| {
        let list = |names: &[&str]| names.iter().map(|name| container(&json!({"name": name}))).collect::<Vec<_>>();
        json!({"template": {"spec": {"containers": list(containers), "initContainers": list(init)}}})
    };
    let auto = json!({"enableInTreeAutoscaling": true});
    let tokens = json!({"rayVersion": "2.55.0", "authOptions": {"mode": "token", "enableK8sTokenAuth": true}});
    let mount = |name: &str, path: &str| {
        let template = json!({"spec": {"volumes": [{"name": name}], "containers": [container(&json!({"volumeMounts": [{"name": name, "mountPath": path}]}))]}});
        json!({"template": template})
    };
    let token_path = "/var/run/secrets/ray.io/serviceaccount";
    let mount_at = below(HEAD_BOX, "volumeMounts[0].mountPath");
    let service_name = |name: &str| json!({"headService": {"metadata": {"name": name}}});
    vec![
        head(&pod(&["ray", "autoscaler"], &[])),
        cluster(&merged(auto.clone(), &json!({"headGroupSpec": pod(&["ray", "autoscaler"], &[])})))
            .denied("N-C-3", below(HEAD, "template.spec.containers[1].name")),
        cluster(&merged(auto, &json!({"headGroupSpec": pod(&["ray"], &["autoscaler"])})))
            .denied("N-C-3", below(HEAD, "template.spec.initContainers[0].name")),
        head(&pod(&["ray"], &["wait-gcs-ready"])),
        worker(&pod(&["ray"], &["x", "wait-gcs-ready"])).denied("N-C-3", below(GROUP, "template.spec.initContainers[1].name")),
        worker(&pod(&["ray", "b"], &["b"])).denied("N-C-3", below(GROUP, "template.spec.containers[1].name")),
        worker(&pod(&["ray", "b"], &["c"])),
        cluster(&merged(tokens.clone(), &json!({"headGroupSpec": mount("own", token_path)}))).denied("N-C-4", &mount_at),
        cluster(&merged(
            tokens.clone(),
            &json!({"headGroupSpec": merged(mount("ray-token", token_path), &json!({"template": {"spec": {"volumes": [{"name": "ray-token", "projected": {}}]}}}))}),
        )),
        cluster(&merged(tokens, &json!({"headGroupSpec": mount("own", "/elsewhere")}))),
        head(&mount("own", token_path)),
        head(&service_name("own")),
        cluster(&merged(
            json!({"rayVersion": "2.55.0", "authOptions": {"mode": "token", "enableK8sTokenAuth": true}}),
            &json!({"headGroupSpec": {"template": {"spec": {"volumes": [{"name": "ray-token", "emptyDir": {}}]}}}}),
        ))
        .denied("N-C-4", below(HEAD, "template.spec.volumes[0].name")),
        cluster(&merged(
            json!({"rayVersion": "2.55.0", "authOptions": {"mode": "token", "enableK8sTokenAuth": true}}),
            &json!({"headGroupSpec": {"template": {"spec": {"volumes": [{"name": "ray-token", "projected": {}}]}}}}),
        )),
        job(&json!({"rayClusterSpec": {"headGroupSpec": service_name("j-head-svc")}}))
            .denied("N-C-5", "spec.rayClusterSpec.headGroupSpec.headService.metadata.name"),
        job(&json!({"rayClusterSpec": {"headGroupSpec": service_name("own")}})),
        cluster(&json!({"headGroupSpec": service_name("c-headless")})),
        cluster(&json!({"headGroupSpec": service_name("c-headless"), "workerGroupSpecs": [group("a", &json!({"numOfHosts": 2}))]}))
            .denied("N-C-5", below(HEAD, "headService.metadata.name")),
        Case::of(
            RayCluster,
            merged(
                cluster_object(&json!({"headGroupSpec": service_name("c-serve-svc")})),
                &json!({"metadata": {"annotations": {"ray.io/enable-serve-service": "true"}}}),
            ),
        )
        .denied("N-C-5", below(HEAD, "headService.metadata.name")),
    ]
}

fn quantities() -> Vec<Case> {
    let resources = |value: Value| json!({"template": template(&json!({"resources": value}))});
    let at = |path: &str| format!("{GROUP_BOX}.resources.{path}");
    vec![
        worker(&json!({"resources": {"CPU": "2", "memory": "1.5Gi", "GPU": "500m", "x.y/z": "3"}})),
        worker(&json!({"resources": {"CPU": "two"}})).denied("C-14", below(GROUP, "resources[CPU]")),
        head(&json!({"resources": {"memory": "6 Gi"}})).denied("C-14", below(HEAD, "resources[memory]")),
        worker(&json!({"rayStartParams": {"resources": "'{\"x\": 1}'"}})),
        worker(&json!({"rayStartParams": {"resources": "'{x: 1}'"}})).denied("C-14", below(GROUP, "rayStartParams[resources]")),
        worker(&json!({"rayStartParams": {"resources": "{\"x\": 1}"}})).warned("C-14", below(GROUP, "rayStartParams[resources]")),
        worker(&json!({"rayStartParams": {"num-cpus": "4"}})),
        worker(&json!({"rayStartParams": {"num-cpus": "four"}})).denied("N-C-7", below(GROUP, "rayStartParams[num-cpus]")),
        head(&json!({"rayStartParams": {"port": "70000", "memory": "6Gi"}}))
            .denied("N-C-7", below(HEAD, "rayStartParams[port]"))
            .denied("N-C-7", below(HEAD, "rayStartParams[memory]")),
        worker(&resources(json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1000m", "memory": "1024Mi"}}))),
        worker(&resources(json!({"limits": {"cpu": "x"}}))).denied("C-14", at("limits[cpu]")),
        worker(&resources(json!({"limits": {"cpu": 1}}))),
        worker(&resources(json!({"limits": {"cpu": 0.5, "memory": {"a": "b".repeat(1000)}}, "requests": null})))
            .denied("C-14", at("limits[cpu]"))
            .denied("C-14", at("limits[memory]")),
        worker(&json!({"numOfHosts": 0.0})).denied("C-03", below(GROUP, "numOfHosts")),
        worker(&resources(json!({"requests": {"cpu": "-1"}}))).denied("C-14", at("requests[cpu]")),
        worker(&resources(json!({"requests": {"cpu": "1001m"}}))).denied("N-C-6", at("requests[cpu]")),
        worker(&resources(json!({"requests": {"cpu": "9"}, "limits": {"cpu": null}}))),
        cluster(&json!({"enableInTreeAutoscaling": true, "autoscalerOptions": {"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}}))
            .denied("N-C-6", "spec.autoscalerOptions.resources.requests[cpu]"),
        job(&json!({"submitterPodTemplate": template(&json!({"resources": {"limits": {"cpu": "much"}}}))}))
            .denied("C-14", "spec.submitterPodTemplate.spec.containers[0].resources.limits[cpu]"),
        head(&json!({"rayStartParams": {"num_cpus": "1", "a b": "1"}})).denied("N-C-11", below(HEAD, "rayStartParams[a b]")),
        head(&json!({"rayStartParams": {"": "1", "--x;y": "1"}}))
            .denied("N-C-11", below(HEAD, "rayStartParams[]"))
            .denied("N-C-11", below(HEAD, "rayStartParams[--x;y]")),
        head_container(&json!({"name": "ray_head"})).denied("N-C-12", below(HEAD_BOX, "name")),
        head_container(&json!({"name": "a".repeat(63)})),
        head_container(&json!({"name": "a".repeat(64)})).denied("N-C-12", below(HEAD_BOX, "name")),
        worker(&json!({"template": {"spec": {"volumes": [{"name": "a"}, {"name": "My.Data"}]}}})).denied("N-C-12", below(GROUP, "template.spec.volumes[1].name")),
        head(&json!({"headService": {"metadata": {"name": "My_Service"}}})).denied("N-C-12", below(HEAD, "headService.metadata.name")),
        service(&json!({"serveService": {"metadata": {"name": "1st"}}})).denied("N-C-12", "spec.serveService.metadata.name"),
        head(&json!({"template": {"metadata": {"labels": {"a": "b c", "x/y/z": ""}}}}))
            .denied("N-C-13", below(HEAD, "template.metadata.labels[a]"))
            .denied("N-C-13", below(HEAD, "template.metadata.labels[x/y/z]")),
        worker(&json!({"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeSelector": {"pool": "gpu"}}}})),
        worker(&json!({"template": {"spec": {"nodeSelector": {"pool": "gpu!"}}}})).denied("N-C-13", below(GROUP, "template.spec.nodeSelector[pool]")),
        job(&json!({"submitterPodTemplate": merged(template(&json!({"name": "A"})), &json!({"metadata": {"labels": {"a": "b c"}}}))}))
            .denied("N-C-12", "spec.submitterPodTemplate.spec.containers[0].name")
            .denied("N-C-13", "spec.submitterPodTemplate.metadata.labels[a]"),
        head(&json!({"serviceType": "LoadBalancer"})),
        head(&json!({"serviceType": ""})),
        head(&json!({"serviceType": "loadbalancer"})).denied("N-C-9", below(HEAD, "serviceType")),
        head(&json!({"serviceType": "ExternalName"})).denied("N-C-9", below(HEAD, "serviceType")),
        worker(&json!({"template": {"spec": {"restartPolicy": "OnFailure"}}})),
        worker(&json!({"template": {"spec": {"restartPolicy": "never"}}})).denied("N-C-10", below(GROUP, "template.spec.restartPolicy")),
        cluster(&json!({"enableInTreeAutoscaling": true, "autoscalerOptions": {"version": "v2"}, "headGroupSpec": {"template": {"spec": {"restartPolicy": "always"}}}}))
            .denied("N-C-10", below(HEAD, "template.spec.restartPolicy")),
    ]
}

/// What Kubernetes refuses of a container.
fn containers() -> Vec<Case> {
    let resources = |limits: Value, requests: Value| {
        worker(&json!({"template": template(&json!({"resources": {"limits": limits, "requests": requests}}))}))
    };
    let at = |path: &str| format!("{GROUP_BOX}.resources.{path}");
    let gpu = |limit: Value, request: Value| resources(json!({"nvidia.com/gpu": limit}), json!({"nvidia.com/gpu": request}));
    let port = |patch: Value| head_container(&json!({"ports": [merged(json!({"containerPort": 6379, "name": "gcs-server"}), &patch)]}));
    let port_at = |field: &str| format!("{HEAD_BOX}.ports[0].{field}");
    let variable = |variable: Value| head_container(&json!({"env": [variable]}));
    let from = json!({"secretKeyRef": {"name": "s", "key": "k"}});
    let mount = |place: &str| {
        let mounted = container(&json!({"volumeMounts": [{"name": "v", "mountPath": place}]}));
        head(&json!({"template": {"spec": {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [mounted]}}}))
    };
    let mount_at = below(HEAD_BOX, "volumeMounts[0].mountPath");
    vec![
        resources(json!({"ephemeral-storage": "1Gi", "hugepages-2Mi": "4Mi"}), json!({"hugepages-2Mi": "4Mi"})),
        resources(json!({"gpu": 1}), json!(null)).denied("N-C-14", at("limits[gpu]")),
        resources(json!({"Memory": "1Gi"}), json!(null)).denied("N-C-14", at("limits[Memory]")),
        resources(json!(null), json!({"pods": 1})).denied("N-C-14", at("requests[pods]")),
        gpu(json!(1), json!(null)),
        gpu(json!("2"), json!(2)),
        gpu(json!("500m"), json!(null)).denied("N-C-14", at("limits[nvidia.com/gpu]")),
        gpu(json!(2), json!(1)).denied("N-C-14", at("requests[nvidia.com/gpu]")),
        gpu(json!(1), json!(2)).denied("N-C-6", at("requests[nvidia.com/gpu]")),
        gpu(json!(null), json!(1)).denied("N-C-14", at("requests[nvidia.com/gpu]")),
        resources(json!({"hugepages-2Mi": "4Mi"}), json!({"hugepages-2Mi": "2Mi"})).denied("N-C-14", at("requests[hugepages-2Mi]")),
        port(json!({"protocol": "UDP", "hostPort": 0})),
        port(json!({"containerPort": 65_535})),
        port(json!({"containerPort": 65_536})).denied("N-C-15", port_at("containerPort")),
        port(json!({"containerPort": 0})).denied("N-C-15", port_at("containerPort")),
        port(json!({"hostPort": -1})).denied("N-C-15", port_at("hostPort")),
        port(json!({"protocol": "tcp"})).denied("N-C-15", port_at("protocol")),
        port(json!({"name": "a".repeat(15)})),
        port(json!({"name": "a".repeat(16)})).denied("N-C-15", port_at("name")),
        port(json!({"name": "Gcs"})).denied("N-C-15", port_at("name")),
        port(json!({"name": "6379"})).denied("N-C-15", port_at("name")),
        port(json!({"name": "a--b"})).denied("N-C-15", port_at("name")),
        variable(json!({"name": "my.own-NAME", "value": "a=b"})),
        variable(json!({"name": "A", "value": "", "valueFrom": from})),
        variable(json!({"name": "A", "value": "x", "valueFrom": from})).denied("N-C-15", below(HEAD_BOX, "env[0].valueFrom")),
        variable(json!({"name": "A=B"})).denied("N-C-15", below(HEAD_BOX, "env[0].name")),
        variable(json!({"name": ""})).denied("N-C-15", below(HEAD_BOX, "env[0].name")),
        mount("/data"),
        mount("").denied("N-C-15", mount_at.clone()),
        mount("/a:b").denied("N-C-15", mount_at),
        head_container(&json!({"imagePullPolicy": "IfNotPresent"})),
        head_container(&json!({"imagePullPolicy": "ifNotPresent"})).denied("N-C-15", below(HEAD_BOX, "imagePullPolicy")),
        head_container(&json!({"image": "rayproject/ray:2.53.0 "})).denied("N-C-15", below(HEAD_BOX, "image")),
        job(&json!({"submitterPodTemplate": template(&json!({"ports": [{"containerPort": 0}]}))}))
            .denied("N-C-15", "spec.submitterPodTemplate.spec.containers[0].ports[0].containerPort"),
    ]
}

fn advice() -> Vec<Case> {
    let image = |text: &str| json!({"image": text});
    let bare = json!({"resources": null});
    let only = |section: &str| json!({"resources": {"limits": null, "requests": null, section: {"cpu": "1", "memory": "1Gi"}}});
    let version = |text: Value| cluster(&json!({"rayVersion": text}));
    let resources_at = |base: &str| format!("{base}.resources");
    let mounted = |name: &str| json!({"volumeMounts": [{"name": name, "mountPath": "/x"}]});
    vec![
        version(json!("2.53.0")).not_warned("W-C-1"),
        version(json!("2.53")).not_warned("W-C-1"),
        version(json!("2.52.0")).warned("W-C-1", "spec.rayVersion"),
        version(json!("nightly")).warned("W-C-3", "spec.rayVersion"),
        version(json!(null)).not_warned("W-C-2"),
        cluster(&json!({"rayVersion": null, "headGroupSpec": {"template": template(&image("registry/app:7"))}}))
            .warned("W-C-2", "spec.rayVersion"),
        worker(&json!({"template": template(&image("rayproject/ray:2.52.0"))})).warned("W-C-4", below(GROUP_BOX, "image")),
        worker(&json!({"template": template(&image("rayproject/ray:2.53.0-gpu"))})).not_warned("W-C-4"),
        head_container(&bare).warned("W-C-5", resources_at(HEAD_BOX)).warned("W-C-6", resources_at(HEAD_BOX)),
        head_container(&only("requests")).warned("W-C-6", resources_at(HEAD_BOX)),
        head_container(&only("limits")).not_warned("W-C-6").not_warned("W-C-5"),
        worker(&json!({"template": template(&only("requests"))})).not_warned("W-C-6").warned("W-C-5", resources_at(GROUP_BOX)),
        worker(&json!({"template": template(&bare), "rayStartParams": {"num-cpus": "1", "memory": "100"}}))
            .not_warned("W-C-6")
            .not_warned("W-C-5"),
        worker(&json!({"template": template(&bare), "resources": {"CPU": "1", "Memory": "1Gi"}})).not_warned("W-C-6").not_warned("W-C-5"),
        cluster(&json!({"autoscalerOptions": {"version": "v2"}})).warned("W-C-7", "spec.autoscalerOptions"),
        cluster(&json!({"autoscalerOptions": {"version": "v2"}, "enableInTreeAutoscaling": true})).not_warned("W-C-7"),
        head_container(&mounted("v")).warned("W-C-8", below(HEAD_BOX, "volumeMounts[0].name")),
        head_container(&mounted("ray-logs")).warned("W-C-8", below(HEAD_BOX, "volumeMounts[0].name")),
        head_container(&mounted("shared-mem")).not_warned("W-C-8"),
        head(&json!({"template": {"spec": {"volumes": [{"name": "v"}], "containers": [container(&mounted("v"))]}}})).not_warned("W-C-8"),
        head_container(&env("RAY_CLUSTER_NAME", "x")).warned("W-C-9", below(HEAD_BOX, "env[0].name")),
        head_container(&env("FQ_RAY_IP", "x")).not_warned("W-C-9"),
        worker(&json!({"template": template(&env("FQ_RAY_IP", "x"))})).warned("W-C-9", below(GROUP_BOX, "env[0].name")),
        head_container(&json!({"image": null})).warned("W-C-10", HEAD_BOX),
        head(&json!({"rayStartParams": {"num_cpus": "1"}})).warned("W-C-15", below(HEAD, "rayStartParams[num_cpus]")),
        head(&json!({"rayStartParams": {"numcpus": "1"}})).warned("W-C-15", below(HEAD, "rayStartParams[numcpus]")),
        head(&json!({"rayStartParams": {"dashbord-host": "0.0.0.0"}})).warned("W-C-15", below(HEAD, "rayStartParams[dashbord-host]")),
        head(&json!({"rayStartParams": {"num-cpus": "1", "block": "true", "something-new": "1"}})).not_warned("W-C-15"),
        head_container(&json!({})).not_warned("W-C-10"),
    ]
}

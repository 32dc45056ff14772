//! RC-40..RC-44: command and arguments of the Ray container.

use serde_json::json;

use crate::fixture::{PodExt, head, head_group, head_with, ray, settings, worker, worker_group, worker_with};

const ULIMIT: &str = "ulimit -n ${RAY_START_ULIMIT_OPEN_FILES:-65536}; ";

#[test]
fn rc_42_the_command_is_generated() {
    let pod = head(|_| ());
    assert_eq!(pod.ray().command.as_deref().unwrap(), ["/bin/bash", "-c", "--"]);
    assert_eq!(pod.ray().args.as_deref().unwrap(), [format!("{ULIMIT}{}", pod.start())]);
}

#[test]
fn rc_41_42_the_users_command_runs_first() {
    let table = [
        (json!(["echo 123"]), json!(null), " echo 123 "),
        (json!(null), json!(["setup.sh"]), " setup.sh "),
        (json!(["a"]), json!(["b", "c"]), " a  b  c "),
    ];
    for (command, args, own) in table {
        let pod = worker(|c| {
            ray(worker_group(c))["command"] = command.clone();
            ray(worker_group(c))["args"] = args.clone();
        });
        assert_eq!(pod.ray().command.as_deref().unwrap(), ["/bin/bash", "-c", "--"], "{command} {args}");
        assert_eq!(pod.ray().args.as_deref().unwrap(), [format!("{own} && {ULIMIT}{}", pod.start())], "{command} {args}");
    }
}

#[test]
fn rc_42_a_user_who_starts_ray_is_left_alone() {
    let pod = worker(|c| {
        ray(worker_group(c))["command"] = json!(["/bin/sh"]);
        ray(worker_group(c))["args"] = json!(["-c", "ulimit -n 1; ray start --block"]);
    });
    assert_eq!(pod.ray().command.as_deref().unwrap(), ["/bin/sh"]);
    assert_eq!(pod.ray().args.as_deref().unwrap(), ["-c", "ulimit -n 1; ray start --block"]);
}

#[test]
fn rc_44_overwritten_commands_are_left_alone_and_the_generated_one_is_told() {
    let of_cluster = head(|c| {
        c["metadata"]["annotations"] = json!({"ray.io/overwrite-container-cmd": "True"});
        ray(head_group(c))["command"] = json!(["mine"]);
    });
    assert_eq!(of_cluster.ray().command.as_deref().unwrap(), ["mine"]);
    assert_eq!(of_cluster.ray().args, None);
    assert!(of_cluster.start().starts_with("ray start --head "));
    assert_eq!(of_cluster.annotations()["ray.io/overwrite-container-cmd"], "true");

    let of_template = head(|c| head_group(c)["template"]["metadata"]["annotations"] = json!({"ray.io/overwrite-container-cmd": "true"}));
    assert_eq!(of_template.ray().command, None);

    let configured = settings(|s| {
        s.pods.annotations.insert("ray.io/overwrite-container-cmd".to_owned(), "TRUE".to_owned());
    });
    assert_eq!(head_with(|_| (), &configured).ray().command, None);
}

#[test]
fn rc_40_login_shell() {
    let login = settings(|s| s.switches.login_shell = true);
    let pod = worker_with(|_| (), &login);
    assert_eq!(pod.ray().command.as_deref().unwrap(), ["/bin/bash", "-cl", "--"]);
    assert_eq!(pod.init("wait-gcs-ready").command.as_deref().unwrap(), ["/bin/bash", "-cl", "--"]);
    let head = head_with(|c| c["spec"]["enableInTreeAutoscaling"] = true.into(), &login);
    assert_eq!(head.container("autoscaler").command.as_deref().unwrap(), ["/bin/bash", "-cl", "--"]);
    assert_eq!(operator::build::shell(&login, true), ["/bin/bash", "-cel", "--"]);
    assert_eq!(operator::build::shell(&settings(|_| ()), true), ["/bin/bash", "-ce", "--"]);
}

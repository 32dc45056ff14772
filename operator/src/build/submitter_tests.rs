#![allow(clippy::needless_pass_by_value)] // `json!` in the place of an argument reads better

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::TcpListener,
    path::Path,
    process::Command,
};

use serde_json::json;

use super::*;

/// Texts that a shell, Kubernetes, JSON or a locale could change.
const NASTY: [&str; 10] = [
    "python a.py && python b.py | tee out; echo done",
    r#"python -q "it's $HOME" 'a"b\c' \$y "$(echo sub)" `echo tick`; python z.py"#,
    "a $$ b $(RAY_JOB_SUBMISSION_ID) $$(X) ${Y:-z}",
    "line one\nline two\ttab \r\n",
    "ünïcödé 日本語 🚀 \u{200b}\u{a0}\u{7f}",
    "'''\"\"\"\\\\\\' --flag=-- -c *?[a]{b,c}~ #!",
    "   spaces around   ",
    "",
    "\u{1}\u{1b}[31m",
    "$",
];

fn ray_job(spec: serde_json::Value) -> RayJob {
    serde_json::from_value(json!({
        "metadata": {"name": "j", "namespace": "n", "uid": "u"}, "spec": spec,
    }))
    .unwrap()
}

fn ray_cluster(pod: serde_json::Value) -> RayCluster {
    serde_json::from_value(json!({
        "metadata": {"name": "c", "namespace": "n"}, "spec": {"headGroupSpec": {"template": {"spec": pod}}},
    }))
    .unwrap()
}

fn plain_cluster() -> RayCluster {
    ray_cluster(json!({"containers": [{"name": "ray-head", "image": "ray:1", "imagePullPolicy": "Always"}]}))
}

fn pod(job: &RayJob, cluster: &RayCluster) -> PodSpec {
    let built = super::job(job, cluster, "c-head-svc.n.svc.cluster.local:8265", "id", &Settings::default()).unwrap();
    built.spec.unwrap().template.spec.unwrap()
}

fn variables(container: &Container) -> BTreeMap<String, String> {
    container.env.iter().flatten().map(|variable| (variable.name.clone(), variable.value.clone().unwrap_or_default())).collect()
}

/// What Kubernetes makes of a text in command, args and values of variables.
fn expand(text: &str, known: &BTreeMap<String, String>) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let (Some(inner), Some(end)) = (rest.strip_prefix('('), rest.find(')')) {
            let name = &inner[..end - 1];
            out.push_str(&known.get(name).cloned().unwrap_or_else(|| format!("$({name})")));
            rest = &rest[end + 1..];
        } else {
            out.push('$');
        }
    }
    out + rest
}

#[test]
fn rj_123_the_request_says_what_the_user_wrote() {
    for text in NASTY {
        let job = ray_job(json!({"entrypoint": text, "metadata": {"k": text}}));
        let request = request(&job.spec, text).unwrap();
        assert_eq!((request.entrypoint.as_str(), request.submission_id.as_str()), (text, text));
        assert_eq!(request.metadata.unwrap()["k"], text);
    }
    let job = ray_job(json!({
        "runtimeEnvYAML": "env_vars: {A: yes, B: \"1\"}\npip: [a]\n", "entrypointNumCpus": 0.5, "entrypointNumGpus": 0,
        "entrypointResources": "{\"x\": 1, \"a b\": 0.5}",
    }));
    let sent = serde_json::to_value(request(&job.spec, "id").unwrap()).unwrap();
    let wanted = json!({
        "entrypoint": "", "submission_id": "id", "runtime_env": {"env_vars": {"A": true, "B": "1"}, "pip": ["a"]},
        "entrypoint_num_cpus": 0.5, "entrypoint_resources": {"x": 1, "a b": 0.5},
    });
    assert_eq!(sent, wanted);
}

#[test]
fn rj_117_what_cannot_be_sent_is_named() {
    let table = [
        (json!({"runtimeEnvYAML": "just a text"}), "spec.runtimeEnvYAML"),
        (json!({"runtimeEnvYAML": "a: [`"}), "spec.runtimeEnvYAML"),
        (json!({"entrypointResources": "[1]"}), "spec.entrypointResources"),
        (json!({"entrypointResources": "{\"a\": \"b\"}"}), "spec.entrypointResources"),
    ];
    for (spec, field) in table {
        let error = request(&ray_job(spec.clone()).spec, "id").unwrap_err().to_string();
        assert!(error.starts_with(field), "{spec}: {error}");
    }
    for empty in [
        json!({"runtimeEnvYAML": ""}),
        json!({"runtimeEnvYAML": "# nothing"}),
        json!({"entrypointResources": " "}),
        json!({"entrypointResources": "{}"}),
    ] {
        let request = request(&ray_job(empty.clone()).spec, "id").unwrap();
        assert_eq!((request.runtime_env, request.entrypoint_resources), (None, None), "{empty}");
    }
    let long = ray_job(json!({"entrypoint": "x".repeat(130_000)}));
    assert!(matches!(super::job(&long, &plain_cluster(), "a", "id", &Settings::default()), Err(SubmitError::TooLong(_))));
}

#[test]
fn c_48_c_49_kubernetes_and_locales_leave_the_request_alone() {
    for text in NASTY {
        let job = ray_job(json!({"entrypoint": text, "metadata": {text: text}}));
        let container = pod(&job, &plain_cluster()).containers.remove(0);
        let known = [("RAY_JOB_SUBMISSION_ID".to_owned(), "oops".to_owned()), ("X".to_owned(), "oops".to_owned())].into();
        let raw = variables(&container)[REQUEST].clone();
        assert!(raw.bytes().all(|byte| (0x20..0x7f).contains(&byte)) && !raw.contains('$'), "{raw}");
        let back: serde_json::Value = serde_json::from_str(&expand(&raw, &known)).unwrap();
        assert_eq!((back["entrypoint"].as_str().unwrap(), back["metadata"][text].as_str().unwrap()), (text, text));
        let script = container.args.unwrap().remove(0);
        assert_eq!(expand(&script, &known), script, "the script holds nothing that Kubernetes would expand");
    }
    assert_eq!(expand(&escaped("a$$b$(X)c$"), &BTreeMap::new()), "a$$b$(X)c$");
}

#[test]
fn c_48_the_script_is_the_same_for_every_job() {
    let script = |entrypoint: &str| {
        pod(&ray_job(json!({"entrypoint": entrypoint, "jobId": entrypoint})), &plain_cluster()).containers.remove(0).args
    };
    assert_eq!(script("a"), script("b; touch LEAK"));
    assert!(!PROGRAM.contains('$') && !PROGRAM.contains('\''));
}

#[test]
fn rj_111_rj_116_the_job() {
    let job = ray_job(json!({"entrypoint": "e"}));
    let built = super::job(&job, &plain_cluster(), "a:8265", "id", &Settings::default()).unwrap();
    let labels: BTreeMap<String, String> = [
        ("ray.io/originated-from-cr-name", "j"),
        ("ray.io/originated-from-crd", "RayJob"),
        ("app.kubernetes.io/created-by", "kuberay-operator"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .into();
    assert_eq!((built.metadata.name.as_deref(), built.metadata.namespace.as_deref()), (Some("j"), Some("n")));
    assert_eq!(built.metadata.labels.as_ref(), Some(&labels));
    assert_eq!(built.metadata.owner_references.unwrap()[0].uid, "u");
    let spec = built.spec.unwrap();
    assert_eq!(spec.backoff_limit, Some(2));
    assert_eq!(spec.template.metadata.unwrap().labels, Some(labels));
    for (limit, wanted) in [(0, 0), (5, 5), (-1, 0)] {
        let job = ray_job(json!({"submitterConfig": {"backoffLimit": limit}}));
        let built = super::job(&job, &plain_cluster(), "a", "id", &Settings::default()).unwrap();
        assert_eq!(built.spec.unwrap().backoff_limit, Some(wanted), "{limit}");
    }
}

#[test]
fn rj_112_rj_115_the_default_container() {
    let pod = pod(&ray_job(json!({"entrypoint": "e"})), &plain_cluster());
    assert_eq!((pod.restart_policy.as_deref(), pod.containers.len()), (Some("Never"), 1));
    let container = &pod.containers[0];
    assert_eq!((container.name.as_str(), container.image.as_deref()), ("ray-job-submitter", Some("ray:1")));
    assert_eq!(container.image_pull_policy.as_deref(), Some("Always"));
    assert_eq!(container.command.as_ref().unwrap(), &["/bin/bash", "-ce", "--"]);
    let resources = serde_json::to_value(&container.resources).unwrap();
    assert_eq!(resources, json!({"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "200Mi"}}));
    let variables = variables(container);
    assert_eq!(variables["PYTHONUNBUFFERED"], "1");
    assert_eq!(variables["RAY_DASHBOARD_ADDRESS"], "c-head-svc.n.svc.cluster.local:8265");
    assert_eq!(variables["RAY_JOB_SUBMISSION_ID"], "id");
    let mut settings = Settings::default();
    settings.switches.login_shell = true;
    let built = super::job(&ray_job(json!({})), &plain_cluster(), "a", "id", &settings).unwrap();
    assert_eq!(built.spec.unwrap().template.spec.unwrap().containers[0].command.as_ref().unwrap()[1], "-cel");
}

#[test]
fn c_09_weak_11_gaps_of_a_template_are_filled_and_given_fields_win() {
    let job = ray_job(json!({"submitterPodTemplate": {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"nodeSelector": {"pool": "cpu"}, "containers": [{"name": "s", "args": ["ignored"], "env": [{"name": "RAY_DASHBOARD_ADDRESS", "value": "x"}, {"name": "PYTHONUNBUFFERED", "value": ""}]}]},
    }}));
    let filled = pod(&job, &plain_cluster());
    assert_eq!((filled.restart_policy.as_deref(), filled.node_selector.unwrap()["pool"].as_str()), (Some("Never"), "cpu"));
    let container = &filled.containers[0];
    assert_eq!((container.name.as_str(), container.image.as_deref()), ("s", Some("ray:1")));
    assert!(container.resources.as_ref().unwrap().limits.is_some());
    assert_eq!(container.args.as_ref().unwrap().len(), 1);
    assert_ne!(container.args.as_ref().unwrap()[0], "ignored");
    let names: Vec<&str> = container.env.iter().flatten().map(|variable| variable.name.as_str()).collect();
    assert_eq!(names, ["PYTHONUNBUFFERED", "RAY_DASHBOARD_ADDRESS", "RAY_JOB_SUBMISSION_ID", REQUEST]);
    assert_eq!(variables(container)["PYTHONUNBUFFERED"], "");

    let job = ray_job(json!({"submitterPodTemplate": {"spec": {
        "restartPolicy": "OnFailure",
        "containers": [{"name": "other", "image": "o"}, {"name": "ray-job-submitter", "image": "mine", "resources": {"requests": {"cpu": "1"}}, "securityContext": {"runAsUser": 7}}],
    }}}));
    let given = pod(&job, &plain_cluster());
    assert_eq!((given.restart_policy.as_deref(), given.containers.len()), (Some("OnFailure"), 2));
    assert_eq!((given.containers[0].command.as_ref(), given.containers[0].env.as_ref()), (None, None), "the named container submits");
    let container = &given.containers[1];
    assert_eq!((container.image.as_deref(), container.image_pull_policy.as_deref()), (Some("mine"), None));
    assert!(container.resources.as_ref().unwrap().limits.is_none());
    assert_eq!(container.security_context.as_ref().unwrap().run_as_user, Some(7));

    let none = ray_job(json!({"submitterPodTemplate": {"spec": {"containers": []}}}));
    assert_eq!(super::job(&none, &plain_cluster(), "a", "id", &Settings::default()).unwrap_err(), SubmitError::NoContainers);
}

#[test]
fn rj_114_rj_120_a_command_of_ones_own_stays() {
    let job = ray_job(json!({"entrypointResources": "not read", "submitterPodTemplate": {"spec": {"containers": [
        {"name": "s", "image": "kuberay/submitter", "command": ["/submitter"], "args": ["--", "python", "x.py"]},
    ]}}}));
    let container = pod(&job, &plain_cluster()).containers.remove(0);
    assert_eq!(
        (container.command.clone().unwrap(), container.args.clone().unwrap()),
        (vec!["/submitter".to_owned()], ["--", "python", "x.py"].map(str::to_owned).to_vec())
    );
    let variables = variables(&container);
    assert_eq!((variables["RAY_JOB_SUBMISSION_ID"].as_str(), variables.contains_key(REQUEST)), ("id", false));
}

#[test]
fn c_37_the_submitter_is_held_to_what_the_head_is_held_to() {
    let safe = json!({"allowPrivilegeEscalation": false, "runAsNonRoot": true, "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}});
    let of_container = ray_cluster(json!({"containers": [{"name": "h", "image": "i", "securityContext": safe}]}));
    let of_pod = ray_cluster(json!({
        "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}, "fsGroup": 5}, "imagePullSecrets": [{"name": "p"}],
        "containers": [{"name": "h", "image": "i", "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}}],
    }));
    for cluster in [&of_container, &of_pod] {
        for template in [json!({}), json!({"submitterPodTemplate": {"spec": {"containers": [{"name": "s"}]}}})] {
            let pod = pod(&ray_job(template), cluster);
            assert!(security::meets_restricted(&pod, &pod.containers[0]));
        }
        let sidecar = sidecar(&ray_job(json!({})), cluster, "id", true, &Settings::default()).unwrap();
        assert!(security::meets_restricted(cluster.spec.head_group_spec.template.spec.as_ref().unwrap(), &sidecar));
    }
    let pod = pod(&ray_job(json!({})), &of_pod);
    assert_eq!((pod.image_pull_secrets.unwrap()[0].name.as_str(), pod.security_context.unwrap().fs_group), ("p", None));
}

#[test]
fn rj_115_rj_133_tokens() {
    let mut cluster = plain_cluster();
    cluster.spec.auth_options = Some(serde_json::from_value(json!({"mode": "token"})).unwrap());
    let container = pod(&ray_job(json!({})), &cluster).containers.remove(0);
    assert_eq!(variables(&container)["RAY_AUTH_MODE"], "token");
    let token = container.env.iter().flatten().find(|variable| variable.name == "RAY_AUTH_TOKEN").unwrap();
    assert_eq!(token.value_from.as_ref().unwrap().secret_key_ref.as_ref().unwrap().name, "c");
    cluster.spec.auth_options = Some(serde_json::from_value(json!({"mode": "token", "enableK8sTokenAuth": true})).unwrap());
    let pod = pod(&ray_job(json!({})), &cluster);
    assert_eq!(variables(&pod.containers[0])["RAY_ENABLE_K8S_TOKEN_AUTH"], "true");
    assert_eq!(pod.volumes.unwrap()[0].name, "ray-token");
    assert_eq!(pod.containers[0].volume_mounts.as_ref().unwrap()[0].mount_path, "/var/run/secrets/ray.io/serviceaccount");
}

#[test]
fn rj_140_rj_145_the_sidecar() {
    let cluster =
        ray_cluster(json!({"containers": [{"name": "h", "image": "ray:2", "ports": [{"name": "dashboard", "containerPort": 9000}]}]}));
    for (restarts, policy, strict) in [(true, Some("OnFailure"), "strict=''"), (false, None, "strict='strict'")] {
        let container = sidecar(&ray_job(json!({"entrypoint": "e"})), &cluster, "id", restarts, &Settings::default()).unwrap();
        assert_eq!(
            (container.name.as_str(), container.image.as_deref(), container.restart_policy.as_deref()),
            ("ray-job-submitter", Some("ray:2"), policy)
        );
        assert_eq!(variables(&container)["RAY_DASHBOARD_ADDRESS"], "127.0.0.1:9000");
        assert!(container.args.unwrap()[0].contains(strict));
        assert_eq!((container.volume_mounts, container.readiness_probe), (None, None));
    }
}

// ---- the generated container, run as the kubelet would

/// A stand-in for Ray's client. Its dashboard knows one job once it was submitted; `STATES` are what it answers about it, in turn.
const CLIENT: &str = r#"
import json, os

def note(what):
    with open(os.environ["NOTES"], "a") as file:
        file.write(json.dumps(what) + "\n")

class JobSubmissionClient:
    def __init__(self, address=None, create=False, headers=None):
        note({"client": address, "headers": headers})

    def get_job_status(self, job_id):
        path = os.environ["STATES"]
        states = open(path).read().split()
        if not states or states[0] == "unknown":
            open(path, "w").write(" ".join(states[1:]))
            raise RuntimeError("Request failed with status code 404: Job %s does not exist." % job_id)
        if len(states) > 1:
            open(path, "w").write(" ".join(states[1:]))
        if states[0] == "hiccup":
            raise ConnectionError("connection refused")
        return states[0]

    def submit_job(self, **request):
        note({"submitted": request})
        if os.environ.get("DUPLICATE"):
            raise RuntimeError("Request failed with status code 500: Job exists. Please use a different submission_id.")
        if os.environ.get("REFUSE"):
            raise RuntimeError("Request failed with status code 500: Request failed with status code 400: bad")
"#;

struct Run {
    code: Option<i32>,
    notes: Vec<serde_json::Value>,
    out: String,
    leaks: Vec<String>,
}

/// Runs the container with `states` as what Ray answers. `None` where there is no bash or Python.
fn run(container: &Container, states: &str, extra: &[(&str, &str)]) -> Option<Run> {
    let python =
        ["python3", "python"].into_iter().find(|name| Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success()));
    let (Some(python), true) = (python, Path::new("/bin/bash").exists()) else {
        eprintln!("skipped: no bash or Python here");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["bin", "work", "modules", "modules/ray"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    std::fs::write(path("modules/ray/__init__.py"), "").unwrap();
    std::fs::write(path("modules/ray/job_submission.py"), CLIENT).unwrap();
    std::fs::write(path("states"), states).unwrap();
    std::fs::write(path("notes"), "").unwrap();
    executable(&path("bin/python"), &format!("#!/bin/sh\nexec {python} \"$@\"\n"));
    executable(&path("bin/ray"), "#!/bin/sh\necho \"ray $*\"\n");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nsuccess");
        }
    });

    let mut known = BTreeMap::new();
    for (name, value) in variables(container) {
        let value = if name == "RAY_DASHBOARD_ADDRESS" { here.clone() } else { expand(&value, &known) };
        known.insert(name, value);
    }
    let words: Vec<String> =
        container.command.iter().flatten().chain(container.args.iter().flatten()).map(|word| expand(word, &known)).collect();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(path("work")).env_clear().envs(&known).envs(extra.iter().copied());
    command.env("PATH", format!("{}:/usr/bin:/bin", path("bin").display())).env("PYTHONPATH", path("modules"));
    command.env("STATES", path("states")).env("NOTES", path("notes"));
    let out = command.output().unwrap();
    let lines = std::fs::read_to_string(path("notes")).unwrap();
    Some(Run {
        code: out.status.code(),
        notes: lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
        out: format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr)),
        leaks: std::fs::read_dir(path("work")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect(),
    })
}

fn executable(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

impl Run {
    fn submitted(&self) -> Vec<&serde_json::Value> {
        self.notes.iter().filter_map(|note| note.get("submitted")).collect()
    }
}

#[test]
fn c_48_c_49_everything_reaches_ray_and_nothing_runs_in_the_submitter() {
    for text in NASTY {
        let job = ray_job(json!({
            "entrypoint": text, "metadata": {"k": text}, "entrypointResources": "{\"x\": 1}", "entrypointNumCpus": 2.0,
            "runtimeEnvYAML": format!("env_vars: {}", json!({"A": text, "LEAK": "`touch LEAK`$(touch LEAK)"})),
        }));
        let container = pod(&job, &plain_cluster()).containers.remove(0);
        let Some(run) = run(&container, "unknown SUCCEEDED", &[]) else { return };
        assert_eq!(run.code, Some(0), "{text:?}: {}", run.out);
        let sent = serde_json::to_value(request(&job.spec, "id").unwrap()).unwrap();
        assert_eq!(run.submitted(), [&sent], "{text:?}");
        assert_eq!(run.leaks, Vec::<String>::new(), "{text:?}");
        assert!(run.out.contains("ray job logs --address http://127.0.0.1:") && run.out.contains("--follow -- id"), "{}", run.out);
    }
}

#[test]
fn rj_122_rj_148_a_restart_never_submits_twice() {
    let container = pod(&ray_job(json!({"entrypoint": "e"})), &plain_cluster()).containers.remove(0);
    let Some(again) = run(&container, "RUNNING SUCCEEDED", &[]) else { return };
    assert_eq!((again.code, again.submitted().len()), (Some(0), 0), "{}", again.out);
    assert!(again.out.contains("ray job logs"));
    // Two submitters at once: Ray takes one.
    let second = run(&container, "unknown SUCCEEDED", &[("DUPLICATE", "1")]).unwrap();
    assert_eq!((second.code, second.submitted().len()), (Some(0), 1), "{}", second.out);
}

#[test]
fn following_is_taken_up_again_as_long_as_the_job_runs() {
    let container = pod(&ray_job(json!({"entrypoint": "e"})), &plain_cluster()).containers.remove(0);
    let Some(run) = run(&container, "unknown RUNNING hiccup SUCCEEDED", &[]) else { return };
    assert_eq!((run.code, run.out.matches("ray job logs").count()), (Some(0), 2), "{}", run.out);
}

#[test]
fn rj_108_rj_144_rj_145_exit_codes() {
    let cluster = plain_cluster();
    let job = ray_job(json!({"entrypoint": "e"}));
    let of_job = pod(&job, &cluster).containers.remove(0);
    let restarted = sidecar(&job, &cluster, "id", true, &Settings::default()).unwrap();
    let alone = sidecar(&job, &cluster, "id", false, &Settings::default()).unwrap();
    let table = [
        (&of_job, "unknown FAILED", None, 0),
        (&restarted, "unknown FAILED", None, 0),
        (&alone, "unknown FAILED", None, 1),
        (&alone, "unknown STOPPED", None, 0),
        (&alone, "unknown SUCCEEDED", None, 0),
        // Lost with its head: no other submitter is to hand it over again.
        (&of_job, "unknown RUNNING unknown", None, 0),
        (&restarted, "unknown RUNNING unknown", None, 0),
        (&alone, "unknown unknown", None, 1),
        (&of_job, "unknown", Some(("REFUSE", "1")), 1),
    ];
    for (container, states, extra, wanted) in table {
        let Some(run) = run(container, states, extra.as_slice()) else { return };
        assert_eq!(run.code, Some(wanted), "{states} {extra:?}: {}", run.out);
    }
}

#[test]
fn headers_for_the_dashboard_are_passed_on() {
    let container = pod(&ray_job(json!({"entrypoint": "e"})), &plain_cluster()).containers.remove(0);
    let Some(run) = run(&container, "unknown SUCCEEDED", &[("RAY_JOB_HEADERS", "{\"a\": \"b\"}")]) else { return };
    assert_eq!(run.notes[0]["headers"], json!({"a": "b"}));
}

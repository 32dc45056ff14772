//! The operator as a process: leadership, readiness, stopping.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use std::time::Duration;

use api_tests::{Program, namespace, program::binary, server};
use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use testcluster::wait;
use tokio::time::Instant;

const LEASE: &str = "ray-operator-leader";

async fn leads(program: &Program) -> bool {
    program.metrics().await.unwrap_or_default().lines().any(|line| line == r#"leader_election_master_status{name="ray-operator-leader"} 1"#)
}

async fn start(folder: &tempfile::TempDir, name: &str, flags: &[&str]) -> Program {
    let folder = folder.path().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    Program::operator(&folder, &server().kubeconfig(), flags, &[]).await.unwrap()
}

/// Runs a program to its end and gives back its exit code and what it printed.
async fn run_to_end(flags: &[&str]) -> (Option<i32>, String) {
    let kubeconfig = format!("--kubeconfig={}", server().kubeconfig().display());
    let mut command = tokio::process::Command::new(binary("kuberay-operator"));
    command.args([&kubeconfig, "--metrics-addr=0", "--health-probe-bind-address=0"]).args(flags).kill_on_drop(true);
    let output = tokio::time::timeout(Duration::from_secs(20), command.output()).await.unwrap().unwrap();
    (output.status.code(), format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)))
}

#[tokio::test]
async fn runtime_of_several_operators_one_leads_and_another_follows() {
    let client = server().client().await.unwrap();
    let namespace = namespace(&client, "lease").await.unwrap();
    let leases: Api<Lease> = Api::namespaced(client, &namespace);
    let folder = tempfile::tempdir().unwrap();
    let flag = format!("--leader-election-namespace={namespace}");
    let flags = [flag.as_str()];
    // A standby is ready, too: starting waits for that.
    let (one, two, three) = tokio::join!(start(&folder, "1", &flags), start(&folder, "2", &flags), start(&folder, "3", &flags));
    let mut programs = vec![one, two, three];
    let holder = || async { leases.get_opt(LEASE).await.ok().flatten()?.spec?.holder_identity.filter(|holder| !holder.is_empty()) };
    let first = wait::until("a leader", Duration::from_secs(10), || async { Ok(holder().await) }).await.unwrap();

    let leader = the_leader(&programs).await;
    let old = programs.remove(leader);
    // A leader that gives the lease back is followed at once.
    assert!(old.terminate().await.unwrap() < Duration::from_secs(2));
    let second =
        wait::until("the second leader", Duration::from_secs(6), || async { Ok(holder().await.filter(|holder| *holder != first)) });
    let second = second.await.unwrap();

    // One that is killed is followed when its lease has run out, and not before.
    let leader = the_leader(&programs).await;
    let killed = Instant::now();
    programs.remove(leader).kill().await.unwrap();
    let third =
        wait::until("the third leader", Duration::from_secs(25), || async { Ok(holder().await.filter(|holder| *holder != second)) });
    assert_ne!(third.await.unwrap(), first);
    assert!(killed.elapsed() > Duration::from_secs(10), "the lease was taken after {:?}", killed.elapsed());
    the_leader(&programs).await;
    for program in programs {
        program.terminate().await.unwrap();
    }
    let lease = leases.get(LEASE).await.unwrap().spec.unwrap();
    assert_eq!(lease.holder_identity.as_deref(), Some(""), "the lease is given back");
    assert_eq!(lease.lease_transitions, Some(2));
}

/// The index of the one program that says it leads.
async fn the_leader(programs: &[Program]) -> usize {
    wait::until("one program that leads", Duration::from_secs(10), || async {
        let mut leaders = Vec::new();
        for (index, program) in programs.iter().enumerate() {
            if leads(program).await {
                leaders.push(index);
            }
        }
        assert!(leaders.len() <= 1, "programs {leaders:?} lead at the same time");
        Ok(leaders.pop())
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn runtime_a_leader_whose_lease_is_taken_ends() {
    let client = server().client().await.unwrap();
    let namespace = namespace(&client, "taken").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut program = start(&folder, "1", &[&format!("--leader-election-namespace={namespace}")]).await;
    the_leader(std::slice::from_ref(&program)).await;
    let leases: Api<Lease> = Api::namespaced(client, &namespace);
    let mut lease = leases.get(LEASE).await.unwrap();
    lease.spec.as_mut().unwrap().holder_identity = Some("somebody-else".to_owned());
    while leases.replace(LEASE, &kube::api::PostParams::default(), &lease).await.is_err() {
        lease.metadata.resource_version = leases.get(LEASE).await.unwrap().metadata.resource_version;
    }
    let code = wait::until("the end of the process", Duration::from_secs(10), || {
        let ended = program.try_wait();
        async move { Ok(ended) }
    });
    assert_eq!(code.await.unwrap().code(), Some(1));
    assert!(program.log().contains("somebody-else"), "{}", program.log());
    let holder = leases.get(LEASE).await.unwrap().spec.unwrap().holder_identity;
    assert_eq!(holder.as_deref(), Some("somebody-else"), "a lost lease is not given back");
}

#[tokio::test]
async fn runtime_stops_within_two_seconds_with_or_without_a_lease() {
    let client = server().client().await.unwrap();
    let namespace = namespace(&client, "stop").await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let flag = format!("--leader-election-namespace={namespace}");
    for (name, flags) in [("with", vec![flag.as_str()]), ("without", vec!["--enable-leader-election=false"])] {
        let program = start(&folder, name, &flags).await;
        let took = program.terminate().await.unwrap();
        assert!(took < Duration::from_secs(2), "{name}: {took:?}");
    }
}

#[tokio::test]
async fn runtime_refuses_what_cannot_work_in_one_sentence() {
    for (flags, word) in [
        (vec!["--feature-gates=NoSuchGate=true"], "NoSuchGate"),
        (vec!["--feature-gates=RayClusterMTLS=true"], "RayClusterMTLS"),
        (vec!["--config=/no/such/file"], "/no/such/file"),
        (vec!["--feature-gates=KubernetesWAS=true"], "scheduling.k8s.io/v1alpha2 of Kubernetes 1.36"),
        (vec!["--batch-scheduler=volcano"], "needs the kind PodGroup of scheduling.volcano.sh/v1beta1"),
        (vec!["--batch-scheduler=scheduler-plugins"], "needs the kind PodGroup of scheduling.x-k8s.io/v1alpha1"),
        (vec!["--metrics-addr=nowhere"], "nowhere"),
    ] {
        let (code, output) = run_to_end(&flags).await;
        assert_eq!(code, Some(1), "{flags:?}: {output}");
        assert!(output.contains(word), "{flags:?}: {output}");
    }
    let (code, output) = run_to_end(&["--no-such-flag"]).await;
    assert_eq!(code, Some(2), "{output}");
    let (code, output) = run_to_end(&["--help"]).await;
    assert_eq!(code, Some(0), "{output}");
}

#[tokio::test]
async fn runtime_watches_only_the_namespaces_it_is_told() {
    let client = server().client().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut names = Vec::new();
    for prefix in ["seen-a", "seen-b", "unseen"] {
        let name = namespace(&client, prefix).await.unwrap();
        let pod = serde_json::from_value(serde_json::json!({
            "metadata": { "name": "p", "labels": { "ray.io/node-type": "worker", "ray.io/cluster": "c" } },
            "spec": { "containers": [{ "name": "c", "image": "i" }] },
        }));
        let pods: Api<k8s_openapi::api::core::v1::Pod> = Api::namespaced(client.clone(), &name);
        pods.create(&kube::api::PostParams::default(), &pod.unwrap()).await.unwrap();
        names.push(name);
    }
    let list = format!("{},{}", names[0], names[1]);
    let program = start(&folder, "1", &["--enable-leader-election=false", "-watch-namespace", &list]).await;
    let metrics = program.metrics().await.unwrap();
    assert!(metrics.lines().any(|line| line == r#"kuberay_cache_objects{kind="Pod"} 2"#), "{metrics}");
}

#[tokio::test]
async fn runtime_configuration_file_and_console_log_count() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.yaml");
    let port = testcluster::local::free_port().unwrap();
    let text = format!(
        "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\nenableLeaderElection: false\nlogStdoutEncoder: console\nsurprise: 1\n\
         metricsAddr: '0'\nprobeAddr: 127.0.0.1:{port}\n"
    );
    std::fs::write(&file, text).unwrap();
    let mut command = tokio::process::Command::new(binary("kuberay-operator"));
    let config = format!("--config={}", file.display());
    let kubeconfig = format!("-kubeconfig={}", server().kubeconfig().display());
    let mut child = command.args([config, kubeconfig]).stdout(std::process::Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let ready = wait::until("readiness", Duration::from_secs(20), || async {
        Ok(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok().map(drop))
    });
    ready.await.unwrap();
    let pid = child.id().unwrap().to_string();
    tokio::process::Command::new("kill").args(["-TERM", &pid]).status().await.unwrap();
    let mut output = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut child.stdout.take().unwrap(), &mut output).await.unwrap();
    assert!(child.wait().await.unwrap().success(), "{output}");
    assert!(output.lines().any(|line| line.contains("\tWARN\t") && line.contains("surprise")), "{output}");
}

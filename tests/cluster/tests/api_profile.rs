//! The API profile against its promises: side by side, quick, restricted users, nothing left.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "helpers of tests, which the lint does not take for tests")]

use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::{Api, api::PostParams};
use testcluster::{
    api::{ApiServer, FakeNodes, Options},
    process::{self, Identity},
    wait,
};
use tokio::time::Instant;

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

async fn start() -> anyhow::Result<ApiServer> {
    ApiServer::start(Options::default()).await
}

#[tokio::test]
async fn api_profile_runs_twice_side_by_side_and_leaves_nothing() {
    // Builds, if any, before the clock starts.
    start().await.unwrap().stop().await.unwrap();

    let begin = Instant::now();
    // Spawned, to show that an instance may be started and used from any task.
    let (one, two) = tokio::join!(tokio::spawn(start()), tokio::spawn(start()));
    let (one, two) = (one.unwrap().unwrap(), two.unwrap().unwrap());
    eprintln!("two API servers were up after {:.1} s", begin.elapsed().as_secs_f64());
    assert!(begin.elapsed() < Duration::from_secs(60), "two at once took {:?}", begin.elapsed());
    assert_ne!(one.url(), two.url());

    let in_one: Api<ConfigMap> = Api::default_namespaced(one.client());
    in_one.create(&PostParams::default(), &config_map("only-here")).await.unwrap();
    let in_two: Api<ConfigMap> = Api::default_namespaced(two.client());
    assert!(in_two.get_opt("only-here").await.unwrap().is_none(), "two clusters, not one");

    let version = process::run(one.kubectl().args(["version", "--output=json"])).await.unwrap();
    assert!(version.contains("v1.35"), "{version}");
    let helm = process::run(one.helm().args(["list", "--output=json"])).await.unwrap();
    assert_eq!(helm.trim(), "[]");

    let processes: Vec<Identity> = [&one, &two].iter().flat_map(|server| server.processes()).map(|(_, process)| process).collect();
    let dirs = [one.dir().to_owned(), two.dir().to_owned()];
    assert_eq!(processes.len(), 6);
    one.stop().await.unwrap();
    two.stop().await.unwrap();
    assert!(processes.iter().all(|process| !process.alive()));
    assert!(dirs.iter().all(|dir| !dir.exists()));
}

#[tokio::test]
async fn api_profile_gives_restricted_users() {
    let server = start().await.unwrap();
    let user = server.kubeconfig_for("jane", &["testers", "others"]).unwrap();
    let account = server.kubeconfig_for_service_account("default", "robot").await.unwrap();
    for (who, kubeconfig) in [("jane", &user), ("system:serviceaccount:default:robot", &account)] {
        let whoami = process::run(server.kubectl().env("KUBECONFIG", kubeconfig).args(["auth", "whoami"])).await.unwrap();
        assert!(whoami.contains(who), "{whoami}");
        let maps: Api<ConfigMap> = Api::default_namespaced(testcluster::client(kubeconfig).await.unwrap());
        let refused = maps.create(&PostParams::default(), &config_map("x")).await.unwrap_err();
        assert!(matches!(&refused, kube::Error::Api(status) if status.code == 403), "{refused}");
    }
    process::run(server.kubectl().args(["create", "clusterrolebinding", "t", "--clusterrole=cluster-admin", "--group=testers"]))
        .await
        .unwrap();
    let spaces: Api<Namespace> = Api::all(testcluster::client(&user).await.unwrap());
    assert!(spaces.get_opt("default").await.unwrap().is_some(), "rights by group");
    server.stop().await.unwrap();
}

#[tokio::test]
async fn api_profile_dropped_without_a_stop_is_cleaned_up_by_its_guard() {
    let server = start().await.unwrap();
    let dir = server.dir().to_owned();
    let processes = server.processes();
    drop(server);
    wait::until("the guard's work", Duration::from_secs(20), || async {
        Ok((!dir.exists() && processes.iter().all(|(_, process)| !process.alive())).then_some(()))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn api_profile_plays_pods_whose_addresses_are_this_machine() {
    if testcluster::platform::require_linux_root().is_err() {
        eprintln!("skipped: routes to fake Pods need root");
        return;
    }
    let nodes = FakeNodes { count: 2, pod_cidr: "10.95.77.0/24".to_owned(), local_pods: true, ..FakeNodes::default() };
    let server = ApiServer::start(Options { scheduler: true, fake_nodes: Some(nodes), ..Options::default() }).await.unwrap();
    process::run(server.kubectl().args(["run", "x", "--image=x"])).await.unwrap();
    process::run(server.kubectl().args(["wait", "pod/x", "--for=condition=Ready", "--timeout=30s"])).await.unwrap();
    let address = process::run(server.kubectl().args(["get", "pod", "x", "--output=jsonpath={.status.podIP}"])).await.unwrap();
    assert!(address.starts_with("10.95.77."), "{address}");
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (connected, accepted) = tokio::join!(tokio::net::TcpStream::connect((address.as_str(), port)), listener.accept());
    connected.unwrap();
    assert_eq!(accepted.unwrap().0.local_addr().unwrap().ip().to_string(), address, "the server sees which Pod was meant");
    server.stop().await.unwrap();
    let routes = process::run(tokio::process::Command::new("ip").args(["route", "show", "table", "local"])).await.unwrap();
    assert!(!routes.contains("10.95.77."), "{routes}");
}

/// Runs the program, gives it with the folder of its instance once it is up.
async fn program() -> anyhow::Result<(tokio::process::Child, std::path::PathBuf)> {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let mut child =
        tokio::process::Command::new(env!("CARGO_BIN_EXE_testcluster")).arg("api").stdout(std::process::Stdio::piped()).spawn()?;
    let stdout = child.stdout.take().expect("piped");
    let line = BufReader::new(stdout).lines().next_line().await?.expect("one line when it is up");
    let kubeconfig = line.strip_prefix("export KUBECONFIG=").expect("the export line");
    Ok((child, std::path::Path::new(kubeconfig).parent().expect("a folder").to_owned()))
}

/// The processes that an instance has written down.
fn recorded(dir: &std::path::Path) -> Vec<Identity> {
    let text = std::fs::read_to_string(dir.join("processes")).expect("the record");
    text.lines().map(|line| line.rsplit_once(' ').expect("a name").0.parse().expect("an identity")).collect()
}

#[tokio::test]
async fn api_profile_is_cleaned_up_after_kill_9() {
    let (mut child, dir) = program().await.unwrap();
    let processes = recorded(&dir);
    assert!(processes.len() == 3 && processes.iter().all(Identity::alive), "{processes:?}");
    child.kill().await.unwrap();
    wait::until("the guard's work", Duration::from_secs(20), || async {
        Ok((!dir.exists() && processes.iter().all(|process| !process.alive())).then_some(()))
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn api_profile_is_cleaned_up_by_the_next_start_when_the_guard_died_too() {
    let (mut child, dir) = program().await.unwrap();
    let processes = recorded(&dir);
    let guard = guard_of(child.id().unwrap());
    process::run(tokio::process::Command::new("kill").args(["-KILL", &guard.to_string()])).await.unwrap();
    child.kill().await.unwrap();
    // Unless a test beside this one has just started an instance and cleared it away, it is listed.
    let listed = testcluster::api::leftovers().iter().any(|line| line.contains(&dir.display().to_string()));
    assert!(listed || !dir.exists(), "leftovers does not see what is left");
    start().await.unwrap().stop().await.unwrap();
    assert!(!dir.exists() && processes.iter().all(|process| !process.alive()));
}

/// The guard shell among a process's children.
fn guard_of(parent: u32) -> u32 {
    let threads = std::fs::read_dir(format!("/proc/{parent}/task")).expect("the program's threads");
    let children = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let pids: Vec<u32> =
        children.flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    let is_guard = |pid: &&u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains("kuberay-testbed-guard")
    };
    *pids.iter().find(is_guard).expect("a guard among the children")
}

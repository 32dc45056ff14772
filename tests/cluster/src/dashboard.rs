//! A Ray dashboard that behaves as told, at the address of every head Pod of a namespace.
//!
//! Fake Pods have addresses of this machine (`FakeNodes::local_pods`), so that the API server's proxy reaches it as it would reach Ray.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// When every job was started, in milliseconds since 1970.
pub const STARTED: i64 = 1_767_225_600_000;
/// Port of a Ray dashboard.
const PORT: u16 = 8265;

/// How the dashboard behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    /// As it should.
    Fine,
    /// It answers everything with this status.
    Fails(u16),
    /// It answers everything with this status, and quotes what it was sent, as Ray does with a runtime environment that it cannot use.
    Echoes(u16),
    /// It answers everything with a page for people.
    Html,
    /// It needs this many milliseconds for an answer.
    Late(u64),
    /// It sends headers, and then nothing.
    Stuck,
    /// Nobody listens.
    Refused,
}

/// A call that was made.
#[derive(Clone, Debug)]
pub struct Call {
    /// Method and path.
    pub what: String,
    /// Body, if it was JSON.
    pub body: Value,
    /// `x-ray-authorization`.
    pub token: String,
}

#[derive(Default)]
struct Stage {
    /// State of jobs that are named by nobody else; none means that Ray does not know them.
    otherwise: Option<String>,
    /// State of a job that has just been submitted.
    submitted: String,
    jobs: HashMap<String, String>,
    /// When a job last changed its state, in milliseconds since 1970.
    changed: i64,
    calls: Vec<Call>,
}

/// The dashboards of a namespace, all with the same jobs. They are there until this value is dropped.
pub struct Dashboard {
    stage: Arc<Mutex<Stage>>,
    mood: watch::Sender<Mood>,
    task: JoinHandle<()>,
}

impl Dashboard {
    /// Answers for the head Pods of `namespace`, those to come included. Submitted jobs run.
    pub fn start(client: Client, namespace: &str) -> Self {
        let stage = Arc::new(Mutex::new(Stage { submitted: "RUNNING".to_owned(), ..Stage::default() }));
        let (mood, watched) = watch::channel(Mood::Fine);
        let pods = Api::<Pod>::namespaced(client, namespace);
        let task = tokio::spawn(follow_heads(pods, Arc::clone(&stage), watched));
        Self { stage, mood, task }
    }

    /// Changes how the dashboard behaves.
    pub fn set(&self, mood: Mood) {
        self.mood.send_replace(mood);
    }

    /// State of every job that is not named; `None`: Ray does not know such jobs.
    pub fn otherwise(&self, state: Option<&str>) {
        let mut stage = self.stage();
        stage.otherwise = state.map(str::to_owned);
        stage.changed = now();
    }

    /// State of jobs right after they are submitted to the dashboard.
    pub fn submitted(&self, state: &str) {
        state.clone_into(&mut self.stage().submitted);
    }

    /// State of one job.
    pub fn job(&self, id: &str, state: &str) {
        let mut stage = self.stage();
        stage.jobs.insert(id.to_owned(), state.to_owned());
        stage.changed = now();
    }

    /// State of one job as the dashboard would tell it.
    pub fn state_of(&self, id: &str) -> Option<String> {
        let stage = self.stage();
        stage.jobs.get(id).or(stage.otherwise.as_ref()).cloned()
    }

    /// Calls so far whose method and path begin so.
    pub fn calls(&self, begin: &str) -> Vec<Call> {
        self.stage().calls.iter().filter(|call| call.what.starts_with(begin)).cloned().collect()
    }

    /// Jobs that were submitted, in order.
    pub fn submissions(&self) -> Vec<Value> {
        let stage = self.stage();
        stage.calls.iter().filter(|call| call.what == "POST /api/jobs/").map(|call| call.body.clone()).collect()
    }

    fn stage(&self) -> MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Has a server run for each head Pod with an address, as long as the Pod is there: addresses are given out again.
async fn follow_heads(pods: Api<Pod>, stage: Arc<Mutex<Stage>>, mood: watch::Receiver<Mood>) {
    let mut servers: HashMap<String, (IpAddr, AbortOnDrop)> = HashMap::new();
    let mut listed = HashSet::new();
    let mut events = watcher(pods, watcher::Config::default().labels("ray.io/node-type=head")).default_backoff().boxed();
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            Ok(Event::InitDone) => servers.retain(|uid, _| listed.contains(uid)),
            Ok(Event::Delete(pod)) => drop(servers.remove(&pod.uid().unwrap_or_default())),
            Ok(Event::InitApply(pod) | Event::Apply(pod)) => {
                let uid = pod.uid().unwrap_or_default();
                listed.insert(uid.clone());
                let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_ref()?.parse().ok());
                if let Some(address) = address
                    && servers.get(&uid).is_none_or(|(known, _)| *known != address)
                {
                    let server = tokio::spawn(serve(SocketAddr::new(address, PORT), Arc::clone(&stage), mood.clone()));
                    servers.insert(uid, (address, AbortOnDrop(server)));
                }
            }
            // The watch returns by itself.
            Err(_) => {}
        }
    }
}

struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn serve(address: SocketAddr, stage: Arc<Mutex<Stage>>, mut mood: watch::Receiver<Mood>) {
    loop {
        if mood.wait_for(|mood| *mood != Mood::Refused).await.is_err() {
            return;
        }
        let Ok(listener) = TcpListener::bind(address).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        // Connections end with the set, so that nothing stays open when nobody is to listen.
        let mut connections = JoinSet::new();
        let watched = mood.clone();
        loop {
            tokio::select! {
                accepted = listener.accept() => {
                    let Ok((stream, _)) = accepted else { break };
                    let (stage, mood) = (Arc::clone(&stage), watched.clone());
                    connections.spawn(async move {
                        let service = service_fn(move |request| {
                            let mood = *mood.borrow();
                            answer(Arc::clone(&stage), mood, request)
                        });
                        let _ = Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
                    });
                }
                closed = mood.wait_for(|mood| *mood == Mood::Refused) => {
                    if closed.is_err() {
                        return;
                    }
                    break;
                }
            }
        }
    }
}

type Answer = Response<BoxBody<Bytes, std::convert::Infallible>>;

fn say(code: u16, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()).boxed());
    *answer.status_mut() = hyper::StatusCode::from_u16(code).unwrap_or_default();
    answer
}

async fn answer(stage: Arc<Mutex<Stage>>, mood: Mood, request: Request<Incoming>) -> Result<Answer, std::convert::Infallible> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let token = request.headers().get("x-ray-authorization").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let call = Call { what: format!("{method} {path}"), body: body.clone(), token };
    stage.lock().unwrap_or_else(PoisonError::into_inner).calls.push(call);
    match mood {
        Mood::Fine | Mood::Refused => {}
        Mood::Fails(code) => return Ok(say(code, "broken")),
        Mood::Echoes(code) => return Ok(say(code, format!("cannot be used: {body}"))),
        Mood::Html => return Ok(say(200, "<html><body>please sign in</body></html>")),
        Mood::Late(milliseconds) => tokio::time::sleep(Duration::from_millis(milliseconds)).await,
        Mood::Stuck => {
            let nothing = futures::stream::pending::<Result<Frame<Bytes>, std::convert::Infallible>>();
            return Ok(Response::new(BodyExt::boxed(StreamBody::new(nothing))));
        }
    }
    let mut stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(stage.answer(&method, &path, &body))
}

impl Stage {
    fn answer(&mut self, method: &Method, path: &str, body: &Value) -> Answer {
        let Some(rest) = path.strip_prefix("/api/jobs/") else { return say(404, "no such page") };
        let (id, verb) = rest.split_once('/').unwrap_or((rest, ""));
        let known = self.jobs.get(id).or(self.otherwise.as_ref()).cloned();
        match (method.as_str(), id, verb, known) {
            ("GET", "", ..) => say(200, self.jobs.iter().map(|(id, state)| self.info(id, state)).collect::<Value>().to_string()),
            ("GET", id, "", Some(state)) => say(200, self.info(id, &state).to_string()),
            ("POST", "", ..) => {
                let id = body["submission_id"].as_str().unwrap_or_default().to_owned();
                if self.jobs.contains_key(&id) {
                    return say(500, "it exists. Please use a different submission_id.");
                }
                self.jobs.insert(id.clone(), self.submitted.clone());
                self.changed = now();
                say(200, json!({ "job_id": id, "submission_id": id }).to_string())
            }
            ("POST", id, "stop", Some(state)) => {
                let runs = matches!(state.as_str(), "PENDING" | "RUNNING");
                if runs {
                    self.jobs.insert(id.to_owned(), "STOPPED".to_owned());
                    self.changed = now();
                }
                say(200, json!({ "stopped": runs }).to_string())
            }
            (_, id, ..) => say(404, format!("Job {id} does not exist")),
        }
    }

    fn info(&self, id: &str, state: &str) -> Value {
        let ended = matches!(state, "SUCCEEDED" | "FAILED" | "STOPPED").then_some(self.changed);
        json!({
            "type": "SUBMISSION", "job_id": "01000000", "submission_id": id, "status": state, "entrypoint": "e", "message": format!("it is {state}"),
            "metadata": {}, "runtime_env": {}, "start_time": STARTED, "end_time": ended,
        })
    }
}

#[allow(clippy::disallowed_methods)] // a part of the world that is played, not of what is tested
fn now() -> i64 {
    jiff::Timestamp::now().as_millisecond()
}

//! Against a real HTTP server that behaves as badly as told.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, Uri},
    response::Response,
};
use serde_json::{Value, json};

use super::{
    client::Dashboards,
    inquirer::Inquirer,
    inquiry::{Inquiry, Occasion, Purpose, Reply},
    job::{Endpoint, SubmitRequest},
    reply::DashboardError,
    transport::Transport,
};
use crate::runtime::{clock::Clock, key::ObjectKey};

/// How the server behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mood {
    Fine,
    Fails(u16),
    Html,
    /// Headers, and then nothing.
    Slow,
    /// Nothing at all.
    Hangs,
    /// A body without end.
    Endless,
    /// The list of jobs does not exist.
    NoList,
}

struct Stage {
    mood: Mood,
    jobs: HashMap<String, String>,
    calls: Vec<String>,
    tokens: Vec<String>,
}

#[derive(Clone)]
struct Fake {
    stage: Arc<Mutex<Stage>>,
    address: String,
}

impl Fake {
    async fn start() -> Self {
        let stage = Arc::new(Mutex::new(Stage { mood: Mood::Fine, jobs: HashMap::new(), calls: Vec::new(), tokens: Vec::new() }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let app = Router::new().fallback(answer).with_state(Arc::clone(&stage));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { stage, address }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint { namespace: "n".into(), service: "s".into(), address: self.address.as_str().into(), token_secret: None }
    }

    fn set(&self, mood: Mood) {
        self.stage.lock().unwrap().mood = mood;
    }

    fn job(&self, id: &str, status: &str) {
        self.stage.lock().unwrap().jobs.insert(id.to_owned(), status.to_owned());
    }

    fn calls(&self) -> Vec<String> {
        self.stage.lock().unwrap().calls.clone()
    }

    fn inquiry(&self, id: &str, purpose: Purpose) -> Inquiry {
        Inquiry { endpoint: self.endpoint(), job_id: id.to_owned(), purpose, occasion: Occasion::Routine, announced: false }
    }
}

async fn answer(State(stage): State<Arc<Mutex<Stage>>>, method: Method, uri: Uri, headers: HeaderMap, body: Bytes) -> Response {
    let say = |code: u16, body: Body| Response::builder().status(code).body(body).unwrap();
    if stage.lock().unwrap().mood == Mood::Hangs {
        return std::future::pending().await;
    }
    let mut stage = stage.lock().unwrap();
    stage.calls.push(format!("{method} {}", uri.path()));
    stage.tokens.push(headers.get("x-ray-authorization").map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default());
    let endless = || Body::from_stream(futures::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from_static(&[b' '; 65536]))));
    let info = |id: &str, status: &str| json!({"submission_id": id, "status": status, "message": "m", "start_time": 1_700_000_000_000_u64});
    match stage.mood {
        Mood::Fails(code) => return say(code, Body::from("broken")),
        Mood::Html => return say(200, Body::from("<html>sign in</html>")),
        Mood::Slow => return say(200, Body::from_stream(futures::stream::pending::<Result<Bytes, std::io::Error>>())),
        Mood::Endless => return say(200, endless()),
        Mood::NoList if uri.path() == "/api/jobs/" && method == Method::GET => return say(404, Body::from("no such page")),
        Mood::Fine | Mood::NoList | Mood::Hangs => {}
    }
    let id = uri.path().trim_start_matches("/api/jobs/").trim_end_matches("/stop").to_owned();
    match (method, id.as_str()) {
        (Method::GET, "") => say(200, Body::from(stage.jobs.iter().map(|(id, status)| info(id, status)).collect::<Value>().to_string())),
        (Method::GET, id) => match stage.jobs.get(id) {
            Some(status) => say(200, Body::from(info(id, status).to_string())),
            None => say(404, Body::from(format!("Job {id} does not exist"))),
        },
        (Method::POST, "") => {
            let request: Value = serde_json::from_slice(&body).unwrap();
            let id = request["submission_id"].as_str().unwrap().to_owned();
            if request["entrypoint"] == "bad" {
                return say(500, Body::from("Request failed with status code 400: bad"));
            }
            if stage.jobs.contains_key(&id) {
                return say(500, Body::from("already exists. Please use a different submission_id."));
            }
            stage.jobs.insert(id.clone(), "RUNNING".to_owned());
            say(200, Body::from(json!({"job_id": id}).to_string()))
        }
        (Method::POST, id) => {
            let running = stage.jobs.get(id).is_some_and(|status| status == "RUNNING");
            if running {
                stage.jobs.insert(id.to_owned(), "STOPPED".to_owned());
            }
            say(200, Body::from(json!({"stopped": running}).to_string()))
        }
        _ => say(405, Body::empty()),
    }
}

fn dashboards() -> Dashboards {
    Dashboards::new(Transport::direct(), None)
}

fn request(id: &str, entrypoint: &str) -> SubmitRequest {
    SubmitRequest { entrypoint: entrypoint.to_owned(), submission_id: id.to_owned(), ..SubmitRequest::default() }
}

#[tokio::test]
async fn rj_131_the_calls() {
    let (fake, dashboards) = (Fake::start().await, dashboards());
    let endpoint = fake.endpoint();
    assert_eq!(dashboards.job(&endpoint, "a b/c").await, Err(DashboardError::NotFound));
    dashboards.submit(&endpoint, &request("j", "e")).await.unwrap();
    assert_eq!(dashboards.job(&endpoint, "j").await.unwrap().status, "RUNNING");
    assert_eq!(dashboards.jobs(&endpoint).await.unwrap().len(), 1);
    assert_eq!(dashboards.stop(&endpoint, "j").await, Ok(true));
    assert_eq!(dashboards.stop(&endpoint, "j").await, Ok(false));
    let wanted = [
        "GET /api/jobs/a%20b%2Fc",
        "POST /api/jobs/",
        "GET /api/jobs/j",
        "GET /api/jobs/",
        "POST /api/jobs/j/stop",
        "POST /api/jobs/j/stop",
    ];
    assert_eq!(fake.calls(), wanted);
}

#[tokio::test]
async fn weak_13_every_kind_of_trouble_is_told_apart_and_bounded() {
    let (fake, dashboards) = (Fake::start().await, dashboards());
    fake.job("j", "RUNNING");
    let endpoint = fake.endpoint();
    let began = tokio::time::Instant::now();
    for (mood, wanted) in [
        (Mood::Fails(500), "failing"),
        (Mood::Fails(401), "unauthorized"),
        (Mood::Html, "garbled"),
        (Mood::Slow, "unreachable"),
        (Mood::Hangs, "unreachable"),
        (Mood::Endless, "too long"),
    ] {
        fake.set(mood);
        let found = match dashboards.job(&endpoint, "j").await.unwrap_err() {
            DashboardError::Failing { .. } => "failing",
            DashboardError::Unauthorized(_) => "unauthorized",
            DashboardError::Garbled(_) => "garbled",
            DashboardError::Unreachable(_) => "unreachable",
            DashboardError::TooLong(_) => "too long",
            _ => "other",
        };
        assert_eq!(found, wanted, "{mood:?}");
    }
    let nobody = Endpoint { address: "127.0.0.1:1".into(), ..endpoint };
    assert!(matches!(dashboards.job(&nobody, "j").await, Err(DashboardError::Unreachable(_))));
    assert!(began.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn weak_1_a_token_that_cannot_be_read_is_an_error_not_a_panic() {
    let (fake, dashboards) = (Fake::start().await, dashboards());
    let endpoint = Endpoint { token_secret: Some("gone".into()), ..fake.endpoint() };
    assert!(matches!(dashboards.job(&endpoint, "j").await, Err(DashboardError::NoToken(_))));
    assert_eq!(fake.calls(), Vec::<String>::new(), "nothing is sent without it");
}

struct Asking {
    inquirer: Inquirer,
    woken: tokio::sync::mpsc::UnboundedReceiver<ObjectKey>,
    task: tokio::task::JoinHandle<()>,
}

impl Asking {
    fn start() -> Self {
        let (sender, woken) = tokio::sync::mpsc::unbounded_channel();
        let inquirer = Inquirer::new(dashboards(), Clock::system(), Arc::new(move |key| drop(sender.send(key.clone()))));
        let task = tokio::spawn({
            let inquirer = inquirer.clone();
            async move { inquirer.run().await }
        });
        Self { inquirer, woken, task }
    }

    /// The next piece of news.
    async fn news(&mut self) -> (ObjectKey, Reply) {
        let key = tokio::time::timeout(Duration::from_secs(15), self.woken.recv()).await.expect("no news").unwrap();
        let reply = self.inquirer.answer(&key).unwrap().reply;
        (key, reply)
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new("n", name)
}

fn status(reply: &Reply) -> &str {
    match reply {
        Reply::Job(info) => &info.status,
        Reply::NotFound => "not found",
        Reply::Submitted => "submitted",
        Reply::Refused(_) => "refused",
        Reply::StopSent => "stop sent",
        Reply::NoAnswer(_) => "no answer",
    }
}

#[tokio::test]
async fn a_job_is_followed_to_its_end_through_an_outage() {
    let fake = Fake::start().await;
    let mut asking = Asking::start();
    asking.inquirer.set(&key("a"), Some(fake.inquiry("j", Purpose::Follow)));
    assert_eq!(status(&asking.news().await.1), "not found");
    fake.job("j", "RUNNING");
    assert_eq!(status(&asking.news().await.1), "RUNNING");
    fake.set(Mood::Fails(503));
    assert_eq!(status(&asking.news().await.1), "no answer");
    fake.set(Mood::Fine);
    assert_eq!(status(&asking.news().await.1), "RUNNING");
    fake.job("j", "SUCCEEDED");
    assert_eq!(status(&asking.news().await.1), "SUCCEEDED");
    let calls = fake.calls().len();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(fake.calls().len(), calls, "an ended job is not asked for");
}

#[tokio::test]
async fn x_30_a_job_is_submitted_once_through_an_outage() {
    let fake = Fake::start().await;
    fake.set(Mood::Fails(404));
    let mut asking = Asking::start();
    asking.inquirer.set(&key("a"), Some(fake.inquiry("j", Purpose::Submit(Arc::new(request("j", "e"))))));
    assert_eq!(status(&asking.news().await.1), "no answer");
    fake.set(Mood::Fine);
    assert_eq!(status(&asking.news().await.1), "submitted");
    assert_eq!(status(&asking.news().await.1), "RUNNING");
    let posts = fake.calls().iter().filter(|call| *call == "POST /api/jobs/").count();
    assert!(posts <= 2, "once in vain, once for good");
}

#[tokio::test]
async fn a_refused_job_is_refused_once() {
    let fake = Fake::start().await;
    let mut asking = Asking::start();
    asking.inquirer.set(&key("a"), Some(fake.inquiry("j", Purpose::Submit(Arc::new(request("j", "bad"))))));
    assert_eq!(status(&asking.news().await.1), "refused");
}

#[tokio::test]
async fn a_job_is_stopped() {
    let fake = Fake::start().await;
    fake.job("j", "RUNNING");
    let mut asking = Asking::start();
    asking.inquirer.set(&key("a"), Some(fake.inquiry("j", Purpose::Stop)));
    assert_eq!(status(&asking.news().await.1), "STOPPED");
    asking.inquirer.set(&key("b"), Some(fake.inquiry("unknown", Purpose::Stop)));
    assert_eq!(asking.news().await, (key("b"), Reply::NotFound));
}

#[tokio::test]
async fn many_jobs_of_a_cluster_cost_one_call() {
    let fake = Fake::start().await;
    let mut asking = Asking::start();
    for index in 0..50 {
        fake.job(&format!("j{index}"), "RUNNING");
        asking.inquirer.set(&key(&format!("a{index}")), Some(fake.inquiry(&format!("j{index}"), Purpose::Follow)));
    }
    for _ in 0..50 {
        assert_eq!(status(&asking.news().await.1), "RUNNING");
    }
    assert!(fake.calls().len() < 10, "{:?}", fake.calls());
    assert_eq!(asking.inquirer.len(), 50);
}

#[tokio::test]
async fn a_dashboard_without_a_list_is_asked_for_single_jobs() {
    let fake = Fake::start().await;
    fake.set(Mood::NoList);
    let mut asking = Asking::start();
    for name in ["a", "b", "c", "d"] {
        fake.job(name, "RUNNING");
        asking.inquirer.set(&key(name), Some(fake.inquiry(name, Purpose::Follow)));
    }
    for _ in 0..4 {
        assert_eq!(status(&asking.news().await.1), "RUNNING");
    }
}

#[tokio::test]
async fn a_slow_dashboard_holds_up_nobody_else() {
    let (slow, quick) = (Fake::start().await, Fake::start().await);
    slow.set(Mood::Hangs);
    quick.job("j", "RUNNING");
    let mut asking = Asking::start();
    asking.inquirer.set(&key("slow"), Some(slow.inquiry("j", Purpose::Follow)));
    asking.inquirer.set(&key("quick"), Some(quick.inquiry("j", Purpose::Follow)));
    let began = tokio::time::Instant::now();
    assert_eq!(asking.news().await.0, key("quick"));
    assert!(began.elapsed() < Duration::from_secs(1));
    assert_eq!(asking.news().await.0, key("slow"));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn nothing_is_asked_for_a_key_that_was_taken_back() {
    let fake = Fake::start().await;
    let asking = Asking::start();
    fake.set(Mood::Hangs);
    asking.inquirer.set(&key("a"), Some(fake.inquiry("j", Purpose::Follow)));
    asking.inquirer.set(&key("a"), None);
    assert!(asking.inquirer.is_empty() && asking.inquirer.answer(&key("a")).is_none());
}

//! A real Prometheus, with the chart's rules.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use testcluster::cache::Cache;
use testcluster::fetch;
use testcluster::local::{free_port, get};
use testcluster::progress::Progress;
use testcluster::wait;
use tokio::process::{Child, Command};

pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) struct Prometheus {
    port: u16,
    _process: Child,
}

/// A series: its labels, and its values by time.
pub(crate) struct Series {
    pub(crate) labels: Value,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Prometheus {
    /// Scrapes `jobs` and evaluates `groups` every second.
    pub(crate) async fn start(folder: &Path, jobs: &[Value], groups: &Value) -> Result<Self> {
        let program = fetch::prometheus(&Cache::from_env()?, &Progress::stderr()).await?;
        let (rules, config) = (folder.join("rules.yml"), folder.join("prometheus.yml"));
        // JSON is YAML, too.
        std::fs::write(&rules, json!({ "groups": groups }).to_string())?;
        let global = json!({ "scrape_interval": "1s", "evaluation_interval": "1s" });
        std::fs::write(&config, json!({ "global": global, "rule_files": [rules], "scrape_configs": jobs }).to_string())?;
        let port = free_port()?;
        let log = std::fs::File::create(folder.join("prometheus.log"))?;
        let process = Command::new(program)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("starting Prometheus")?;
        let prometheus = Self { port, _process: process };
        let ready = wait::until("Prometheus", PATIENCE, || async { Ok(get(port, "/-/ready").await.ok()) }).await;
        ready.with_context(|| std::fs::read_to_string(folder.join("prometheus.log")).unwrap_or_default())?;
        Ok(prometheus)
    }

    async fn ask(&self, path: &str) -> Result<Value> {
        let answer: Value = serde_json::from_str(&get(self.port, path).await?)?;
        Ok(answer["data"].clone())
    }

    /// The values of an expression now.
    pub(crate) async fn now(&self, expression: &str) -> Result<Vec<Series>> {
        let path = format!("/api/v1/query?query={}", encoded(expression));
        Ok(series(&self.ask(&path).await.with_context(|| expression.to_owned())?))
    }

    /// The values of an expression over the last `seconds`.
    pub(crate) async fn lately(&self, expression: &str, seconds: f64) -> Result<Vec<Series>> {
        let now = self.now("vector(time())").await?.first().and_then(|series| series.points.first().map(|(time, _)| *time));
        let now = now.context("Prometheus knows no time")?;
        let path = format!("/api/v1/query_range?query={}&start={}&end={now}&step=1", encoded(expression), now - seconds);
        Ok(series(&self.ask(&path).await.with_context(|| expression.to_owned())?))
    }

    /// Every alert rule.
    pub(crate) async fn rules(&self) -> Result<Vec<Value>> {
        let groups = self.ask("/api/v1/rules?type=alert").await?;
        let groups = groups["groups"].as_array().cloned().unwrap_or_default();
        Ok(groups.iter().flat_map(|group| group["rules"].as_array().cloned().unwrap_or_default()).collect())
    }

    /// Waits until all of these alerts are pending or firing.
    pub(crate) async fn until_raised(&self, alerts: &[&str]) -> Result<()> {
        let missing = async || -> Result<String> {
            let rules = self.rules().await?;
            let state = |alert: &str| rules.iter().find(|rule| rule["name"] == *alert).cloned().unwrap_or_default();
            let raised = |rule: &Value| rule["state"] == "pending" || rule["state"] == "firing";
            Ok(alerts.iter().map(|alert| state(alert)).filter(|rule| !raised(rule)).map(|rule| format!("{rule}\n")).collect())
        };
        let raised = wait::until("the alerts", PATIENCE, || async { Ok(missing().await?.is_empty().then_some(())) }).await;
        match raised {
            Ok(()) => Ok(()),
            Err(error) => Err(error.context(missing().await?)),
        }
    }
}

fn series(data: &Value) -> Vec<Series> {
    let number = |value: &Value| value.as_str().and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
    let point = |pair: &Value| (pair[0].as_f64().unwrap_or_default(), number(&pair[1]));
    let found = data["result"].as_array().map(Vec::as_slice).unwrap_or_default();
    found
        .iter()
        .map(|series| Series {
            labels: series["metric"].clone(),
            points: series["values"].as_array().map_or_else(|| vec![point(&series["value"])], |all| all.iter().map(point).collect()),
        })
        .collect()
}

/// Text as it may stand in a URL's query.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| if byte.is_ascii_alphanumeric() { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

//! What is asked of a Ray dashboard and what it tells: plain data.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};
use shared::api::rayjob::job_status;

/// Where the dashboard of a cluster answers (RC-252, RJ-84).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    /// Namespace of the cluster.
    pub namespace: Box<str>,
    /// Service of the head, for the way through the API server.
    pub service: Box<str>,
    /// `host:port` inside Kubernetes, without scheme; the value of `status.dashboardURL`.
    pub address: Box<str>,
    /// Secret with the token that the dashboard wants to see, if it wants one (RJ-133).
    pub token_secret: Option<Box<str>>,
}

impl Endpoint {
    /// Port of the dashboard's Service as it stands in the address.
    pub fn port(&self) -> &str {
        self.address.rsplit_once(':').map_or("", |(_, port)| port)
    }
}

/// What Ray tells of a job. Status and texts are bounded and checked, see [`JobInfo::parse`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobInfo {
    /// One of the words in [`job_status`].
    pub status: String,
    /// What Ray says about it.
    pub message: String,
    /// When Ray started the job.
    pub start: Option<Timestamp>,
    /// When the job ended.
    pub end: Option<Timestamp>,
}

/// Longest text of Ray that is kept, in bytes; tracebacks can be arbitrarily long.
const MAX_MESSAGE: usize = 4096;

#[derive(Deserialize)]
struct RawJob {
    status: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    start_time: Option<f64>,
    #[serde(default)]
    end_time: Option<f64>,
}

impl JobInfo {
    /// Reads a job as the dashboard describes it. Only what is used is looked at, so that a Ray with other ideas about the rest can
    /// still be followed (RJ-132); a state that Ray does not have is no state (WEAK-13).
    ///
    /// # Errors
    /// What is wrong, as half a sentence.
    pub fn parse(value: &Value) -> Result<Self, String> {
        RawJob::deserialize(value).map_err(|error| error.to_string()).and_then(Self::from_raw)
    }

    /// Reads the list of all jobs; those that were not submitted under an id of their own are left out.
    ///
    /// # Errors
    /// When it is not a list. A single job that cannot be read is an error of its own.
    pub fn parse_list(value: &Value) -> Result<BTreeMap<String, Result<Self, String>>, String> {
        let jobs = value.as_array().ok_or("not a list of jobs")?;
        let id = |job: &Value| job.get("submission_id").and_then(Value::as_str).map(str::to_owned);
        Ok(jobs.iter().filter_map(|job| Some((id(job)?, Self::parse(job)))).collect())
    }

    fn from_raw(raw: RawJob) -> Result<Self, String> {
        let status = raw.status.ok_or("no state of the job in it")?;
        if !job_status::is_known(&status) {
            return Err(format!("`{}` is not a state of a Ray job", bounded(&status, 40)));
        }
        Ok(Self {
            status,
            message: bounded(&raw.message.unwrap_or_default(), MAX_MESSAGE),
            start: raw.start_time.and_then(from_milliseconds),
            end: raw.end_time.and_then(from_milliseconds),
        })
    }

    /// Whether Ray will not change the state any more.
    pub fn is_terminal(&self) -> bool {
        job_status::is_terminal(&self.status)
    }
}

/// Milliseconds since 1970; zero means that there is no time (RJ-48), and nonsense does, too.
#[allow(clippy::cast_possible_truncation)] // checked against the range of `Timestamp` right after
fn from_milliseconds(milliseconds: f64) -> Option<Timestamp> {
    (1.0..1e15).contains(&milliseconds).then(|| Timestamp::from_millisecond(milliseconds as i64).ok()).flatten()
}

/// The start of a text, at most `bytes` long, with a mark where it was cut.
pub fn bounded(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = (0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// What is sent to Ray to start a job (RJ-123). Fields that the user left empty are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SubmitRequest {
    /// Command line, exactly as the user wrote it.
    pub entrypoint: String,
    /// Id of the job; Ray refuses a second job of the same id.
    pub submission_id: String,
    /// Runtime environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_env: Option<Map<String, Value>>,
    /// Metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<BTreeMap<String, String>>,
    /// CPUs for the entrypoint itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint_num_cpus: Option<f64>,
    /// GPUs for the entrypoint itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint_num_gpus: Option<f64>,
    /// Other resources for the entrypoint itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint_resources: Option<BTreeMap<String, Number>>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rj_132_a_job_is_read_as_far_as_it_is_used() {
        let job = json!({"status": "RUNNING", "message": null, "start_time": 1_700_000_000_123_u64, "end_time": null, "metadata": {"a": 1}, "new": []});
        let read = JobInfo::parse(&job).unwrap();
        assert_eq!((read.status.as_str(), read.message.as_str(), read.end), ("RUNNING", "", None));
        assert_eq!(read.start.unwrap().as_millisecond(), 1_700_000_000_123);
        assert!(!read.is_terminal());
    }

    #[test]
    fn weak_13_only_states_of_ray_count() {
        let table =
            [json!({"status": "Failure"}), json!({"status": ""}), json!({"status": null}), json!({}), json!({"status": 7}), json!([])];
        for job in table {
            assert!(JobInfo::parse(&job).is_err(), "{job}");
        }
    }

    #[test]
    fn rj_48_impossible_times_are_no_times() {
        for time in [json!(0), json!(-5), json!(u64::MAX), json!(1e300)] {
            let job = json!({"status": "FAILED", "start_time": time, "end_time": time});
            let read = JobInfo::parse(&job).unwrap();
            assert_eq!((read.start, read.end), (None, None), "{time}");
        }
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(bounded("äöü", 3), "ä…");
        assert_eq!(bounded("abc", 3), "abc");
        let job = json!({"status": "FAILED", "message": "x".repeat(100_000)});
        assert!(JobInfo::parse(&job).unwrap().message.len() < 5000);
    }

    #[test]
    fn a_list_tells_of_each_submitted_job() {
        let list = json!([{"status": "RUNNING", "submission_id": "a"}, {"status": "RUNNING", "submission_id": null}, {"status": "odd", "submission_id": "b"}]);
        let read = JobInfo::parse_list(&list).unwrap();
        assert!(read["a"].is_ok() && read["b"].is_err() && read.len() == 2);
        assert!(JobInfo::parse_list(&json!({})).is_err());
    }

    #[test]
    fn rj_123_empty_fields_are_not_sent() {
        let request = SubmitRequest { entrypoint: "python a.py".into(), submission_id: "j".into(), ..SubmitRequest::default() };
        assert_eq!(serde_json::to_value(request).unwrap(), json!({"entrypoint": "python a.py", "submission_id": "j"}));
    }
}

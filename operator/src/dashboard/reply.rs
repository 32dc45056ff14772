//! What an HTTP reply means. Pure: every status code is looked at, and a reply of the API server's proxy is never taken for one of
//! the dashboard (WEAK-13).

use bytes::Bytes;
use serde_json::Value;

use super::job::{JobInfo, bounded};

/// A reply as it came.
#[derive(Clone, Debug)]
pub struct RawReply {
    /// HTTP status code.
    pub status: u16,
    /// Body, whole.
    pub body: Bytes,
}

/// Why there is no usable answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DashboardError {
    /// Nothing that answers for the dashboard can be reached: no connection, no answer in time, or an error of the API server's proxy.
    #[error("the dashboard cannot be reached: {0}")]
    Unreachable(String),
    /// The dashboard answers, and says that it does not know the job.
    #[error("the dashboard does not know the job")]
    NotFound,
    /// The dashboard wants other credentials.
    #[error("the dashboard asks for other credentials (HTTP {0})")]
    Unauthorized(u16),
    /// The dashboard understood the request and will never carry it out.
    #[error("the dashboard refused the request (HTTP {status}): {text}")]
    Rejected {
        /// HTTP status code.
        status: u16,
        /// What the dashboard said.
        text: String,
    },
    /// The dashboard failed at it; it may work later.
    #[error("the dashboard failed (HTTP {status}): {text}")]
    Failing {
        /// HTTP status code.
        status: u16,
        /// What the dashboard said.
        text: String,
    },
    /// What came is not what a dashboard says.
    #[error("the reply is not one of a Ray dashboard: {0}")]
    Garbled(String),
    /// The Secret with the token cannot be read.
    #[error("the token for the dashboard cannot be read: {0}")]
    NoToken(String),
    /// The reply is longer than any that is expected.
    #[error("the reply is longer than {0} bytes")]
    TooLong(usize),
}

/// How a submission went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Submission {
    /// Ray took the job.
    Accepted,
    /// Ray has had the job before (WEAK-29).
    AlreadyKnown,
}

/// Longest part of a body that is quoted in a message.
const QUOTED: usize = 1024;
/// Words of Ray's refusal to take a second job of the same id.
const DUPLICATE: &str = "Please use a different submission_id";
/// Words of Ray about a job that it does not know.
const UNKNOWN_JOB: &str = "does not exist";
/// What Ray's dashboard says when its own agent found the request wrong.
const AGENT_REJECTED: &str = "Request failed with status code 400";

/// The body of a successful reply.
///
/// # Errors
/// Whatever else it is.
pub fn accepted(reply: &RawReply, proxied: bool) -> Result<&[u8], DashboardError> {
    let text = || quoted(&reply.body);
    if proxied && let Some(words) = api_server_error(&reply.body) {
        return Err(DashboardError::Unreachable(words));
    }
    let status = reply.status;
    match status {
        200..=299 => Ok(&reply.body),
        404 if contains(&reply.body, UNKNOWN_JOB) => Err(DashboardError::NotFound),
        // A page that does not exist is said of the server, not of the job: a dashboard that is still starting, an ingress.
        404 => Err(DashboardError::Garbled(format!("HTTP 404 that names no job: {}", text()))),
        401 | 403 => Err(DashboardError::Unauthorized(status)),
        408 | 429 => Err(DashboardError::Failing { status, text: text() }),
        400..=499 => Err(DashboardError::Rejected { status, text: text() }),
        500..=599 => Err(DashboardError::Failing { status, text: text() }),
        _ => Err(DashboardError::Garbled(format!("HTTP {status}"))),
    }
}

/// The job that a reply describes (RJ-131).
///
/// # Errors
/// Whatever else it is.
pub fn job(reply: &RawReply, proxied: bool) -> Result<JobInfo, DashboardError> {
    JobInfo::parse(&json(accepted(reply, proxied)?)?).map_err(DashboardError::Garbled)
}

/// The jobs that a reply lists, by id.
///
/// # Errors
/// Whatever else it is.
pub fn jobs(reply: &RawReply, proxied: bool) -> Result<std::collections::BTreeMap<String, Result<JobInfo, String>>, DashboardError> {
    JobInfo::parse_list(&json(accepted(reply, proxied)?)?).map_err(DashboardError::Garbled)
}

/// How a submission went (RJ-131).
///
/// # Errors
/// [`DashboardError::Rejected`] where no later try can succeed, something else where one may.
pub fn submission(reply: &RawReply, proxied: bool) -> Result<Submission, DashboardError> {
    if contains(&reply.body, DUPLICATE) && reply.status >= 400 {
        return Ok(Submission::AlreadyKnown);
    }
    match accepted(reply, proxied) {
        Ok(_) => Ok(Submission::Accepted),
        Err(DashboardError::Failing { status, text }) if contains(&reply.body, AGENT_REJECTED) => {
            Err(DashboardError::Rejected { status, text })
        }
        Err(error) => Err(error),
    }
}

/// Whether Ray began to stop the job; `false` if there was nothing to stop (RJ-131).
///
/// # Errors
/// Whatever else it is.
pub fn stopped(reply: &RawReply, proxied: bool) -> Result<bool, DashboardError> {
    let value = json(accepted(reply, proxied)?)?;
    value.get("stopped").and_then(Value::as_bool).ok_or_else(|| DashboardError::Garbled(quoted(&reply.body)))
}

fn json(body: &[u8]) -> Result<Value, DashboardError> {
    serde_json::from_slice(body).map_err(|error| DashboardError::Garbled(format!("{error}: {}", quoted(body))))
}

/// What the API server says when its proxy fails: a `Status` object, which a dashboard never sends.
fn api_server_error(body: &[u8]) -> Option<String> {
    if body.first() != Some(&b'{') || !contains(body, "\"Status\"") {
        return None;
    }
    let value: Value = serde_json::from_slice(body).ok()?;
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
    (text("kind") == "Status" && text("apiVersion") == "v1").then(|| format!("API server: {}", bounded(text("message"), QUOTED)))
}

fn contains(body: &[u8], words: &str) -> bool {
    body.windows(words.len()).any(|window| window == words.as_bytes())
}

fn quoted(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body.get(..QUOTED * 4).unwrap_or(body));
    bounded(text.trim(), QUOTED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, body: &str) -> RawReply {
        RawReply { status, body: Bytes::copy_from_slice(body.as_bytes()) }
    }

    fn kind(error: &DashboardError) -> &'static str {
        match error {
            DashboardError::Unreachable(_) => "unreachable",
            DashboardError::NotFound => "not found",
            DashboardError::Unauthorized(_) => "unauthorized",
            DashboardError::Rejected { .. } => "rejected",
            DashboardError::Failing { .. } => "failing",
            DashboardError::Garbled(_) => "garbled",
            DashboardError::NoToken(_) => "no token",
            DashboardError::TooLong(_) => "too long",
        }
    }

    const API_404: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"services \"j-head-svc\" not found","reason":"NotFound","code":404}"#;

    #[test]
    fn weak_13_job_info_by_status_and_body() {
        let table = [
            (200, r#"{"status":"SUCCEEDED"}"#, false, "SUCCEEDED"),
            (404, "Job j does not exist", false, "not found"),
            (404, "Job j does not exist", true, "not found"),
            (404, "<html>404 page not found</html>", false, "garbled"),
            (404, API_404, true, "unreachable"),
            (503, r#"{"kind":"Status","apiVersion":"v1","message":"no endpoints available"}"#, true, "unreachable"),
            (200, r#"{"kind":"Status","apiVersion":"v1","status":"Failure"}"#, true, "unreachable"),
            (200, r#"{"kind":"Status","apiVersion":"v1","status":"Failure"}"#, false, "garbled"),
            (200, "<html>sign in</html>", false, "garbled"),
            (200, "", false, "garbled"),
            (200, r#"{"message":"no state"}"#, false, "garbled"),
            (401, r#"{"status":"RUNNING"}"#, false, "unauthorized"),
            (403, "", false, "unauthorized"),
            (500, r#"{"status":"RUNNING"}"#, false, "failing"),
            (503, "", false, "failing"),
            (302, "", false, "garbled"),
            (400, "bad", false, "rejected"),
            (429, "", false, "failing"),
        ];
        for (status, body, proxied, wanted) in table {
            let found = match job(&reply(status, body), proxied) {
                Ok(info) => info.status,
                Err(error) => kind(&error).to_owned(),
            };
            assert_eq!(found, wanted, "{status} {body}");
        }
    }

    #[test]
    fn weak_29_a_known_id_counts_as_submitted() {
        let table = [
            (200, r#"{"job_id":"j"}"#, Ok(Submission::Accepted)),
            (
                500,
                "ValueError: Job with submission_id j already exists. Please use a different submission_id.",
                Ok(Submission::AlreadyKnown),
            ),
            (500, "RuntimeError: Request failed with status code 400: bad runtime env", Err("rejected")),
            (500, "No available agent to submit job, please try again later.", Err("failing")),
            (400, "entrypoint must be a string", Err("rejected")),
            (401, "", Err("unauthorized")),
            (404, "scripted", Err("garbled")),
        ];
        for (status, body, wanted) in table {
            assert_eq!(submission(&reply(status, body), false).map_err(|error| kind(&error)), wanted, "{status} {body}");
        }
    }

    #[test]
    fn rj_131_what_a_stop_says() {
        assert_eq!(stopped(&reply(200, r#"{"stopped":true}"#), false), Ok(true));
        assert_eq!(stopped(&reply(200, r#"{"stopped":false}"#), false), Ok(false));
        assert_eq!(stopped(&reply(404, "Job j does not exist"), false), Err(DashboardError::NotFound));
        assert_eq!(stopped(&reply(200, "{}"), false).map_err(|error| kind(&error)), Err("garbled"));
    }

    #[test]
    fn quoted_bodies_are_bounded() {
        let error = job(&reply(500, &"x".repeat(1_000_000)), false).unwrap_err();
        assert!(error.to_string().len() < 2000);
    }
}

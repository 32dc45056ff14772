//! Why a call to the API server did not work.

use std::time::Duration;

use kube::core::Status;

use crate::runtime::controller::{Failure, Retry};

/// A call to the API server that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {verb} {kind} {namespace}/{name}: {}", self.cause_text())]
pub struct ApiError {
    /// What was tried, such as `create`.
    pub verb: &'static str,
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object, or the prefix of a generated name.
    pub name: String,
    cause: Cause,
}

#[derive(Debug)]
enum Cause {
    /// The API server said no.
    Refused(Box<Status>),
    /// No usable answer; the server may have done it or not.
    Lost(Box<kube::Error>),
    /// No answer in time; the server may have done it or not.
    Timeout(Duration),
    /// An answer that cannot be read, or an object that cannot be written.
    Form(serde_json::Error),
}

/// A pause that lets a watch tell what has become of a call whose answer was lost.
const LOST_ANSWER_PAUSE: Duration = Duration::from_secs(2);

impl ApiError {
    pub(super) fn new(what: (&'static str, String, String, String), cause: kube::Error) -> Self {
        let (verb, kind, namespace, name) = what;
        let cause = match cause {
            kube::Error::Api(status) => Cause::Refused(status),
            kube::Error::SerdeError(error) => Cause::Form(error),
            other => Cause::Lost(Box::new(other)),
        };
        Self { verb, kind, namespace, name, cause }
    }

    pub(super) fn timeout(what: (&'static str, String, String, String), after: Duration) -> Self {
        let (verb, kind, namespace, name) = what;
        Self { verb, kind, namespace, name, cause: Cause::Timeout(after) }
    }

    pub(super) fn form(what: (&'static str, String, String, String), error: serde_json::Error) -> Self {
        let (verb, kind, namespace, name) = what;
        Self { verb, kind, namespace, name, cause: Cause::Form(error) }
    }

    /// What the API server answered, if it answered.
    pub fn status(&self) -> Option<&Status> {
        match &self.cause {
            Cause::Refused(status) => Some(status),
            _ => None,
        }
    }

    /// HTTP code of the answer, 0 without one.
    pub fn code(&self) -> u16 {
        self.status().map_or(0, |status| status.code)
    }

    /// The object does not exist.
    pub fn is_not_found(&self) -> bool {
        self.code() == 404
    }

    /// Somebody else has changed the object, or the precondition does not hold.
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(|status| status.code == 409 && status.reason != "AlreadyExists")
    }

    /// An object of this name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(|status| status.code == 409 && status.reason == "AlreadyExists")
    }

    /// The server understood the request and does not want the object: quota, Pod Security, an admission webhook, a rule of the
    /// schema. The text is what the server says, meant for people.
    pub fn refusal(&self) -> Option<&str> {
        self.status().filter(|status| matches!(status.code, 400 | 403 | 422)).map(|status| status.message.as_str())
    }

    /// Whether the server may have done what was asked although no good answer came back.
    pub fn is_outcome_unknown(&self) -> bool {
        match &self.cause {
            Cause::Lost(_) | Cause::Timeout(_) => true,
            Cause::Refused(status) => status.code >= 500,
            Cause::Form(_) => false,
        }
    }

    fn cause_text(&self) -> String {
        match &self.cause {
            Cause::Refused(status) if status.message.is_empty() => format!("the API server answered {} {}", status.code, status.reason),
            Cause::Refused(status) => status.message.clone(),
            Cause::Lost(error) => super::super::controller::with_causes(&**error),
            Cause::Timeout(after) => format!("no answer within {} s", after.as_secs()),
            Cause::Form(error) => error.to_string(),
        }
    }
}

impl Failure for ApiError {
    fn kind(&self) -> &'static str {
        match &self.cause {
            Cause::Refused(_) if self.is_conflict() || self.is_already_exists() => "conflict",
            Cause::Refused(status) => match status.code {
                401 | 403 => "forbidden",
                404 => "not-found",
                400 | 422 => "invalid",
                429 => "throttled",
                _ => "api",
            },
            Cause::Lost(_) => "network",
            Cause::Timeout(_) => "timeout",
            Cause::Form(_) => "form",
        }
    }

    fn retry(&self) -> Retry {
        let asked = self.status().and_then(|status| status.details.as_ref()).map_or(0, |details| details.retry_after_seconds);
        match asked {
            0 if self.is_outcome_unknown() => Retry::After(LOST_ANSWER_PAUSE),
            0 => Retry::BackOff,
            seconds => Retry::After(Duration::from_secs(seconds.min(60).into())),
        }
    }
}

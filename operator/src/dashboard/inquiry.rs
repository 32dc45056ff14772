//! Questions about jobs and their answers: what a reconcile asks for, and what it finds when it looks again.

use std::sync::Arc;

use jiff::Timestamp;

use super::job::{Endpoint, JobInfo, SubmitRequest};

/// What a dashboard is to be asked about one job, from now until something else is wanted.
///
/// A verdict such as "the submitter failed and Ray never got the job" must rest on an answer that was given *after* the submitter
/// ended. So the occasion is part of the question, and an answer says which question it answers: two inquiries that differ are
/// different questions.
#[derive(Clone, Debug, PartialEq)]
pub struct Inquiry {
    /// Where to ask.
    pub endpoint: Endpoint,
    /// Id of the job in Ray.
    pub job_id: String,
    /// What to do besides asking.
    pub purpose: Purpose,
    /// What the answer is needed for.
    pub occasion: Occasion,
    /// Whether something else tells that the job ended (the submitter ends with it), so that long jobs need not be asked for often.
    pub announced: bool,
}

/// What to do besides asking.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// Nothing.
    Follow,
    /// Hand the job to Ray if Ray does not know it (HTTPMode).
    Submit(Arc<SubmitRequest>),
    /// Have Ray stop the job, whenever it turns up.
    Stop,
}

/// What an answer is needed for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Occasion {
    /// To follow the job.
    #[default]
    Routine,
    /// The submitter has ended: did Ray get the job? (WEAK-6, WEAK-18)
    SubmitterEnded,
    /// A deadline has passed: did the job end before? (WEAK-6)
    DeadlinePassed,
    /// The head Pod that ran the job is not there any more, and no other one yet: who answers may be about to go. (C-59)
    HeadGone,
    /// There is another head Pod: does Ray still know the job? (C-59)
    HeadReplaced,
}

/// What is known about the answer to an inquiry.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The question as it stood when it was asked.
    pub inquiry: Arc<Inquiry>,
    /// The reply.
    pub reply: Reply,
    /// When it was asked.
    pub asked: Timestamp,
    /// Since when replies have been of this kind without a break.
    pub since: Timestamp,
}

/// What a dashboard says about a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Ray knows the job.
    Job(JobInfo),
    /// Ray does not know the job.
    NotFound,
    /// Ray has taken the job just now.
    Submitted,
    /// Ray will never take the job, and this is why.
    Refused(String),
    /// Ray was told to stop the job and has not yet done so.
    StopSent,
    /// There is no answer, and this is why. Says nothing about the job.
    NoAnswer(String),
}

impl Reply {
    /// Whether two replies are of one kind; texts aside.
    pub fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

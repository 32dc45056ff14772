//! What is told in events.

use super::memory::Told;

/// Something to be told about the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Whether somebody may have to look at it.
    pub warning: bool,
    /// What happened, in one word (RC-199).
    pub reason: &'static str,
    /// What was done, in one word (RC-199).
    pub action: &'static str,
    /// What happened.
    pub text: String,
    /// For what lasts: the matter, which is told again only after its text has changed.
    pub topic: Option<String>,
}

impl Note {
    /// Something went as it should.
    pub fn normal(reason: &'static str, action: &'static str, text: impl Into<String>) -> Self {
        Self { warning: false, reason, action, text: text.into(), topic: None }
    }

    /// Something that somebody may have to look at.
    pub fn warning(reason: &'static str, action: &'static str, text: impl Into<String>) -> Self {
        Self { warning: true, ..Self::normal(reason, action, text) }
    }

    /// Makes it one that lasts.
    #[must_use]
    pub fn about(self, topic: &str) -> Self {
        Self { topic: Some(topic.to_owned()), ..self }
    }
}

/// The notes that are news. Matters that no note speaks of any longer are over, so that they are news when they return.
pub fn news(notes: Vec<Note>, told: &mut Told) -> Vec<Note> {
    let lasting: Vec<String> = notes.iter().filter_map(|note| note.topic.clone()).collect();
    told.retain(|topic| lasting.iter().any(|lasting| lasting == topic));
    notes.into_iter().filter(|note| note.topic.as_ref().is_none_or(|topic| told.is_news(topic, &note.text))).collect()
}

//! KAI (BS-40, BS-41): it groups Pods by what owns them and needs no more than a queue.
//!
//! A RayJob's submitter joins the group that KAI has made for the cluster, once that is ready: it is not part of what has to start
//! together, but nothing keeps the job from running.

use shared::labels::gang;

use super::marks::{Marks, Parent};

pub(super) fn marks(parent: Parent<'_>) -> Marks {
    let mut marks = Marks::default();
    if let Some(queue) = parent.label(gang::KAI_QUEUE) {
        marks.label(gang::KAI_QUEUE, queue);
    }
    marks
}

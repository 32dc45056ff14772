//! How long certificates live and how long a rotation waits.

use jiff::{SignedDuration, Timestamp};

use crate::clock::later;

/// The periods that rule an authority. [`Lifetimes::default`] is what production uses; tests shorten it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// Life of a CA certificate. Its successor is published when two thirds have passed.
    pub authority: SignedDuration,
    /// Life of a serving certificate. It is renewed when two thirds have passed.
    pub leaf: SignedDuration,
    /// How far a certificate's start lies in the past, so that a client whose clock is a little behind accepts it.
    pub backdate: SignedDuration,
    /// How long every webhook configuration must have trusted a CA before serving certificates are signed with it: the time in
    /// which all API servers notice a changed caBundle.
    pub settle: SignedDuration,
    /// The longest pause between two looks at the wall clock. Timers stand still while a machine sleeps; the wall clock does not.
    pub check: SignedDuration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            authority: SignedDuration::from_hours(365 * 24),
            leaf: SignedDuration::from_hours(7 * 24),
            backdate: SignedDuration::from_hours(1),
            settle: SignedDuration::from_mins(1),
            check: SignedDuration::from_mins(1),
        }
    }
}

impl Lifetimes {
    /// When serving certificates signed before `activated` by a CA that was replaced then are certainly gone.
    pub(crate) fn retired_at(&self, activated: Timestamp) -> Timestamp {
        later(later(activated, self.leaf), self.backdate)
    }
}

/// Two thirds of the way from `from` to `to`: when to renew what lives that long.
pub(crate) fn renewal_point(from: Timestamp, to: Timestamp) -> Timestamp {
    let life = to.duration_since(from);
    later(from, life / 3 * 2)
}

//! When an attempt is looked at because somebody outside said that it moved.

use payment::attempt::AttemptStatus;
use payment::time::Millis;

use crate::clock::EpochMs;

/// How long after a look that a hint caused the next one may be caused, while the attempt is open.
const OPEN_PAUSE: Millis = Millis::from_secs(1);
/// The same when it has ended.
const ENDED_PAUSE: Millis = Millis::from_secs(10);

/// What a hint finds.
#[derive(Debug, Clone, Copy)]
pub struct Hinted {
    /// The attempt's state.
    pub status: AttemptStatus,
    /// Its next look.
    pub ask_at: Option<EpochMs>,
    /// For when a hint last made it due.
    pub hint_at: Option<EpochMs>,
}

/// What a hint sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hint {
    /// The attempt's next look.
    pub ask_at: EpochMs,
    /// For when the hint makes it due.
    pub hint_at: EpochMs,
}

/// A hint's look: at once, or, when another hint caused one a moment ago, at the end of a pause; without `pause` always at once.
#[must_use]
pub fn set(found: &Hinted, now: EpochMs, pause: bool) -> Hint {
    let length = if found.status.is_open() {
        OPEN_PAUSE
    } else {
        ENDED_PAUSE
    };
    let due = match found.hint_at {
        _ if !pause => now,
        // A look is set for the end of the pause already: this hint is among those that it is for.
        Some(set) if set > now && set <= now.plus(ENDED_PAUSE) => set,
        // Farther ahead than any is ever set: by a clock that was wrong.
        Some(before) if before <= now => now.max(before.plus(length)),
        Some(_) | None => now,
    };
    // One that waits for its turn keeps its place in the queue. A look in progress has asked before the hint, perhaps: it
    // holds a moment ahead, or, while it gives money back, one that it has set itself.
    let gives_back = matches!(
        found.status,
        AttemptStatus::Mischarged | AttemptStatus::CancelRequested
    );
    let queued = found.ask_at.filter(|at| *at <= now && !gives_back);
    Hint {
        ask_at: queued.unwrap_or(due),
        hint_at: due,
    }
}

//! When a client tries again. Schedules come in pairs of equal mean, so that what spreading does can be told from what
//! shortening does.

use std::time::Duration;

use rand::Rng as _;
use rand_chacha::ChaCha8Rng;

/// How the pause before a retry is drawn; `step` is the first pause, doubled with every try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// The step. Mean 1 step, no width.
    Exponential,
    /// Half of the step. Mean ½ step, no width: what full jitter does without spreading.
    Halved,
    /// Between a half and one and a half steps. Mean 1 step, as wide as full jitter: spreading without shortening.
    Centred,
    /// Full jitter: between nothing and the step. Mean ½ step, a step wide.
    Full,
    /// Equal jitter: half of the step, and between nothing and the other half. Mean ¾ step, half a step wide.
    Equal,
    /// Decorrelated jitter: between the first step and three times the last pause.
    Decorrelated,
    /// Between the first step and the longest pause, whatever was tried: as the server's one resend.
    Between,
}

/// What a client does about a request without an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Retry {
    /// How the pause is drawn.
    pub(crate) schedule: Schedule,
    /// The first step.
    pub(crate) first: Duration,
    /// The longest pause.
    pub(crate) longest: Duration,
    /// How often it asks in all.
    pub(crate) tries: u32,
    /// How long it waits for an answer.
    pub(crate) timeout: Duration,
}

impl Retry {
    /// The pause after `made` tries, the last of which came after a pause of `last`; `None` when it gives up.
    pub(crate) fn pause(
        &self,
        made: u32,
        last: Duration,
        rng: &mut ChaCha8Rng,
    ) -> Option<Duration> {
        if made >= self.tries {
            return None;
        }
        let doubled = 2_u32.saturating_pow(made.saturating_sub(1));
        let step = self.first.saturating_mul(doubled).min(self.longest);
        let mut between = |low: Duration, high: Duration| {
            if high <= low {
                low
            } else {
                low + (high - low).mul_f64(rng.random::<f64>())
            }
        };
        let pause = match self.schedule {
            Schedule::Exponential => step,
            Schedule::Halved => step / 2,
            Schedule::Centred => between(step / 2, step + step / 2),
            Schedule::Full => between(Duration::ZERO, step),
            Schedule::Equal => between(step / 2, step),
            Schedule::Decorrelated => between(self.first, last.max(self.first) * 3),
            Schedule::Between => between(self.first, self.longest),
        };
        Some(pause.min(self.longest))
    }
}

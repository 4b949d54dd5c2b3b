//! Bounds on what is asked of the gateway and on what anybody may post, in force.

use std::num::NonZeroU32;

use payment::time::Millis;

use super::settings::Settings;
use super::{ConfigError, bad};

/// A day.
const DAY: Millis = Millis::from_secs(24 * 3_600);
/// A sender's resends of one event end after about four days: what is forgotten earlier would be taken for new.
const LEAST_DAYS: u32 = 5;

/// Bounds that protect the gateway from recovery, and the inbox from strangers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// From which age on an unknown payment is overdue.
    pub unknown: Millis,
    /// Most inquiries in flight at one gateway, of each node.
    pub inquiries: u32,
    /// How long raw webhooks are kept once they are done with.
    pub webhooks_kept: Millis,
    /// Most stored webhooks that name no payment of ours.
    pub strangers: u32,
    /// Webhooks a second, above which those that name no payment of ours are refused.
    pub webhook_rate: NonZeroU32,
    /// How long after its due date a virtual account that the gateway still calls waiting is taken for over.
    pub deposit_grace: Millis,
}

/// The bounds in force.
///
/// # Errors
/// [`ConfigError`] for a bound that would stop what it bounds.
pub(super) fn bounds(given: &Settings) -> Result<Bounds, ConfigError> {
    let inquiries = given.pg_inquiries.unwrap_or(8);
    if !(1..=256).contains(&inquiries) {
        return Err(bad("JARI_PG_INQUIRIES", "must be 1 to 256"));
    }
    let days = given.webhook_keep_days.unwrap_or(14);
    if !(LEAST_DAYS..=3_650).contains(&days) {
        return Err(bad(
            "JARI_WEBHOOK_KEEP_DAYS",
            "must be 5 to 3650: resends of one event may come for four days",
        ));
    }
    let rate = NonZeroU32::new(given.webhook_rate.unwrap_or(50));
    Ok(Bounds {
        unknown: Millis::new(given.unknown_bound_ms.unwrap_or(15 * 60 * 1_000)),
        inquiries,
        webhooks_kept: DAY.times(days),
        strangers: given.webhook_strangers.unwrap_or(20_000),
        webhook_rate: rate.ok_or_else(|| bad("JARI_WEBHOOK_RATE", "must be above 0"))?,
        deposit_grace: Millis::new(given.deposit_grace_ms.unwrap_or(10 * 60 * 1_000)),
    })
}

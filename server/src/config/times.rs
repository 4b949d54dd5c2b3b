//! The timing contract in force, from the shipped one and what overrides it.

use payment::time::{Millis, PageTimes, Times};

use super::settings::Settings;
use super::{ConfigError, bad};

/// The times in force.
///
/// # Errors
/// [`ConfigError`] when two of them contradict each other.
pub(super) fn times(given: &Settings) -> Result<Times, ConfigError> {
    let shipped = Times::DEFAULT;
    let ms = |given: Option<u64>, shipped: Millis| given.map_or(shipped, Millis::new);
    let cap = match given.pg_cap.as_deref() {
        None => shipped.cap,
        Some("off") => None,
        Some(text) => match text.parse::<u32>() {
            Ok(cap) if cap > 0 => Some(cap),
            Ok(_) | Err(_) => return Err(bad("JARI_PG_CAP", "must be a number above 0, or off")),
        },
    };
    let pg_timeout = ms(given.pg_timeout_ms, shipped.pg_timeout);
    let times = Times {
        page: PageTimes {
            response_wait: ms(given.response_wait_ms, shipped.page.response_wait),
            poll_interval: ms(given.poll_interval_ms, shipped.page.poll_interval),
            poll_count: given.poll_count.unwrap_or(shipped.page.poll_count),
            poll_limit: shipped.page.poll_limit,
        },
        pg_timeout,
        pg_connect_timeout: ms(given.pg_connect_timeout_ms, shipped.pg_connect_timeout),
        database_wait: ms(given.database_wait_ms, shipped.database_wait),
        cap,
        reserve: given.pg_reserve.unwrap_or(
            cap.map_or(0, Times::reserve_for)
                .min(cap.map_or(0, |cap| cap - 1)),
        ),
        node_lease: given.node_lease_ms.map_or(
            shipped
                .node_lease
                .max(pg_timeout.plus(Millis::from_secs(5))),
            Millis::new,
        ),
        confirm_window: ms(given.pg_confirm_window_ms, shipped.confirm_window),
        authentication_window: ms(
            given.pg_authentication_window_ms,
            shipped.authentication_window,
        ),
    };
    times.check()?;
    Ok(times)
}

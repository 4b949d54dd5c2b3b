//! The timing contract in force of each gateway, from the shipped ones and what overrides them.

use payment::time::{Millis, PageTimes, Times};

use super::settings::Settings;
use super::{ConfigError, bad};

/// The shipped contract for KakaoPay, whose platform ends a call after 11 s.
///
/// The PG timeout is 15 s: those 11 s, 3 s to connect, and 1 s for the way back. Waiting longer could bring nothing, and
/// waiting less would give up on answers that still come. The page holds the response for 12 s, in which nearly every
/// confirm ends, and asks every 2 s until 36 s: nothing may be sent twice there, so a lost answer is known only from an
/// inquiry, and 36 s = 2 x 2 s database + 15 s + 1 s, and 16 s for the first two inquiries. What is unknown after that is
/// said to be so, and the page is right to say it: KakaoPay itself is not working on it any more.
///
/// A payment lives for 15 minutes from the opening of its window, authentication and confirm together.
pub const KAKAOPAY: Times = Times {
    page: PageTimes {
        response_wait: Millis::from_secs(12),
        poll_count: 12,
        ..PageTimes::DEFAULT
    },
    pg_timeout: Millis::from_secs(15),
    authentication_window: Millis::ZERO,
    confirm_window: Millis::from_secs(900),
    ..Times::DEFAULT
};

// 36 s >= 2 x 2 s + 15 s + 1 s, and beyond it the room for two inquiries.
const _: () = assert!(KAKAOPAY.check().is_ok());
const _: () = assert!(KAKAOPAY.total_wait().get() == 36_000);

/// The shipped contract for Stripe.
///
/// A session closes at a time that is told when it is opened, 30 minutes later at the earliest: 35 minutes leave that when
/// the clocks are 5 minutes apart or the call was slow. After that there are 5 minutes to come back and be confirmed. No
/// answer of Stripe's bounds these: it would capture for days, so what was not captured by then is ended by the adapter.
pub const STRIPE: Times = Times {
    authentication_window: Millis::from_secs(35 * 60),
    confirm_window: Millis::from_secs(5 * 60),
    ..Times::DEFAULT
};

const _: () = assert!(STRIPE.check().is_ok());

/// What may be set of one gateway's contract, under the names by which it is.
struct Overrides<'a> {
    cap: (&'static str, Option<&'a str>),
    reserve: Option<u32>,
    pg_timeout: Option<u64>,
    pg_connect_timeout: Option<u64>,
    response_wait: Option<u64>,
    poll_interval: Option<u64>,
    poll_count: Option<u32>,
    confirm_window: Option<u64>,
    authentication_window: Option<u64>,
}

/// The contract that `JARI_PG_*` sets: the first that was there, and the database's.
///
/// # Errors
/// [`ConfigError`] when two of its times contradict each other.
pub(super) fn times(given: &Settings) -> Result<Times, ConfigError> {
    let set = Overrides {
        cap: ("JARI_PG_CAP", given.pg_cap.as_deref()),
        reserve: given.pg_reserve,
        pg_timeout: given.pg_timeout_ms,
        pg_connect_timeout: given.pg_connect_timeout_ms,
        response_wait: given.response_wait_ms,
        poll_interval: given.poll_interval_ms,
        poll_count: given.poll_count,
        confirm_window: given.pg_confirm_window_ms,
        authentication_window: given.pg_authentication_window_ms,
    };
    in_force(&Times::DEFAULT, &set, given)
}

/// The contract that `JARI_KAKAOPAY_*` sets.
///
/// # Errors
/// [`ConfigError`] when two of its times contradict each other.
pub(super) fn kakaopay(given: &Settings) -> Result<Times, ConfigError> {
    let set = Overrides {
        cap: ("JARI_KAKAOPAY_PG_CAP", given.kakaopay_pg_cap.as_deref()),
        reserve: given.kakaopay_pg_reserve,
        pg_timeout: given.kakaopay_pg_timeout_ms,
        pg_connect_timeout: given.kakaopay_pg_connect_timeout_ms,
        response_wait: given.kakaopay_response_wait_ms,
        poll_interval: given.kakaopay_poll_interval_ms,
        poll_count: given.kakaopay_poll_count,
        confirm_window: given.kakaopay_pg_confirm_window_ms,
        authentication_window: None,
    };
    in_force(&KAKAOPAY, &set, given).map_err(|error| of_gateway("kakaopay", error))
}

/// The contract that `JARI_STRIPE_*` sets.
///
/// # Errors
/// [`ConfigError`] when two of its times contradict each other.
pub(super) fn stripe(given: &Settings) -> Result<Times, ConfigError> {
    let set = Overrides {
        cap: ("JARI_STRIPE_PG_CAP", given.stripe_pg_cap.as_deref()),
        reserve: given.stripe_pg_reserve,
        pg_timeout: given.stripe_pg_timeout_ms,
        pg_connect_timeout: given.stripe_pg_connect_timeout_ms,
        response_wait: given.stripe_response_wait_ms,
        poll_interval: given.stripe_poll_interval_ms,
        poll_count: given.stripe_poll_count,
        confirm_window: given.stripe_pg_confirm_window_ms,
        authentication_window: None,
    };
    in_force(&STRIPE, &set, given).map_err(|error| of_gateway("stripe", error))
}

/// The same error, naming whose times it is about.
fn of_gateway(gateway: &'static str, error: ConfigError) -> ConfigError {
    match error {
        ConfigError::Times(source) => ConfigError::TimesOf { gateway, source },
        other => other,
    }
}

fn in_force(shipped: &Times, set: &Overrides<'_>, given: &Settings) -> Result<Times, ConfigError> {
    let ms = |given: Option<u64>, shipped: Millis| given.map_or(shipped, Millis::new);
    let cap = match set.cap {
        (_, None) => shipped.cap,
        (_, Some("off")) => None,
        (name, Some(text)) => match text.parse::<u32>() {
            Ok(cap) if cap > 0 => Some(cap),
            Ok(_) | Err(_) => return Err(bad(name, "must be a number above 0, or off")),
        },
    };
    let pg_timeout = ms(set.pg_timeout, shipped.pg_timeout);
    let times = Times {
        page: PageTimes {
            response_wait: ms(set.response_wait, shipped.page.response_wait),
            poll_interval: ms(set.poll_interval, shipped.page.poll_interval),
            poll_count: set.poll_count.unwrap_or(shipped.page.poll_count),
            poll_limit: shipped.page.poll_limit,
        },
        pg_timeout,
        pg_connect_timeout: ms(set.pg_connect_timeout, shipped.pg_connect_timeout),
        database_wait: ms(given.database_wait_ms, shipped.database_wait),
        cap,
        reserve: set.reserve.unwrap_or(
            cap.map_or(0, Times::reserve_for)
                .min(cap.map_or(0, |cap| cap - 1)),
        ),
        node_lease: given.node_lease_ms.map_or(
            shipped
                .node_lease
                .max(pg_timeout.plus(Millis::from_secs(5))),
            Millis::new,
        ),
        confirm_window: ms(set.confirm_window, shipped.confirm_window),
        authentication_window: ms(set.authentication_window, shipped.authentication_window),
    };
    times.check()?;
    Ok(times)
}

//! Durations, and the timing contract between page, server and gateway.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A span of time, or an instant counted from a clock's own start, in whole milliseconds.
///
/// Arithmetic saturates: a hostile or broken value can never wrap around.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Millis(u64);

impl Millis {
    /// No time.
    pub const ZERO: Self = Self(0);

    /// A number of milliseconds.
    #[must_use]
    pub const fn new(ms: u64) -> Self {
        Self(ms)
    }

    /// A number of seconds.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000))
    }

    /// The number of milliseconds.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left after `other`; zero when nothing is.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// A multiple.
    #[must_use]
    pub const fn times(self, n: u32) -> Self {
        Self(self.0.saturating_mul(n as u64))
    }

    /// As the standard library's type.
    #[must_use]
    pub const fn to_duration(self) -> core::time::Duration {
        core::time::Duration::from_millis(self.0)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// The part of the contract that the page runs on; it comes with each page from the server that rendered it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PageTimes {
    /// How long the page holds the confirm's response before it aborts the fetch (spec section 3: 15 s).
    pub response_wait: Millis,
    /// The step between polls (spec section 3: 2 s).
    pub poll_interval: Millis,
    /// How many polls follow the response wait (spec section 3: 25).
    pub poll_count: u32,
    /// How long one poll may take before it counts as lost (5 s: two and a half steps).
    pub poll_limit: Millis,
}

impl PageTimes {
    /// The shipped values.
    pub const DEFAULT: Self = Self {
        response_wait: Millis::from_secs(15),
        poll_interval: Millis::from_secs(2),
        poll_count: 25,
        poll_limit: Millis::from_secs(5),
    };

    /// How long a shopper waits in all: response wait + interval × count. Sent as `X-Request-Timeout-Ms`.
    #[must_use]
    pub const fn total_wait(&self) -> Millis {
        self.response_wait
            .plus(self.poll_interval.times(self.poll_count))
    }
}

/// The timing contract of one gateway (spec section 3). [`Times::check`] holds for every value in use: the compiler
/// checks the defaults, and a start with overrides that contradict each other is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// What the page runs on.
    pub page: PageTimes,
    /// From starting to connect to the last byte of the answer (60 s).
    pub pg_timeout: Millis,
    /// To connect; part of the gateway timeout (3 s).
    pub pg_connect_timeout: Millis,
    /// For a database connection or the writer (2 s).
    pub database_wait: Millis,
    /// Most confirms in flight at once (40); `None` is no cap.
    pub cap: Option<u32>,
    /// How many slots a resend must leave free (4: a tenth of the cap).
    pub reserve: u32,
    /// How long a node's share outlives it (65 s).
    pub node_lease: Millis,
    /// How long after authentication the gateway still accepts a confirm (10 minutes for Toss).
    pub confirm_window: Millis,
    /// How long a shopper may take in the payment window (30 minutes for Toss).
    pub authentication_window: Millis,
}

/// Two times that contradict each other; each names both values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TimesError {
    /// The shopper would leave before the server knows.
    #[error(
        "total wait ({total}) must be at least 2 x database wait ({database_wait}) + PG timeout ({pg_timeout}) + 1000 ms"
    )]
    TotalWaitTooShort {
        /// Response wait + interval × count.
        total: Millis,
        /// The database wait.
        database_wait: Millis,
        /// The gateway timeout.
        pg_timeout: Millis,
    },
    /// Nothing would be left for polls.
    #[error("response wait ({response_wait}) must be shorter than total wait ({total})")]
    ResponseWaitTooLong {
        /// The response wait.
        response_wait: Millis,
        /// The total wait.
        total: Millis,
    },
    /// No resend could ever be allowed, or first sends would starve.
    #[error("reserve ({reserve}) must be below the cap ({cap})")]
    ReserveNotBelowCap {
        /// The reserve.
        reserve: u32,
        /// The cap.
        cap: u32,
    },
    /// Another node would take over while calls are still in flight.
    #[error("node lease ({node_lease}) must be at least PG timeout ({pg_timeout}) + 5000 ms")]
    LeaseTooShort {
        /// The lease.
        node_lease: Millis,
        /// The gateway timeout.
        pg_timeout: Millis,
    },
    /// The page could not poll at all.
    #[error(
        "poll interval ({poll_interval}) must be at least 1 ms and poll count ({poll_count}) at least 1"
    )]
    NoPolls {
        /// The interval.
        poll_interval: Millis,
        /// The count.
        poll_count: u32,
    },
}

impl Times {
    /// The shipped values (spec section 3).
    pub const DEFAULT: Self = Self {
        page: PageTimes::DEFAULT,
        pg_timeout: Millis::from_secs(60),
        pg_connect_timeout: Millis::from_secs(3),
        database_wait: Millis::from_secs(2),
        cap: Some(40),
        reserve: 4,
        node_lease: Millis::from_secs(65),
        confirm_window: Millis::from_secs(600),
        authentication_window: Millis::from_secs(1_800),
    };

    /// How long a shopper waits in all.
    #[must_use]
    pub const fn total_wait(&self) -> Millis {
        self.page.total_wait()
    }

    /// The reserve for a cap: a tenth, at least one.
    #[must_use]
    pub const fn reserve_for(cap: u32) -> u32 {
        if cap < 20 { 1 } else { cap / 10 }
    }

    /// How long after the last send (or the claim) "not found" and "in progress" become proof of no charge.
    #[must_use]
    pub const fn settling_time(&self) -> Millis {
        self.confirm_window.plus(self.pg_timeout)
    }

    /// Checks the contract's inequalities.
    ///
    /// # Errors
    /// The first contradiction, with both values.
    pub const fn check(&self) -> Result<(), TimesError> {
        let total = self.total_wait();
        if self.page.poll_count == 0 || self.page.poll_interval.get() == 0 {
            return Err(TimesError::NoPolls {
                poll_interval: self.page.poll_interval,
                poll_count: self.page.poll_count,
            });
        }
        if self.page.response_wait.get() >= total.get() {
            return Err(TimesError::ResponseWaitTooLong {
                response_wait: self.page.response_wait,
                total,
            });
        }
        let needed = self
            .database_wait
            .times(2)
            .plus(self.pg_timeout)
            .plus(Millis::new(1_000));
        if total.get() < needed.get() {
            return Err(TimesError::TotalWaitTooShort {
                total,
                database_wait: self.database_wait,
                pg_timeout: self.pg_timeout,
            });
        }
        if let Some(cap) = self.cap
            && self.reserve >= cap
        {
            return Err(TimesError::ReserveNotBelowCap {
                reserve: self.reserve,
                cap,
            });
        }
        if self.node_lease.get() < self.pg_timeout.plus(Millis::from_secs(5)).get() {
            return Err(TimesError::LeaseTooShort {
                node_lease: self.node_lease,
                pg_timeout: self.pg_timeout,
            });
        }
        Ok(())
    }
}

// The shipped contract is checked when compiling: 65 s = 2 x 2 s + 60 s + 1 s.
const _: () = assert!(Times::DEFAULT.check().is_ok());
const _: () = assert!(Times::DEFAULT.total_wait().get() == 65_000);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contradiction_names_both_values() {
        let short = Times {
            pg_timeout: Millis::new(60_001),
            ..Times::DEFAULT
        };
        let told = short.check().unwrap_err().to_string();
        assert!(
            told.contains("65000 ms") && told.contains("60001 ms"),
            "{told}"
        );
        let page = PageTimes {
            response_wait: Millis::from_secs(65),
            poll_count: 0,
            ..PageTimes::DEFAULT
        };
        assert!(
            Times {
                page,
                ..Times::DEFAULT
            }
            .check()
            .is_err()
        );
        let reserve = Times {
            reserve: 40,
            ..Times::DEFAULT
        };
        assert_eq!(
            reserve.check(),
            Err(TimesError::ReserveNotBelowCap {
                reserve: 40,
                cap: 40
            })
        );
        let lease = Times {
            node_lease: Millis::from_secs(64),
            ..Times::DEFAULT
        };
        assert!(matches!(
            lease.check(),
            Err(TimesError::LeaseTooShort { .. })
        ));
    }

    #[test]
    fn the_cap_needs_exactly_one_more_than_the_reserve() {
        assert!(
            Times {
                cap: Some(1),
                reserve: 0,
                ..Times::DEFAULT
            }
            .check()
            .is_ok()
        );
        assert!(
            Times {
                cap: None,
                reserve: 400,
                ..Times::DEFAULT
            }
            .check()
            .is_ok()
        );
        assert_eq!(
            (
                Times::reserve_for(40),
                Times::reserve_for(5),
                Times::reserve_for(100)
            ),
            (4, 1, 10)
        );
    }
}

//! Money: whole won, and the currency a gateway names.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An amount in won. KRW has no minor unit, so this is exact; never negative.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(try_from = "i64", into = "i64")]
pub struct Won(i64);

/// An amount that cannot be money: negative, or beyond what a browser's number holds exactly (2^53).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not an amount in won")]
pub struct NotWon(pub i64);

impl Won {
    /// No money.
    pub const ZERO: Self = Self(0);
    /// The largest amount: what a JavaScript number still holds exactly.
    pub const MAX: Self = Self((1 << 53) - 1);

    /// An amount of whole won.
    ///
    /// # Errors
    /// [`NotWon`] when it is negative or above [`Won::MAX`].
    pub const fn new(won: i64) -> Result<Self, NotWon> {
        if won < 0 || won > Self::MAX.0 {
            Err(NotWon(won))
        } else {
            Ok(Self(won))
        }
    }

    /// The amount as a number of won.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Price times quantity, `None` when it no longer fits.
    #[must_use]
    pub fn times(self, quantity: u32) -> Option<Self> {
        self.0
            .checked_mul(i64::from(quantity))
            .and_then(|won| Self::new(won).ok())
    }

    /// The sum, `None` when it no longer fits.
    #[must_use]
    pub fn plus(self, other: Self) -> Option<Self> {
        self.0
            .checked_add(other.0)
            .and_then(|won| Self::new(won).ok())
    }

    /// What is left after taking `other` away; never below zero.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        if self.0 > other.0 {
            Self(self.0 - other.0)
        } else {
            Self(0)
        }
    }
}

impl TryFrom<i64> for Won {
    type Error = NotWon;

    fn try_from(won: i64) -> Result<Self, NotWon> {
        Self::new(won)
    }
}

impl From<Won> for i64 {
    fn from(won: Won) -> Self {
        won.0
    }
}

impl fmt::Display for Won {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A currency as ISO 4217 letters. Orders are in won; a gateway may claim any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Currency {
    /// South Korean won.
    Krw,
    /// Anything else a gateway named: never what an order asked for.
    Other,
}

impl Currency {
    /// Reads a currency code; all that is not `KRW` is [`Currency::Other`].
    #[must_use]
    pub fn of(code: &str) -> Self {
        if code == "KRW" {
            Self::Krw
        } else {
            Self::Other
        }
    }
}

/// An amount with its currency, as an order asks for it and as a gateway says it charged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Money {
    /// How much.
    pub amount: Won,
    /// Of what.
    pub currency: Currency,
}

impl Money {
    /// An amount in won.
    #[must_use]
    pub const fn won(amount: Won) -> Self {
        Self {
            amount,
            currency: Currency::Krw,
        }
    }
}

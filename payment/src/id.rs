//! Identifiers: each is a type of its own, so that one can never stand where another belongs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a text is not the identifier it claims to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text is empty.
    #[error("the identifier is empty")]
    Empty,
    /// The text is longer than the kind allows.
    #[error("the identifier is longer than {max} characters")]
    TooLong {
        /// The most characters this kind may have.
        max: usize,
    },
    /// The text holds a character that the kind does not allow.
    #[error("the identifier holds a character that is not allowed")]
    BadCharacter,
}

fn check(text: &str, max: usize, allowed: fn(u8) -> bool) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > max {
        return Err(IdError::TooLong { max });
    }
    if !text.bytes().all(allowed) {
        return Err(IdError::BadCharacter);
    }
    Ok(())
}

fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn word_or_hyphen(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

fn graphic(byte: u8) -> bool {
    byte.is_ascii_graphic()
}

macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $max:expr, $allowed:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Takes a text that has the form of this identifier.
            ///
            /// # Errors
            /// [`IdError`] when the text is empty, too long or holds a character that is not allowed.
            pub fn parse(text: &str) -> Result<Self, IdError> {
                check(text, $max, $allowed)?;
                Ok(Self(text.to_owned()))
            }

            /// The identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;

            fn try_from(text: String) -> Result<Self, IdError> {
                check(&text, $max, $allowed)?;
                Ok(Self(text))
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> Self {
                id.0
            }
        }
    };
}

identifier! {
    /// An order: at most 60 characters of `[A-Za-z0-9_]` (no hyphen, so that `<orderId>-2` cannot be an order).
    OrderId, 60, word
}
identifier! {
    /// The order id that the gateway sees: the order's own for the first, `<orderId>-2`, `-3`, … for later ones.
    /// Looked up, never parsed. At most 64 characters, the gateway's limit.
    GatewayOrderId, 64, word_or_hyphen
}
identifier! {
    /// The gateway's handle of one authenticated payment; opaque, at most 200 characters. Belongs to one order for ever.
    PaymentKey, 200, graphic
}
identifier! {
    /// A gateway's own name for a payment that it opened before the shopper authenticated; opaque, at most 64 characters.
    /// Stays on the server.
    GatewayHandle, 64, graphic
}
identifier! {
    /// The key under which the gateway answers a repeated call with its first answer; at most 300 characters.
    IdempotencyKey, 300, graphic
}
identifier! {
    /// The unguessable part of a return URL: 128 random bits as text.
    AttemptReference, 64, word_or_hyphen
}
identifier! {
    /// What is sold.
    Sku, 64, word_or_hyphen
}
identifier! {
    /// A gateway's short name, as in `JARI_GATEWAYS`.
    GatewayName, 32, word
}

impl OrderId {
    /// The gateway order id of the `n`-th id that this order shows to a gateway (1 is the order's own).
    #[must_use]
    pub fn gateway_order_id(&self, n: u32) -> GatewayOrderId {
        if n <= 1 {
            GatewayOrderId(self.0.clone())
        } else {
            GatewayOrderId(format!("{}-{n}", self.0))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_id_has_no_hyphen_so_a_gateway_order_id_is_never_one() {
        let order = OrderId::parse("ord_1").unwrap();
        assert_eq!(order.gateway_order_id(1).as_str(), "ord_1");
        assert_eq!(order.gateway_order_id(2).as_str(), "ord_1-2");
        assert_eq!(OrderId::parse("ord_1-2"), Err(IdError::BadCharacter));
    }

    #[test]
    fn lengths_are_bounded() {
        assert!(OrderId::parse(&"a".repeat(60)).is_ok());
        assert_eq!(
            OrderId::parse(&"a".repeat(61)),
            Err(IdError::TooLong { max: 60 })
        );
        assert_eq!(PaymentKey::parse(""), Err(IdError::Empty));
        assert_eq!(PaymentKey::parse("a b"), Err(IdError::BadCharacter));
    }
}

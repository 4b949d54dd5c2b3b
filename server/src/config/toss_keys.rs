//! Toss Payments' keys: a client key and a secret key that belong together, of the kind that the environment may use.

use std::fmt;

use super::{ConfigError, Environment, bad};
use crate::gateway::secret::Secret;

/// The settings' names.
const CLIENT: &str = "JARI_TOSS_CLIENT_KEY";
const SECRET: &str = "JARI_TOSS_SECRET_KEY";
const TEST_CODE: &str = "JARI_TOSS_TEST_CODE";

/// What kind of keys is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyKind {
    /// Whether they move real money.
    pub live: bool,
    /// Whether they are those of the payment widget.
    pub widget: bool,
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.live { "live" } else { "test" })?;
        f.write_str(if self.widget { " widget keys" } else { " keys" })
    }
}

/// The kind that a key's prefix names: `test_ck_`, `live_gsk_` and so on.
fn kind_of(key: &str, half: &str) -> Option<KeyKind> {
    let (stage, rest) = key.split_once('_')?;
    let live = match stage {
        "live" => true,
        "test" => false,
        _ => return None,
    };
    let (kind, rest) = rest.split_once('_')?;
    let widget = match kind.strip_suffix(half)? {
        "" => false,
        "g" => true,
        _ => return None,
    };
    (!rest.is_empty()).then_some(KeyKind { live, widget })
}

/// The kind of a pair of keys.
///
/// # Errors
/// [`ConfigError`], which names settings and never values, when a key is none, the two do not belong together, or the
/// environment may not use them.
pub(super) fn check(
    client: &str,
    secret: &Secret,
    env: Environment,
) -> Result<KeyKind, ConfigError> {
    let of_client = kind_of(client, "ck").ok_or_else(|| {
        bad(
            CLIENT,
            "must begin with test_ck_, live_ck_, test_gck_ or live_gck_",
        )
    })?;
    let of_secret = kind_of(secret.expose(), "sk").ok_or_else(|| {
        bad(
            SECRET,
            "must begin with test_sk_, live_sk_, test_gsk_ or live_gsk_",
        )
    })?;
    if of_client.live != of_secret.live {
        let why = format!("and {SECRET} must both be test keys or both be live keys");
        return Err(bad(CLIENT, why));
    }
    if of_client.widget != of_secret.widget {
        let why = format!("and {SECRET} must both be the payment widget's (gck, gsk) or both not");
        return Err(bad(CLIENT, why));
    }
    if env == Environment::Production && !of_secret.live {
        let why = format!(
            "and {CLIENT} are test keys, which is refused when JARI_ENV=production: shoppers would pay nobody"
        );
        return Err(bad(SECRET, why));
    }
    Ok(of_secret)
}

/// The error that Toss Payments' test environment is to answer with, if one is asked for.
///
/// # Errors
/// [`ConfigError`] outside of development, with live keys, and for what is no code.
pub(super) fn test_code(
    given: Option<&str>,
    secret: &Secret,
    env: Environment,
) -> Result<Option<String>, ConfigError> {
    let Some(code) = given else { return Ok(None) };
    if env != Environment::Development {
        return Err(bad(TEST_CODE, "is refused unless JARI_ENV=development"));
    }
    if !secret.expose().starts_with("test_") {
        return Err(bad(
            TEST_CODE,
            format!("is refused unless {SECRET} is a test key"),
        ));
    }
    let plain = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    if code.is_empty() || code.len() > 64 || !code.bytes().all(plain) {
        return Err(bad(
            TEST_CODE,
            "must be an error code, as REJECT_CARD_COMPANY",
        ));
    }
    Ok(Some(code.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_that_belong_together_are_taken_and_production_takes_no_test_keys() {
        use Environment::{Development, Production};
        for (client, secret, env, expected) in [
            ("test_ck_a", "test_sk_b", Development, Ok("test keys")),
            ("live_ck_a", "live_sk_b", Production, Ok("live keys")),
            ("live_ck_a", "live_sk_b", Development, Ok("live keys")),
            (
                "test_gck_a",
                "test_gsk_b",
                Development,
                Ok("test widget keys"),
            ),
            (
                "live_gck_a",
                "live_gsk_b",
                Production,
                Ok("live widget keys"),
            ),
            ("test_ck_a", "test_sk_b", Production, Err(SECRET)),
            ("live_ck_a", "test_sk_b", Development, Err(CLIENT)),
            ("test_ck_a", "live_sk_b", Development, Err(CLIENT)),
            ("live_gck_a", "live_sk_b", Production, Err(CLIENT)),
            ("live_ck_a", "live_gsk_b", Production, Err(CLIENT)),
            ("live_sk_a", "live_sk_b", Production, Err(CLIENT)),
            ("live_ck_a", "live_ck_b", Production, Err(SECRET)),
            ("ck_a", "live_sk_b", Production, Err(CLIENT)),
            ("live_ck_a", "", Production, Err(SECRET)),
            ("live_ck_", "live_sk_b", Production, Err(CLIENT)),
        ] {
            let checked = check(client, &Secret::new(secret), env);
            match (checked, expected) {
                (Ok(kind), Ok(told)) => assert_eq!(kind.to_string(), told),
                (Err(error), Err(setting)) => {
                    let text = error.to_string();
                    assert!(text.starts_with(setting), "{text}");
                    assert!(secret.is_empty() || !text.contains(secret), "{text}");
                    assert!(client.ends_with('_') || !text.contains(client), "{text}");
                }
                (checked, expected) => panic!("{client} {secret}: {checked:?}, not {expected:?}"),
            }
        }
    }

    #[test]
    fn a_test_code_is_only_for_development_and_test_keys() {
        use Environment::{Development, Production};
        let of = |code, key, env| test_code(Some(code), &Secret::new(key), env);
        let code = "REJECT_CARD_COMPANY";
        assert_eq!(
            of(code, "test_sk_a", Development).unwrap().as_deref(),
            Some(code)
        );
        assert!(of(code, "test_sk_a", Production).is_err());
        assert!(of(code, "live_sk_a", Development).is_err());
        for bad in ["", "reject", "A B", "A\r\nB"] {
            assert!(of(bad, "test_sk_a", Development).is_err(), "{bad}");
        }
        assert_eq!(
            test_code(None, &Secret::new("live_sk_a"), Production).unwrap(),
            None
        );
    }
}

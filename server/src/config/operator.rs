//! The operator's token, and what opens the console.

use super::secrets::secret;
use super::settings::Settings;
use super::{ConfigError, bad};
use crate::console::is_password_hash;
use crate::gateway::secret::Secret;

/// The shortest token: what nobody guesses however often.
const SHORTEST: usize = 32;

/// The hash of the console's password; `None` is no console.
///
/// # Errors
/// [`ConfigError`] when it is no such hash, given twice, or its file cannot be read.
pub(super) fn password_hash(given: &Settings) -> Result<Option<Secret>, ConfigError> {
    let hash = secret(
        ("JARI_OPS_PASSWORD_HASH", given.ops_password_hash.as_ref()),
        (
            "JARI_OPS_PASSWORD_HASH_FILE",
            given.ops_password_hash_file.as_deref(),
        ),
    )?;
    if hash
        .as_ref()
        .is_some_and(|hash| !is_password_hash(hash.expose()))
    {
        return Err(bad(
            "JARI_OPS_PASSWORD_HASH",
            "must be an argon2id hash, as `jari hash-password` prints it",
        ));
    }
    Ok(hash)
}

/// The token by which the operator asks for refunds.
///
/// # Errors
/// [`ConfigError`] when it is too short, given twice, or its file cannot be read.
pub(super) fn token(given: &Settings) -> Result<Option<Secret>, ConfigError> {
    let token = secret(
        ("JARI_OPERATOR_TOKEN", given.operator_token.as_ref()),
        (
            "JARI_OPERATOR_TOKEN_FILE",
            given.operator_token_file.as_deref(),
        ),
    )?;
    let Some(token) = token else { return Ok(None) };
    let plain = token.expose().bytes().all(|byte| byte.is_ascii_graphic());
    if token.expose().len() < SHORTEST || !plain {
        return Err(bad(
            "JARI_OPERATOR_TOKEN",
            "must have at least 32 visible ASCII characters",
        ));
    }
    Ok(Some(token))
}

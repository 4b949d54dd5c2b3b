//! The operator's token.

use super::secrets::secret;
use super::settings::Settings;
use super::{ConfigError, bad};
use crate::gateway::secret::Secret;

/// The shortest token: what nobody guesses however often.
const SHORTEST: usize = 32;

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

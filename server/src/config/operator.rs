//! The operator's token.

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
    let token = match (&given.operator_token, &given.operator_token_file) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err(bad(
                "JARI_OPERATOR_TOKEN",
                "is given beside JARI_OPERATOR_TOKEN_FILE",
            ));
        }
        (Some(token), None) => token.clone(),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file).map_err(|error| {
                bad(
                    "JARI_OPERATOR_TOKEN_FILE",
                    format!("cannot be read: {error}"),
                )
            })?;
            Secret::new(text.trim())
        }
    };
    let plain = token.expose().bytes().all(|byte| byte.is_ascii_graphic());
    if token.expose().len() < SHORTEST || !plain {
        return Err(bad(
            "JARI_OPERATOR_TOKEN",
            "must have at least 32 visible ASCII characters",
        ));
    }
    Ok(Some(token))
}

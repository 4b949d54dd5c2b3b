//! The gateways in use, with their addresses and keys.

use payment::id::GatewayName;

use super::settings::Settings;
use super::{ConfigError, bad};
use crate::gateway::secret::Secret;

/// One gateway's endpoints and keys.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// Its short name.
    pub name: GatewayName,
    /// Its API.
    pub base_url: String,
    /// Its payment window.
    pub window_url: String,
    /// Its public key.
    pub client_key: String,
    /// Its secret key.
    pub secret_key: Secret,
}

/// The gateways in use, first choice first.
///
/// # Errors
/// [`ConfigError`] for a gateway that is not spoken to, and for keys that are missing or mixed.
pub(super) fn gateways(
    given: &Settings,
    fake: Option<&str>,
) -> Result<Vec<GatewaySettings>, ConfigError> {
    let default = vec!["toss".to_owned()];
    let names = given.gateways.as_ref().unwrap_or(&default);
    if names.is_empty() {
        return Err(bad("JARI_GATEWAYS", "names no gateway"));
    }
    names
        .iter()
        .map(|name| gateway(given, fake, name))
        .collect()
}

fn gateway(
    given: &Settings,
    fake: Option<&str>,
    name: &str,
) -> Result<GatewaySettings, ConfigError> {
    if name != "toss" {
        return Err(bad(
            "JARI_GATEWAYS",
            format!("{name:?} is not a gateway that this server speaks to"),
        ));
    }
    let name = GatewayName::parse(name).map_err(|error| bad("JARI_GATEWAYS", error.to_string()))?;
    if let Some(fake) = fake {
        let fake = fake.trim_end_matches('/');
        return Ok(GatewaySettings {
            name,
            base_url: fake.to_owned(),
            window_url: format!("{fake}/window"),
            client_key: given
                .toss_client_key
                .clone()
                .unwrap_or_else(|| "test_ck_fake".to_owned()),
            secret_key: given
                .toss_secret_key
                .clone()
                .unwrap_or_else(|| Secret::new("test_sk_fake")),
        });
    }
    let client_key = given
        .toss_client_key
        .clone()
        .ok_or(ConfigError::Missing("JARI_TOSS_CLIENT_KEY"))?;
    let secret_key = secret_key(given)?;
    let live = |key: &str| key.starts_with("live_");
    if live(&client_key) != live(secret_key.expose()) {
        return Err(bad(
            "JARI_TOSS_SECRET_KEY",
            "test and live keys cannot be mixed",
        ));
    }
    Ok(GatewaySettings {
        name,
        base_url: given
            .toss_url
            .clone()
            .unwrap_or_else(|| "https://api.tosspayments.com".to_owned()),
        window_url: given
            .toss_window_url
            .clone()
            .ok_or(ConfigError::Missing("JARI_TOSS_WINDOW_URL"))?,
        client_key,
        secret_key,
    })
}

fn secret_key(given: &Settings) -> Result<Secret, ConfigError> {
    if let Some(key) = &given.toss_secret_key {
        return Ok(key.clone());
    }
    let Some(file) = &given.toss_secret_key_file else {
        return Err(ConfigError::Missing(
            "JARI_TOSS_SECRET_KEY or JARI_TOSS_SECRET_KEY_FILE",
        ));
    };
    let text = std::fs::read_to_string(file).map_err(|error| {
        bad(
            "JARI_TOSS_SECRET_KEY_FILE",
            format!("cannot be read: {error}"),
        )
    })?;
    Ok(Secret::new(text.trim()))
}

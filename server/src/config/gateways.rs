//! The gateways in use, with their addresses and keys.

use payment::id::GatewayName;

use super::secrets::secret;
use super::settings::Settings;
use super::toss_keys::{self, KeyKind};
use super::{ConfigError, Environment, bad};
use crate::gateway::secret::Secret;

/// One gateway's endpoints and keys.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// Its short name.
    pub name: GatewayName,
    /// Its API.
    pub base_url: String,
    /// Its payment window; `None` opens it by the gateway's own script.
    pub window_url: Option<String>,
    /// Its public key.
    pub client_key: String,
    /// Its secret key.
    pub secret_key: Secret,
    /// The error that its test environment is to answer with.
    pub test_code: Option<String>,
    /// What kind of keys these are; `None` for the fake gateway.
    pub keys: Option<KeyKind>,
}

/// The gateways in use, first choice first.
///
/// # Errors
/// [`ConfigError`] for a gateway that is not spoken to, and for keys that are missing or mixed.
pub(super) fn gateways(
    given: &Settings,
    fake: Option<&str>,
    env: Environment,
) -> Result<Vec<GatewaySettings>, ConfigError> {
    let default = vec!["toss".to_owned()];
    let names = given.gateways.as_ref().unwrap_or(&default);
    if names.is_empty() {
        return Err(bad("JARI_GATEWAYS", "names no gateway"));
    }
    names
        .iter()
        .map(|name| gateway(given, fake, env, name))
        .collect()
}

fn gateway(
    given: &Settings,
    fake: Option<&str>,
    env: Environment,
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
        let secret_key = secret_key(given)?.unwrap_or_else(|| Secret::new("test_sk_fake"));
        let test_code = given.toss_test_code.as_deref();
        return Ok(GatewaySettings {
            name,
            base_url: fake.to_owned(),
            window_url: Some(format!("{fake}/window")),
            client_key: given
                .toss_client_key
                .clone()
                .unwrap_or_else(|| "test_ck_fake".to_owned()),
            test_code: toss_keys::test_code(test_code, &secret_key, env)?,
            secret_key,
            keys: None,
        });
    }
    let client_key = given
        .toss_client_key
        .clone()
        .ok_or(ConfigError::Missing("JARI_TOSS_CLIENT_KEY"))?;
    let secret_key = secret_key(given)?.ok_or(ConfigError::Missing(
        "JARI_TOSS_SECRET_KEY or JARI_TOSS_SECRET_KEY_FILE",
    ))?;
    let kind = toss_keys::check(&client_key, &secret_key, env)?;
    let test_code = toss_keys::test_code(given.toss_test_code.as_deref(), &secret_key, env)?;
    Ok(GatewaySettings {
        name,
        base_url: given
            .toss_url
            .clone()
            .unwrap_or_else(|| "https://api.tosspayments.com".to_owned()),
        window_url: given.toss_window_url.clone(),
        client_key,
        secret_key,
        test_code,
        keys: Some(kind),
    })
}

fn secret_key(given: &Settings) -> Result<Option<Secret>, ConfigError> {
    secret(
        ("JARI_TOSS_SECRET_KEY", given.toss_secret_key.as_ref()),
        (
            "JARI_TOSS_SECRET_KEY_FILE",
            given.toss_secret_key_file.as_deref(),
        ),
    )
}

//! Stripe's keys: test and live ones are told apart by their first letters, and the webhooks have a secret of their own.

use super::{GatewaySettings, Wire, name_of};
use crate::config::secrets::secret;
use crate::config::settings::Settings;
use crate::config::toss_keys::KeyKind;
use crate::config::{ConfigError, Environment, bad, times};
use crate::gateway::secret::Secret;

const API: &str = "https://api.stripe.com";
/// How a secret key begins, or a restricted one.
const SECRET: [&str; 2] = ["sk", "rk"];
/// How the secret of an endpoint's webhooks begins.
const WEBHOOK: &str = "whsec_";

pub(super) fn stripe(
    given: &Settings,
    fake: Option<&str>,
    env: Environment,
    name: &str,
) -> Result<GatewaySettings, ConfigError> {
    let key = secret(
        ("JARI_STRIPE_SECRET_KEY", given.stripe_secret_key.as_ref()),
        (
            "JARI_STRIPE_SECRET_KEY_FILE",
            given.stripe_secret_key_file.as_deref(),
        ),
    )?;
    let webhook_secret = secret(
        (
            "JARI_STRIPE_WEBHOOK_SECRET",
            given.stripe_webhook_secret.as_ref(),
        ),
        (
            "JARI_STRIPE_WEBHOOK_SECRET_FILE",
            given.stripe_webhook_secret_file.as_deref(),
        ),
    )?;
    let settings = |base_url: &str, secret_key, webhook_secret, keys| {
        Ok(GatewaySettings {
            name: name_of(name)?,
            wire: Wire::Stripe,
            times: times::stripe(given)?,
            base_url: base_url.to_owned(),
            window_url: None,
            // The windows are Stripe's own pages, so no public key is needed.
            client_key: String::new(),
            secret_key,
            webhook_secret: Some(webhook_secret),
            test_code: None,
            keys,
        })
    };
    if let Some(fake) = fake {
        let key = key.unwrap_or_else(|| Secret::new("sk_test_fake"));
        let webhook_secret = webhook_secret.unwrap_or_else(|| Secret::new("whsec_fake"));
        return settings(fake.trim_end_matches('/'), key, webhook_secret, None);
    }
    let key = key.ok_or(ConfigError::Missing(
        "JARI_STRIPE_SECRET_KEY or JARI_STRIPE_SECRET_KEY_FILE",
    ))?;
    let webhook_secret = webhook_secret.ok_or(ConfigError::Missing(
        "JARI_STRIPE_WEBHOOK_SECRET or JARI_STRIPE_WEBHOOK_SECRET_FILE",
    ))?;
    let live = is_live(&key, env)?;
    if !webhook_secret.expose().starts_with(WEBHOOK) {
        let why = "is not the secret of an endpoint's webhooks, which begins with whsec_";
        return Err(bad("JARI_STRIPE_WEBHOOK_SECRET", why));
    }
    let keys = Some(KeyKind {
        live,
        widget: false,
    });
    let api = given.stripe_url.as_deref().unwrap_or(API);
    settings(api, key, webhook_secret, keys)
}

/// Whether payments under this key are real.
fn is_live(key: &Secret, env: Environment) -> Result<bool, ConfigError> {
    let of = |mode: &str| {
        let begins = |kind: &str| key.expose().starts_with(&format!("{kind}_{mode}_"));
        SECRET.iter().any(|kind| begins(kind))
    };
    match (of("live"), of("test")) {
        (true, _) => Ok(true),
        (false, true) if env == Environment::Production => {
            let why = "is a test key, which is refused when JARI_ENV=production: shoppers would pay nobody";
            Err(bad("JARI_STRIPE_SECRET_KEY", why))
        }
        (false, true) => Ok(false),
        (false, false) => {
            let why = "must begin with sk_live_, sk_test_, rk_live_ or rk_test_: it is no secret key of an account";
            Err(bad("JARI_STRIPE_SECRET_KEY", why))
        }
    }
}

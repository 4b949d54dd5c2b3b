//! The gateways in use, with their addresses and keys.

mod stripe;

use payment::id::GatewayName;
use payment::time::Times;

use super::secrets::secret;
use super::settings::Settings;
use super::toss_keys::{self, KeyKind};
use super::{ConfigError, Environment, bad, times};
use crate::gateway::secret::Secret;

/// Which wire a gateway speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Toss Payments'.
    Toss,
    /// KakaoPay's.
    KakaoPay,
    /// Stripe's.
    Stripe,
}

/// One gateway's endpoints, keys and timing contract.
#[derive(Debug, Clone)]
pub struct GatewaySettings {
    /// Its short name.
    pub name: GatewayName,
    /// Which adapter speaks to it.
    pub wire: Wire,
    /// Its timing contract.
    pub times: Times,
    /// Its API.
    pub base_url: String,
    /// Its payment window; `None` where the gateway tells that with each payment, or its own script opens it.
    pub window_url: Option<String>,
    /// Its public key, or its name for the shop.
    pub client_key: String,
    /// Its secret key.
    pub secret_key: Secret,
    /// What it signs its webhooks with, where it does.
    pub webhook_secret: Option<Secret>,
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
    let mut gateways: Vec<GatewaySettings> = Vec::with_capacity(names.len());
    for name in names {
        let gateway = match name.as_str() {
            "toss" => toss(given, fake, env, name)?,
            "kakaopay" => kakaopay(given, fake, env, name)?,
            "stripe" => stripe::stripe(given, fake, env, name)?,
            other => {
                let why = format!("{other:?} is not a gateway that this server speaks to");
                return Err(bad("JARI_GATEWAYS", why));
            }
        };
        if gateways.iter().any(|known| known.name == gateway.name) {
            return Err(bad("JARI_GATEWAYS", format!("names {name:?} twice")));
        }
        gateways.push(gateway);
    }
    let kinds = gateways.iter().filter_map(|gateway| gateway.keys);
    let live = kinds.filter(|kind| kind.live).count();
    if live > 0 && live < gateways.len() {
        let why =
            "test and live keys cannot be mixed: of one gateway the payments would not be real";
        return Err(bad("JARI_GATEWAYS", why));
    }
    share_lease(&mut gateways, given);
    Ok(gateways)
}

/// A node has one lease: as long as the gateway needs whose calls take longest.
fn share_lease(gateways: &mut [GatewaySettings], given: &Settings) {
    let longest = gateways.iter().map(|gateway| gateway.times.node_lease);
    if let (None, Some(longest)) = (given.node_lease_ms, longest.max()) {
        for gateway in gateways {
            gateway.times.node_lease = longest;
        }
    }
}

fn name_of(name: &str) -> Result<GatewayName, ConfigError> {
    GatewayName::parse(name).map_err(|error| bad("JARI_GATEWAYS", error.to_string()))
}

fn toss(
    given: &Settings,
    fake: Option<&str>,
    env: Environment,
    name: &str,
) -> Result<GatewaySettings, ConfigError> {
    let (name, wire) = (name_of(name)?, Wire::Toss);
    let times = times::times(given)?;
    if let Some(fake) = fake {
        let fake = fake.trim_end_matches('/');
        let secret_key = secret_key(given)?.unwrap_or_else(|| Secret::new("test_sk_fake"));
        let test_code = given.toss_test_code.as_deref();
        return Ok(GatewaySettings {
            name,
            wire,
            times,
            base_url: fake.to_owned(),
            window_url: Some(format!("{fake}/window")),
            client_key: given
                .toss_client_key
                .clone()
                .unwrap_or_else(|| "test_ck_fake".to_owned()),
            test_code: toss_keys::test_code(test_code, &secret_key, env)?,
            secret_key,
            webhook_secret: None,
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
        wire,
        times,
        base_url: given
            .toss_url
            .clone()
            .unwrap_or_else(|| "https://api.tosspayments.com".to_owned()),
        window_url: given.toss_window_url.clone(),
        client_key,
        secret_key,
        webhook_secret: None,
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

/// KakaoPay's test shop, whose payments are not real.
const TEST_CID: &str = "TC0ONETIME";

fn kakaopay(
    given: &Settings,
    fake: Option<&str>,
    env: Environment,
    name: &str,
) -> Result<GatewaySettings, ConfigError> {
    let (name, wire) = (name_of(name)?, Wire::KakaoPay);
    let times = times::kakaopay(given)?;
    if let Some(fake) = fake {
        let fake = fake.trim_end_matches('/');
        return Ok(GatewaySettings {
            name,
            wire,
            times,
            base_url: fake.to_owned(),
            window_url: None,
            client_key: given
                .kakaopay_cid
                .clone()
                .unwrap_or_else(|| TEST_CID.to_owned()),
            secret_key: kakaopay_secret(given)?.unwrap_or_else(|| Secret::new("DEV_fake")),
            webhook_secret: None,
            test_code: None,
            keys: None,
        });
    }
    let cid = given
        .kakaopay_cid
        .clone()
        .ok_or(ConfigError::Missing("JARI_KAKAOPAY_CID"))?;
    let secret_key = kakaopay_secret(given)?.ok_or(ConfigError::Missing(
        "JARI_KAKAOPAY_SECRET_KEY or JARI_KAKAOPAY_SECRET_KEY_FILE",
    ))?;
    // Keys of the test environment begin with DEV, those of the real one with PRD.
    let begins = |with: &str| secret_key.expose().starts_with(with);
    if is_live_cid(&cid) && begins("DEV") || !is_live_cid(&cid) && begins("PRD") {
        let why = "test and live keys cannot be mixed";
        return Err(bad("JARI_KAKAOPAY_SECRET_KEY", why));
    }
    let live = is_live_cid(&cid);
    if env == Environment::Production && !live {
        let why = "is of the test shop, which is refused when JARI_ENV=production: shoppers would pay nobody";
        return Err(bad("JARI_KAKAOPAY_CID", why));
    }
    Ok(GatewaySettings {
        name,
        wire,
        times,
        base_url: given
            .kakaopay_url
            .clone()
            .unwrap_or_else(|| "https://open-api.kakaopay.com".to_owned()),
        window_url: None,
        client_key: cid,
        secret_key,
        webhook_secret: None,
        test_code: None,
        keys: Some(KeyKind {
            live,
            widget: false,
        }),
    })
}

fn is_live_cid(cid: &str) -> bool {
    !cid.starts_with("TC")
}

fn kakaopay_secret(given: &Settings) -> Result<Option<Secret>, ConfigError> {
    secret(
        (
            "JARI_KAKAOPAY_SECRET_KEY",
            given.kakaopay_secret_key.as_ref(),
        ),
        (
            "JARI_KAKAOPAY_SECRET_KEY_FILE",
            given.kakaopay_secret_key_file.as_deref(),
        ),
    )
}

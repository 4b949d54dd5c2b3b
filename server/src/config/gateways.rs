//! The gateways in use, with their addresses and keys.

use std::path::Path;

use payment::id::GatewayName;
use payment::time::Times;

use super::settings::Settings;
use super::{ConfigError, bad, times};
use crate::gateway::secret::Secret;

/// Which wire a gateway speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Toss Payments'.
    Toss,
    /// KakaoPay's.
    KakaoPay,
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
    /// Its payment window; empty where it tells that with each payment.
    pub window_url: String,
    /// Its public key, or its name for the shop.
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
    let mut gateways: Vec<GatewaySettings> = Vec::with_capacity(names.len());
    for name in names {
        let gateway = match name.as_str() {
            "toss" => toss(given, fake, name)?,
            "kakaopay" => kakaopay(given, fake, name)?,
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
    let live = gateways.iter().filter(|gateway| is_live(gateway)).count();
    if fake.is_none() && live > 0 && live < gateways.len() {
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

fn toss(given: &Settings, fake: Option<&str>, name: &str) -> Result<GatewaySettings, ConfigError> {
    let (name, wire) = (name_of(name)?, Wire::Toss);
    let times = times::times(given)?;
    if let Some(fake) = fake {
        let fake = fake.trim_end_matches('/');
        return Ok(GatewaySettings {
            name,
            wire,
            times,
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
    let secret_key = secret_key(
        given.toss_secret_key.as_ref(),
        given.toss_secret_key_file.as_deref(),
        TOSS_SECRET,
    )?;
    let live = |key: &str| key.starts_with("live_");
    if live(&client_key) != live(secret_key.expose()) {
        return Err(bad(
            "JARI_TOSS_SECRET_KEY",
            "test and live keys cannot be mixed",
        ));
    }
    Ok(GatewaySettings {
        name,
        wire,
        times,
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

/// KakaoPay's test shop, whose payments are not real.
const TEST_CID: &str = "TC0ONETIME";

fn kakaopay(
    given: &Settings,
    fake: Option<&str>,
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
            window_url: String::new(),
            client_key: given
                .kakaopay_cid
                .clone()
                .unwrap_or_else(|| TEST_CID.to_owned()),
            secret_key: given
                .kakaopay_secret_key
                .clone()
                .unwrap_or_else(|| Secret::new("DEV_fake")),
        });
    }
    let cid = given
        .kakaopay_cid
        .clone()
        .ok_or(ConfigError::Missing("JARI_KAKAOPAY_CID"))?;
    let secret_key = secret_key(
        given.kakaopay_secret_key.as_ref(),
        given.kakaopay_secret_key_file.as_deref(),
        KAKAOPAY_SECRET,
    )?;
    // Keys of the test environment begin with DEV, those of the real one with PRD.
    let begins = |with: &str| secret_key.expose().starts_with(with);
    if is_live_cid(&cid) && begins("DEV") || !is_live_cid(&cid) && begins("PRD") {
        let why = "test and live keys cannot be mixed";
        return Err(bad("JARI_KAKAOPAY_SECRET_KEY", why));
    }
    Ok(GatewaySettings {
        name,
        wire,
        times,
        base_url: given
            .kakaopay_url
            .clone()
            .unwrap_or_else(|| "https://open-api.kakaopay.com".to_owned()),
        window_url: String::new(),
        client_key: cid,
        secret_key,
    })
}

fn is_live_cid(cid: &str) -> bool {
    !cid.starts_with("TC")
}

/// Whether its keys are of the real environment.
fn is_live(gateway: &GatewaySettings) -> bool {
    match gateway.wire {
        Wire::Toss => gateway.client_key.starts_with("live_"),
        Wire::KakaoPay => is_live_cid(&gateway.client_key),
    }
}

/// The names of a secret's settings: of its file, and of both.
type SecretNames = (&'static str, &'static str);

const TOSS_SECRET: SecretNames = (
    "JARI_TOSS_SECRET_KEY_FILE",
    "JARI_TOSS_SECRET_KEY or JARI_TOSS_SECRET_KEY_FILE",
);
const KAKAOPAY_SECRET: SecretNames = (
    "JARI_KAKAOPAY_SECRET_KEY_FILE",
    "JARI_KAKAOPAY_SECRET_KEY or JARI_KAKAOPAY_SECRET_KEY_FILE",
);

fn secret_key(
    key: Option<&Secret>,
    file: Option<&Path>,
    (of_file, of_both): SecretNames,
) -> Result<Secret, ConfigError> {
    if let Some(key) = key {
        return Ok(key.clone());
    }
    let Some(file) = file else {
        return Err(ConfigError::Missing(of_both));
    };
    let text = std::fs::read_to_string(file)
        .map_err(|error| bad(of_file, format!("cannot be read: {error}")))?;
    Ok(Secret::new(text.trim()))
}

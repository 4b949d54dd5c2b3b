//! Settings: flags, then environment, then an optional TOML file, then the contract's defaults.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::ValueEnum;
use payment::attempt::LateSuccess;
use payment::id::GatewayName;
use payment::resend::Policy;
use payment::time::{Millis, Times, TimesError};
use serde::Deserialize;

use crate::gateway::circuit::CircuitMode;
use crate::gateway::secret::Secret;

mod bounds;
mod database;
mod gateways;
mod operator;
mod secrets;
mod settings;
pub mod table;
mod times;
mod toss_keys;

pub use bounds::Bounds;
pub use database::DatabaseUrl;
pub use gateways::{GatewaySettings, Wire};
pub use settings::{LatePolicy, ResendPolicy, Settings};
pub use times::{KAKAOPAY, STRIPE};
pub use toss_keys::KeyKind;

/// Where a deployment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// Real money: no fake gateway, no panel, secure cookies only.
    Production,
    /// A developer's or a lab's machine.
    Development,
}

/// A switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Switch {
    /// It acts.
    On,
    /// It does not.
    Off,
}

/// Why the server refuses to start.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Two times contradict each other.
    #[error("the times contradict each other: {0}")]
    Times(#[from] TimesError),
    /// Two times of one gateway contradict each other.
    #[error("the times of {gateway} contradict each other: {source}")]
    TimesOf {
        /// Which.
        gateway: &'static str,
        /// How.
        source: TimesError,
    },
    /// A setting's value is not one.
    #[error("{name}: {why}")]
    Bad {
        /// The setting.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A setting is missing where it is required.
    #[error("{0} is required")]
    Missing(&'static str),
    /// The fake gateway in production.
    #[error("JARI_FAKE_PG=on is refused when JARI_ENV=production: real shoppers would pay nobody")]
    FakeInProduction,
}

/// The settings in force, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// The database.
    pub database_url: DatabaseUrl,
    /// Where to listen.
    pub addr: SocketAddr,
    /// Production or development.
    pub env: Environment,
    /// The address that shoppers see; `None` takes the request's host (development only).
    pub public_url: Option<String>,
    /// The gateways, first choice first.
    pub gateways: Vec<GatewaySettings>,
    /// The fake gateway's address, when it is in use.
    pub fakepg_url: Option<String>,
    /// The timing contract that `JARI_PG_*` sets, and the database's; each gateway has its own in its settings.
    pub times: Times,
    /// How long an order can be paid.
    pub order_ttl: Millis,
    /// What becomes of a charge that is learned after its attempt had ended.
    pub late_success: LateSuccess,
    /// Where mails are written to; `None` writes none.
    pub mail_dir: Option<PathBuf>,
    /// Whether a passed deadline forbids a send.
    pub deadline_check: Switch,
    /// Whether a lost confirm is sent once more.
    pub resend: Policy,
    /// Most resends per thousand confirms of the last ten seconds; `None` is no such gate.
    pub resend_per_mille: Option<u32>,
    /// Whether an open circuit refuses confirms.
    pub circuit: CircuitMode,
    /// Whether each class of requests has bounds of its own.
    pub lanes: Switch,
    /// Whether one address or shopper may make only so many orders and confirms.
    pub rate_limits: Switch,
    /// One shared pool of so many request workers that queues; for the lab.
    pub lab_workers: Option<u32>,
    /// Proxies whose X-Request-Start and X-Forwarded-For are believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// Signs cookies; `None` in development is made once and kept in the database.
    pub secret_key: Option<Secret>,
    /// The built pages.
    pub site_root: String,
    /// How long a stopping server lets sent calls finish.
    pub drain: Millis,
    /// Bounds on what is asked of the gateway and on what anybody may post.
    pub bounds: Bounds,
    /// How long after its confirm a shopper may cancel a paid order; zero is never.
    pub cancel_cutoff: Millis,
    /// Whether shops' endpoints may be plain http and at private addresses.
    pub webhook_private: Switch,
    /// By which the operator asks for refunds; `None` is nobody.
    pub operator_token: Option<Secret>,
    /// Opens the console; `None` is no console.
    pub ops_password_hash: Option<Secret>,
}

impl Config {
    /// Checks settings and fills in defaults.
    ///
    /// # Errors
    /// [`ConfigError`]: the server must not start.
    pub fn check(given: Settings) -> Result<Self, ConfigError> {
        let mut given = given;
        given.secret_key = secrets::secret(
            ("JARI_SECRET_KEY", given.secret_key.as_ref()),
            ("JARI_SECRET_KEY_FILE", given.secret_key_file.as_deref()),
        )?;
        let env = given.env.unwrap_or(Environment::Production);
        let production = env == Environment::Production;
        let fakepg_url = fake_gateway(&given, production)?;
        let times = times::times(&given)?;
        check_texts(&given, production)?;
        let gateways = gateways::gateways(&given, fakepg_url.as_deref(), env)?;
        Ok(Self {
            database_url: given
                .database_url
                .clone()
                .unwrap_or_else(|| DatabaseUrl::new("sqlite://jari.db")),
            addr: given
                .addr
                .unwrap_or(SocketAddr::from(([127, 0, 0, 1], 3000))),
            env,
            public_url: given
                .public_url
                .clone()
                .map(|url| url.trim_end_matches('/').to_owned()),
            fakepg_url,
            times,
            order_ttl: Millis::new(given.order_ttl_ms.unwrap_or(86_400_000)),
            late_success: given
                .late_success
                .map_or(LateSuccess::Cancel, LateSuccess::from),
            mail_dir: given
                .mail_dir
                .clone()
                .filter(|path| path.as_os_str() != "off"),
            deadline_check: given.deadline_check.unwrap_or(Switch::On),
            resend: given.resend.map_or(Policy::DEFAULT, Policy::from),
            resend_per_mille: resend_ratio(given.resend_ratio.as_deref())?,
            circuit: given.circuit.unwrap_or(CircuitMode::On),
            lanes: given.lanes.unwrap_or(Switch::On),
            rate_limits: given.rate_limits.unwrap_or(if production {
                Switch::On
            } else {
                Switch::Off
            }),
            lab_workers: lab_workers(given.lab_workers, production)?,
            trusted_proxies: given.trusted_proxies.clone().unwrap_or_default(),
            secret_key: given.secret_key.clone(),
            site_root: given
                .site_root
                .clone()
                .unwrap_or_else(|| "target/site".to_owned()),
            drain: given.drain_ms.map_or(
                longest_timeout(&gateways).plus(Millis::from_secs(5)),
                Millis::new,
            ),
            gateways,
            bounds: bounds::bounds(&given)?,
            cancel_cutoff: Millis::new(given.cancel_cutoff_ms.unwrap_or(86_400_000)),
            webhook_private: given.webhook_private.unwrap_or(if production {
                Switch::Off
            } else {
                Switch::On
            }),
            operator_token: operator::token(&given)?,
            ops_password_hash: operator::password_hash(&given)?,
        })
    }

    /// The timing contract of a gateway; of one that is not configured the default one.
    #[must_use]
    pub fn times_of(&self, gateway: &GatewayName) -> Times {
        let known = self.gateways.iter().find(|known| known.name == *gateway);
        known.map_or(self.times, |known| known.times)
    }

    /// The longest that a call to any of the gateways takes.
    #[must_use]
    pub fn longest_timeout(&self) -> Millis {
        longest_timeout(&self.gateways)
    }

    /// The caps of all gateways together; `None` when one of them has none.
    #[must_use]
    pub fn caps(&self) -> Option<u32> {
        let caps = self.gateways.iter().map(|gateway| gateway.times.cap);
        caps.sum()
    }

    /// Whether this is a developer's or a lab's machine.
    #[must_use]
    pub fn is_development(&self) -> bool {
        self.env == Environment::Development
    }
}

fn longest_timeout(gateways: &[GatewaySettings]) -> Millis {
    let timeouts = gateways.iter().map(|gateway| gateway.times.pg_timeout);
    timeouts.max().unwrap_or_default()
}

/// The fake gateway's address, when it is in use.
fn fake_gateway(given: &Settings, production: bool) -> Result<Option<String>, ConfigError> {
    let default = if production { Switch::Off } else { Switch::On };
    if given.fake_pg.unwrap_or(default) == Switch::Off {
        return Ok(None);
    }
    if production {
        return Err(ConfigError::FakeInProduction);
    }
    let url = given.fakepg_url.clone();
    Ok(Some(
        url.unwrap_or_else(|| "http://127.0.0.1:3900".to_owned()),
    ))
}

/// Checks what must be there, and what would only fail later.
fn check_texts(given: &Settings, production: bool) -> Result<(), ConfigError> {
    match given.public_url.as_deref() {
        None if production => return Err(ConfigError::Missing("JARI_PUBLIC_URL")),
        // Without TLS no browser keeps the shopper's cookie.
        Some(url) if production && !is_secure_origin(url) => {
            return Err(bad(
                "JARI_PUBLIC_URL",
                "must be https://host without a path (http only for this machine)",
            ));
        }
        Some(_) | None => {}
    }
    if given
        .database_url
        .as_ref()
        .is_some_and(|url| !url.is_known())
    {
        return Err(bad(
            "DATABASE_URL",
            "must begin with sqlite: or postgres://",
        ));
    }
    match &given.secret_key {
        None if production => return Err(ConfigError::Missing("JARI_SECRET_KEY")),
        Some(key) if key.expose().len() < 32 => {
            return Err(bad("JARI_SECRET_KEY", "must have at least 32 characters"));
        }
        Some(_) | None => {}
    }
    Ok(())
}

/// An origin that a browser keeps secure cookies for: TLS, or this very machine.
fn is_secure_origin(url: &str) -> bool {
    let url = url.trim_end_matches('/');
    let plain = |host: &str| !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']);
    if let Some(host) = url.strip_prefix("https://") {
        return plain(host);
    }
    let local = |host: &str| {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        plain(host) && matches!(name, "localhost" | "127.0.0.1")
    };
    url.strip_prefix("http://").is_some_and(local)
}

/// A ratio like 0.1, in thousandths.
fn resend_ratio(given: Option<&str>) -> Result<Option<u32>, ConfigError> {
    match given {
        None | Some("off") => Ok(None),
        Some(text) => match text.parse::<f64>() {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to 1,000 fits"
            )]
            Ok(ratio) if (0.0..=1.0).contains(&ratio) => Ok(Some((ratio * 1_000.0).round() as u32)),
            Ok(_) | Err(_) => Err(bad("JARI_RESEND_RATIO", "must be 0 to 1, or off")),
        },
    }
}

fn lab_workers(given: Option<u32>, production: bool) -> Result<Option<u32>, ConfigError> {
    match given {
        Some(_) if production => Err(bad(
            "JARI_LAB_WORKERS",
            "is for measurements: refused when JARI_ENV=production",
        )),
        Some(0) => Err(bad("JARI_LAB_WORKERS", "must be above 0")),
        other => Ok(other),
    }
}

fn bad(name: &'static str, why: impl Into<String>) -> ConfigError {
    ConfigError::Bad {
        name,
        why: why.into(),
    }
}

#[cfg(test)]
mod tests;

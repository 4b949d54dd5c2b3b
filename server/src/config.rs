//! Settings: flags, then environment, then an optional TOML file, then the contract's defaults.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use payment::id::GatewayName;
use payment::time::{Millis, PageTimes, Times, TimesError};
use serde::Deserialize;

use crate::gateway::secret::Secret;

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

/// The settings as given; whatever is absent takes its default.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Settings {
    /// `sqlite://FILE`; made and migrated when it is not there [default: sqlite://jari.db]
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<String>,
    /// Where to listen [default: 127.0.0.1:3000]
    #[arg(long, env = "JARI_ADDR")]
    pub addr: Option<SocketAddr>,
    /// production or development [default: production]
    #[arg(long, env = "JARI_ENV")]
    pub env: Option<Environment>,
    /// The address that shoppers see, for return URLs; required in production [default in development: the request's host]
    #[arg(long, env = "JARI_PUBLIC_URL")]
    pub public_url: Option<String>,
    /// Gateways, first choice first [default: toss]
    #[arg(long, env = "JARI_GATEWAYS", value_delimiter = ',')]
    pub gateways: Option<Vec<String>>,
    /// Whether every gateway's base URL is the fake one; refused in production [default in development: on]
    #[arg(long, env = "JARI_FAKE_PG")]
    pub fake_pg: Option<Switch>,
    /// The fake gateway [default: http://127.0.0.1:3900]
    #[arg(long, env = "JARI_FAKEPG_URL")]
    pub fakepg_url: Option<String>,
    /// Most confirms in flight, or `off` [default: 40]
    #[arg(long, env = "JARI_PG_CAP")]
    pub pg_cap: Option<String>,
    /// Slots that a resend leaves free [default: a tenth of the cap, at least 1]
    #[arg(long, env = "JARI_PG_RESERVE")]
    pub pg_reserve: Option<u32>,
    /// From starting to connect to the last byte of a gateway's answer, ms [default: 60000]
    #[arg(long, env = "JARI_PG_TIMEOUT_MS")]
    pub pg_timeout_ms: Option<u64>,
    /// To connect to a gateway, ms; part of the above [default: 3000]
    #[arg(long, env = "JARI_PG_CONNECT_TIMEOUT_MS")]
    pub pg_connect_timeout_ms: Option<u64>,
    /// How long the page holds the confirm's response, ms [default: 15000]
    #[arg(long, env = "JARI_RESPONSE_WAIT_MS")]
    pub response_wait_ms: Option<u64>,
    /// The step between polls, ms [default: 2000]
    #[arg(long, env = "JARI_POLL_INTERVAL_MS")]
    pub poll_interval_ms: Option<u64>,
    /// How many polls follow the response wait [default: 25]
    #[arg(long, env = "JARI_POLL_COUNT")]
    pub poll_count: Option<u32>,
    /// For a database connection or the writer, ms [default: 2000]
    #[arg(long, env = "JARI_DATABASE_WAIT_MS")]
    pub database_wait_ms: Option<u64>,
    /// How long after authentication the gateway accepts a confirm, ms [default: 600000]
    #[arg(long, env = "JARI_PG_CONFIRM_WINDOW_MS")]
    pub pg_confirm_window_ms: Option<u64>,
    /// How long a payment window may be used, ms [default: 1800000]
    #[arg(long, env = "JARI_PG_AUTHENTICATION_WINDOW_MS")]
    pub pg_authentication_window_ms: Option<u64>,
    /// How long an order can be paid, ms [default: 86400000]
    #[arg(long, env = "JARI_ORDER_TTL_MS")]
    pub order_ttl_ms: Option<u64>,
    /// Whether a passed deadline forbids a send [default: on]
    #[arg(long, env = "JARI_DEADLINE_CHECK")]
    pub deadline_check: Option<Switch>,
    /// Proxies whose X-Request-Start is believed
    #[arg(long, env = "JARI_TRUSTED_PROXIES", value_delimiter = ',')]
    pub trusted_proxies: Option<Vec<IpAddr>>,
    /// Signs cookies, at least 32 characters; required in production
    #[arg(long, env = "JARI_SECRET_KEY", hide_env_values = true)]
    pub secret_key: Option<Secret>,
    /// Toss Payments' client key
    #[arg(long, env = "JARI_TOSS_CLIENT_KEY")]
    pub toss_client_key: Option<String>,
    /// Toss Payments' secret key
    #[arg(long, env = "JARI_TOSS_SECRET_KEY", hide_env_values = true)]
    pub toss_secret_key: Option<Secret>,
    /// A file that holds Toss Payments' secret key
    #[arg(long, env = "JARI_TOSS_SECRET_KEY_FILE")]
    pub toss_secret_key_file: Option<PathBuf>,
    /// Toss Payments' API [default: https://api.tosspayments.com]
    #[arg(long, env = "JARI_TOSS_URL")]
    pub toss_url: Option<String>,
    /// The page that opens Toss Payments' window; required without the fake gateway
    #[arg(long, env = "JARI_TOSS_WINDOW_URL")]
    pub toss_window_url: Option<String>,
    /// The built pages [default: target/site]
    #[arg(long, env = "JARI_SITE_ROOT")]
    pub site_root: Option<String>,
    /// How long a stopping server lets sent calls finish, ms [default: the gateway timeout + 5000]
    #[arg(long, env = "JARI_DRAIN_MS")]
    pub drain_ms: Option<u64>,
}

macro_rules! or {
    ($strong:ident, $weak:ident: $($field:ident),* $(,)?) => {
        Settings { $($field: $strong.$field.or($weak.$field),)* }
    };
}

impl Settings {
    /// These settings, and where one is absent that of `weaker`.
    #[must_use]
    pub fn or(self, weaker: Self) -> Self {
        let strong = self;
        or!(strong, weaker: database_url, addr, env, public_url, gateways, fake_pg, fakepg_url, pg_cap, pg_reserve,
            pg_timeout_ms, pg_connect_timeout_ms, response_wait_ms, poll_interval_ms, poll_count, database_wait_ms,
            pg_confirm_window_ms, pg_authentication_window_ms, order_ttl_ms, deadline_check, trusted_proxies, secret_key,
            toss_client_key, toss_secret_key, toss_secret_key_file, toss_url, toss_window_url, site_root, drain_ms)
    }
}

/// Why the server refuses to start.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Two times contradict each other.
    #[error("the times contradict each other: {0}")]
    Times(#[from] TimesError),
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

/// The settings in force, checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// The database.
    pub database_url: String,
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
    /// The timing contract.
    pub times: Times,
    /// How long an order can be paid.
    pub order_ttl: Millis,
    /// Whether a passed deadline forbids a send.
    pub deadline_check: Switch,
    /// Proxies whose X-Request-Start is believed.
    pub trusted_proxies: Vec<IpAddr>,
    /// Signs cookies; `None` in development is made once and kept in the database.
    pub secret_key: Option<Secret>,
    /// The built pages.
    pub site_root: String,
    /// How long a stopping server lets sent calls finish.
    pub drain: Millis,
}

impl Config {
    /// Checks settings and fills in defaults.
    ///
    /// # Errors
    /// [`ConfigError`]: the server must not start.
    pub fn check(given: Settings) -> Result<Self, ConfigError> {
        let env = given.env.unwrap_or(Environment::Production);
        let production = env == Environment::Production;
        let fake = given
            .fake_pg
            .unwrap_or(if production { Switch::Off } else { Switch::On });
        if production && fake == Switch::On {
            return Err(ConfigError::FakeInProduction);
        }
        let times = times(&given)?;
        let fakepg_url = (fake == Switch::On).then(|| {
            given
                .fakepg_url
                .clone()
                .unwrap_or_else(|| "http://127.0.0.1:3900".to_owned())
        });
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
        // The value stays unsaid: another database's address may hold a password.
        if given
            .database_url
            .as_deref()
            .is_some_and(|url| !url.starts_with("sqlite:"))
        {
            return Err(bad("DATABASE_URL", "must begin with sqlite:"));
        }
        match &given.secret_key {
            None if production => return Err(ConfigError::Missing("JARI_SECRET_KEY")),
            Some(key) if key.expose().len() < 32 => {
                return Err(bad("JARI_SECRET_KEY", "must have at least 32 characters"));
            }
            Some(_) | None => {}
        }
        Ok(Self {
            database_url: given
                .database_url
                .clone()
                .unwrap_or_else(|| "sqlite://jari.db".to_owned()),
            addr: given
                .addr
                .unwrap_or(SocketAddr::from(([127, 0, 0, 1], 3000))),
            env,
            public_url: given
                .public_url
                .clone()
                .map(|url| url.trim_end_matches('/').to_owned()),
            gateways: gateways(&given, fakepg_url.as_deref())?,
            fakepg_url,
            times,
            order_ttl: Millis::new(given.order_ttl_ms.unwrap_or(86_400_000)),
            deadline_check: given.deadline_check.unwrap_or(Switch::On),
            trusted_proxies: given.trusted_proxies.clone().unwrap_or_default(),
            secret_key: given.secret_key.clone(),
            site_root: given
                .site_root
                .clone()
                .unwrap_or_else(|| "target/site".to_owned()),
            drain: given
                .drain_ms
                .map_or(times.pg_timeout.plus(Millis::from_secs(5)), Millis::new),
        })
    }

    /// Whether this is a developer's or a lab's machine.
    #[must_use]
    pub fn is_development(&self) -> bool {
        self.env == Environment::Development
    }
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

fn bad(name: &'static str, why: impl Into<String>) -> ConfigError {
    ConfigError::Bad {
        name,
        why: why.into(),
    }
}

fn times(given: &Settings) -> Result<Times, ConfigError> {
    let shipped = Times::DEFAULT;
    let ms = |given: Option<u64>, shipped: Millis| given.map_or(shipped, Millis::new);
    let cap = match given.pg_cap.as_deref() {
        None => shipped.cap,
        Some("off") => None,
        Some(text) => match text.parse::<u32>() {
            Ok(cap) if cap > 0 => Some(cap),
            Ok(_) | Err(_) => return Err(bad("JARI_PG_CAP", "must be a number above 0, or off")),
        },
    };
    let pg_timeout = ms(given.pg_timeout_ms, shipped.pg_timeout);
    let times = Times {
        page: PageTimes {
            response_wait: ms(given.response_wait_ms, shipped.page.response_wait),
            poll_interval: ms(given.poll_interval_ms, shipped.page.poll_interval),
            poll_count: given.poll_count.unwrap_or(shipped.page.poll_count),
            poll_limit: shipped.page.poll_limit,
        },
        pg_timeout,
        pg_connect_timeout: ms(given.pg_connect_timeout_ms, shipped.pg_connect_timeout),
        database_wait: ms(given.database_wait_ms, shipped.database_wait),
        cap,
        reserve: given.pg_reserve.unwrap_or(
            cap.map_or(0, Times::reserve_for)
                .min(cap.map_or(0, |cap| cap - 1)),
        ),
        node_lease: shipped
            .node_lease
            .max(pg_timeout.plus(Millis::from_secs(5))),
        confirm_window: ms(given.pg_confirm_window_ms, shipped.confirm_window),
        authentication_window: ms(
            given.pg_authentication_window_ms,
            shipped.authentication_window,
        ),
    };
    times.check()?;
    Ok(times)
}

fn gateways(given: &Settings, fake: Option<&str>) -> Result<Vec<GatewaySettings>, ConfigError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn development() -> Settings {
        Settings {
            env: Some(Environment::Development),
            ..Settings::default()
        }
    }

    fn production() -> Settings {
        Settings {
            public_url: Some("https://shop.example".to_owned()),
            secret_key: Some(Secret::new("0123456789abcdef0123456789abcdef")),
            toss_client_key: Some("live_ck_x".to_owned()),
            toss_secret_key: Some(Secret::new("live_sk_x")),
            toss_window_url: Some("https://shop.example/toss".to_owned()),
            ..Settings::default()
        }
    }

    #[test]
    fn production_refuses_the_fake_gateway_and_wants_its_secrets() {
        assert!(Config::check(production()).is_ok());
        let fake = Settings {
            fake_pg: Some(Switch::On),
            ..production()
        };
        assert!(matches!(
            Config::check(fake),
            Err(ConfigError::FakeInProduction)
        ));
        let missing = [
            Settings {
                public_url: None,
                ..production()
            },
            Settings {
                secret_key: None,
                ..production()
            },
            Settings {
                toss_secret_key: None,
                ..production()
            },
            Settings {
                toss_client_key: None,
                ..production()
            },
        ];
        for settings in missing {
            assert!(matches!(
                Config::check(settings),
                Err(ConfigError::Missing(_))
            ));
        }
        let mixed = Settings {
            toss_client_key: Some("test_ck_x".to_owned()),
            ..production()
        };
        assert!(matches!(Config::check(mixed), Err(ConfigError::Bad { .. })));
    }

    #[test]
    fn this_machine_itself_needs_no_tls() {
        for url in [
            "http://127.0.0.1:3000",
            "http://localhost",
            "https://shop.example:8443/",
        ] {
            let settings = Settings {
                public_url: Some(url.to_owned()),
                ..production()
            };
            assert!(Config::check(settings).is_ok(), "{url}");
        }
        for url in [
            "http://localhost.evil.example",
            "http://127.0.0.1:3000/a",
            "http://a@localhost",
        ] {
            let settings = Settings {
                public_url: Some(url.to_owned()),
                ..production()
            };
            assert!(Config::check(settings).is_err(), "{url}");
        }
    }

    #[test]
    fn an_address_that_no_shopper_could_use_is_refused_and_a_password_never_repeated() {
        for url in [
            "http://shop.example",
            "shop.example",
            "https://",
            "https://shop.example/a",
        ] {
            let settings = Settings {
                public_url: Some(url.to_owned()),
                ..production()
            };
            assert!(
                matches!(Config::check(settings), Err(ConfigError::Bad { .. })),
                "{url}"
            );
        }
        let url = "postgres://jari:hunter2@db/jari".to_owned();
        let settings = Settings {
            database_url: Some(url),
            ..development()
        };
        assert!(
            !Config::check(settings)
                .unwrap_err()
                .to_string()
                .contains("hunter2")
        );
    }

    #[test]
    fn a_contradiction_of_times_is_refused_with_both_values() {
        let settings = Settings {
            pg_timeout_ms: Some(70_000),
            ..development()
        };
        let told = Config::check(settings).unwrap_err().to_string();
        assert!(
            told.contains("70000 ms") && told.contains("65000 ms"),
            "{told}"
        );
        let reserve = Settings {
            pg_cap: Some("4".to_owned()),
            pg_reserve: Some(4),
            ..development()
        };
        assert!(matches!(
            Config::check(reserve),
            Err(ConfigError::Times(TimesError::ReserveNotBelowCap { .. }))
        ));
    }

    #[test]
    fn the_shipped_defaults_are_the_contracts() {
        let config = Config::check(development()).unwrap();
        assert_eq!(config.times, Times::DEFAULT);
        assert_eq!(config.deadline_check, Switch::On);
        assert_eq!(config.gateways.len(), 1);
        assert_eq!(config.gateways[0].name.as_str(), "toss");
        assert_eq!(config.fakepg_url.as_deref(), Some("http://127.0.0.1:3900"));
        assert_eq!(config.addr.to_string(), "127.0.0.1:3000");
    }

    #[test]
    fn secrets_never_print() {
        let printed = format!("{:?}", Config::check(production()).unwrap());
        assert!(
            !printed.contains("live_sk_x") && !printed.contains("0123456789abcdef"),
            "{printed}"
        );
    }
}

//! The settings as given: flags, environment and file in one shape.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use payment::attempt::LateSuccess;
use payment::resend::Policy;
use serde::Deserialize;

use super::{DatabaseUrl, Environment, Switch};
use crate::gateway::circuit::CircuitMode;
use crate::gateway::secret::Secret;

/// [`Policy`] by its names in flags, environment and file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResendPolicy {
    /// Never.
    Off,
    /// Whenever there is time and a slot.
    Always,
    /// While enough slots are free.
    Budget,
}

impl From<ResendPolicy> for Policy {
    fn from(policy: ResendPolicy) -> Self {
        match policy {
            ResendPolicy::Off => Self::Off,
            ResendPolicy::Always => Self::Always,
            ResendPolicy::Budget => Self::Budget,
        }
    }
}

/// [`LateSuccess`] by its names in flags, environment and file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LatePolicy {
    /// The money goes back.
    Cancel,
    /// It pays the order, if nothing else does and the stock can be had again.
    Revive,
}

impl From<LatePolicy> for LateSuccess {
    fn from(policy: LatePolicy) -> Self {
        match policy {
            LatePolicy::Cancel => Self::Cancel,
            LatePolicy::Revive => Self::Revive,
        }
    }
}

/// The settings as given; whatever is absent takes its default.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub struct Settings {
    /// `sqlite://FILE`, made when it is not there, or for several nodes `postgres://…` [default: sqlite://jari.db]
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub database_url: Option<DatabaseUrl>,
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
    /// How long a node's share of the cap outlives it, ms [default: the longest gateway timeout + 5000, at least 65000]
    #[arg(long, env = "JARI_NODE_LEASE_MS")]
    pub node_lease_ms: Option<u64>,
    /// How long after authentication the gateway accepts a confirm, ms [default: 600000]
    #[arg(long, env = "JARI_PG_CONFIRM_WINDOW_MS")]
    pub pg_confirm_window_ms: Option<u64>,
    /// How long a payment window may be used, ms [default: 1800000]
    #[arg(long, env = "JARI_PG_AUTHENTICATION_WINDOW_MS")]
    pub pg_authentication_window_ms: Option<u64>,
    /// How long an order can be paid, ms [default: 86400000]
    #[arg(long, env = "JARI_ORDER_TTL_MS")]
    pub order_ttl_ms: Option<u64>,
    /// What becomes of a charge that is learned after its attempt had ended: cancel, or revive the order [default: cancel]
    #[arg(long, env = "JARI_LATE_SUCCESS")]
    pub late_success: Option<LatePolicy>,
    /// The folder that receipts and other mails are written to, one file each, the same for all nodes; or `off` [default: off]
    #[arg(long, env = "JARI_MAIL_DIR")]
    pub mail_dir: Option<PathBuf>,
    /// Whether a passed deadline forbids a send [default: on]
    #[arg(long, env = "JARI_DEADLINE_CHECK")]
    pub deadline_check: Option<Switch>,
    /// Whether a lost confirm is sent once more: off, always, or while enough slots are free [default: budget]
    #[arg(long, env = "JARI_RESEND")]
    pub resend: Option<ResendPolicy>,
    /// Most resends per confirm of the last ten seconds, as 0.1, or `off` [default: off]
    #[arg(long, env = "JARI_RESEND_RATIO")]
    pub resend_ratio: Option<String>,
    /// Whether a gateway that does not answer is sent no confirms for a while [default: on]
    #[arg(long, env = "JARI_CIRCUIT")]
    pub circuit: Option<CircuitMode>,
    /// Whether confirms, webhooks, polls and reads have bounds of their own [default: on]
    #[arg(long, env = "JARI_LANES")]
    pub lanes: Option<Switch>,
    /// Whether one address or shopper may make only so many orders and confirms [default: on in production]
    #[arg(long, env = "JARI_RATE_LIMITS")]
    pub rate_limits: Option<Switch>,
    /// Imitates a server with so many threads that each hold one request; development only [default: unset]
    #[arg(long, env = "JARI_LAB_WORKERS")]
    pub lab_workers: Option<u32>,
    /// Proxies whose X-Request-Start and X-Forwarded-For are believed
    #[arg(long, env = "JARI_TRUSTED_PROXIES", value_delimiter = ',')]
    pub trusted_proxies: Option<Vec<IpAddr>>,
    /// Signs cookies, at least 32 characters; required in production
    #[arg(long, env = "JARI_SECRET_KEY", hide_env_values = true)]
    pub secret_key: Option<Secret>,
    /// A file that holds what signs cookies
    #[arg(long, env = "JARI_SECRET_KEY_FILE")]
    pub secret_key_file: Option<PathBuf>,
    /// How long after its confirm a shopper may cancel a paid order, ms; 0 is never [default: 86400000]
    #[arg(long, env = "JARI_CANCEL_CUTOFF_MS")]
    pub cancel_cutoff_ms: Option<u64>,
    /// Opens the console at `/ops`: the hash of its password, as `jari hash-password` prints it [default: unset, no console]
    #[arg(long, env = "JARI_OPS_PASSWORD_HASH", hide_env_values = true)]
    pub ops_password_hash: Option<Secret>,
    /// A file that holds the hash of the console's password
    #[arg(long, env = "JARI_OPS_PASSWORD_HASH_FILE")]
    pub ops_password_hash_file: Option<PathBuf>,
    /// By which the operator asks for refunds, at least 32 characters [default: unset, nobody does]
    #[arg(long, env = "JARI_OPERATOR_TOKEN", hide_env_values = true)]
    pub operator_token: Option<Secret>,
    /// A file that holds the operator's token
    #[arg(long, env = "JARI_OPERATOR_TOKEN_FILE")]
    pub operator_token_file: Option<PathBuf>,
    /// Toss Payments' client key
    #[arg(long, env = "JARI_TOSS_CLIENT_KEY")]
    pub toss_client_key: Option<String>,
    /// Toss Payments' secret key
    #[arg(long, env = "JARI_TOSS_SECRET_KEY", hide_env_values = true)]
    pub toss_secret_key: Option<Secret>,
    /// A file that holds Toss Payments' secret key
    #[arg(long, env = "JARI_TOSS_SECRET_KEY_FILE")]
    pub toss_secret_key_file: Option<PathBuf>,
    /// The error that Toss Payments' test environment is to answer with; development and test keys only [default: unset]
    #[arg(long, env = "JARI_TOSS_TEST_CODE")]
    pub toss_test_code: Option<String>,
    /// Toss Payments' API [default: https://api.tosspayments.com]
    #[arg(long, env = "JARI_TOSS_URL")]
    pub toss_url: Option<String>,
    /// The page that opens Toss Payments' window [default: a page of ours with Toss's own script]
    #[arg(long, env = "JARI_TOSS_WINDOW_URL")]
    pub toss_window_url: Option<String>,
    /// KakaoPay's CID of the shop; required for it without the fake gateway
    #[arg(long, env = "JARI_KAKAOPAY_CID")]
    pub kakaopay_cid: Option<String>,
    /// KakaoPay's secret key
    #[arg(long, env = "JARI_KAKAOPAY_SECRET_KEY", hide_env_values = true)]
    pub kakaopay_secret_key: Option<Secret>,
    /// A file that holds KakaoPay's secret key
    #[arg(long, env = "JARI_KAKAOPAY_SECRET_KEY_FILE")]
    pub kakaopay_secret_key_file: Option<PathBuf>,
    /// KakaoPay's API [default: https://open-api.kakaopay.com]
    #[arg(long, env = "JARI_KAKAOPAY_URL")]
    pub kakaopay_url: Option<String>,
    /// Most confirms in flight at KakaoPay, or `off` [default: 40]
    #[arg(long, env = "JARI_KAKAOPAY_PG_CAP")]
    pub kakaopay_pg_cap: Option<String>,
    /// JARI_PG_RESERVE of KakaoPay, which never resends [default: a tenth of its cap, at least 1]
    #[arg(long, env = "JARI_KAKAOPAY_PG_RESERVE")]
    pub kakaopay_pg_reserve: Option<u32>,
    /// JARI_PG_TIMEOUT_MS of KakaoPay, whose platform gives up after 11000 [default: 15000]
    #[arg(long, env = "JARI_KAKAOPAY_PG_TIMEOUT_MS")]
    pub kakaopay_pg_timeout_ms: Option<u64>,
    /// JARI_PG_CONNECT_TIMEOUT_MS of KakaoPay [default: 3000]
    #[arg(long, env = "JARI_KAKAOPAY_PG_CONNECT_TIMEOUT_MS")]
    pub kakaopay_pg_connect_timeout_ms: Option<u64>,
    /// JARI_RESPONSE_WAIT_MS of KakaoPay [default: 12000]
    #[arg(long, env = "JARI_KAKAOPAY_RESPONSE_WAIT_MS")]
    pub kakaopay_response_wait_ms: Option<u64>,
    /// JARI_POLL_INTERVAL_MS of KakaoPay [default: 2000]
    #[arg(long, env = "JARI_KAKAOPAY_POLL_INTERVAL_MS")]
    pub kakaopay_poll_interval_ms: Option<u64>,
    /// JARI_POLL_COUNT of KakaoPay [default: 12]
    #[arg(long, env = "JARI_KAKAOPAY_POLL_COUNT")]
    pub kakaopay_poll_count: Option<u32>,
    /// How long after its window was opened KakaoPay accepts a confirm, ms [default: 900000]
    #[arg(long, env = "JARI_KAKAOPAY_PG_CONFIRM_WINDOW_MS")]
    pub kakaopay_pg_confirm_window_ms: Option<u64>,
    /// Stripe's secret key, or a restricted one for sessions, payments and refunds; required for it without the fake gateway
    #[arg(long, env = "JARI_STRIPE_SECRET_KEY", hide_env_values = true)]
    pub stripe_secret_key: Option<Secret>,
    /// A file that holds Stripe's secret key
    #[arg(long, env = "JARI_STRIPE_SECRET_KEY_FILE")]
    pub stripe_secret_key_file: Option<PathBuf>,
    /// What Stripe signs the webhooks to /webhooks/stripe with; required for it without the fake gateway
    #[arg(long, env = "JARI_STRIPE_WEBHOOK_SECRET", hide_env_values = true)]
    pub stripe_webhook_secret: Option<Secret>,
    /// A file that holds the secret of Stripe's webhooks
    #[arg(long, env = "JARI_STRIPE_WEBHOOK_SECRET_FILE")]
    pub stripe_webhook_secret_file: Option<PathBuf>,
    /// Stripe's API [default: https://api.stripe.com]
    #[arg(long, env = "JARI_STRIPE_URL")]
    pub stripe_url: Option<String>,
    /// Most confirms in flight at Stripe, or `off` [default: 40]
    #[arg(long, env = "JARI_STRIPE_PG_CAP")]
    pub stripe_pg_cap: Option<String>,
    /// JARI_PG_RESERVE of Stripe [default: a tenth of its cap, at least 1]
    #[arg(long, env = "JARI_STRIPE_PG_RESERVE")]
    pub stripe_pg_reserve: Option<u32>,
    /// JARI_PG_TIMEOUT_MS of Stripe [default: 60000]
    #[arg(long, env = "JARI_STRIPE_PG_TIMEOUT_MS")]
    pub stripe_pg_timeout_ms: Option<u64>,
    /// JARI_PG_CONNECT_TIMEOUT_MS of Stripe [default: 3000]
    #[arg(long, env = "JARI_STRIPE_PG_CONNECT_TIMEOUT_MS")]
    pub stripe_pg_connect_timeout_ms: Option<u64>,
    /// JARI_RESPONSE_WAIT_MS of Stripe [default: 15000]
    #[arg(long, env = "JARI_STRIPE_RESPONSE_WAIT_MS")]
    pub stripe_response_wait_ms: Option<u64>,
    /// JARI_POLL_INTERVAL_MS of Stripe [default: 2000]
    #[arg(long, env = "JARI_STRIPE_POLL_INTERVAL_MS")]
    pub stripe_poll_interval_ms: Option<u64>,
    /// JARI_POLL_COUNT of Stripe [default: 25]
    #[arg(long, env = "JARI_STRIPE_POLL_COUNT")]
    pub stripe_poll_count: Option<u32>,
    /// How long after its windows close an authorisation at Stripe may still be captured, ms [default: 300000]
    #[arg(long, env = "JARI_STRIPE_PG_CONFIRM_WINDOW_MS")]
    pub stripe_pg_confirm_window_ms: Option<u64>,
    /// The built pages [default: target/site]
    #[arg(long, env = "JARI_SITE_ROOT")]
    pub site_root: Option<String>,
    /// From which age on an unknown payment raises an alarm, ms [default: 900000]
    #[arg(long, env = "JARI_UNKNOWN_BOUND_MS")]
    pub unknown_bound_ms: Option<u64>,
    /// Most inquiries in flight at one gateway, of each node [default: 8]
    #[arg(long, env = "JARI_PG_INQUIRIES")]
    pub pg_inquiries: Option<u32>,
    /// How long raw webhooks are kept once they are done with, days, at least 5 [default: 14]
    #[arg(long, env = "JARI_WEBHOOK_KEEP_DAYS")]
    pub webhook_keep_days: Option<u32>,
    /// Most stored webhooks that name no payment of ours; more are refused [default: 20000]
    #[arg(long, env = "JARI_WEBHOOK_STRANGERS")]
    pub webhook_strangers: Option<u32>,
    /// Webhooks a second, above which those that name no payment of ours are refused; a switch of JARI_RATE_LIMITS
    /// [default: 50]
    #[arg(long, env = "JARI_WEBHOOK_RATE")]
    pub webhook_rate: Option<u32>,
    /// Whether shops' endpoints may be plain http and at private addresses [default: on in development]
    #[arg(long, env = "JARI_WEBHOOK_PRIVATE")]
    pub webhook_private: Option<Switch>,
    /// How long after its due date a virtual account without a deposit is taken for over, ms [default: 600000]
    #[arg(long, env = "JARI_DEPOSIT_GRACE_MS")]
    pub deposit_grace_ms: Option<u64>,
    /// How long a stopping server lets sent calls finish, ms [default: the longest gateway timeout + 5000]
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
            pg_timeout_ms, pg_connect_timeout_ms, response_wait_ms, poll_interval_ms, poll_count, database_wait_ms, node_lease_ms,
            pg_confirm_window_ms, pg_authentication_window_ms, order_ttl_ms, late_success, mail_dir, deadline_check, resend,
            resend_ratio, circuit, lanes, rate_limits, lab_workers, trusted_proxies, secret_key,
            toss_client_key, toss_secret_key, toss_secret_key_file, toss_url, toss_window_url, site_root, drain_ms,
            unknown_bound_ms, pg_inquiries, webhook_keep_days, webhook_strangers, webhook_rate, cancel_cutoff_ms,
            operator_token, operator_token_file, ops_password_hash, ops_password_hash_file, deposit_grace_ms, webhook_private, secret_key_file, toss_test_code,
            kakaopay_cid, kakaopay_secret_key, kakaopay_secret_key_file, kakaopay_url,
            kakaopay_pg_cap, kakaopay_pg_reserve, kakaopay_pg_timeout_ms, kakaopay_pg_connect_timeout_ms,
            kakaopay_response_wait_ms, kakaopay_poll_interval_ms, kakaopay_poll_count, kakaopay_pg_confirm_window_ms,
            stripe_secret_key, stripe_secret_key_file, stripe_webhook_secret, stripe_webhook_secret_file, stripe_url,
            stripe_pg_cap, stripe_pg_reserve, stripe_pg_timeout_ms, stripe_pg_connect_timeout_ms,
            stripe_response_wait_ms, stripe_poll_interval_ms, stripe_poll_count, stripe_pg_confirm_window_ms)
    }
}

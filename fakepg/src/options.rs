//! The program's command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Parser;

use crate::engine::{Merchant, StripeMerchant};
use crate::{Config, scenario_file};

/// A payment gateway for tests and labs: speaks the wires of Toss Payments, KakaoPay and Stripe, shows their
/// payment windows, breaks on command, and keeps a ledger of what it really booked.
///
/// Nothing is stored: a restart forgets every payment.
#[derive(Debug, Parser)]
#[command(version, after_long_help = EXAMPLES, after_help = "With --help: examples and addresses.")]
pub struct Options {
    /// Where the wires, the payment windows and the control API are served; port 0 picks a free one
    #[arg(long, default_value = "127.0.0.1:3900")]
    pub addr: SocketAddr,

    /// Where the control API is served too; with it, `"up": false` closes the main socket, so that
    /// connecting is refused
    #[arg(long)]
    pub control_addr: Option<SocketAddr>,

    /// Webhooks go to <URL>/webhooks/<gateway>; none are sent without
    #[arg(long, value_name = "URL")]
    pub webhook_url: Option<String>,

    /// Where browsers reach the payment windows of KakaoPay and Stripe, if that is not the address which the
    /// shop's server calls
    #[arg(long, value_name = "URL")]
    pub public_url: Option<String>,

    /// The merchant's secret key at Toss Payments
    #[arg(long, value_name = "KEY", default_value = "test_sk_fake")]
    pub secret_key: String,

    /// The merchant's secret key at KakaoPay
    #[arg(long, value_name = "KEY", default_value = "DEV_fake")]
    pub kakaopay_secret_key: String,

    /// The merchant's contract at KakaoPay, 10 characters
    #[arg(long, value_name = "CID", default_value = "TC0ONETIME")]
    pub kakaopay_cid: String,

    /// The secret of that contract; when given, every call must carry it
    #[arg(long, value_name = "SECRET")]
    pub kakaopay_cid_secret: Option<String>,

    /// The merchant's secret key at Stripe
    #[arg(long, value_name = "KEY", default_value = "sk_test_fake")]
    pub stripe_secret_key: String,

    /// What Stripe's webhooks are signed with
    #[arg(long, value_name = "SECRET", default_value = "whsec_fake")]
    pub stripe_webhook_secret: String,

    /// Seeds all randomness
    #[arg(long, default_value_t = 1)]
    pub seed: u64,

    /// The scenario at the start, as `PUT /_control/scenario` takes it; read again whenever the file
    /// changes
    #[arg(long, value_name = "FILE.json")]
    pub scenario: Option<PathBuf>,
}

const EXAMPLES: &str = r#"Examples:
  A healthy gateway for a shop on port 3000:
    fakepg --webhook-url http://127.0.0.1:3000

  One in ten answers is lost after the money moved:
    echo '{"loss": {"ratio": 0.1, "when": "after"}}' > lossy.json
    fakepg --scenario lossy.json

  The same, while it runs:
    curl -X PUT http://127.0.0.1:3900/_control/scenario -d '{"loss": {"ratio": 0.1, "when": "after"}}'

  KakaoPay stops answering, Toss stays well:
    curl -X PUT http://127.0.0.1:3900/_control/scenario -d '{"gateways": ["kakaopay"], "stop": true}'

  What was really charged:
    curl http://127.0.0.1:3900/_control/ledger

Addresses:
  /v1/payments/confirm ...              Toss Payments: Authorization: Basic base64("test_sk_fake:")
  /window?gateway=toss&orderId=...      its payment window
  /online/v1/payment/{ready,approve,order,cancel}
                                        KakaoPay: Authorization: SECRET_KEY DEV_fake
  /v1/checkout/sessions, /v1/payment_intents/{id}, /{id}/capture, /{id}/cancel, /v1/refunds
                                        Stripe: Authorization: Bearer sk_test_fake
  /_control/{health,payments,scenario,ledger,webhooks}
                                        for tests: no key needed, so never let strangers reach it

Environment:
  RUST_LOG=info                         how much is logged, on stderr

Every switch of a scenario is in fakepg/README.md."#;

impl Options {
    /// What a gateway is started with; reads the scenario's file.
    pub fn config(&self) -> anyhow::Result<Config> {
        let scenario = match &self.scenario {
            None => crate::scenario::Scenario::default(),
            Some(path) => scenario_file::read(path)?,
        };
        Ok(Config {
            addr: self.addr,
            control_addr: self.control_addr,
            webhook_url: self.webhook_url.clone(),
            public_url: self.public_url.clone(),
            secret_key: self.secret_key.clone(),
            kakaopay: Merchant {
                cid: self.kakaopay_cid.clone(),
                secret_key: self.kakaopay_secret_key.clone(),
                cid_secret: self.kakaopay_cid_secret.clone(),
            },
            stripe: StripeMerchant {
                secret_key: self.stripe_secret_key.clone(),
                webhook_secret: self.stripe_webhook_secret.clone(),
            },
            seed: self.seed,
            scenario,
        })
    }
}

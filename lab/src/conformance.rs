//! `lab conformance`: what is written down about a gateway's wire, asked of a gateway fact by fact. The same suite holds
//! the fake to it today and a gateway's test environment tomorrow. It knows no adapter: its client is raw.

mod asker;
mod facts;
mod kakaopay;
mod shopper;
#[cfg(test)]
mod tests;
mod toss;

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use reqwest::Client;

use asker::Asker;
use facts::Findings;
use shopper::Shopper;

/// The gateway whose facts are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Gateway {
    /// Toss Payments
    Toss,
    /// KakaoPay
    Kakaopay,
}

/// What is asked, and of whom.
#[derive(Debug, Clone, Args)]
pub(crate) struct Options {
    /// Whose wire
    #[arg(long)]
    pub(crate) gateway: Gateway,
    /// Its base URL, such as http://127.0.0.1:3900 or https://api.tosspayments.com
    #[arg(long)]
    pub(crate) url: String,
    /// What a person did and saw: payments authenticated in the window, and answers to facts that no program can ask.
    /// {"payments":[{"orderId","amount","paymentKey","tid"?,"userId"?}], "seen":{"<fact>":"<what>"}}
    #[arg(long, value_name = "FILE.json")]
    pub(crate) recorded: Option<PathBuf>,
    /// Where the findings go as JSON
    #[arg(long, value_name = "FILE.json")]
    pub(crate) out: Option<PathBuf>,
    /// Secret key at Toss; a live one is refused [default: the fake's]
    #[arg(
        long,
        env = "JARI_TOSS_SECRET_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    pub(crate) toss_secret_key: Option<String>,
    /// Secret key at KakaoPay; one for production is refused [default: the fake's]
    #[arg(
        long,
        env = "JARI_KAKAOPAY_SECRET_KEY",
        hide_env_values = true,
        value_name = "KEY"
    )]
    pub(crate) kakaopay_secret_key: Option<String>,
}

/// The contract for tests at KakaoPay: the suite charges, so it takes no other.
const TEST_CONTRACT: &str = "TC0ONETIME";

impl Options {
    /// The secret key; charges are made with it, so it must be one for tests.
    fn secret_key(&self) -> anyhow::Result<&str> {
        let (given, of_the_fake, live) = match self.gateway {
            Gateway::Toss => (&self.toss_secret_key, "test_sk_fake", "live_"),
            Gateway::Kakaopay => (&self.kakaopay_secret_key, "DEV_fake", "PRD"),
        };
        let key = given.as_deref().unwrap_or(of_the_fake);
        ensure!(
            !key.starts_with(live),
            "the suite charges and cancels: it takes no key that starts with {live}"
        );
        Ok(key)
    }
}

/// Asks every fact; the table for people, and whether every certain fact that could be asked is as it is written down.
pub(crate) async fn run(options: &Options) -> anyhow::Result<(String, bool)> {
    let findings = ask(options).await?;
    if let Some(out) = &options.out {
        let json = serde_json::to_string_pretty(&findings.json(&options.url))?;
        std::fs::write(out, json + "\n").with_context(|| format!("writing {}", out.display()))?;
    }
    Ok((findings.table(), findings.well()))
}

async fn ask(options: &Options) -> anyhow::Result<Findings> {
    let key = options.secret_key()?;
    let client = Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        // Longer than any gateway is known to think about a call.
        .timeout(std::time::Duration::from_secs(70))
        .build()?;
    let url = options.url.trim_end_matches('/');
    let mut shopper = Shopper::new(client.clone(), url, options.recorded.as_deref()).await?;
    let mut findings = match options.gateway {
        Gateway::Toss => {
            let mut findings = Findings::new("toss", toss::FACTS);
            let asker = Asker::toss(client, url, key);
            toss::ask(&asker, &mut shopper, &mut findings).await;
            findings
        }
        Gateway::Kakaopay => {
            let mut findings = Findings::new("kakaopay", kakaopay::FACTS);
            let asker = Asker::kakaopay(client, url, key);
            kakaopay::ask(&asker, &mut shopper, &mut findings).await;
            findings
        }
    };
    for (id, saw) in shopper.seen() {
        findings.recorded(id, saw)?;
    }
    Ok(findings)
}

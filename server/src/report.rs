//! What `jari check-config` prints: the settings in force, the inequalities that hold, and what they mean under load.

use std::fmt::Write as _;

use payment::predict::{cap_needed, in_flight, longest_hold, refused_share, resend_room};
use payment::resend::Policy;
use payment::time::{Millis, Times};

use crate::config::{Config, GatewaySettings};
use crate::gateway::{Capabilities, WebhookProof};
use crate::serve;

/// Under which load to predict.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// Confirms a second.
    pub rate: f64,
    /// How long the gateway takes.
    pub delay: Millis,
    /// The share of confirms that may be refused, 0 to 1.
    pub target: f64,
}

/// The whole report, for people. Secrets are masked by their type.
#[must_use]
pub fn report(config: &Config, load: Load) -> String {
    let mut text = String::new();
    settings(&mut text, config);
    for gateway in &config.gateways {
        of_gateway(&mut text, gateway, config, load);
    }
    text
}

/// How long shoppers may cancel.
fn cut_off(span: Millis) -> String {
    if span == Millis::ZERO {
        return "never".to_owned();
    }
    format!("{} ms after the confirm", span.get())
}

fn line(text: &mut String, name: &str, value: &dyn std::fmt::Display) {
    // Writing into a string cannot fail.
    let _ = writeln!(text, "  {name:<28} {value}");
}

fn settings(text: &mut String, config: &Config) {
    let times = &config.times;
    text.push_str("Settings in force\n");
    line(text, "environment", &format!("{:?}", config.env));
    line(text, "database", &config.database_url);
    line(text, "listens on", &config.addr);
    line(text, "resend", &format!("{:?}", config.resend));
    line(text, "resend ratio", &ratio(config.resend_per_mille));
    line(text, "circuit", &format!("{:?}", config.circuit));
    line(
        text,
        "deadline check",
        &format!("{:?}", config.deadline_check),
    );
    line(text, "late success", &format!("{:?}", config.late_success));
    let mails = config.mail_dir.as_ref();
    let mails = mails.map_or_else(|| "off".to_owned(), |path| path.display().to_string());
    line(text, "mails", &mails);
    line(text, "lanes", &format!("{:?}", config.lanes));
    line(text, "rate limits", &format!("{:?}", config.rate_limits));
    line(text, "shoppers cancel for", &cut_off(config.cancel_cutoff));
    let operator = config.operator_token.as_ref();
    line(
        text,
        "operator's token",
        &operator.map_or("unset".to_owned(), ToString::to_string),
    );
    line(text, "database wait", &times.database_wait);
    let bounds = &config.bounds;
    line(text, "inquiries in flight", &bounds.inquiries);
    line(text, "unknown is overdue after", &bounds.unknown);
    line(text, "webhooks kept", &bounds.webhooks_kept);
    let strangers = format!(
        "{} stored, {} a second",
        bounds.strangers, bounds.webhook_rate
    );
    line(text, "webhooks of nobody", &strangers);
}

/// One gateway: its times and what it can do, that they agree, and what they mean under load.
fn of_gateway(text: &mut String, gateway: &GatewaySettings, config: &Config, load: Load) {
    let times = &gateway.times;
    let _ = writeln!(text, "\nGateway {} at {}", gateway.name, gateway.base_url);
    let keys = gateway.keys;
    line(
        text,
        "keys",
        &keys.map_or_else(|| "the fake gateway's".to_owned(), |kind| kind.to_string()),
    );
    line(text, "cap", &count(times.cap));
    line(text, "reserve", &times.reserve);
    line(text, "response wait", &times.page.response_wait);
    let polls = format!("{} x {}", times.page.poll_count, times.page.poll_interval);
    line(text, "polls", &polls);
    line(text, "total wait", &times.total_wait());
    line(text, "PG timeout", &times.pg_timeout);
    line(text, "PG connect timeout", &times.pg_connect_timeout);
    line(text, "PG confirm window", &times.confirm_window);
    line(text, "node lease", &times.node_lease);
    match serve::gateway(gateway) {
        Ok(adapter) => sheet(text, adapter.capabilities(), config),
        Err(error) => line(text, "cannot be used", &format!("{error:#}")),
    }
    inequalities(text, times);
    predictions(text, times, load);
}

/// What a gateway can do, as its adapter says.
fn sheet(text: &mut String, can: &Capabilities, config: &Config) {
    let yes = |is: bool| if is { "yes" } else { "no" };
    let known = |span: Option<Millis>, none: &str| {
        span.map_or_else(|| none.to_owned(), |span| span.to_string())
    };
    line(
        text,
        "remembers a key for",
        &known(can.idempotency, "no keys"),
    );
    let resent = can.idempotency.is_some() && config.resend != Policy::Off;
    line(text, "lost confirms are resent", &yes(resent));
    line(text, "looks up by order id", &yes(can.inquiry_by_order));
    line(text, "opens windows by a call", &yes(can.opens_by_call));
    line(text, "gives part back", &yes(can.partial_cancel));
    line(
        text,
        "gives up by itself after",
        &known(can.platform_timeout, "not known"),
    );
    line(text, "has deposits", &yes(can.deposits));
    let hooks = can.webhooks.iter().map(|kind| match kind.proof {
        WebhookProof::Hint => kind.name.to_owned(),
        WebhookProof::Secret => format!("{} (with a secret)", kind.name),
        WebhookProof::Signature => format!("{} (signed)", kind.name),
    });
    let hooks: Vec<String> = hooks.collect();
    let none = hooks.is_empty().then(|| "none".to_owned());
    line(text, "webhooks", &none.unwrap_or_else(|| hooks.join(", ")));
}

fn count(cap: Option<u32>) -> String {
    cap.map_or_else(|| "off".to_owned(), |cap| cap.to_string())
}

fn ratio(per_mille: Option<u32>) -> String {
    per_mille.map_or_else(
        || "off".to_owned(),
        |per_mille| format!("{} %", f64::from(per_mille) / 10.0),
    )
}

/// They hold, or the server had refused to start.
fn inequalities(text: &mut String, times: &Times) {
    text.push_str("  Inequalities, all checked\n");
    let total = times.total_wait();
    let needed = times
        .database_wait
        .times(2)
        .plus(times.pg_timeout)
        .plus(Millis::new(1_000));
    let mut holds = |left: &str, a: String, sign: &str, right: &str, b: String| {
        let _ = writeln!(text, "    {left} ({a}) {sign} {right} ({b})");
    };
    holds(
        "total wait",
        total.to_string(),
        ">=",
        "2 x database wait + PG timeout + 1000 ms",
        needed.to_string(),
    );
    holds(
        "response wait",
        times.page.response_wait.to_string(),
        "<",
        "total wait",
        total.to_string(),
    );
    holds(
        "reserve",
        times.reserve.to_string(),
        "<",
        "cap",
        count(times.cap),
    );
    holds(
        "node lease",
        times.node_lease.to_string(),
        ">=",
        "PG timeout + 5000 ms",
        times.pg_timeout.plus(Millis::from_secs(5)).to_string(),
    );
}

fn predictions(text: &mut String, times: &Times, load: Load) {
    let Load {
        rate,
        delay,
        target,
    } = load;
    // A call holds its slot until it is answered or given up.
    let hold = delay.min(times.pg_timeout);
    let _ = writeln!(
        text,
        "  Predictions at {rate} confirms/s and a PG that takes {delay}"
    );
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    line(
        text,
        "in flight without a cap",
        &format!("{:.1}", in_flight(rate, hold)),
    );
    line(
        text,
        "refused by the cap",
        &percent(refused_share(rate, hold, times.cap)),
    );
    let name = format!("cap for at most {}", percent(target));
    line(text, &name, &cap_needed(rate, hold, target));
    let longest =
        longest_hold(rate, times.cap).map_or_else(|| "none".to_owned(), |ms| ms.to_string());
    line(text, "longest hold, none refused", &longest);
    let room = times.cap.map_or_else(
        || "always".to_owned(),
        |cap| {
            format!(
                "while at most {} of the cap is in use",
                percent(resend_room(cap, times.reserve))
            )
        },
    );
    line(text, "resends", &room);
    if delay > times.pg_timeout {
        text.push_str("  The PG takes longer than its timeout: every confirm becomes unknown.\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Settings};
    use crate::gateway::secret::Secret;

    #[test]
    fn the_report_shows_settings_inequalities_and_predictions_and_no_secret() {
        let settings = Settings {
            env: Some(Environment::Development),
            gateways: Some(vec!["toss".to_owned(), "kakaopay".to_owned()]),
            secret_key: Some(Secret::new("0123456789abcdef0123456789abcdef")),
            toss_secret_key: Some(Secret::new("test_sk_hush")),
            ..Settings::default()
        };
        let config = Config::check(settings).unwrap();
        let load = Load {
            rate: 50.0,
            delay: Millis::from_secs(5),
            target: 0.01,
        };
        let text = report(&config, load);
        for part in [
            "total wait (65000 ms) >= 2 x database wait + PG timeout + 1000 ms (65000 ms)",
            "reserve (4) < cap (40)",
            "node lease (65000 ms) >= PG timeout + 5000 ms (65000 ms)",
            "resend                       Budget",
            "late success                 Cancel",
            "mails                        off",
            "refused by the cap           84.0 %",
            "cap for at most 1.0 %        248",
            "longest hold, none refused   800 ms",
            "while at most 90.0 % of the cap is in use",
            "Gateway toss at http://127.0.0.1:3900",
            "webhooks                     PAYMENT_STATUS_CHANGED, DEPOSIT_CALLBACK (with a secret), CANCEL_STATUS_CHANGED",
            "Gateway kakaopay at http://127.0.0.1:3900",
            "total wait (36000 ms) >= 2 x database wait + PG timeout + 1000 ms (20000 ms)",
        ] {
            assert!(text.contains(part), "{part} is not in\n{text}");
        }
        assert!(!text.contains("hush") && !text.contains("0123456789abcdef"));
    }
}

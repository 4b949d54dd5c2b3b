//! Development only: the switches of the fake gateway, and its truth. In production none of this is mounted.

use std::sync::OnceLock;
use std::time::Duration;

use app::data::Panel;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use payment::wire::ProblemCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Web;
use super::body::Form;
use super::forms::local;
use super::problem::Refusal;
use crate::app::App;

/// The fake gateway's control API is local: it answers at once or not at all.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(2);

pub(super) fn routes(development: bool) -> Router<Web> {
    let router = Router::new();
    if development {
        router.route("/dev/scenario", post(set_scenario))
    } else {
        router
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ScenarioForm {
    preset: String,
    delay_ms: String,
    loss_ratio: String,
    slow_tail_ratio: String,
    hang_ms: String,
    decline_ratio: String,
    back: String,
}

/// The situations that can be had with one press.
fn preset(name: &str) -> Option<Value> {
    Some(match name {
        "healthy" | "up" => json!({}),
        "slow_bank" => json!({"delayMs": 20_000}),
        "lost_answer" => json!({"loss": {"ratio": 1.0, "when": "after"}}),
        "busy" => json!({"contractLimit": 1, "delayMs": 3_000}),
        "silent" => json!({"stop": true}),
        "decline" => json!({"decline": {"ratio": 1.0, "code": "REJECT_CARD_COMPANY"}}),
        "slow_tail" => json!({"slowTail": {"ratio": 0.3, "delayMs": 20_000}}),
        "hang" => json!({"hang": {"when": "after", "ms": 60_000}}),
        "down" => json!({"up": false}),
        _ => return None,
    })
}

fn from_fields(form: &ScenarioForm) -> Option<Value> {
    let mut scenario = serde_json::Map::new();
    let number = |text: &str| {
        if text.is_empty() {
            Some(0)
        } else {
            text.parse::<u64>().ok()
        }
    };
    let ratio = |text: &str| {
        if text.is_empty() {
            Some(0.0)
        } else {
            text.parse::<f64>().ok()
        }
    };
    let (delay, hang) = (number(&form.delay_ms)?, number(&form.hang_ms)?);
    let (loss, tail, decline) = (
        ratio(&form.loss_ratio)?,
        ratio(&form.slow_tail_ratio)?,
        ratio(&form.decline_ratio)?,
    );
    if delay > 0 {
        scenario.insert("delayMs".to_owned(), delay.into());
    }
    if hang > 0 {
        scenario.insert("hang".to_owned(), json!({"when": "after", "ms": hang}));
    }
    if loss > 0.0 {
        scenario.insert("loss".to_owned(), json!({"ratio": loss, "when": "after"}));
    }
    if tail > 0.0 {
        scenario.insert(
            "slowTail".to_owned(),
            json!({"ratio": tail, "delayMs": 20_000}),
        );
    }
    if decline > 0.0 {
        scenario.insert(
            "decline".to_owned(),
            json!({"ratio": decline, "code": "REJECT_CARD_COMPANY"}),
        );
    }
    Some(Value::Object(scenario))
}

async fn set_scenario(
    State(web): State<Web>,
    Form(form): Form<ScenarioForm>,
) -> Result<Response, Refusal> {
    let invalid = || Refusal::new(ProblemCode::InvalidRequest).with("not a scenario");
    let scenario = if form.preset.is_empty() {
        from_fields(&form)
    } else {
        preset(&form.preset)
    };
    let scenario = scenario.ok_or_else(invalid)?;
    let fake = web.app.config.fakepg_url.as_deref().ok_or_else(invalid)?;
    let client = client().ok_or_else(invalid)?;
    let sent = client
        .put(format!("{fake}/_control/scenario"))
        .json(&scenario)
        .send()
        .await;
    match sent.map(|response| response.status().is_success()) {
        Ok(true) => Ok(Redirect::to(&local(&form.back)).into_response()),
        Ok(false) => Err(invalid()),
        Err(_) => Err(invalid().with("the fake gateway's control API does not answer")),
    }
}

/// One for the process: making one reads the machine's certificates, which takes longer than the page.
fn client() -> Option<&'static reqwest::Client> {
    static CLIENT: OnceLock<Option<reqwest::Client>> = OnceLock::new();
    let make = || {
        reqwest::Client::builder()
            .no_proxy()
            .timeout(CONTROL_TIMEOUT)
            .build()
            .ok()
    };
    CLIENT.get_or_init(make).as_ref()
}

async fn get(fake: &str, path: &str) -> Option<Value> {
    client()?
        .get(format!("{fake}{path}"))
        .send()
        .await
        .ok()?
        .json()
        .await
        .ok()
}

/// What the panel shows; `None` outside development or without the fake gateway.
pub(super) async fn panel(app: &App) -> Option<Panel> {
    if !app.config.is_development() {
        return None;
    }
    let fake = app.config.fakepg_url.as_deref()?;
    let (scenario, calls) = tokio::join!(
        get(fake, "/_control/scenario"),
        get(fake, "/_control/ledger/calls")
    );
    let Some(scenario) = scenario else {
        return Some(Panel::default());
    };
    let confirm = calls
        .as_ref()
        .and_then(|calls| calls.get("confirm")?.as_object());
    let counters = confirm
        .into_iter()
        .flatten()
        .map(|(name, count)| (name.clone(), count.as_u64().unwrap_or(0)));
    Some(Panel {
        reachable: true,
        up: scenario.get("up").and_then(Value::as_bool).unwrap_or(true),
        delay_ms: scenario.get("delayMs").and_then(Value::as_u64).unwrap_or(0),
        counters: counters.collect(),
        scenario: serde_json::to_string_pretty(&scenario).unwrap_or_default(),
    })
}

/// The gateway's truth about an order: one line for each id that it was shown.
pub(super) async fn truth(app: &App, order: &crate::store::OrderRecord) -> Option<Vec<String>> {
    if !app.config.is_development() {
        return None;
    }
    let fake = app.config.fakepg_url.as_deref()?;
    let mut ids: Vec<&str> = order
        .attempts
        .iter()
        .map(|record| record.gateway_order_id.as_str())
        .collect();
    ids.dedup();
    let mut lines = Vec::with_capacity(ids.len());
    for id in ids {
        let booked = get(fake, &format!("/_control/ledger/orders/{id}")).await?;
        let of = |name: &str| booked.get(name).and_then(Value::as_u64).unwrap_or(0);
        lines.push(format!(
            "{id}: confirms {}, charges {}, cancels {}, charged {} won, canceled {} won",
            of("confirms"),
            of("charges"),
            of("cancels"),
            of("chargedWon"),
            of("canceledWon")
        ));
    }
    Some(lines)
}

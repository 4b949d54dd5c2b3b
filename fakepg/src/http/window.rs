//! The hosted payment window: the page a shopper authenticates on. Works without script.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::{Form, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use reqwest::Url;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::{Reset, work, written};
use crate::engine::toss::codes;
use crate::engine::{Call, Gateway, NewPayment, Target};
use crate::serve::Shared;

const PAGE: &str = include_str!("window/page.html");
const STYLE: &str = include_str!("window/style.css");

/// Won which the forged variant authenticates whatever the shop asked for.
const FORGED_WON: u64 = 100;

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/window", get(show))
        .route("/window/style.css", get(style))
        .route("/window/pay", post(pay))
        .route("/window/pay-forged", post(pay_forged))
        .route("/window/refuse", post(refuse))
        .route("/window/close", post(close))
}

type Answered = Result<Response, Infallible>;

/// What the shop sends the shopper here with; the page's forms carry it on.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    #[serde(default)]
    gateway: Gateway,
    #[serde(default)]
    client_key: String,
    order_id: String,
    #[serde(default)]
    order_name: String,
    amount: u64,
    #[serde(deserialize_with = "web_url")]
    success_url: Url,
    #[serde(deserialize_with = "web_url")]
    fail_url: Url,
}

/// Reads a URL a browser may be sent to.
fn web_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Url, D::Error> {
    let text = String::deserialize(deserializer)?;
    Url::parse(&text)
        .ok()
        .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
        .ok_or_else(|| D::Error::custom(format!("not an http or https URL: {text}")))
}

async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    asked: Result<Query<Asked>, axum::extract::rejection::QueryRejection>,
) -> Answered {
    let asked = match asked {
        Ok(Query(asked)) => asked,
        Err(rejection) => return Ok(bad(&rejection.body_text())),
    };
    act(&shared, &reset, None, &asked, |_| page(&asked)).await
}

async fn style() -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/css;charset=utf-8")], STYLE)
}

async fn pay(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Form(asked): Form<Asked>,
) -> Answered {
    let amount = asked.amount;
    authenticate(&shared, &reset, &asked, amount).await
}

async fn pay_forged(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Form(asked): Form<Asked>,
) -> Answered {
    authenticate(&shared, &reset, &asked, FORGED_WON).await
}

async fn refuse(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Form(asked): Form<Asked>,
) -> Answered {
    act(&shared, &reset, None, &asked, |_| {
        let code = "REJECT_CARD_COMPANY";
        let order = ("orderId", asked.order_id.as_str());
        back(
            &asked.fail_url,
            &[("code", code), ("message", codes::message_of(code)), order],
        )
    })
    .await
}

async fn close(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Form(asked): Form<Asked>,
) -> Answered {
    act(&shared, &reset, None, &asked, |_| {
        let message = "사용자에 의해 결제가 취소되었습니다.";
        back(
            &asked.fail_url,
            &[("code", "PAY_PROCESS_CANCELED"), ("message", message)],
        )
    })
    .await
}

async fn authenticate(shared: &Arc<Shared>, reset: &Reset, asked: &Asked, amount: u64) -> Answered {
    let (order_id, order_name) = (asked.order_id.clone(), asked.order_name.clone());
    let new = NewPayment {
        order_id,
        order_name,
        amount,
    };
    act(shared, reset, Some(new), asked, |payment_key| {
        let amount = amount.to_string();
        let order = ("orderId", asked.order_id.as_str());
        back(
            &asked.success_url,
            &[("paymentKey", payment_key), order, ("amount", &amount)],
        )
    })
    .await
}

/// Passes a request through the scenario's faults, then answers it.
async fn act(
    shared: &Arc<Shared>,
    reset: &Reset,
    new: Option<NewPayment>,
    asked: &Asked,
    then: impl FnOnce(&str) -> Response,
) -> Answered {
    match work::work(shared, Call::new(asked.gateway, Target::Window(new))).await {
        Some(answer) if answer.status == 200 => Ok(then(&String::from_utf8_lossy(&answer.body))),
        Some(answer) => Ok(written(answer)),
        None => reset.now().await,
    }
}

/// Sends the shopper back to the shop, keeping the query its URL already has.
fn back(url: &Url, pairs: &[(&str, &str)]) -> Response {
    let mut url = url.clone();
    url.query_pairs_mut().extend_pairs(pairs);
    (StatusCode::SEE_OTHER, [(header::LOCATION, url.to_string())]).into_response()
}

fn page(asked: &Asked) -> Response {
    // Browsers check `form-action` against the redirect that follows a form too, so the shop's
    // origins must be allowed by name.
    let policy = format!(
        "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; \
         form-action 'self' {} {}",
        asked.success_url.origin().ascii_serialization(),
        asked.fail_url.origin().ascii_serialization(),
    );
    let hidden: String = [
        ("gateway", asked.gateway.name()),
        ("clientKey", &asked.client_key),
        ("orderId", &asked.order_id),
        ("orderName", &asked.order_name),
        ("amount", &asked.amount.to_string()),
        ("successUrl", asked.success_url.as_str()),
        ("failUrl", asked.fail_url.as_str()),
    ]
    .iter()
    .map(|(name, value)| {
        format!(
            r#"<input type="hidden" name="{name}" value="{}">"#,
            escaped(value)
        )
    })
    .collect();
    let html = PAGE
        .replace("{{order_name}}", &escaped(&asked.order_name))
        .replace("{{order_id}}", &escaped(&asked.order_id))
        .replace("{{won}}", &grouped(asked.amount))
        .replace("{{hidden}}", &hidden);
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
    ];
    (headers, Html(html)).into_response()
}

fn bad(why: &str) -> Response {
    (
        StatusCode::BAD_REQUEST,
        Html(format!("<!doctype html><p>{}</p>", escaped(why))),
    )
        .into_response()
}

pub(super) fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // A brace could form one of the page's own marks.
            '{' => safe.push_str("&#123;"),
            other => safe.push(other),
        }
    }
    safe
}

pub(super) fn grouped(won: u64) -> String {
    let digits = won.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn won_are_grouped_by_thousands_and_text_is_escaped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(
            escaped(r#"<a "b">&{{"#),
            "&lt;a &quot;b&quot;&gt;&amp;&#123;&#123;"
        );
    }
}

//! The console's forms. Every answer is a 303 to a page that tells what came of it; who is not signed in gets nowhere.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use app::data::console::Notice;
use axum::extract::{ConnectInfo, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use axum::{Extension, Router};
use axum_extra::extract::cookie::{Cookie, CookieJar, SameSite};
use payment::id::OrderId;
use payment::money::Won;
use payment::wire::ProblemCode;
use serde::Deserialize;

use super::Web;
use super::body::Form;
use super::cancels::{LONGEST_REASON, parse_key};
use super::guard::address;
use super::problem::Refusal;
use crate::console::{Console, SignIn};
use crate::metrics;
use crate::operate::output::plain;
use crate::operate::resolve::{Ended, REASON_LIMIT, Saying, Word, end_doubt};
use crate::refund::{Answer, Cancel, start};
use crate::store::console::{Action, NewAction};
use crate::store::{Asker, AttemptId, AttemptRecord, StoreError};

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/ops/sign-in", post(sign_in))
        .route("/ops/sign-out", post(sign_out))
        .route("/ops/find", get(find))
        .route("/ops/attempts/{attempt}/ask", post(ask))
        .route("/ops/attempts/{attempt}/resolve", post(resolve))
        .route("/ops/orders/{order}/refund", post(refund))
}

/// The address of whoever asks, as the limits count it.
#[derive(Debug, Clone, Copy)]
struct Peer(IpAddr);

/// What is under `/ops`, signed in or not: absent where there is no console, and a few at a time.
pub(super) async fn door(State(web): State<Web>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if path != "/ops" && !path.starts_with("/ops/") {
        return next.run(request).await;
    }
    let Some(console) = &web.app.console else {
        // As any other address that is not there.
        return Refusal::new(ProblemCode::NotFound).into_response();
    };
    let Ok(_place) = console.places.clone().try_acquire_owned() else {
        return Refusal::new(ProblemCode::Overloaded).into_response();
    };
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |info| info.0.ip());
    let ip = address(peer, request.headers(), &web.app.config.trusted_proxies);
    request.extensions_mut().insert(Peer(ip));
    next.run(request).await
}

fn cookie_name(web: &Web) -> &'static str {
    if web.app.config.is_development() {
        "jari_operator"
    } else {
        "__Host-jari_operator"
    }
}

/// The token that a request brings.
fn token(web: &Web, headers: &HeaderMap) -> Option<String> {
    let jar = CookieJar::from_headers(headers);
    jar.get(cookie_name(web))
        .map(|cookie| cookie.value().to_owned())
}

/// An operator who is signed in, with the console.
pub(super) struct SignedIn<'a> {
    /// The console.
    pub(super) console: &'a Console,
    /// The name.
    pub(super) operator: String,
    token: String,
}

/// Who asks; `None` is nobody that the console knows.
pub(super) async fn signed_in<'a>(
    web: &'a Web,
    headers: &HeaderMap,
) -> Result<Option<SignedIn<'a>>, StoreError> {
    let (Some(console), Some(token)) = (&web.app.console, token(web, headers)) else {
        return Ok(None);
    };
    let operator = console.operator(&token).await?;
    Ok(operator.map(|operator| SignedIn {
        console,
        operator,
        token,
    }))
}

fn to(page: &str, notice: Notice) -> Response {
    Redirect::to(&format!("{page}?notice={}", notice.as_str())).into_response()
}

fn order_page(order: &OrderId) -> String {
    format!("/ops/orders/{order}")
}

#[derive(Deserialize)]
struct SignInForm {
    name: String,
    password: String,
}

async fn sign_in(
    State(web): State<Web>,
    Extension(Peer(ip)): Extension<Peer>,
    headers: HeaderMap,
    Form(form): Form<SignInForm>,
) -> Result<Response, Refusal> {
    let Some(console) = &web.app.console else {
        return Err(Refusal::new(ProblemCode::NotFound));
    };
    let token = match console.sign_in(ip, &form.name, form.password).await? {
        SignIn::Token(token) => token,
        SignIn::Wrong => return Ok(to("/ops", Notice::WrongPassword)),
        SignIn::TooOften => return Ok(to("/ops", Notice::TooOften)),
    };
    let cookie = Cookie::build((cookie_name(&web), token))
        .path("/")
        .http_only(true)
        // Nobody comes to the console from elsewhere.
        .same_site(SameSite::Strict)
        .secure(!web.app.config.is_development())
        .build();
    let jar = CookieJar::from_headers(&headers).add(cookie);
    Ok((jar, Redirect::to("/ops")).into_response())
}

async fn sign_out(State(web): State<Web>, headers: HeaderMap) -> Result<Response, Refusal> {
    if let Some(who) = signed_in(&web, &headers).await? {
        who.console.sign_out(&who.operator, &who.token).await?;
    }
    let gone = Cookie::build(cookie_name(&web)).path("/").build();
    let jar = CookieJar::from_headers(&headers).remove(gone);
    Ok((jar, Redirect::to("/ops")).into_response())
}

#[derive(Debug, Deserialize)]
struct FindQuery {
    #[serde(default)]
    q: String,
}

/// Leads to the order that a number, an order id or a payment key names.
async fn find(
    State(web): State<Web>,
    headers: HeaderMap,
    Query(query): Query<FindQuery>,
) -> Result<Response, Refusal> {
    let Some(who) = signed_in(&web, &headers).await? else {
        return Ok(Redirect::to("/ops").into_response());
    };
    let found = order_of(&web, who.console, query.q.trim()).await?;
    Ok(match found {
        Some(order) => Redirect::to(&order_page(&order)).into_response(),
        None => to("/ops", Notice::NotFound),
    })
}

async fn order_of(web: &Web, console: &Console, text: &str) -> Result<Option<OrderId>, StoreError> {
    let store = &console.desk.store;
    if let Ok(id) = OrderId::parse(text)
        && store.order(&id).await?.is_some()
    {
        return Ok(Some(id));
    }
    if let Ok(number) = text.parse() {
        let found = store.attempt(AttemptId(number)).await?;
        return Ok(found.map(|record| record.order_id));
    }
    if let Ok(id) = payment::id::GatewayOrderId::parse(text) {
        let found = store.attempts_by_gateway_order(&id).await?;
        if let Some(record) = found.into_iter().next_back() {
            return Ok(Some(record.order_id));
        }
    }
    if let Ok(key) = payment::id::PaymentKey::parse(text) {
        for line in &web.app.lines {
            let found = store.attempts_by_key(line.gateway.name(), &key).await?;
            if let Some(record) = found.into_iter().next_back() {
                return Ok(Some(record.order_id));
            }
        }
    }
    Ok(None)
}

/// Begins what an operator does with an attempt: kept before anything is done. `Err` holds the answer that ends it.
async fn begin<'a>(
    web: &'a Web,
    headers: &HeaderMap,
    attempt: i64,
) -> Result<Result<(SignedIn<'a>, AttemptRecord), Response>, Refusal> {
    let Some(who) = signed_in(web, headers).await? else {
        return Ok(Err(to("/ops", Notice::SignedOut)));
    };
    let found = who.console.desk.store.attempt(AttemptId(attempt)).await?;
    Ok(match found {
        Some(record) => Ok((who, record)),
        None => Err(to("/ops", Notice::NotFound)),
    })
}

impl SignedIn<'_> {
    /// Keeps what is about to be done; its number.
    async fn keep(
        &self,
        (action, detail): (Action, String),
        order: &OrderId,
        attempt: Option<AttemptId>,
    ) -> Result<i64, StoreError> {
        let new = NewAction {
            at: self.console.desk.clock.epoch(),
            operator: self.operator.clone(),
            action,
            order_id: Some(order.clone()),
            attempt,
            detail,
        };
        self.console.desk.store.act(new).await
    }

    /// Keeps what it came to, and leads to the order's page.
    async fn ended(
        &self,
        (action, number): (Action, i64),
        order: &OrderId,
        notice: Notice,
    ) -> Result<Response, Refusal> {
        metrics::console_action(action.as_str(), notice.as_str());
        tracing::info!(
            operator = self.operator,
            action = action.as_str(),
            result = notice.as_str(),
            %order,
            "an operator acted"
        );
        let store = &self.console.desk.store;
        store.acted(number, notice.as_str()).await?;
        Ok(to(&order_page(order), notice))
    }
}

/// Has the gateway asked now.
async fn ask(
    State(web): State<Web>,
    headers: HeaderMap,
    Path(attempt): Path<i64>,
) -> Result<Response, Refusal> {
    let (who, record) = match begin(&web, &headers, attempt).await? {
        Ok(found) => found,
        Err(answer) => return Ok(answer),
    };
    let order = &record.order_id;
    let kept = (Action::Ask, String::new());
    let number = who.keep(kept, order, Some(record.id)).await?;
    let notice = if record.payment_key.is_none() {
        Notice::NothingSent
    } else {
        let desk = &who.console.desk;
        desk.store
            .hint(record.id, desk.clock.epoch(), false)
            .await?;
        web.app.recovery.notify_one();
        Notice::Asked
    };
    who.ended((Action::Ask, number), order, notice).await
}

#[derive(Debug, Deserialize)]
struct ResolveForm {
    word: String,
    reason: String,
    #[serde(default)]
    early: Option<String>,
}

/// Ends a doubt by the operator's word.
async fn resolve(
    State(web): State<Web>,
    headers: HeaderMap,
    Path(attempt): Path<i64>,
    Form(form): Form<ResolveForm>,
) -> Result<Response, Refusal> {
    let (who, record) = match begin(&web, &headers, attempt).await? {
        Ok(found) => found,
        Err(answer) => return Ok(answer),
    };
    let order = &record.order_id;
    let reason = plain(&form.reason, REASON_LIMIT);
    let word = match form.word.as_str() {
        "charged" => Word::Charged,
        "not_charged" => Word::NotCharged,
        _ => return Ok(to(&order_page(order), Notice::NoReason)),
    };
    if reason.is_empty() {
        return Ok(to(&order_page(order), Notice::NoReason));
    }
    let saying = Saying {
        word,
        by: who.operator.clone(),
        reason,
        early: form.early.is_some(),
    };
    let early = if saying.early { ", early" } else { "" };
    let kept = format!("{}{early}: {}", form.word, saying.reason);
    let number = who
        .keep((Action::Resolve, kept), order, Some(record.id))
        .await?;
    let notice = match end_doubt(&who.console.desk, &record, &saying).await? {
        Ended::Resolved(_) => Notice::Resolved,
        Ended::NotUnknown | Ended::Meanwhile(_) => Notice::NotUnknown,
        Ended::TooEarly => Notice::TooEarly,
    };
    who.ended((Action::Resolve, number), order, notice).await
}

#[derive(Debug, Deserialize)]
struct RefundForm {
    key: String,
    #[serde(default)]
    amount: String,
    reason: String,
}

/// Asks for money to be given back; the work goes on detached, and the page shows how far it has come.
async fn refund(
    State(web): State<Web>,
    headers: HeaderMap,
    Path(order): Path<String>,
    Form(form): Form<RefundForm>,
) -> Result<Response, Refusal> {
    let Some(who) = signed_in(&web, &headers).await? else {
        return Ok(to("/ops", Notice::SignedOut));
    };
    let known = match OrderId::parse(&order) {
        Ok(id) => who.console.desk.store.order(&id).await?,
        Err(_) => None,
    };
    let Some(order) = known.map(|order| order.id) else {
        return Ok(to("/ops", Notice::NotFound));
    };
    let page = order_page(&order);
    let reason = plain(&form.reason, LONGEST_REASON);
    let Ok(amount) = amount_of(&form.amount) else {
        return Ok(to(&page, Notice::NoAmount));
    };
    let (Some(client_key), false) = (parse_key(&form.key), reason.is_empty()) else {
        return Ok(to(&page, Notice::NoReason));
    };
    let what = amount.map_or_else(|| "all".to_owned(), |won| format!("{won} won"));
    let kept = (Action::Refund, format!("{what}: {reason}"));
    let number = who.keep(kept, &order, None).await?;
    let wish = Cancel {
        account: None,
        order_id: order.clone(),
        asker: Asker::Operator,
        client_key,
        amount,
        reason,
    };
    let notice = match start(&web.app, wish).await {
        Answer::Done(_) | Answer::UnderWay(_) => Notice::RefundAsked,
        Answer::Problem(code, _) => {
            tracing::info!(code = code.as_str(), "a refund was not begun");
            Notice::RefundRefused
        }
    };
    who.ended((Action::Refund, number), &order, notice).await
}

/// An amount as people type it; nothing is all that is left.
fn amount_of(text: &str) -> Result<Option<Won>, StatusCode> {
    let digits: String = text
        .chars()
        .filter(|c| !matches!(c, ',' | ' ' | '원' | '₩'))
        .collect();
    if digits.is_empty() {
        return Ok(None);
    }
    let won = digits.parse().ok().and_then(|won| Won::new(won).ok());
    won.filter(|won| *won != Won::ZERO)
        .map(Some)
        .ok_or(StatusCode::BAD_REQUEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_read_as_people_type_it() {
        let won = |n| Won::new(n).ok();
        assert_eq!(amount_of(""), Ok(None));
        assert_eq!(amount_of(" 12,000원 "), Ok(won(12_000)));
        for wrong in ["0", "-1", "1.5", "many", "99999999999999999999"] {
            assert!(amount_of(wrong).is_err(), "{wrong}");
        }
    }
}

//! The same checkout as plain forms, for shoppers without script: every answer is a 303 to a page that tells the truth.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use axum::{Extension, Router};
use payment::deadline::{Deadline, TimeLeft};
use payment::id::{AttemptReference, GatewayName, OrderId, Sku};
use payment::wire::{ConfirmRequest, ProblemCode};
use serde::Deserialize;

use super::Web;
use super::body::Form;
use super::layers::Scope;
use super::orders::{address_of, make_order, open_window, own_order, public_url};
use super::payments::Receipt;
use super::problem::Refusal;
use super::shopper::owner_or_new;
use crate::app::App;
use crate::confirm::{Answer, Confirm, start};
use crate::window::Opening;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/orders", post(order))
        .route("/checkout/{order}", post(pay))
        .route("/checkout/{order}/return/{reference}", post(confirm))
        .route("/language", post(language))
}

/// Where a refused form leads: to a page that is rendered anew from the stored truth and says in the shopper's words
/// why nothing happened.
fn page_with(refusal: &Refusal, page: &str) -> Response {
    Redirect::to(&format!("{page}?notice={}", refusal.code())).into_response()
}

#[derive(Debug, Deserialize)]
struct OrderForm {
    sku: Sku,
    quantity: u32,
}

async fn order(
    State(web): State<Web>,
    Extension(scope): Extension<Scope>,
    headers: HeaderMap,
    Form(form): Form<OrderForm>,
) -> Result<Response, Refusal> {
    let (owner, jar) = owner_or_new(&headers, &web);
    Ok(
        match make_order(&web.app, owner, scope.lang, vec![(form.sku, form.quantity)]).await {
            Ok((order, _)) => (jar, Redirect::to(&format!("/checkout/{order}"))).into_response(),
            Err(refusal) => page_with(&refusal, "/"),
        },
    )
}

/// How the shopper wants to pay.
#[derive(Debug, Default, Deserialize)]
struct PayForm {
    /// Through which gateway; the first when absent.
    #[serde(default)]
    gateway: Option<GatewayName>,
    /// The attempt from whose window the shopper came back without having paid.
    #[serde(default)]
    left: Option<AttemptReference>,
}

/// Opens the payment window: the ready attempt's, however often it is pressed.
async fn pay(
    State(web): State<Web>,
    Extension(scope): Extension<Scope>,
    Path(order): Path<String>,
    headers: HeaderMap,
    form: Option<Form<PayForm>>,
) -> Result<Response, Refusal> {
    let order = order_of(&order)?;
    let here = format!("/checkout/{order}");
    // Whose cookie is gone is shown the page of an order that is not there.
    let Some(owner) = scope.owner else {
        return Ok(Redirect::to(&here).into_response());
    };
    let form = form.map_or_else(PayForm::default, |form| form.0);
    let opening = Opening {
        order_id: order,
        owner,
        gateway: form.gateway,
        left: form.left,
        public_url: public_url(&web.app, &headers),
    };
    Ok(match open_window(&web.app, opening).await {
        Ok((_, window)) => Redirect::to(&address_of(window, &headers)).into_response(),
        // No send was made: the code's own words are for those.
        Err(refusal)
            if matches!(
                refusal.code(),
                ProblemCode::PgUnreachable | ProblemCode::PgRefused
            ) =>
        {
            Redirect::to(&format!("{here}?notice=window_not_opened")).into_response()
        }
        Err(refusal) => page_with(&refusal, &here),
    })
}

/// An id that can stand in an address; anything else is no order.
fn order_of(text: &str) -> Result<OrderId, Refusal> {
    OrderId::parse(text).map_err(|_| Refusal::new(ProblemCode::OrderNotFound))
}

/// Claims, lets the work go on detached with the whole wait as deadline, and leads to the waiting page.
async fn confirm(
    State(web): State<Web>,
    Extension(scope): Extension<Scope>,
    Path((order, reference)): Path<(String, String)>,
    received: Receipt,
    Form(request): Form<ConfirmRequest>,
) -> Result<Response, Refusal> {
    let app = &web.app;
    let order = order_of(&order)?;
    let reference = AttemptReference::parse(&reference)
        .map_err(|_| Refusal::new(ProblemCode::OrderNotFound))?;
    let here = format!("/checkout/{order}/return/{reference}");
    let checkout = format!("/checkout/{order}");
    let Some(owner) = scope.owner else {
        return Ok(Redirect::to(&here).into_response());
    };
    let found = match own_order(app, &owner, order.as_str()).await {
        Ok(found) => found,
        Err(refusal) => return Ok(page_with(&refusal, &checkout)),
    };
    let named = found
        .attempts
        .iter()
        .find(|record| record.reference == reference);
    let Some(named) = named.filter(|_| !app.stopping.is_cancelled()) else {
        return Ok(Redirect::to(&here).into_response());
    };
    let times = app
        .line(&named.gateway)
        .map_or(app.config.times, |line| line.times);
    let whole = TimeLeft::Left(times.total_wait());
    let deadline = Deadline::new(whole, received.0, payment::time::Millis::ZERO);
    let confirm = Confirm {
        request,
        owner,
        deadline,
        received: received.0,
    };
    let answer = start(app, confirm).await;
    Ok(match answer {
        // What became of a send is told by the page itself; why nothing was even claimed is stored nowhere.
        Answer::Known(_) | Answer::InDoubt(_) | Answer::Problem(_, Some(_), _) => {
            // Should the look-up fail, the address that the shopper came from tells the truth too.
            Redirect::to(&latest_page(&web, &order, &reference).await.unwrap_or(here))
                .into_response()
        }
        Answer::Problem(code, None, _) => page_with(&Refusal::new(code), &checkout),
    })
}

/// The waiting page of the attempt that is now open: a claim may have made a new one.
async fn latest_page(
    web: &Web,
    order: &OrderId,
    reference: &AttemptReference,
) -> Result<String, Refusal> {
    let attempts = web
        .app
        .store
        .order(order)
        .await?
        .map(|order| order.attempts)
        .unwrap_or_default();
    let latest = attempts
        .last()
        .map_or(reference, |record| &record.reference);
    Ok(format!("/checkout/{order}/return/{latest}"))
}

#[derive(Debug, Deserialize)]
struct LanguageForm {
    lang: String,
    #[serde(default)]
    back: String,
}

async fn language(
    State(web): State<Web>,
    Extension(scope): Extension<Scope>,
    Form(form): Form<LanguageForm>,
) -> Response {
    let lang = app::text::Lang::parse(&form.lang).unwrap_or(scope.lang);
    let cookie = language_cookie(&web.app, lang);
    let back = local(&form.back);
    let mut response = (StatusCode::SEE_OTHER, [(header::LOCATION, back)]).into_response();
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// The cookie that keeps a language.
pub(super) fn language_cookie(app: &App, lang: app::text::Lang) -> String {
    let secure = if app.config.is_development() {
        ""
    } else {
        "; Secure"
    };
    let tag = lang.tag();
    format!("jari_lang={tag}; Path=/; Max-Age=31536000; SameSite=Lax; HttpOnly{secure}")
}

/// A path of ours to go back to; anything else leads home.
pub(super) fn local(back: &str) -> String {
    let plain = back.starts_with('/') && !back.starts_with("//") && !back.contains('\\');
    let safe = plain && back.bytes().all(|byte| byte.is_ascii_graphic());
    if safe {
        back.to_owned()
    } else {
        "/".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn only_a_path_of_ours_is_gone_back_to() {
        assert_eq!(local("/orders?page=2"), "/orders?page=2");
        for foreign in [
            "https://evil.example",
            "//evil.example",
            "/\\evil.example",
            "",
            "/a\r\nb",
            "javascript:1",
        ] {
            assert_eq!(local(foreign), "/");
        }
    }
}

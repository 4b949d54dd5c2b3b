//! KakaoPay's payment window, one address per kind of device. Works without script.

use std::sync::Arc;

use axum::extract::{Form, Path, State};
use axum::http::header;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use serde::Deserialize;

use super::{Answered, paged};
use crate::engine::kakaopay::View;
use crate::engine::{KakaoPayCall, PageStep};
use crate::http::window::{escaped, grouped};
use crate::http::{Reset, written};
use crate::serve::Shared;

const PAGE: &str = include_str!("page.html");
const OVER: &str = include_str!("over.html");

pub(super) fn router() -> Router<Arc<Shared>> {
    Router::new().route("/window/kakaopay/{page}/{device}", get(show).post(press))
}

/// The button that was pressed, and the method that was chosen.
#[derive(Deserialize)]
struct Pressed {
    action: Action,
    #[serde(default = "card")]
    method: String,
}

fn card() -> String {
    "CARD".to_owned()
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    Pay,
    PayForged,
    Refuse,
    Close,
    Expire,
}

async fn show(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Path((page, device)): Path<(String, String)>,
) -> Answered {
    step(&shared, &reset, page, &device, PageStep::Show).await
}

async fn press(
    State(shared): State<Arc<Shared>>,
    Extension(reset): Extension<Reset>,
    Path((page, device)): Path<(String, String)>,
    Form(Pressed { action, method }): Form<Pressed>,
) -> Answered {
    let pressed = match action {
        Action::Pay => PageStep::Pay(method),
        Action::PayForged => PageStep::Forge,
        Action::Refuse => PageStep::Refuse,
        Action::Close => PageStep::Close,
        Action::Expire => PageStep::Expire,
    };
    step(&shared, &reset, page, &device, pressed).await
}

async fn step(
    shared: &Arc<Shared>,
    reset: &Reset,
    page: String,
    device: &str,
    step: PageStep,
) -> Answered {
    let device = match device {
        "pc" => "PC",
        "mobile" => "모바일 웹 · Mobile web",
        "app" => "카카오톡 앱 · KakaoTalk app",
        _ => return Ok(written(shared.engine(|engine, _| engine.nowhere()))),
    };
    let answer = match paged(shared, reset, KakaoPayCall::Page { page, step }).await {
        Ok(answer) => answer,
        Err(reset) => return reset,
    };
    // A redirect or a refusal is written as it is; only a page is drawn here.
    match serde_json::from_slice::<View>(&answer.body) {
        Ok(view) if answer.status == 200 => Ok(drawn(&view, device)),
        _ => Ok(written(answer)),
    }
}

fn drawn(view: &View, device: &str) -> Response {
    let policy = format!(
        "default-src 'none'; style-src 'self'; base-uri 'none'; frame-ancestors 'none'; \
         form-action 'self' {}",
        view.origins.join(" "),
    );
    let methods = match view.only.as_deref() {
        Some(only) => format!(r#"<input type="hidden" name="method" value="{only}">"#),
        None => r#"<fieldset class="methods"><legend>결제 수단 <span lang="en">Method</span></legend>
<label><input type="radio" name="method" value="CARD" checked> 카드 <span lang="en">Card</span></label>
<label><input type="radio" name="method" value="MONEY"> 카카오페이머니 <span lang="en">KakaoPay money</span></label>
</fieldset>"#
            .to_owned(),
    };
    let html = if view.open { PAGE } else { OVER }
        .replace("{{device}}", device)
        .replace("{{methods}}", &methods)
        .replace("{{won}}", &grouped(view.won))
        .replace("{{order_id}}", &escaped(&view.order_id))
        .replace("{{order_name}}", &escaped(&view.item_name));
    let headers = [
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
    ];
    (headers, Html(html)).into_response()
}

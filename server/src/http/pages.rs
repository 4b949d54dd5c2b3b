//! The pages: what each request may see, and the policy that its answer carries.

use std::path::Path;
use std::sync::Arc;

use app::data::{
    Answer, CancelOffer, Card, HistoryPage, HistoryRow, Line, MomentKind, OrderGroup, OrderPage,
    PageContext, PageData, PaidFacts, Panel, RefundLine, ReturnedAttempt, Seller, Unavailable,
};
use app::text::Lang;
use axum::Router;
use axum::http::{HeaderValue, StatusCode, header, request::Parts};
use axum::routing::{any, get};
use leptos::context::{provide_context, use_context};
use leptos::nonce::use_nonce;
use leptos_axum::{LeptosRoutes as _, ResponseOptions, generate_route_list};
use payment::attempt::AttemptStatus;
use payment::id::{AttemptReference, OrderId};
use payment::order::OrderStatus;
use payment::time::PageTimes;
use payment::wire::ProblemCode;
use tower_http::services::ServeFile;

use super::layers::Scope;
use super::problem::Refusal;
use super::timeline::{self, korean_time, moment};
use super::{Web, assets, console_data, dev};
use crate::app::App;
use crate::merchant;
use crate::random;
use crate::refund;
use crate::store::{
    AttemptRecord, EvidenceRow, LineRow, OrderRecord, Owner, RefundRow, StoreError,
};

/// Orders on one page of the history.
const PER_PAGE: u32 = 20;

/// Adds the pages to the API's routes.
pub(super) fn mount(api: Router<Web>, web: &Web) -> Router<Web> {
    let context = {
        let web = web.clone();
        move || provide(&web)
    };
    let shell = {
        let options = web.leptos.clone();
        move || app::shell(options.clone())
    };
    let routes = generate_route_list(app::App);
    let missing = leptos_axum::render_app_async_with_context(context.clone(), shell.clone());
    // Files never come near a page's context: the framework's own file handler runs inside whatever page is being
    // rendered on that thread, and takes that page's headers with it.
    let root = Path::new(web.leptos.site_root.as_ref());
    api.leptos_routes_with_context(web, routes, context, shell)
        .route(
            "/api/{*rest}",
            any(|| async { Refusal::new(ProblemCode::NotFound) }),
        )
        .route("/pkg/{*file}", get(assets::serve))
        .route_service("/favicon.svg", ServeFile::new(root.join("favicon.svg")))
        .fallback(any(missing))
}

/// Gives one page render its data, its language and its policy.
fn provide(web: &Web) {
    let Some(parts) = use_context::<Parts>() else {
        return;
    };
    let Some(response) = use_context::<ResponseOptions>() else {
        return;
    };
    let scope = parts.extensions.get::<Scope>().cloned();
    let (owner, linked, lang) = scope.map_or((None, false, Lang::Ko), |scope| {
        (scope.owner, scope.linked, scope.lang)
    });
    if let Some(policy) = policy(web) {
        response.insert_header(header::CONTENT_SECURITY_POLICY, policy);
    }
    let status = {
        let response = response.clone();
        move |code: u16| {
            if let Ok(code) = StatusCode::from_u16(code) {
                response.set_status(code);
            }
        }
    };
    let here = parts
        .uri
        .path_and_query()
        .map_or_else(|| "/".to_owned(), ToString::to_string);
    provide_context(PageContext {
        data: Arc::new(Data {
            app: Arc::clone(&web.app),
            owner,
            linked,
            lang,
        }),
        console: Arc::new(console_data::Data {
            web: web.clone(),
            headers: parts.headers,
            lang,
        }),
        lang,
        development: web.app.config.is_development(),
        here,
        set_status: Arc::new(status),
    });
}

/// Scripts only of ours and of this very answer; forms only to us and to the payment windows.
fn policy(web: &Web) -> Option<HeaderValue> {
    let nonce = use_nonce()?;
    let windows: Vec<String> = web
        .app
        .lines
        .iter()
        .flat_map(|line| line.gateway.window_origins())
        .collect();
    let text = format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' \
         data:; connect-src 'self'; font-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; \
         object-src 'none'; form-action 'self' {}",
        windows.join(" ")
    );
    HeaderValue::from_str(&text).ok()
}

/// The data of one request.
struct Data {
    app: Arc<App>,
    owner: Option<Owner>,
    /// Whether the page is of another shop's order.
    linked: bool,
    lang: Lang,
}

pub(super) fn unavailable(error: StoreError) -> Unavailable {
    tracing::warn!(
        error = &error as &dyn std::error::Error,
        "a page's data cannot be had"
    );
    Unavailable
}

impl Data {
    fn pick(lang: Lang, [ko, en]: [String; 2]) -> String {
        if lang == Lang::En { en } else { ko }
    }
}

impl PageData for Data {
    fn catalogue(&self) -> Answer<Vec<Card>> {
        let (app, lang) = (Arc::clone(&self.app), self.lang);
        Box::pin(async move {
            let shelf = app.reads.products().await.map_err(unavailable)?;
            let card = |row: crate::store::ProductRow| Card {
                sku: row.sku,
                name: Self::pick(lang, row.name),
                blurb: Self::pick(lang, row.blurb),
                price: row.price,
                available: row.available,
            };
            Ok(shelf.into_iter().map(card).collect())
        })
    }

    fn order(&self, id: OrderId, reference: Option<AttemptReference>) -> Answer<Option<OrderPage>> {
        let (app, owner, lang) = (Arc::clone(&self.app), self.owner.clone(), self.lang);
        let linked = self.linked;
        Box::pin(async move {
            let order = app.polls.order(&id).await.map_err(unavailable)?;
            let Some(order) = order.filter(|order| Some(&order.owner) == owner.as_ref()) else {
                return Ok(None);
            };
            let returned = reference
                .as_ref()
                .and_then(|reference| returned(&order, reference));
            if reference.is_some() && returned.is_none() {
                return Ok(None);
            }
            let lines = app.polls.lines(&order.id).await.map_err(unavailable)?;
            let evidence = app.polls.evidence(&order.id).await.map_err(unavailable)?;
            let refunds = app.polls.refunds_of(&order.id).await.map_err(unavailable)?;
            let gateway_truth = dev::truth(&app, &order).await;
            let seller = if linked {
                seller(&app, &order).await.map_err(unavailable)?
            } else {
                None
            };
            let mut page = order_page(
                &app,
                &order,
                (lines, &refunds),
                &evidence,
                lang,
                (returned, gateway_truth),
            );
            // What is given back of its orders another shop decides.
            page.cancel = page.cancel.filter(|_| seller.is_none());
            page.seller = seller;
            Ok(Some(page))
        })
    }

    fn history(&self, group: OrderGroup, page: u32) -> Answer<HistoryPage> {
        let (app, owner, lang) = (Arc::clone(&self.app), self.owner.clone(), self.lang);
        let page = page.clamp(1, 10_000);
        Box::pin(async move {
            let Some(owner) = owner else {
                return Ok(HistoryPage {
                    rows: Vec::new(),
                    page,
                    more: false,
                });
            };
            let skip = (page - 1) * PER_PAGE;
            let mut orders = app
                .reads
                .orders_of(&owner, states(group), skip, PER_PAGE + 1)
                .await
                .map_err(unavailable)?;
            let more = orders.len() > PER_PAGE as usize;
            orders.truncate(PER_PAGE as usize);
            let mut rows = Vec::with_capacity(orders.len());
            for order in orders {
                let lines = app.reads.lines(&order.id).await.map_err(unavailable)?;
                rows.push(HistoryRow {
                    order_id: order.id.clone(),
                    sku: lines.first().map(|line| line.sku.clone()),
                    summary: summary(&lines, lang),
                    amount: order.amount,
                    created: korean_time(order.created_at, lang),
                    state: app.order_state(&order),
                });
            }
            Ok(HistoryPage { rows, page, more })
        })
    }

    fn panel(&self) -> Answer<Option<Panel>> {
        let app = Arc::clone(&self.app);
        Box::pin(async move { Ok(dev::panel(&app).await) })
    }
}

/// The states of a group; `None` is any.
fn states(group: OrderGroup) -> Option<[OrderStatus; 2]> {
    match group {
        OrderGroup::All => None,
        OrderGroup::Pending => Some([OrderStatus::Pending; 2]),
        OrderGroup::Paid => Some([OrderStatus::Paid; 2]),
        OrderGroup::Returned => Some([OrderStatus::PartiallyCanceled, OrderStatus::Canceled]),
        OrderGroup::Expired => Some([OrderStatus::Expired; 2]),
    }
}

/// How an order was paid, whatever went back since.
fn paid_facts(order: &OrderRecord, evidence: &[EvidenceRow], lang: Lang) -> Option<PaidFacts> {
    let was_paid = |record: &&AttemptRecord| {
        let attempt = &record.attempt;
        let returned = attempt.status == AttemptStatus::Canceled && attempt.charged.is_some();
        attempt.counts_as_paid() || (returned && !attempt.void)
    };
    let paying = order.attempts.iter().find(was_paid)?;
    let learned = evidence
        .iter()
        .rev()
        .find(|row| moment(row) == MomentKind::Paid)?;
    Some(PaidFacts {
        at: korean_time(learned.at, lang),
        gateway: paying.gateway.clone(),
        given_back: paying.attempt.canceled,
    })
}

/// The shop that an order comes from, and where that wants its shopper back: with the order's name and nothing else, since
/// whatever else an address said could be made up.
async fn seller(app: &App, order: &OrderRecord) -> Result<Option<Seller>, StoreError> {
    let Some(merchants) = &app.merchants else {
        return Ok(None);
    };
    let known = merchants.shop_order(&order.id).await?;
    Ok(known.map(|known| Seller {
        back: merchant::return_address(&known.return_url, &order.id),
        title: known.title,
    }))
}

fn returned(order: &OrderRecord, reference: &AttemptReference) -> Option<ReturnedAttempt> {
    let record = order
        .attempts
        .iter()
        .find(|record| record.reference == *reference)?;
    Some(ReturnedAttempt {
        reference: record.reference.clone(),
        gateway_order_id: record.gateway_order_id.clone(),
        ready: record.attempt.status == AttemptStatus::Ready,
        by_call: record.window.is_some(),
    })
}

fn order_page(
    app: &App,
    order: &OrderRecord,
    (lines, refunds): (Vec<LineRow>, &[RefundRow]),
    evidence: &[EvidenceRow],
    lang: Lang,
    (returned, gateway_truth): (Option<ReturnedAttempt>, Option<Vec<String>>),
) -> OrderPage {
    let open = order
        .attempts
        .iter()
        .rev()
        .find(|record| record.attempt.status.is_open());
    let now = app.clock.epoch();
    OrderPage {
        order_id: order.id.clone(),
        lines: lines
            .into_iter()
            .map(|line| Line {
                sku: line.sku,
                name: Data::pick(lang, line.name),
                quantity: line.quantity,
                price: line.price,
            })
            .collect(),
        amount: order.amount,
        created: korean_time(order.created_at, lang),
        state: app.order_state(order),
        confirming_for: open.map(|record| now.since(record.claimed_at.unwrap_or(now))),
        times: page_times(app, order, returned.as_ref()),
        methods: app
            .lines
            .iter()
            .map(|line| line.gateway.name().clone())
            .collect(),
        timeline: timeline::of(order.created_at, evidence, lang),
        paid: paid_facts(order, evidence, lang),
        returned,
        gateway_truth,
        refunds: refunds
            .iter()
            .map(|row| RefundLine {
                amount: row.refund.amount,
                status: row.refund.status,
                asked: korean_time(row.created_at, lang),
            })
            .collect(),
        cancel: refund::offered(app, order, refunds).map(|amount| CancelOffer {
            amount,
            key: random::idempotency_key("page").to_string(),
        }),
        seller: None,
    }
}

/// The times of a page: one that is about to confirm takes those of the gateway of what it confirms.
fn page_times(app: &App, order: &OrderRecord, returned: Option<&ReturnedAttempt>) -> PageTimes {
    let named = returned.filter(|named| named.ready).and_then(|named| {
        let mut attempts = order.attempts.iter();
        attempts.find(|record| record.reference == named.reference)
    });
    let open = order
        .attempts
        .iter()
        .any(|record| record.attempt.status.is_open());
    named
        .filter(|_| !open)
        .and_then(|record| app.line(&record.gateway))
        .map_or_else(|| app.page_times(order), |line| line.times.page)
}

fn summary(lines: &[LineRow], lang: Lang) -> String {
    let Some(first) = lines.first() else {
        return String::new();
    };
    let name = Data::pick(lang, first.name.clone());
    lang.and_more(name, lines.len() - 1)
}

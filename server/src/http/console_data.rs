//! What the console's pages show.

use app::data::console::{
    AttemptRow, ConsoleData, Deed, Gauge, Learned, OpenPayment, OrderDesk, Overview, RefundRow,
    Seen, ShopFacts, ShopWebhook,
};
use app::data::{Answer, Unavailable};
use app::text::Lang;
use axum::http::HeaderMap;
use payment::attempt::AttemptStatus;
use payment::id::OrderId;
use payment::reach::Reason;

use super::Web;
use super::console::signed_in;
use super::pages::unavailable;
use super::timeline::korean_time;
use crate::app::Line;
use crate::clock::EpochMs;
use crate::console::Console;
use crate::operate::output::{masked, plain};
use crate::operate::resolve::is_over;
use crate::random;
use crate::refund;
use crate::store::console::ActionRow;
use crate::store::desk::{Unresolved, WebhookFilter, WebhookState};
use crate::store::merchant::{DeliveryFilter, DeliveryRow, DeliveryState};
use crate::store::{AttemptRecord, StoreError};

/// Payments on the first page.
const MOST: u32 = 100;
/// What operators did, on one page.
const DEEDS: u32 = 200;
/// Webhooks to shops on one page.
const WEBHOOKS: u32 = 50;
/// Of what a gateway literally said so many characters are shown.
const TOLD: usize = 300;

/// The data of one operator's request.
pub(super) struct Data {
    pub(super) web: Web,
    pub(super) headers: HeaderMap,
    pub(super) lang: Lang,
}

impl Data {
    /// Lets an operator see what `show` reads, and nobody else.
    fn inside<T, F, S>(&self, show: F) -> Answer<Seen<T>>
    where
        T: Send + 'static,
        F: FnOnce(Web, Lang) -> S + Send + 'static,
        S: Future<Output = Result<T, StoreError>> + Send,
    {
        let (web, headers, lang) = (self.web.clone(), self.headers.clone(), self.lang);
        Box::pin(async move {
            if web.app.console.is_none() {
                return Ok(Seen::Absent);
            }
            let who = signed_in(&web, &headers).await.map_err(unavailable)?;
            let Some(operator) = who.map(|who| who.operator) else {
                return Ok(Seen::Outside);
            };
            let data = show(web, lang).await.map_err(unavailable)?;
            Ok::<_, Unavailable>(Seen::Inside { operator, data })
        })
    }
}

impl ConsoleData for Data {
    fn overview(&self) -> Answer<Seen<Overview>> {
        self.inside(|web, lang| async move {
            match &web.app.console {
                Some(console) => overview(&web, console, lang).await,
                None => Ok(Overview::empty()),
            }
        })
    }

    fn order(&self, order: Option<OrderId>) -> Answer<Seen<Option<OrderDesk>>> {
        self.inside(|web, lang| async move {
            match (&web.app.console, order) {
                (Some(console), Some(order)) => order_desk(console, &order, lang).await,
                (None, _) | (_, None) => Ok(None),
            }
        })
    }

    fn deeds(&self) -> Answer<Seen<Vec<Deed>>> {
        self.inside(|web, lang| async move {
            let Some(console) = &web.app.console else {
                return Ok(Vec::new());
            };
            let rows = console.desk.store.actions(None, DEEDS).await?;
            Ok(rows.into_iter().map(|row| deed(row, lang)).collect())
        })
    }
}

async fn overview(web: &Web, console: &Console, lang: Lang) -> Result<Overview, StoreError> {
    let store = &console.desk.store;
    let mut open = store.unresolved(EpochMs(i64::MAX), MOST + 1).await?;
    let more = open.len() > MOST as usize;
    open.truncate(MOST as usize);
    let now = console.desk.clock.epoch();
    let census = store.census().await?;
    let count = async |state| {
        let which = WebhookFilter {
            state: Some(state),
            ..WebhookFilter::default()
        };
        store.count_webhooks(which).await
    };
    let monotonic = web.app.clock.now();
    Ok(Overview {
        gauges: web
            .app
            .lines
            .iter()
            .map(|line| gauge(line, monotonic))
            .collect(),
        unknown: census.unknown,
        webhooks_new: count(WebhookState::New).await?,
        webhooks_parked: count(WebhookState::Parked).await?,
        refunds_open: census.refunds_open,
        shop_webhooks: store.deliveries_waiting().await?.count,
        late: late(console, lang).await?,
        open: open
            .iter()
            .map(|one| open_payment(one, now, lang))
            .collect(),
        more,
    })
}

/// What endpoints did not take when they were told, the newest first. What nobody tried yet is not late.
async fn late(console: &Console, lang: Lang) -> Result<Vec<ShopWebhook>, StoreError> {
    let waiting = DeliveryFilter {
        state: Some(DeliveryState::Waiting),
        tried: true,
        ..DeliveryFilter::default()
    };
    let rows = console.desk.store.deliveries(waiting, WEBHOOKS).await?;
    Ok(rows
        .into_iter()
        .map(|row| shop_webhook(row, lang))
        .collect())
}

fn shop_webhook(row: DeliveryRow, lang: Lang) -> ShopWebhook {
    ShopWebhook {
        id: row.seq,
        shop: row.shop,
        order_id: row.order_id.to_string(),
        event: row.kind,
        status: row.state.as_str(),
        tries: row.tries,
        told: plain(&row.told, TOLD),
        at: korean_time(row.created_at, lang),
    }
}

/// The other shop that an order comes from, and what that is told of it.
async fn shop_facts(
    console: &Console,
    id: &OrderId,
    lang: Lang,
) -> Result<Option<ShopFacts>, StoreError> {
    let store = &console.desk.store;
    let Some(known) = store.shop_order(id).await? else {
        return Ok(None);
    };
    let of_order = DeliveryFilter {
        order: Some(id.clone()),
        ..DeliveryFilter::default()
    };
    let rows = store.deliveries(of_order, WEBHOOKS).await?;
    Ok(Some(ShopFacts {
        title: known.title,
        reference: known.reference,
        webhooks: rows
            .into_iter()
            .map(|row| shop_webhook(row, lang))
            .collect(),
    }))
}

fn gauge(line: &Line, now: payment::time::Millis) -> Gauge {
    let lent = line.slots.is_lent_at(now);
    Gauge {
        gateway: line.gateway.name().to_string(),
        in_flight: line.slots.in_flight(),
        limit: line
            .slots
            .cap()
            .map(|_| if lent { line.slots.limit() } else { 0 }),
        circuit: line.breaker.state_name(),
        silent: line.is_silent(),
    }
}

fn open_payment(one: &Unresolved, now: EpochMs, lang: Lang) -> OpenPayment {
    let record = &one.attempt;
    let last = one.last.as_ref().map_or_else(String::new, |last| {
        plain(
            &format!("{} · {} {}", last.source, last.event, last.told),
            TOLD,
        )
    });
    OpenPayment {
        attempt: record.id.0,
        order_id: record.order_id.to_string(),
        gateway: record.gateway.to_string(),
        status: record.attempt.status.as_str(),
        amount: record.attempt.expected.amount,
        since: korean_time(one.since, lang),
        age: now.since(one.since).get() / 1_000,
        asks: record.asks,
        last,
    }
}

async fn order_desk(
    console: &Console,
    id: &OrderId,
    lang: Lang,
) -> Result<Option<OrderDesk>, StoreError> {
    let store = &console.desk.store;
    let Some(order) = store.order(id).await? else {
        return Ok(None);
    };
    let evidence = store.evidence(id).await?;
    let refunds = store.refunds_of(id).await?;
    let deeds = store.actions(Some(id), DEEDS).await?;
    let shop = shop_facts(console, id, lang).await?;
    let learned = evidence.into_iter().map(|row| Learned {
        at: with_seconds(row.at),
        source: row.source,
        event: row.event,
        status: row.status,
        told: plain(&row.told, TOLD),
    });
    let attempts = order.attempts.iter();
    Ok(Some(OrderDesk {
        status: order.status().as_str(),
        amount: order.amount,
        created: korean_time(order.created_at, lang),
        attempts: attempts
            .map(|record| attempt_row(console, record))
            .collect(),
        shop,
        evidence: learned.collect(),
        refundable: refund::left(&order, &refunds).map(|(left, _)| left),
        refunds: refunds
            .into_iter()
            .map(|row| RefundRow {
                amount: row.refund.amount,
                status: row.refund.status.as_str(),
                reason: row.reason,
                asked: korean_time(row.created_at, lang),
            })
            .collect(),
        key: random::idempotency_key("console").to_string(),
        deeds: deeds.into_iter().map(|row| deed(row, lang)).collect(),
        order_id: order.id,
    }))
}

fn attempt_row(console: &Console, record: &AttemptRecord) -> AttemptRow {
    let attempt = &record.attempt;
    let over = is_over(&console.desk, record, console.desk.clock.epoch());
    AttemptRow {
        attempt: record.id.0,
        number: record.number,
        gateway: record.gateway.to_string(),
        gateway_order_id: record.gateway_order_id.to_string(),
        payment_key: masked(record.payment_key.as_ref()),
        status: attempt.status.as_str(),
        reason: attempt.reason.map_or("", Reason::as_str),
        charged: attempt.charged.map(|money| money.amount),
        given_back: attempt.canceled,
        next_look: record.ask_at.map(with_seconds),
        can_ask: record.payment_key.is_some(),
        can_resolve: attempt.status == AttemptStatus::Unknown,
        is_over: over,
    }
}

fn deed(row: ActionRow, lang: Lang) -> Deed {
    Deed {
        at: korean_time(row.at, lang),
        operator: row.operator,
        action: row.action,
        order_id: row.order_id,
        detail: row.detail,
        result: row.result.unwrap_or_default(),
    }
}

/// A moment to the second, in Korea.
fn with_seconds(at: EpochMs) -> String {
    let text = at.in_korea().unwrap_or_default();
    text.trim_end_matches("+09:00").replace('T', " ")
}

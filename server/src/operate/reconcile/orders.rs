//! Asking the gateways about every payment of the orders in question, at a pace of its own.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use payment::attempt::{Attempt, AttemptStatus, Finding};
use payment::id::{GatewayName, OrderId};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Interval, MissedTickBehavior};

use super::judge::{Break, Kind, charge_of, difference};
use super::{Args, Outcome};
use crate::clock::EpochMs;
use crate::gateway::{Gateway, InquiryOutcome, PaymentNames};
use crate::operate::Desk;
use crate::serve;
use crate::store::{AttemptId, AttemptRecord, OrderRecord};

/// Rows read at once.
const PAGE: u32 = 500;
/// After so many questions in a row without a word nobody is asked any more: the rest could not be asked either.
const SILENT: u32 = 20;
/// How often what differs, or could not be asked, is looked at again, and after how long: a payment on its way, or an
/// outcome that is being recorded, is no break.
const AGAIN: u32 = 3;
const PAUSE: Duration = Duration::from_secs(2);

/// How much was compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// Orders.
    pub(super) orders: u64,
    /// Payments compared.
    pub(super) payments: u64,
    /// Payments whose confirm is being sent.
    pub(super) in_flight: u64,
    /// Orders that the gateway gave no word about, or not about all of their payments.
    pub(super) unasked: u64,
}

/// One order, compared.
#[derive(Debug, Default)]
struct Compared {
    asked: Asked,
    breaks: Vec<Break>,
}

/// The gateways, and how fast they may be asked.
struct Line {
    gateways: Vec<Arc<dyn Gateway>>,
    pace: Mutex<Interval>,
    silent: AtomicU32,
}

impl Line {
    fn new(desk: &Desk, per_second: u32) -> anyhow::Result<Self> {
        let settings = desk.config.gateways.iter();
        let gateways = settings.map(serve::gateway);
        let mut pace = tokio::time::interval(Duration::from_secs(1) / per_second.max(1));
        pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self {
            gateways: gateways.collect::<anyhow::Result<_>>()?,
            pace: Mutex::new(pace),
            silent: AtomicU32::new(0),
        })
    }

    /// Whether a gateway knows a payment by any of these names: one that looks up by its own handle only knows nothing of
    /// an attempt that it never opened.
    fn can_ask(&self, gateway: &GatewayName, payment: &PaymentNames) -> bool {
        let known = self.gateways.iter().find(|known| known.name() == gateway);
        let by_order = known.is_none_or(|known| known.capabilities().inquiry_by_order);
        by_order || payment.handle.is_some() || payment.payment_key.is_some()
    }

    /// The gateway's word; `None` when it gave none.
    async fn ask(&self, gateway: &GatewayName, payment: &PaymentNames) -> Option<Finding> {
        let gateway = self.gateways.iter().find(|known| known.name() == gateway)?;
        if self.silent.load(Ordering::Relaxed) >= SILENT {
            return None;
        }
        self.pace.lock().await.tick().await;
        match gateway.inquire(payment).await {
            InquiryOutcome::Found(finding, _) => {
                self.silent.store(0, Ordering::Relaxed);
                Some(finding)
            }
            InquiryOutcome::NoWord(told) | InquiryOutcome::NoAnswer(told) => {
                self.silent.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(order = %payment.gateway_order_id, status = told.status, code = told.code, "the gateway gave no word");
                None
            }
        }
    }
}

/// Compares the orders that have a payment in the span.
///
/// # Errors
/// When the database cannot be read or a gateway's settings cannot be used.
pub(super) async fn compare(
    desk: &Desk,
    args: &Args,
    span: (EpochMs, EpochMs),
) -> anyhow::Result<Outcome> {
    let line = Arc::new(Line::new(desk, args.per_second)?);
    let mut outcome = Outcome::default();
    let mut seen = BTreeSet::new();
    let mut after = AttemptId(i64::MIN);
    loop {
        let page = desk
            .store
            .attempts_between(span.0, span.1, after, PAGE)
            .await?;
        let Some(last) = page.last() else { break };
        after = last.id;
        let orders = page.into_iter().map(|record| record.order_id);
        let orders: Vec<OrderId> = orders.filter(|id| seen.insert(id.clone())).collect();
        of_page(desk, &line, args.concurrency, orders, &mut outcome).await?;
    }
    Ok(outcome)
}

async fn of_page(
    desk: &Desk,
    line: &Arc<Line>,
    concurrency: u32,
    mut orders: Vec<OrderId>,
    outcome: &mut Outcome,
) -> anyhow::Result<()> {
    for round in 0..=AGAIN {
        let mut again = Vec::new();
        let compared = of_orders(desk, line, concurrency, orders).await?;
        let hopeless = line.silent.load(Ordering::Relaxed) >= SILENT;
        for (id, compared) in compared {
            let doubtful = compared.asked.unasked > 0 || !compared.breaks.is_empty();
            if doubtful && round < AGAIN && !hopeless {
                again.push(id);
                continue;
            }
            outcome.asked.orders += 1;
            outcome.asked.payments += compared.asked.payments;
            outcome.asked.in_flight += compared.asked.in_flight;
            outcome.asked.unasked += compared.asked.unasked;
            outcome.breaks.extend(compared.breaks);
        }
        if again.is_empty() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        orders = again;
    }
    Ok(())
}

/// Compares orders, so many at once.
async fn of_orders(
    desk: &Desk,
    line: &Arc<Line>,
    concurrency: u32,
    orders: Vec<OrderId>,
) -> anyhow::Result<Vec<(OrderId, Compared)>> {
    let most = usize::try_from(concurrency).unwrap_or(1);
    let in_flight_for = desk.config.longest_timeout().times(2);
    let mut done = Vec::with_capacity(orders.len());
    let mut running = JoinSet::new();
    for id in orders {
        while running.len() >= most {
            if let Some(compared) = running.join_next().await {
                done.push(compared??);
            }
        }
        let (store, line) = (Arc::clone(&desk.store), Arc::clone(line));
        let clock = desk.clock;
        running.spawn(async move {
            let compared = match store.order(&id).await? {
                Some(order) => {
                    let young = clock.epoch().minus(in_flight_for);
                    of_order(&line, &order, young).await
                }
                None => Compared::default(),
            };
            Ok::<_, crate::store::StoreError>((id, compared))
        });
    }
    while let Some(compared) = running.join_next().await {
        done.push(compared??);
    }
    Ok(done)
}

/// Compares one order: each payment key that was sent, then each order id that the gateway knows. What was claimed after
/// `young` may be on its way.
async fn of_order(line: &Line, order: &OrderRecord, young: EpochMs) -> Compared {
    let mut compared = Compared::default();
    let on_its_way = |record: &AttemptRecord| {
        record.attempt.status == AttemptStatus::Approving
            && record.claimed_at.is_some_and(|at| at > young)
    };
    if order.attempts.iter().any(on_its_way) {
        compared.asked.in_flight += 1;
        return compared;
    }
    let mut standing = Vec::new();
    let mut charged_ids = BTreeSet::new();
    for record in owners(order) {
        let id = &record.gateway_order_id;
        let Some(finding) = line.ask(&record.gateway, &record.names()).await else {
            compared.asked.unasked = 1;
            continue;
        };
        compared.asked.payments += 1;
        if let Some((kind, detail)) = difference(&record.attempt, finding) {
            compared.breaks.push(Break::of(kind, record, detail));
        }
        if let Some((charged, canceled)) = charge_of(finding) {
            charged_ids.insert((record.gateway.as_str(), id.as_str()));
            if canceled < charged.amount {
                standing.push(record);
            }
        }
    }
    let more = by_order_id(line, order, &charged_ids, &mut compared).await;
    standing.extend(more);
    if let [_, second, ..] = standing[..] {
        let detail = format!("{} charges of the order stand", standing.len());
        compared
            .breaks
            .push(Break::of(Kind::ChargedTwice, second, detail));
    }
    compared
}

/// Asks about each order id that the gateway may know: there may be a charge of a payment that we never sent. The attempts
/// under whose order id such a charge stands.
async fn by_order_id<'a>(
    line: &Line,
    order: &'a OrderRecord,
    charged: &BTreeSet<(&str, &str)>,
    compared: &mut Compared,
) -> Vec<&'a AttemptRecord> {
    let mut standing = Vec::new();
    let mut asked = BTreeSet::new();
    for record in &order.attempts {
        let id = (record.gateway.as_str(), record.gateway_order_id.as_str());
        if charged.contains(&id) || !asked.insert(id) {
            continue;
        }
        let names = PaymentNames {
            payment_key: None,
            ..record.names()
        };
        if !line.can_ask(&record.gateway, &names) {
            continue;
        }
        let Some(finding) = line.ask(&record.gateway, &names).await else {
            compared.asked.unasked = 1;
            continue;
        };
        if let Some((charged, canceled)) = charge_of(finding) {
            if canceled < charged.amount {
                standing.push(record);
            }
            let detail = format!(
                "the gateway charged {} under this order id and gave {canceled} back, the books have no charge of it",
                charged.amount
            );
            let kind = if record.payment_key.is_some() {
                Kind::ChargeUnderAnotherKey
            } else {
                Kind::ChargeNotInBooks
            };
            compared.breaks.push(Break::of(kind, record, detail));
        }
    }
    standing
}

/// The attempts whose payment key is their own: the gateway's word about a key belongs to one of those that share it.
fn owners(order: &OrderRecord) -> Vec<&AttemptRecord> {
    let mut seen = BTreeSet::new();
    let mut owners = Vec::new();
    for record in &order.attempts {
        let Some(key) = &record.payment_key else {
            continue;
        };
        if !seen.insert((record.gateway.as_str(), key.as_str())) {
            continue;
        }
        let same_key: Vec<&AttemptRecord> = order
            .attempts
            .iter()
            .filter(|other| {
                other.gateway == record.gateway && other.payment_key.as_ref() == Some(key)
            })
            .collect();
        let attempts: Vec<Attempt> = same_key.iter().map(|other| other.attempt).collect();
        owners.extend(payment::order::owner_of_key(&attempts).map(|index| same_key[index]));
    }
    owners
}

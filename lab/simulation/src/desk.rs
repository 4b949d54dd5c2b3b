//! People at desks: the gateway's own gives money back without asking the shop, and the shop's operator ends doubts and has
//! webhooks looked at again.

use std::sync::Arc;
use std::time::Duration;

use payment::attempt::{AttemptStatus, Event, OperatorWord};
use server::store::{AttemptRecord, Evidence};

use crate::fault::Fault;
use crate::gateway::plain;
use crate::hooks;
use crate::ledger::DESK;
use crate::world::{World, lock};

/// Works while faults strike.
pub(crate) async fn work(world: Arc<World>) {
    while !world.is_calm() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        give_back(&world);
        end_a_doubt(&world).await;
        replay(&world);
    }
}

/// The gateway's desk gives a part or all of some charge back. Its webhook always comes: nothing else would make it known.
fn give_back(world: &Arc<World>) {
    let charged: Vec<(String, String)> = {
        let ledger = lock(&world.ledger);
        let stands = ledger.payments.iter().filter(|(_, payment)| {
            let first = payment.charges.first();
            first.is_some_and(|charge| charge.stands() && charge.amount == payment.amount)
        });
        stands
            .map(|(key, payment)| (key.clone(), payment.order_id.clone()))
            .collect()
    };
    let Some((key, order_id)) = pick(world, Fault::DeskRefunds, charged) else {
        return;
    };
    let all = world.perhaps(0.3);
    let part = 100 * world.draw(1, 60);
    let gave = {
        let mut ledger = lock(&world.ledger);
        let Some(payment) = ledger.payments.get_mut(&key) else {
            return;
        };
        let order = payment.order.clone();
        let Some(charge) = payment.charges.first_mut() else {
            return;
        };
        let left = charge.amount - charge.canceled;
        let gave = if all { left } else { part.min(left) };
        charge.canceled += gave;
        charge.gave.push(DESK.to_owned());
        ledger.given_at_desk.insert(order.clone());
        ledger.follow(&order, world.now().get());
        gave
    };
    world.note("desk", format_args!("gave {gave} of {key} back"));
    hooks::tell(world, &key, &order_id, true);
}

/// The operator looks at the gateway's own books, and says what they show: a charge of the order's amount that stands, or
/// that none can come any more.
async fn end_a_doubt(world: &Arc<World>) {
    let node = world.any_node();
    let Some((app, over)) = lock(&world.nodes).serving(node) else {
        return;
    };
    let doubts: Vec<AttemptRecord> = {
        let tables = lock(&world.tables);
        let unknown = tables.attempts.iter();
        unknown
            .filter(|record| record.attempt.status == AttemptStatus::Unknown)
            .cloned()
            .collect()
    };
    let said = |doubt: AttemptRecord| word_of(world, &doubt).map(|word| (doubt, word));
    let doubts = doubts.into_iter().filter_map(said).collect();
    let Some((doubt, word)) = pick(world, Fault::OperatorEnds, doubts) else {
        return;
    };
    world.note(
        "operator",
        format_args!("says of attempt {} {word:?}", doubt.id.0),
    );
    let evidence = Evidence::plain("operator", app.clock.epoch());
    let said = app.store.record(
        doubt.id,
        Event::OperatorSaid(word),
        evidence,
        app.config.late_success,
    );
    tokio::select! {
        biased;
        () = over.cancelled() => {}
        _ = tokio::time::timeout(Duration::from_secs(20), said) => {}
    }
}

fn word_of(world: &World, doubt: &AttemptRecord) -> Option<OperatorWord> {
    let key = doubt.payment_key.as_ref()?.as_str().to_owned();
    let idem = doubt.idempotency_key.as_ref()?.as_str().to_owned();
    let now = world.now().get();
    let ledger = lock(&world.ledger);
    let payment = ledger.payments.get(&key)?;
    if let Some(charge) = payment.charges.first() {
        let good = charge.amount == plain(doubt.attempt.expected.amount) && charge.canceled == 0;
        return (good && charge.idem == idem).then_some(OperatorWord::Charged);
    }
    // As the command demands: the gateway accepts no confirm of it any more, and a send would have ended.
    let times = &world.plan.times;
    let span = times.settling_time().plus(times.total_wait());
    let over = now >= payment.window_until.saturating_add(span.get());
    let nothing = !ledger.may_be_charged(&idem, now);
    (over && nothing).then_some(OperatorWord::NotCharged)
}

/// The operator has a webhook that is done with looked at again.
fn replay(world: &World) {
    let done: Vec<i64> = {
        let tables = lock(&world.tables);
        let rows = tables.webhooks.iter();
        rows.filter(|(_, row)| row.next_at.is_none())
            .map(|(id, _)| *id)
            .collect()
    };
    let Some(id) = pick(world, Fault::WebhooksReplayed, done) else {
        return;
    };
    let mut tables = lock(&world.tables);
    let now = tables.now;
    if let Some(row) = tables.webhooks.get_mut(&id) {
        row.next_at = Some(now);
        row.ended = 0;
    }
    drop(tables);
    world.note("operator", format_args!("has webhook {id} looked at again"));
}

/// One of them, where there is one and the fault strikes.
fn pick<T>(world: &World, fault: Fault, mut list: Vec<T>) -> Option<T> {
    if list.is_empty() || !world.strikes(fault) {
        return None;
    }
    let last = u64::try_from(list.len() - 1).unwrap_or(0);
    let index = usize::try_from(world.draw(0, last)).unwrap_or(0);
    Some(list.swap_remove(index))
}

//! One run: a storm of faults, then calm weather until everything is known, then the books are compared.

use std::cell::RefCell;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Once};
use std::time::Duration;

use payment::attempt::AttemptStatus;
use payment::order::OrderStatus;
use payment::refund::RefundStatus;
use payment::time::Millis;
use tokio::task::JoinHandle;

use crate::bug::Bug;
use crate::fault::{Counts, Fault};
use crate::ledger::{Ledger, Way};
use crate::tables::Tables;
use crate::world::{World, lock};
use crate::{bank, desk, gateway, hooks, nodes, shopper};

/// What one seed came to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What did not hold; empty is good.
    pub wrong: Vec<String>,
    /// Of everything that happened, in order.
    pub hash: u64,
    /// What happened, where it was asked for.
    pub lines: Vec<String>,
    /// How often each fault struck.
    pub counts: Counts,
    /// What was reached.
    pub figures: Figures,
}

/// How much a run did.
#[derive(Debug, Clone, Copy, Default)]
pub struct Figures {
    /// Confirms sent to the gateway.
    pub confirms: u64,
    /// Orders that were paid.
    pub paid: u64,
    /// Attempts that became unknown.
    pub unknown: u64,
    /// Virtual time in all.
    pub lasted: Millis,
    /// Virtual time from the end of the faults until everything was known.
    pub drained: Millis,
}

thread_local! {
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
    static WATCHED: RefCell<bool> = const { RefCell::new(false) };
}
static HOOK: Once = Once::new();

/// A panic anywhere in a run is a failure of it, also where the runtime would swallow it.
fn watch_panics() {
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if WATCHED.with_borrow(|watched| *watched) {
                PANIC.with_borrow_mut(|panic| {
                    panic.get_or_insert_with(|| info.to_string());
                });
            } else {
                before(info);
            }
        }));
    });
}

/// Runs one seed.
///
/// # Panics
/// When no runtime can be made.
#[must_use]
pub fn run(seed: u64, bug: Option<Bug>, trace: bool, without: &[Fault]) -> Outcome {
    watch_panics();
    WATCHED.set(true);
    PANIC.set(None);
    server::random::seed_thread(seed);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without sockets needs nothing that could fail");
    let world = {
        let _inside = runtime.enter();
        World::new(seed, bug, trace, without)
    };
    let live = AssertUnwindSafe(|| runtime.block_on(live(&world)));
    let figures = std::panic::catch_unwind(live).unwrap_or_default();
    drop(runtime);
    // A process holds its store, the store the world, and the world its processes: the circle would never be freed.
    nodes::forget(&world);
    WATCHED.set(false);
    if let Some(panic) = PANIC.take() {
        world.wrong_outside(&panic);
    }
    let (wrong, hash, lines, counts) = world.result();
    Outcome {
        seed,
        wrong,
        hash,
        lines,
        counts,
        figures,
    }
}

async fn live(world: &Arc<World>) -> Figures {
    world.note("world", format_args!("{:?}", world.plan));
    for node in 0..world.plan.nodes {
        // Not awaited: one that dies on the way never comes to the end of this.
        let world = Arc::clone(world);
        tokio::spawn(async move { nodes::start(&world, node).await });
    }
    tokio::spawn(bank::weather(Arc::clone(world)));
    tokio::spawn(hooks::forge(Arc::clone(world)));
    tokio::spawn(desk::work(Arc::clone(world)));
    let shoppers: Vec<_> = (0..world.plan.shoppers)
        .map(|number| tokio::spawn(shopper::shop(Arc::clone(world), number)))
        .collect();
    let mut left = world.plan.storm.get() / 1_000 + 1;
    while left > 0 && !world.went_wrong() {
        tokio::time::sleep(Duration::from_secs(1)).await;
        left -= 1;
    }
    world.heal();
    nodes::set_clocks(world);
    let healed = world.now();
    drain(world, &shoppers, healed).await;
    if !world.went_wrong() {
        compare_books(world);
    }
    let watch = lock(&world.watch);
    let paid = lock(&world.tables)
        .orders
        .values()
        .filter(|order| order.status == OrderStatus::Paid)
        .count();
    Figures {
        confirms: watch.confirms,
        paid: paid as u64,
        unknown: watch.became_unknown,
        lasted: world.now(),
        drained: world.now().less(healed),
    }
}

/// Waits until nothing is open any more. Not getting there is a failure.
async fn drain(world: &World, shoppers: &[JoinHandle<()>], healed: Millis) {
    let longest = nodes::longest_drain(world).times(2);
    loop {
        if world.went_wrong() {
            return;
        }
        let Some(open) = still_open(world, shoppers) else {
            return;
        };
        if world.now().less(healed) > longest {
            world.wrong(format_args!("not drained after {longest}: {open}"));
            return;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

/// What is not at its end yet.
fn still_open(world: &World, shoppers: &[JoinHandle<()>]) -> Option<String> {
    let on_the_way = lock(&world.nodes).hooks_on_the_way;
    if on_the_way > 0 {
        return Some(format!("{on_the_way} webhooks are on their way"));
    }
    if lock(&world.ledger)
        .sends
        .iter()
        .any(|send| send.way != Way::Over)
    {
        return Some("the gateway works on a confirm".to_owned());
    }
    let tables = lock(&world.tables);
    let open = tables.attempts.iter().find(|record| {
        let attempt = &record.attempt;
        attempt.status.is_open() || (attempt.void && attempt.holds_money())
    });
    if let Some(open) = open {
        let status = open.attempt.status.as_str();
        return Some(format!("attempt {} is {status}", open.id.0));
    }
    if let Some(open) = tables.open_refunds().next() {
        return Some(format!("refund {} is {:?}", open.id.0, open.refund));
    }
    if let Some(waits) = tables.outbox.iter().find(|row| !row.done) {
        return Some(format!("{} is not done", waits.key));
    }
    if tables
        .webhooks
        .values()
        .any(|webhook| webhook.ended == 0 && webhook.tries == 0)
    {
        return Some("a webhook was not looked at".to_owned());
    }
    let looked = tables.attempts.iter().any(|record| record.ask_at.is_some());
    drop(tables);
    if looked {
        return Some("an attempt is to be asked about".to_owned());
    }
    for node in 0..world.plan.nodes {
        let Some((app, _)) = lock(&world.nodes).serving(node) else {
            return Some(format!("node {node} is down"));
        };
        let taken = app
            .lines
            .iter()
            .map(|line| line.slots.in_flight())
            .sum::<u32>();
        if taken > 0 {
            return Some(format!("node {node} holds {taken} slots"));
        }
    }
    let shopping = shoppers
        .iter()
        .filter(|shopper| !shopper.is_finished())
        .count();
    (shopping > 0).then(|| format!("{shopping} shoppers are not done"))
}

/// The shop's books against the gateway's, order by order, and what a shopper who comes now is shown.
fn compare_books(world: &World) {
    let tables = lock(&world.tables);
    let mut ledger = lock(&world.ledger);
    for (id, order) in &tables.orders {
        let standing = ledger.standing(id.as_str());
        let amount = gateway::plain(order.amount);
        let right = standing.len() == 1 && standing[0].amount == amount;
        let paid = matches!(
            order.status,
            OrderStatus::Paid | OrderStatus::PartiallyCanceled
        );
        if standing.len() > 1 || paid != right || (!paid && !standing.is_empty()) {
            world.wrong(format_args!(
                "{id} is {:?}, the gateway holds {standing:?}",
                order.status
            ));
        }
        let queued = |attempt: &usize| {
            let key = format!("order_paid:{}", tables.attempts[*attempt].id.0);
            tables.outbox.iter().any(|row| row.key == key)
        };
        let told = order
            .attempts
            .iter()
            .filter(|attempt| queued(attempt))
            .count();
        if paid && told != 1 {
            world.wrong(format_args!("{id} is paid, and that was told {told} times"));
        }
        if let Some(record) = tables.order(id) {
            let state = server::app::order_state(&record, 2_000);
            let charged = ledger
                .charged_since(id.as_str(), world.now().get())
                .is_some();
            if state.payable && charged {
                world.wrong(format_args!("{id} is payable in the end, and charged"));
            }
        }
    }
    compare_refunds(world, &tables, &ledger);
    for record in &tables.attempts {
        let idem = record
            .idempotency_key
            .as_ref()
            .map_or("-", |key| key.as_str());
        let not_sent = record.attempt.status == AttemptStatus::Failed
            && record.attempt.reach == payment::reach::Reach::NotSent;
        if not_sent && ledger.was_sent(idem) {
            world.wrong(format_args!("{idem} is not_sent, but the gateway has it"));
        }
        let charge = record.payment_key.as_ref().and_then(|key| {
            let payment = ledger.payments.get(key.as_str())?;
            payment.charges.iter().find(|charge| charge.idem == idem)
        });
        let known = gateway::plain(record.attempt.canceled);
        if let Some(charge) = charge.filter(|charge| charge.canceled != known) {
            world.wrong(format_args!(
                "of {idem} {known} is known as given back, at the gateway it is {}",
                charge.canceled
            ));
        }
    }
    let mut stored = std::collections::BTreeSet::new();
    for webhook in tables.webhooks.values() {
        if webhook.transmission.is_some() && !stored.insert(&webhook.transmission) {
            world.wrong(format_args!("{:?} is stored twice", webhook.transmission));
        }
    }
}

/// A refund is done exactly when the gateway carried it out, and each side effect is ended once.
fn compare_refunds(world: &World, tables: &Tables, ledger: &Ledger) {
    for refund in &tables.refunds {
        let row = &refund.row;
        let key = tables
            .attempt(row.attempt)
            .and_then(|record| record.payment_key.clone());
        let payment = key.and_then(|key| ledger.payments.get(key.as_str()).cloned());
        let reason = row.gateway_reason();
        let gave = payment.is_some_and(|payment| {
            let mut charges = payment.charges.iter();
            charges.any(|charge| charge.gave.contains(&reason))
        });
        if gave != (row.refund.status == RefundStatus::Done) {
            world.wrong(format_args!(
                "refund {} is {:?}, carried out at the gateway: {gave}",
                row.id.0, row.refund
            ));
        }
    }
    for row in &tables.outbox {
        if row.ended != 1 || !tables.is_notified(&row.key) {
            world.wrong(format_args!("{} was ended {} times", row.key, row.ended));
        }
    }
}

//! What a scene came to, read from the tables, the gateway's books and what was recorded.

use std::collections::BTreeMap;

use payment::attempt::AttemptStatus;
use payment::id::OrderId;
use payment::reach::{Reach, Reason};
use payment::time::Millis;

use super::bank::Bank;
use super::ran::{Ends, Ran, Regret};
use crate::tables::Tables;
use crate::world::{World, lock};

/// Fills in everything that is known only at the end. `zero` is the world's time at the first arrival.
pub(super) fn finish(world: &World, bank: &Bank, zero: Millis, ran: &mut Ran) {
    ran.books = bank.books();
    let charges = bank.charges();
    let tables = lock(&world.tables);
    for (number, seen) in ran.seen.iter_mut().enumerate() {
        let order = OrderId::parse(&format!("ord_{number}")).expect("a plain id");
        let Some(record) = tables.order(&order) else {
            continue;
        };
        for attempt in &record.attempts {
            let (stand, ever) = charges
                .get(attempt.gateway_order_id.as_str())
                .copied()
                .unwrap_or_default();
            // Attempts that share a gateway order id share its charges.
            let first = record
                .attempts
                .iter()
                .find(|other| other.gateway_order_id == attempt.gateway_order_id);
            if first.is_some_and(|first| first.id == attempt.id) {
                seen.charged += stand;
                seen.charged_ever += ever;
            }
        }
    }
    ran.ends = ends(&tables);
    drop(tables);
    let Some(stage) = &world.stage else { return };
    let mut since = BTreeMap::new();
    let mut unknown = 0_i64;
    for passage in lock(&stage.passages).iter() {
        let at = passage.at.less(zero);
        if passage.after == AttemptStatus::Unknown {
            ran.ever_unknown += 1;
            since.insert(passage.attempt, at);
            unknown += 1;
            ran.unknown.push((at, unknown));
        } else if passage.before == AttemptStatus::Unknown {
            let began = since.get(&passage.attempt).copied().unwrap_or(at);
            ran.time_to_known.push(at.less(began));
            unknown -= 1;
            ran.unknown.push((at, unknown));
        }
    }
    ran.lasted = world.now().less(zero);
    ran.regret = Regret::of(&ran.seen);
}

fn ends(tables: &Tables) -> Ends {
    let mut ends = Ends::default();
    for record in &tables.attempts {
        let attempt = &record.attempt;
        ends.claimed += u64::from(record.claimed_at.is_some());
        match attempt.status {
            AttemptStatus::Approved => ends.approved += 1,
            AttemptStatus::Failed if attempt.reach == Reach::NotSent => ends.not_sent += 1,
            AttemptStatus::Failed if attempt.reason == Some(Reason::PgRefused) => {
                ends.pg_refused += 1;
            }
            AttemptStatus::Failed => ends.failed += 1,
            AttemptStatus::Canceled | AttemptStatus::PartiallyCanceled => ends.given_back += 1,
            status if status.is_open() => ends.open += 1,
            _ => {}
        }
    }
    ends
}

//! What is asked beside the confirms of a scene: reads, webhooks, polls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use payment::checkout::Event;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::Instant;

use super::front::{Front, Got};
use super::play::{Cast, ends_at, since};
use super::ran::Side;
use super::shopper::Prepared;
use super::spec::Scene;
use crate::world::lock;

/// Starts what is asked beside the confirms.
pub(super) fn beside(cast: &Cast, scene: &Scene) -> JoinHandle<[Side; 3]> {
    let until = cast.start + ends_at(&scene.load).to_duration();
    let beside = scene.beside;
    let hands = || (Arc::clone(&cast.front), Arc::clone(&cast.came), cast.start);
    let loops = [
        tokio::spawn(side(hands(), (beside.reads, until), Kind::Read)),
        tokio::spawn(side(hands(), (beside.webhooks, until), Kind::Webhook)),
        tokio::spawn(side(hands(), (beside.polls, until), Kind::Poll)),
    ];
    tokio::spawn(async move {
        let mut sides = [Side::default(), Side::default(), Side::default()];
        for (side, ran) in sides.iter_mut().zip(loops) {
            *side = ran.await.unwrap_or_default();
        }
        sides
    })
}

#[derive(Clone, Copy)]
enum Kind {
    Read,
    Webhook,
    Poll,
}

type Hands = (Arc<Front>, Arc<Mutex<Vec<Prepared>>>, Instant);

async fn side((front, came, start): Hands, (rate, until): (u32, Instant), kind: Kind) -> Side {
    let mut side = Side::default();
    let mut asked = JoinSet::new();
    for number in 0_u32.. {
        if rate == 0 {
            break;
        }
        let due = start + Duration::from_secs_f64(f64::from(number) / f64::from(rate));
        if due >= until {
            break;
        }
        tokio::time::sleep_until(due).await;
        let of = {
            let came = lock(&came);
            let pick = front.world.draw(0, came.len().saturating_sub(1) as u64);
            came.get(usize::try_from(pick).unwrap_or(0)).cloned()
        };
        side.asked += 1;
        let front = Arc::clone(&front);
        asked.spawn(async move {
            let got = match (kind, of) {
                (Kind::Read, _) | (_, None) => front.read().await,
                (Kind::Webhook, Some(of)) => {
                    let key = of.request.payment_key.as_str().to_owned();
                    front
                        .webhook(key, of.request.order_id.as_str().to_owned())
                        .await
                }
                (Kind::Poll, Some(of)) => match front.poll(of.owner, of.order).await {
                    Event::PollAnswered(_) => Got::Answer(true),
                    Event::PollShed { .. } => Got::Shed,
                    _ => Got::Nobody,
                },
            };
            (got, since(due))
        });
    }
    for (got, took) in asked.join_all().await {
        match got {
            Got::Answer(true) => side.served.push(took),
            Got::Shed => side.shed += 1,
            Got::Answer(false) | Got::Nobody => side.failed += 1,
        }
    }
    side
}

//! Money that is given back while the server is killed: shoppers cancel, and the operator gives a part back.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use payment::view::Stage;
use reqwest::Client;
use reqwest::header::{AUTHORIZATION, COOKIE};
use serde_json::json;

use crate::shopper::{Prepared, Seen};

/// The operator's, in these runs.
pub(super) const TOKEN: &str = "an-operator-token-of-the-lab-and-of-no-shop";
/// One order of so many is canceled by its shopper when it is paid, and of one the operator gives a part back.
const EVERY: usize = 6;
/// How much a part is, won.
const PART: u32 = 100;
/// Whoever hears no final answer asks again with the same key, so often and after so long.
const PATIENCE: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(500);

/// Who wants money back of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    /// Its shopper, all of it.
    Whole,
    /// The operator, a part.
    Part,
}

impl Wish {
    /// What is wanted of an order, by its place among the arrivals.
    pub(super) const fn of(index: usize) -> Option<Self> {
        match index % EVERY {
            0 => Some(Self::Whole),
            3 => Some(Self::Part),
            _ => None,
        }
    }
}

/// What came of a wish.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) wish: Wish,
    /// The last answer's status; `None` when none ever came.
    pub(super) status: Option<u16>,
}

/// Asks for money back once the page says that the order is paid, until the answer is final.
pub(super) async fn ask(
    client: &Client,
    url: &str,
    order: &Prepared,
    seen: &Seen,
    wish: Option<Wish>,
) -> Option<Asked> {
    let wish = wish.filter(|_| seen.stage == Stage::Paid)?;
    let id = &order.order.order_id;
    let begun = Instant::now();
    let mut asked = Asked { wish, status: None };
    while begun.elapsed() < PATIENCE {
        let request = client
            .post(format!("{url}/api/orders/{id}/cancel"))
            .header("idempotency-key", format!("lab-{id}"));
        let request = match wish {
            Wish::Whole => request
                .header(COOKIE, &order.cookie)
                .json(&json!({"reason": "changed my mind"})),
            Wish::Part => request
                .header(AUTHORIZATION, format!("Bearer {TOKEN}"))
                .json(&json!({"reason": "a scratch", "amount": PART})),
        };
        if let Ok(answer) = request.send().await {
            asked.status = Some(answer.status().as_u16());
            if answer.status().is_success() || answer.status().is_client_error() {
                break;
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
    Some(asked)
}

/// The orders that their shoppers canceled.
pub(super) fn canceled(pages: &[(String, Seen)], asked: &[Option<Asked>]) -> BTreeSet<String> {
    let taken = |asked: &Option<Asked>| {
        let whole = asked.filter(|asked| asked.wish == Wish::Whole);
        whole.is_some_and(|whole| matches!(whole.status, Some(200 | 202)))
    };
    let orders = pages.iter().zip(asked);
    let canceled = orders.filter(|(_, asked)| taken(asked));
    canceled.map(|((id, _), _)| id.clone()).collect()
}

/// How often each wish got which answer.
pub(super) fn summary(all: &[Asked]) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for asked in all {
        let status = asked
            .status
            .map_or_else(|| "no answer".to_owned(), |status| status.to_string());
        let name = format!("{:?} {status}", asked.wish).to_lowercase();
        *counts.entry(name).or_default() += 1;
    }
    counts
}

//! A confirm by a client that is no page: it never polls, and says by itself how much time it has left.

use std::time::{Duration, Instant};

use payment::deadline::TIMEOUT_HEADER;
use payment::wire::{Problem, ProblemCode};
use reqwest::Client;
use reqwest::header::COOKIE;

use crate::shopper::Prepared;

/// What the shop said.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    /// The HTTP status; `None` when no answer came.
    pub(crate) status: Option<u16>,
    /// The code of a problem.
    pub(crate) code: Option<ProblemCode>,
    /// From the intended start to the whole answer.
    pub(crate) took: Duration,
}

/// Sends one confirm, with this many ms left if any are named.
pub(crate) async fn confirm(
    client: &Client,
    shop: &str,
    order: &Prepared,
    time_left_ms: Option<u64>,
    intended: Instant,
) -> Answer {
    let mut request = client
        .post(format!("{shop}/api/payments/confirm"))
        .header(COOKIE, &order.cookie)
        .json(&order.request);
    if let Some(left) = time_left_ms {
        request = request.header(TIMEOUT_HEADER, left);
    }
    let (mut status, mut code) = (None, None);
    if let Ok(response) = request.send().await {
        status = Some(response.status().as_u16());
        if let Ok(problem) = response.json::<Problem>().await {
            code = ProblemCode::parse(&problem.code);
        }
    }
    Answer {
        status,
        code,
        took: intended.elapsed(),
    }
}

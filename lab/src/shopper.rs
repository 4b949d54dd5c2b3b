//! One simulated shopper: the shared checkout machine with HTTP for hands and the process's clock for a watch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use payment::checkout::{Checkout, Command, ConfirmAnswer, Event};
use payment::order::OrderStatus;
use payment::time::{Millis, PageTimes};
use payment::view::Stage;
use payment::wire::{ConfirmRequest, OrderState, Problem, ProblemCode};
use reqwest::header::{COOKIE, RETRY_AFTER, SET_COOKIE};
use reqwest::{Client, Response};
use serde_json::json;
use tokio::task::JoinHandle;

/// An order that is ready to be confirmed: made and authenticated before the clock of the run starts.
#[derive(Debug, Clone)]
pub(crate) struct Prepared {
    /// The shopper's, as the `Cookie` header carries it.
    pub(crate) cookie: String,
    /// The order before its confirm.
    pub(crate) order: OrderState,
    /// The confirm, as the return URL gives it.
    pub(crate) request: ConfirmRequest,
}

/// What one shopper saw.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The order, by the id that the gateway knows it by.
    pub(crate) order: Arc<str>,
    /// Where the page ended.
    pub(crate) stage: Stage,
    /// From the intended start to that end.
    pub(crate) took: Duration,
    /// How long the confirm's own answer took from the intended start; `None` when the page gave it up.
    pub(crate) answered: Option<Duration>,
    /// Whether the confirm's own answer said that the order is paid.
    pub(crate) paid: bool,
    /// The first refusal, if the confirm was refused.
    pub(crate) refused: Option<ProblemCode>,
    /// From the intended start until the page first said that it is checking.
    pub(crate) checking: Option<Duration>,
    /// How long the page said that nobody knows.
    pub(crate) doubt: Duration,
    /// Whether it ever said that nothing was charged.
    pub(crate) told_not_charged: bool,
    /// Whether it ever said that it was paid.
    pub(crate) told_paid: bool,
}

impl Seen {
    /// Of a page that has shown nothing yet.
    pub(crate) fn nothing(order: &str) -> Self {
        Self {
            order: order.into(),
            stage: Stage::Offer,
            took: Duration::ZERO,
            answered: None,
            paid: false,
            refused: None,
            checking: None,
            doubt: Duration::ZERO,
            told_not_charged: false,
            told_paid: false,
        }
    }

    /// Whether the page ended knowing what became of the payment.
    pub(crate) fn is_known(&self) -> bool {
        !is_doubt(self.stage)
    }

    /// Notes what the page shows from now on; `since` is when it began to be in doubt, if it was.
    fn shows(&mut self, stage: Stage, now: Duration, since: &mut Option<Duration>) {
        self.stage = stage;
        self.told_not_charged |= matches!(stage, Stage::NotCharged(_));
        self.told_paid |= stage == Stage::Paid;
        if is_doubt(stage) {
            self.checking.get_or_insert(now);
            since.get_or_insert(now);
        } else if let Some(since) = since.take() {
            self.doubt += now.saturating_sub(since);
        }
    }
}

/// Whether a page says that nobody knows.
fn is_doubt(stage: Stage) -> bool {
    matches!(stage, Stage::Checking | Stage::StillUnknown)
}

/// Makes an order of one piece of the first product and authenticates its payment at the fake gateway.
pub(crate) async fn prepare(
    client: &Client,
    shop: &str,
    gateway: &str,
    sku: &str,
) -> anyhow::Result<Prepared> {
    let body = json!({"items": [{"sku": sku, "quantity": 1}]});
    let made = client
        .post(format!("{shop}/api/orders"))
        .json(&body)
        .send()
        .await?
        .error_for_status()?;
    let cookie = made
        .headers()
        .get(SET_COOKIE)
        .context("the shop gave no cookie")?
        .to_str()?;
    let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
    let made: payment::wire::OrderCreated = made.json().await?;
    let body = json!({"orderId": made.order_id, "amount": made.amount});
    let key = client
        .post(format!("{gateway}/_control/payments"))
        .json(&body)
        .send()
        .await?
        .error_for_status()?;
    let key: serde_json::Value = key.json().await?;
    let key = key["paymentKey"]
        .as_str()
        .context("the fake gateway gave no key")?;
    let order = client
        .get(format!("{shop}/api/orders/{}", made.order_id))
        .header(COOKIE, &cookie)
        .send()
        .await?;
    let request = ConfirmRequest {
        payment_key: payment::id::PaymentKey::parse(key)?,
        order_id: made.order_id.gateway_order_id(1),
        amount: made.amount,
    };
    Ok(Prepared {
        cookie,
        order: order.error_for_status()?.json().await?,
        request,
    })
}

/// Runs the page of one shopper from the confirm to its end. `intended` is when the open loop meant it to start.
pub(crate) async fn shop(
    client: Client,
    shop: String,
    prepared: Prepared,
    times: PageTimes,
    intended: Instant,
) -> Seen {
    let mut page = Checkout::new(times, Some(prepared.order.clone()), None);
    let mut seen = Seen::nothing(prepared.request.order_id.as_str());
    let mut doubtful = None;
    let mut driver = Driver {
        client,
        shop,
        prepared,
        confirm: None,
        poll: None,
        wake: None,
        intended,
    };
    let mut event = Event::ConfirmStarted {
        already: Millis::ZERO,
    };
    loop {
        if let Event::ConfirmAnswered(answer) = &event {
            seen.answered = Some(intended.elapsed());
            match answer {
                ConfirmAnswer::Order(order) => seen.paid = order.status == OrderStatus::Paid,
                ConfirmAnswer::Refused { code, .. } => seen.refused = *code,
            }
        }
        let commands = page.handle(event, driver.now());
        for command in commands {
            driver.run(command);
        }
        seen.shows(page.view().stage, intended.elapsed(), &mut doubtful);
        let over = !matches!(
            seen.stage,
            Stage::Confirming
                | Stage::Checking
                | Stage::Looking
                | Stage::ReturningMoney
                | Stage::ClosingAccount
        );
        if over && driver.poll.is_none() {
            seen.took = intended.elapsed();
            if let Some(since) = doubtful {
                seen.doubt += seen.took.saturating_sub(since);
            }
            return seen;
        }
        event = driver.next().await;
    }
}

struct Driver {
    client: Client,
    shop: String,
    prepared: Prepared,
    confirm: Option<JoinHandle<Event>>,
    poll: Option<JoinHandle<Event>>,
    wake: Option<Millis>,
    intended: Instant,
}

impl Driver {
    fn now(&self) -> Millis {
        Millis::new(u64::try_from(self.intended.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    fn run(&mut self, command: Command) {
        match command {
            Command::SendConfirm { time_left } => {
                let request = self
                    .client
                    .post(format!("{}/api/payments/confirm", self.shop))
                    .header(COOKIE, &self.prepared.cookie)
                    .header(payment::deadline::TIMEOUT_HEADER, time_left.get())
                    .json(&self.prepared.request);
                self.confirm = Some(tokio::spawn(async move {
                    match request.send().await {
                        Ok(response) => confirm_event(response).await,
                        Err(_) => Event::ConfirmLost,
                    }
                }));
            }
            Command::AbortConfirm => abort(&mut self.confirm),
            Command::Poll => {
                let url = format!("{}/api/orders/{}", self.shop, self.prepared.order.order_id);
                let request = self.client.get(url).header(COOKIE, &self.prepared.cookie);
                self.poll = Some(tokio::spawn(async move {
                    match request.send().await {
                        Ok(response) => poll_event(response).await,
                        Err(_) => Event::PollLost,
                    }
                }));
            }
            Command::AbortPoll => abort(&mut self.poll),
            Command::WakeAt(at) => self.wake = Some(at),
            Command::Remember { .. } | Command::Forget => {}
        }
    }

    /// The next event: an answer, or the timer.
    async fn next(&mut self) -> Event {
        let wake = self.wake.map_or(Duration::from_secs(1), |at| {
            at.less(self.now()).to_duration()
        });
        tokio::select! {
            event = ended(&mut self.confirm) => { self.confirm = None; event }
            event = ended(&mut self.poll) => { self.poll = None; event }
            () = tokio::time::sleep(wake) => Event::Woke,
        }
    }
}

fn abort(task: &mut Option<JoinHandle<Event>>) {
    if let Some(task) = task.take() {
        task.abort();
    }
}

async fn ended(task: &mut Option<JoinHandle<Event>>) -> Event {
    match task {
        Some(task) => task.await.unwrap_or(Event::Woke),
        None => std::future::pending().await,
    }
}

fn retry_after(response: &Response) -> Option<Millis> {
    let seconds = response
        .headers()
        .get(RETRY_AFTER)?
        .to_str()
        .ok()?
        .parse()
        .ok()?;
    Some(Millis::from_secs(seconds))
}

async fn confirm_event(response: Response) -> Event {
    let retry_after = retry_after(&response);
    if response.status().is_success() {
        return response.json().await.map_or(Event::ConfirmLost, |order| {
            Event::ConfirmAnswered(ConfirmAnswer::Order(order))
        });
    }
    let code = response
        .json::<Problem>()
        .await
        .ok()
        .and_then(|problem| ProblemCode::parse(&problem.code));
    Event::ConfirmAnswered(ConfirmAnswer::Refused { code, retry_after })
}

async fn poll_event(response: Response) -> Event {
    let retry_after = retry_after(&response);
    match response.status().as_u16() {
        200 => response
            .json()
            .await
            .map_or(Event::PollLost, Event::PollAnswered),
        429 | 503 => Event::PollShed { retry_after },
        _ => Event::PollLost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_doubt_is_counted_from_checking_until_known_and_never_twice() {
        let at = Duration::from_secs;
        let (mut seen, mut since) = (Seen::nothing("o"), None);
        for (stage, now) in [
            (Stage::Confirming, 0),
            (Stage::Checking, 15),
            (Stage::Checking, 17),
            (Stage::Paid, 21),
        ] {
            seen.shows(stage, at(now), &mut since);
        }
        assert_eq!((seen.checking, seen.doubt), (Some(at(15)), at(6)));
        assert!(seen.told_paid && !seen.told_not_charged && seen.is_known());
        seen.shows(Stage::StillUnknown, at(30), &mut since);
        assert_eq!(seen.checking, Some(at(15)));
        assert!(!seen.is_known() && since == Some(at(30)));
    }
}

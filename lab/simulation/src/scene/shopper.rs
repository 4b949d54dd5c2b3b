//! The shoppers of a scene: the production page's machine, or a bare client, with the front for hands.

use std::pin::Pin;
use std::sync::Arc;

use payment::checkout::{Checkout, Command, ConfirmAnswer, Event};
use payment::id::{OrderId, PaymentKey};
use payment::money::Won;
use payment::order::OrderStatus;
use payment::time::{Millis, PageTimes};
use payment::view::{PayAction, Stage};
use payment::wire::{ConfirmRequest, OrderState};
use server::app::order_state;
use server::clock::EpochMs;
use server::store::{NewAttemptRow, NewOrderRow, Opened, OrderMade, Owner};
use tokio::time::Instant;

use super::bank::Bank;
use super::front::Front;
use super::ran::{Said, Seen};
use super::spec::Client;
use crate::world::{START, World, lock};

/// An order that is ready to be confirmed.
#[derive(Clone)]
pub(super) struct Prepared {
    pub(super) owner: Owner,
    pub(super) order: OrderId,
    pub(super) request: ConfirmRequest,
    pub(super) state: OrderState,
}

/// What was drawn for one shopper.
#[derive(Clone)]
pub(super) struct Ways {
    pub(super) client: Client,
    pub(super) departed: bool,
    pub(super) leaves: Option<Millis>,
    pub(super) twice: bool,
    pub(super) network: Millis,
    pub(super) second_tab: Option<Millis>,
    pub(super) pays_again: u32,
}

/// Makes an order and an authenticated payment of it, without taking any time.
pub(super) fn prepare(world: &World, bank: &Bank, number: usize, times: PageTimes) -> Prepared {
    let order = OrderId::parse(&format!("ord_{number}")).expect("a plain id");
    let owner = Owner(format!("shopper-{number}"));
    let at = EpochMs(START).plus(world.now());
    let tables = &mut *lock(&world.tables);
    tables.now = at;
    let sku = tables.products[0].sku.clone();
    let made = tables.make_order(NewOrderRow {
        id: order.clone(),
        owner: owner.clone(),
        items: vec![(sku, 1)],
        language: None,
        at,
        expires_at: at.plus(world.plan.order_ttl),
    });
    let OrderMade::Made(amount) = made else {
        unreachable!("the first product is plentiful");
    };
    let mut prepared = Prepared {
        request: ConfirmRequest {
            payment_key: PaymentKey::parse("none").expect("a plain word"),
            order_id: order.gateway_order_id(1),
            amount,
        },
        state: OrderState {
            order_id: order.clone(),
            status: OrderStatus::Pending,
            attempt: None,
            payable: true,
            poll_after_ms: times.poll_interval.get(),
            deposit: None,
            closed_unpaid: false,
        },
        owner,
        order,
    };
    open(tables, bank, &mut prepared, (at, times, amount));
    prepared
}

/// Opens a window and authenticates; false when the order takes no attempt.
fn open(
    tables: &mut crate::tables::Tables,
    bank: &Bank,
    prepared: &mut Prepared,
    (at, times, amount): (EpochMs, PageTimes, Won),
) -> bool {
    let opened = tables.open_attempt(NewAttemptRow {
        order_id: prepared.order.clone(),
        owner: prepared.owner.clone(),
        gateway: crate::gateway::name(),
        by_call: false,
        left: None,
        reference: server::random::attempt_reference(),
        at,
        window_until: at.plus(Millis::from_secs(86_400)),
    });
    tables.commit();
    let Opened::Ready(attempt) = opened else {
        return false;
    };
    let key = bank.authenticate(attempt.gateway_order_id.as_str());
    prepared.request = ConfirmRequest {
        payment_key: PaymentKey::parse(&key).expect("a plain word"),
        order_id: attempt.gateway_order_id.clone(),
        amount,
    };
    if let Some(order) = tables.order(&prepared.order) {
        prepared.state = order_state(&order, times.poll_interval.get());
    }
    true
}

type Exchange = Option<Pin<Box<dyn Future<Output = Event> + Send>>>;

/// One shopper at work.
pub(super) struct Shopper {
    front: Arc<Front>,
    bank: Arc<Bank>,
    prepared: Prepared,
    ways: Ways,
    times: PageTimes,
    came: Instant,
    machine: Checkout,
    confirm: Exchange,
    poll: Exchange,
    wake: Option<Millis>,
    seen: Seen,
    /// The stage that is shown, and since when.
    shown: (Stage, Millis),
}

fn is_doubt(stage: Stage) -> bool {
    matches!(stage, Stage::Checking | Stage::StillUnknown)
}

impl Shopper {
    pub(super) fn new(
        (front, bank): (Arc<Front>, Arc<Bank>),
        prepared: Prepared,
        ways: Ways,
        (times, at): (PageTimes, Millis),
    ) -> Self {
        Self {
            machine: Checkout::new(times, Some(prepared.state.clone()), None),
            seen: Seen {
                at,
                departed: ways.departed,
                said: None,
                answered: None,
                stage: Stage::Offer,
                took: Millis::ZERO,
                left: false,
                checking: None,
                doubt: Millis::ZERO,
                again: 0,
                charged: 0,
                charged_ever: 0,
            },
            front,
            bank,
            prepared,
            ways,
            times,
            came: Instant::now(),
            confirm: None,
            poll: None,
            wake: None,
            shown: (Stage::Offer, Millis::ZERO),
        }
    }

    fn now(&self) -> Millis {
        Millis::new(u64::try_from(self.came.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Lives to its end; what it saw.
    pub(super) async fn live(mut self) -> Seen {
        match self.ways.client {
            Client::Raw(left) => self.ask_once(left).await,
            Client::Page => self.look_on().await,
        }
        let now = self.now();
        self.show(None, now);
        self.seen.took = now;
        self.seen
    }

    /// A bare client: one confirm, and its answer.
    async fn ask_once(&mut self, left: Option<Millis>) {
        let left = if self.ways.departed {
            Some(Millis::ZERO)
        } else {
            left
        };
        let event = self.exchange(left).await;
        self.note(&event);
        self.shown.0 = match self.seen.said {
            Some(Said::Paid) => Stage::Paid,
            Some(Said::Refused(_)) => Stage::NotCharged(None),
            Some(Said::InDoubt) | None => Stage::StillUnknown,
        };
        // How long a bare client was in doubt nobody can say: it shows nothing.
        self.shown.1 = self.now();
    }

    fn exchange(&self, left: Option<Millis>) -> impl Future<Output = Event> + Send + use<> {
        let (front, owner) = (Arc::clone(&self.front), self.prepared.owner.clone());
        let (request, network) = (self.prepared.request.clone(), self.ways.network);
        async move {
            pause(network).await;
            let event = front.confirm(owner, request, left).await;
            pause(network).await;
            event
        }
    }

    async fn look_on(&mut self) {
        self.feed(Event::ConfirmStarted {
            already: Millis::ZERO,
        });
        loop {
            let over = !matches!(
                self.machine.view().stage,
                Stage::Confirming
                    | Stage::Checking
                    | Stage::Looking
                    | Stage::ReturningMoney
                    | Stage::ClosingAccount
            );
            if over && self.poll.is_none() && !self.pay_again().await {
                return;
            }
            let wake = self.wake.map(|at| self.came + at.to_duration());
            let leaves = self.ways.leaves.map(|at| self.came + at.to_duration());
            let event = tokio::select! {
                biased;
                event = ended(&mut self.confirm) => { self.confirm = None; event }
                event = ended(&mut self.poll) => { self.poll = None; event }
                () = until(wake) => { self.wake = None; Event::Woke }
                () = until(leaves) => { self.seen.left = true; return }
            };
            self.note(&event);
            self.feed(event);
        }
    }

    fn note(&mut self, event: &Event) {
        if self.seen.said.is_some() {
            return;
        }
        let Event::ConfirmAnswered(answer) = event else {
            return;
        };
        self.seen.answered = Some(self.now());
        self.seen.said = Some(match answer {
            ConfirmAnswer::Order(state) if state.status == OrderStatus::Paid => Said::Paid,
            ConfirmAnswer::Order(_) => Said::InDoubt,
            ConfirmAnswer::Refused { code, .. } => code.map_or(Said::InDoubt, Said::Refused),
        });
    }

    /// Presses the button that offers to pay again; true when it was pressed.
    async fn pay_again(&mut self) -> bool {
        let Some((action, _)) = self.machine.view().button else {
            return false;
        };
        if self.seen.again >= self.ways.pays_again {
            return false;
        }
        self.seen.again += 1;
        let thinks = self.front.world.draw(2_000, 10_000);
        pause(Millis::new(thinks)).await;
        if action != PayAction::ConfirmAgain {
            let world = &self.front.world;
            let at = EpochMs(START).plus(world.now());
            let amount = self.prepared.request.amount;
            let opened = open(
                &mut lock(&world.tables),
                &self.bank,
                &mut self.prepared,
                (at, self.times, amount),
            );
            if !opened {
                return false;
            }
            self.machine = Checkout::new(self.times, Some(self.prepared.state.clone()), None);
        }
        self.feed(Event::ConfirmStarted {
            already: Millis::ZERO,
        });
        true
    }

    fn feed(&mut self, event: Event) {
        let now = self.now();
        self.wake = None;
        for command in self.machine.handle(event, now) {
            self.run(command);
        }
        self.show(Some(self.machine.view().stage), now);
    }

    /// Shows another stage, or nothing any more: adds the doubt of the one before.
    fn show(&mut self, stage: Option<Stage>, now: Millis) {
        let (shown, since) = self.shown;
        if stage == Some(shown) {
            return;
        }
        if is_doubt(shown) {
            self.seen.doubt = self.seen.doubt.plus(now.less(since));
        }
        self.seen.stage = stage.unwrap_or(shown);
        if stage.is_some_and(is_doubt) {
            self.seen.checking.get_or_insert(now);
        }
        self.shown = (self.seen.stage, now);
    }

    fn run(&mut self, command: Command) {
        match command {
            Command::SendConfirm { time_left } => {
                let left = if self.ways.departed {
                    Millis::ZERO
                } else {
                    time_left
                };
                if self.ways.twice {
                    tokio::spawn(self.exchange(Some(left)));
                }
                self.confirm = Some(Box::pin(self.exchange(Some(left))));
            }
            Command::AbortConfirm => self.confirm = None,
            Command::Poll => {
                let (front, owner) = (Arc::clone(&self.front), self.prepared.owner.clone());
                let (order, network) = (self.prepared.order.clone(), self.ways.network);
                self.poll = Some(Box::pin(async move {
                    pause(network).await;
                    let event = front.poll(owner, order).await;
                    pause(network).await;
                    event
                }));
            }
            Command::AbortPoll => self.poll = None,
            Command::WakeAt(at) => self.wake = Some(at),
            Command::Remember { .. } | Command::Forget => {}
        }
    }
}

async fn pause(span: Millis) {
    if span > Millis::ZERO {
        tokio::time::sleep(span.to_duration()).await;
    }
}

async fn ended(exchange: &mut Exchange) -> Event {
    match exchange {
        Some(exchange) => exchange.await,
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

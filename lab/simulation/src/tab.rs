//! One tab of a browser: the production page machine with the simulated network for hands.

use std::pin::Pin;
use std::time::Duration;

use payment::checkout::{Checkout, Command, Event};
use payment::id::PaymentKey;
use payment::money::Won;
use payment::time::Millis;
use payment::view::{PayAction, Stage, View};
use payment::wire::ConfirmRequest;
use tokio::time::Instant;

use crate::fault::Fault;
use crate::gateway::plain;
use crate::network::{self, Page, Window};
use crate::shopper::Shopper;
use crate::world::lock;

/// The authenticated payment of a return address.
#[derive(Debug, Clone)]
pub(crate) struct Returned {
    pub(crate) window: Window,
    pub(crate) key: String,
    pub(crate) amount: Won,
}

/// How a tab's life ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The page has no more to say.
    Final(Stage),
    /// The shopper pressed a button that opens a new window.
    Pay,
    /// It is loaded anew.
    Reload,
    /// The shopper closed it.
    Left,
}

type Exchange = Option<Pin<Box<dyn Future<Output = Event> + Send>>>;

/// One tab.
pub(crate) struct Tab {
    shopper: Shopper,
    number: u64,
    machine: Checkout,
    amount: u64,
    returned: Option<Returned>,
    /// Whether the confirm begins by itself.
    begins: bool,
    opened: Instant,
    confirm: Exchange,
    poll: Exchange,
    wake: Option<Millis>,
    shown: Option<View>,
    pressed: bool,
}

impl Tab {
    pub(crate) fn new(shopper: Shopper, page: Page, returned: Option<Returned>) -> Self {
        let times = shopper.world.plan.times.page;
        let machine = Checkout::new(times, Some(page.state), page.confirming_for);
        let button = machine.view().button.is_some();
        let number = {
            let mut nodes = lock(&shopper.world.nodes);
            nodes.tabs += 1;
            nodes.tabs
        };
        Self {
            number,
            machine,
            amount: plain(page.amount),
            begins: returned.is_some() && page.ready && button,
            returned,
            opened: Instant::now(),
            confirm: None,
            poll: None,
            wake: None,
            shown: None,
            pressed: false,
            shopper,
        }
    }

    fn now(&self) -> Millis {
        let ms = self.opened.elapsed().as_millis();
        Millis::new(u64::try_from(ms).unwrap_or(u64::MAX))
    }

    /// Lives until the page has no more to say or its shopper has done with it.
    pub(crate) async fn live(mut self) -> End {
        self.feed(Event::Loaded);
        if self.begins {
            let already = self.remembered();
            self.feed(Event::ConfirmStarted { already });
        } else if self.machine.view().stage == Stage::ReturningMoney {
            self.feed(Event::PageShown);
        }
        let mut whim = self.next_whim();
        let end = loop {
            if let Some(end) = self.is_over().await {
                break end;
            }
            let wake = self.wake.map(|at| self.opened + at.to_duration());
            let event = tokio::select! {
                biased;
                event = ended(&mut self.confirm) => { self.confirm = None; Some(event) }
                event = ended(&mut self.poll) => { self.poll = None; Some(event) }
                () = woken(wake) => { self.wake = None; Some(Event::Woke) }
                () = tokio::time::sleep_until(whim) => None,
            };
            match event {
                Some(event) => self.feed(event),
                None => {
                    whim = self.next_whim();
                    if let Some(end) = self.follow_whim() {
                        break end;
                    }
                }
            }
        };
        self.shopper
            .world
            .note("page", format_args!("tab {} ends: {end:?}", self.number));
        end
    }

    fn next_whim(&self) -> Instant {
        let ms = self.shopper.world.draw(500, 20_000);
        Instant::now() + Duration::from_millis(ms)
    }

    fn follow_whim(&mut self) -> Option<End> {
        let world = &self.shopper.world;
        if world.strikes(Fault::Reload) {
            return Some(End::Reload);
        }
        if world.strikes(Fault::Leave) {
            return Some(End::Left);
        }
        if world.strikes(Fault::PageShown) {
            // From the back/forward cache no exchange survives; a tab that comes to the front keeps its own.
            if world.perhaps(0.5) {
                if self.confirm.take().is_some() {
                    self.feed(Event::ConfirmLost);
                }
                if self.poll.take().is_some() {
                    self.feed(Event::PollLost);
                }
            }
            self.feed(Event::PageShown);
        }
        None
    }

    /// Gives one event to the machine and runs what it answers.
    fn feed(&mut self, event: Event) {
        let now = self.now();
        self.wake = None;
        for command in self.machine.handle(event, now) {
            self.run(command, now);
        }
        let view = self.machine.view();
        if self
            .shown
            .is_none_or(|shown| (shown.stage, shown.button) != (view.stage, view.button))
        {
            self.shown = Some(view);
            let order = self.shopper.order.as_str();
            self.shopper
                .world
                .check_shown(self.number, order, self.amount, &view);
        }
    }

    fn run(&mut self, command: Command, now: Millis) {
        match command {
            Command::SendConfirm { time_left } => self.send_confirm(time_left),
            Command::AbortConfirm => self.confirm = None,
            Command::Poll => {
                let Shopper {
                    world,
                    order,
                    owner,
                    ..
                } = self.shopper.clone();
                self.poll = Some(Box::pin(async move {
                    network::poll(&world, &order, &owner).await
                }));
            }
            Command::AbortPoll => self.poll = None,
            Command::WakeAt(at) => self.wake = Some(at),
            Command::Remember { begun } => {
                let ago = now.less(begun);
                let begun = self.shopper.world.now().less(ago);
                if let Some(reference) = self.reference() {
                    lock(&self.shopper.notes).insert(reference, begun);
                }
            }
            Command::Forget => {
                if let Some(reference) = self.reference() {
                    lock(&self.shopper.notes).remove(&reference);
                }
            }
        }
    }

    fn reference(&self) -> Option<String> {
        self.returned
            .as_ref()
            .map(|returned| returned.window.reference.to_string())
    }

    fn remembered(&self) -> Millis {
        let begun = self
            .reference()
            .and_then(|name| lock(&self.shopper.notes).get(&name).copied());
        begun.map_or(Millis::ZERO, |begun| self.shopper.world.now().less(begun))
    }

    fn send_confirm(&mut self, time_left: Millis) {
        let Some(returned) = &self.returned else {
            return;
        };
        let Ok(payment_key) = PaymentKey::parse(&returned.key) else {
            return;
        };
        let request = ConfirmRequest {
            payment_key,
            order_id: returned.window.gateway_order_id.clone(),
            amount: returned.amount,
        };
        let (shopper, tab) = (self.shopper.clone(), self.number);
        let time_left = if shopper.world.strikes(Fault::ShortDeadline) {
            Millis::new(shopper.world.draw(0, 1_500)).min(time_left)
        } else {
            time_left
        };
        shopper
            .world
            .note("page", format_args!("tab {tab} confirms {}", returned.key));
        self.confirm = Some(Box::pin(async move {
            network::confirm(&shopper.world, tab, &shopper.owner, request, time_left).await
        }));
    }

    /// Whether the page is at an end; a button is pressed after a while, or not.
    async fn is_over(&mut self) -> Option<End> {
        let view = self.machine.view();
        if let Some((action, _)) = view.button {
            if self.confirm.is_some() || self.poll.is_some() {
                return None;
            }
            // Looked at for a while; the page stands still meanwhile, and may be old when its button is pressed.
            self.shopper.world.pause(200, 8_000).await;
            if self.shopper.world.perhaps(0.15) {
                return Some(End::Left);
            }
            if action == PayAction::ConfirmAgain && self.returned.is_some() && !self.pressed {
                // At most once in a tab: a page that is loaded anew is as good.
                self.pressed = self.shopper.world.perhaps(0.5);
                self.feed(Event::ConfirmStarted {
                    already: Millis::ZERO,
                });
                return None;
            }
            return Some(End::Pay);
        }
        let waits = matches!(
            view.stage,
            Stage::Confirming
                | Stage::Checking
                | Stage::Looking
                | Stage::ReturningMoney
                | Stage::ClosingAccount
        );
        if waits && (self.wake.is_some() || self.confirm.is_some() || self.poll.is_some()) {
            return None;
        }
        let over = self.confirm.is_none() && self.poll.is_none();
        over.then_some(End::Final(view.stage))
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        self.shopper.world.watch_closed(self.number);
    }
}

async fn ended(exchange: &mut Exchange) -> Event {
    match exchange {
        Some(exchange) => exchange.as_mut().await,
        None => std::future::pending().await,
    }
}

async fn woken(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

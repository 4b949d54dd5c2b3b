//! Runs the checkout machine in the browser: its commands become fetches, one timer and a note in the tab's storage;
//! what happens becomes events. It decides nothing itself.

mod browser;
mod exchange;
pub(crate) mod watch;

use std::cell::RefCell;
use std::rc::Rc;

use gloo_timers::callback::{Interval, Timeout};
use leptos::ev;
use leptos::prelude::*;
use leptos::task::spawn_local;
use payment::checkout::{Checkout, Command, ConfirmAnswer, Event};
use payment::time::Millis;
use payment::view::Stage;
use payment::wire::{ConfirmRequest, OrderState};

use crate::api::{self, Polled};
use crate::components::stage::{HEADING_ID, Live, STAGE_CLASS, words};
use crate::driver::browser::Clock;
use crate::driver::exchange::Exchange;
use crate::seed::{Notice, Screen, Seed, waits};

/// Drives the checkout's live part for as long as the page lives.
pub(crate) fn attend(seed: Seed, live: Live) {
    let driver = Driver::new(seed, live);
    // An effect first runs when the server's picture has been taken over, and then at each press.
    Effect::new(move |before: Option<u32>| {
        let pressed = live.pressed.get();
        match before {
            None => driver.start(),
            Some(before) if before != pressed => driver.confirm_pressed(),
            Some(_) => {}
        }
        pressed
    });
}

/// The driver; its copies share one state.
#[derive(Clone)]
struct Driver {
    seed: Rc<Seed>,
    live: Live,
    clock: Clock,
    state: Rc<RefCell<State>>,
}

struct State {
    machine: Checkout,
    /// The machine's one timer; replaced at each event.
    timer: Option<Timeout>,
    /// Moves the progress once a second while there is one.
    ticker: Option<Interval>,
    confirm: Exchange,
    poll: Exchange,
    /// What the last poll brought, with its tag: a 304 means this again.
    heard: Option<(OrderState, String)>,
    complete: bool,
    /// Whether the last confirm was refused: if nothing was claimed by it, its payment still waits to be completed.
    refused: bool,
    notice: Option<Notice>,
    /// The last result that had the focus, so that looking again does not take it away once more.
    result: Stage,
    /// Whether the focus stood in the stage when it began to wait.
    focus_held: bool,
}

impl Driver {
    fn new(seed: Seed, live: Live) -> Self {
        let screen = seed.screen();
        let state = State {
            machine: seed.checkout(),
            timer: None,
            ticker: None,
            confirm: Exchange::default(),
            poll: Exchange::default(),
            heard: None,
            complete: screen.complete,
            refused: false,
            notice: screen.notice,
            result: screen.view.stage,
            focus_held: false,
        };
        Self {
            seed: Rc::new(seed),
            live,
            clock: Clock::start(),
            state: Rc::new(RefCell::new(state)),
        }
    }

    /// Begins: the authenticated payment of a return page is confirmed at once.
    fn start(&self) {
        self.listen();
        let screen = self.seed.screen();
        self.feed(Event::Loaded);
        if let (true, Some(returned)) = (screen.complete, &self.seed.confirm) {
            let already = browser::remembered(&returned.reference);
            self.confirm_started(already);
        } else if waits(screen.view.stage) && screen.view.progress.is_none() {
            // The server knows no claim to count from: ask as a page that is shown again does.
            self.feed(Event::PageShown);
        }
        browser::mark_hydrated();
    }

    fn confirm_pressed(&self) {
        self.confirm_started(Millis::ZERO);
    }

    fn confirm_started(&self, already: Millis) {
        {
            let mut state = self.state.borrow_mut();
            state.complete = false;
            state.refused = false;
            state.notice = None;
        }
        self.feed(Event::ConfirmStarted { already });
    }

    /// Listens for the page being shown again.
    fn listen(&self) {
        let driver = self.clone();
        // The handles only serve to stop listening, which the page never does.
        let _ = window_event_listener(ev::pageshow, move |event| {
            if event.persisted() {
                driver.restored();
            }
        });
        let driver = self.clone();
        let _ = window_event_listener(ev::visibilitychange, move |_| {
            if !document().hidden() {
                driver.feed(Event::PageShown);
            }
        });
    }

    /// The page came back from the back/forward cache: no exchange survives that, even where its promise hangs on.
    fn restored(&self) {
        let (confirming, polling) = {
            let mut state = self.state.borrow_mut();
            (state.confirm.abort(), state.poll.abort())
        };
        if confirming {
            self.feed(Event::ConfirmLost);
        }
        if polling {
            self.feed(Event::PollLost);
        }
        self.feed(Event::PageShown);
    }

    /// Gives one event to the machine and runs what it answers.
    fn feed(&self, event: Event) {
        let now = self.clock.now();
        let commands = {
            let mut state = self.state.borrow_mut();
            // Each answer names the next wake, if there is to be one.
            state.timer = None;
            state.machine.handle(event, now)
        };
        for command in commands {
            self.run(command, now);
        }
        self.show();
    }

    fn run(&self, command: Command, now: Millis) {
        match command {
            Command::SendConfirm { time_left } => self.send_confirm(time_left),
            Command::AbortConfirm => {
                self.state.borrow_mut().confirm.abort();
            }
            Command::Poll => self.send_poll(),
            Command::AbortPoll => {
                self.state.borrow_mut().poll.abort();
            }
            Command::WakeAt(when) => self.wake_in(when.less(now)),
            Command::Remember { begun } => {
                if let Some(returned) = &self.seed.confirm {
                    browser::remember(&returned.reference, now.less(begun));
                }
            }
            Command::Forget => {
                if let Some(returned) = &self.seed.confirm {
                    browser::forget(&returned.reference);
                }
            }
        }
    }

    fn wake_in(&self, span: Millis) {
        let driver = self.clone();
        // No wait is near the 24 days that a browser's timer can count.
        let span = u32::try_from(span.get()).unwrap_or(u32::MAX >> 1);
        let timer = Timeout::new(span, move || driver.feed(Event::Woke));
        self.state.borrow_mut().timer = Some(timer);
    }

    fn send_confirm(&self, time_left: Millis) {
        let Some(returned) = &self.seed.confirm else {
            return;
        };
        let body = ConfirmRequest {
            payment_key: returned.payment_key.clone(),
            order_id: returned.gateway_order_id.clone(),
            amount: returned.amount,
        };
        let (ticket, signal) = self.state.borrow_mut().confirm.begin();
        let driver = self.clone();
        spawn_local(async move {
            let answer = api::confirm(&body, time_left, signal.as_ref()).await;
            // An exchange that was given up has no say any more: the machine has gone on without it.
            if driver.state.borrow_mut().confirm.end(ticket) {
                driver.confirm_ended(answer);
            }
        });
    }

    fn confirm_ended(&self, answer: Option<ConfirmAnswer>) {
        if let Some(ConfirmAnswer::Refused { code, .. }) = &answer {
            let mut state = self.state.borrow_mut();
            state.notice = code.map(Notice::Refused);
            state.refused = true;
        }
        self.feed(answer.map_or(Event::ConfirmLost, Event::ConfirmAnswered));
    }

    fn send_poll(&self) {
        let (ticket, signal, tag) = {
            let mut state = self.state.borrow_mut();
            let (ticket, signal) = state.poll.begin();
            (
                ticket,
                signal,
                state.heard.as_ref().map(|(_, tag)| tag.clone()),
            )
        };
        let driver = self.clone();
        spawn_local(async move {
            let order_id = &driver.seed.order_id;
            let polled = api::poll(order_id, tag.as_deref(), signal.as_ref()).await;
            if driver.state.borrow_mut().poll.end(ticket) {
                driver.poll_ended(polled);
            }
        });
    }

    fn poll_ended(&self, polled: Polled) {
        let event = match polled {
            Polled::State(order, tag) => {
                let heard = tag.map(|tag| (order.clone(), tag));
                self.state.borrow_mut().heard = heard;
                Event::PollAnswered(order)
            }
            Polled::Unchanged => {
                let heard = self
                    .state
                    .borrow()
                    .heard
                    .as_ref()
                    .map(|(order, _)| order.clone());
                heard.map_or(Event::PollLost, Event::PollAnswered)
            }
            Polled::Shed(retry_after) => Event::PollShed { retry_after },
            Polled::Lost => Event::PollLost,
        };
        self.feed(event);
    }

    /// Shows what the machine says, and tells of a change once.
    fn show(&self) {
        let before = self.live.screen.get_untracked();
        let screen = {
            let state = self.state.borrow();
            let view = state.machine.view();
            // The order is as if the confirm had never come: the payment that was authenticated for it is still good.
            let untouched = state.refused && view.stage == Stage::Offer;
            Screen {
                view,
                complete: state.complete || (untouched && self.seed.confirm.is_some()),
                notice: state.notice,
            }
        };
        self.keep_ticking(screen.view.progress.is_some());
        if screen == before {
            return;
        }
        let deposit = self.state.borrow().machine.order().cloned();
        self.live
            .deposit
            .set(deposit.and_then(|order| order.deposit));
        // Before the screen changes, since that takes the focused element away.
        self.focus_result(screen.view.stage);
        self.live.screen.set(screen);
        let told = words(&screen, &self.seed);
        if told != words(&before, &self.seed) {
            self.live.said.set(format!("{}. {}", told.0, told.1));
        }
    }

    /// Leads the focus to a result when it is a new one, or when the focus stood on what is gone now.
    fn focus_result(&self, stage: Stage) {
        let mut state = self.state.borrow_mut();
        state.focus_held |= browser::focus_is_within(STAGE_CLASS);
        if waits(stage) {
            return;
        }
        let known = std::mem::replace(&mut state.result, stage);
        let held = std::mem::take(&mut state.focus_held);
        if held || (known != stage && stage != Stage::Offer) {
            // The heading is in the page by the next frame.
            request_animation_frame(|| browser::focus(HEADING_ID));
        }
    }

    fn keep_ticking(&self, wanted: bool) {
        let mut state = self.state.borrow_mut();
        if !wanted {
            state.ticker = None;
            return;
        }
        let (clock, now) = (self.clock, self.live.clock);
        if state.ticker.is_none() {
            now.set(clock.now());
            state.ticker = Some(Interval::new(1_000, move || now.set(clock.now())));
        }
    }
}

//! The checkout page as a machine without I/O: events in, commands out.
//!
//! The browser, the page without script and the lab's shoppers run this same code. What people see is
//! [`Checkout::view`], a function of the state; commands only move bytes and timers.

use crate::time::{Millis, PageTimes};
use crate::view::{Progress, Stage, Standing, View};
use crate::wire::{AttemptView, OrderState, ProblemCode};

/// The bounds of a server's hint when to ask again (spec section 3).
const SHORTEST_HINT: Millis = Millis::from_secs(1);
const LONGEST_HINT: Millis = Millis::from_secs(60);

/// What the confirm's response said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConfirmAnswer {
    /// 200 or 202: the order's state.
    Order(OrderState),
    /// A problem. It speaks of a send, not of the order: the page asks before it offers anything.
    Refused {
        /// Its code; `None` when the answer could not be read.
        code: Option<ProblemCode>,
        /// `Retry-After`, if there was one.
        retry_after: Option<Millis>,
    },
}

/// Something that happened to the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The page was loaded.
    Loaded,
    /// The shopper came back from the payment window, or pressed "confirm again".
    ConfirmStarted {
        /// How long ago this very confirm was begun, by a page that was closed or reloaded meanwhile.
        already: Millis,
    },
    /// The confirm's response came.
    ConfirmAnswered(ConfirmAnswer),
    /// The confirm's response will not come: the connection broke, or the fetch was aborted.
    ConfirmLost,
    /// A poll was answered.
    PollAnswered(OrderState),
    /// A poll was not answered.
    PollLost,
    /// A poll was refused for load: still unknown, ask later.
    PollShed {
        /// `Retry-After`, if there was one.
        retry_after: Option<Millis>,
    },
    /// The page is shown again: from the back/forward cache, or its tab came to the front.
    PageShown,
    /// The timer fired; late, early and doubled wakes are fine.
    Woke,
}

/// What the driver must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// Send the confirm with this much time left in `X-Request-Timeout-Ms`.
    SendConfirm {
        /// Never more than what is left of the whole wait.
        time_left: Millis,
    },
    /// Abort the confirm's fetch; its result is unknown.
    AbortConfirm,
    /// Ask for the order's state.
    Poll,
    /// Abort the poll's fetch.
    AbortPoll,
    /// Wake the machine at this reading of the page clock; replaces any earlier wake.
    WakeAt(Millis),
    /// Keep in the tab's storage that the confirm was begun at this reading, in case the page is reloaded before the
    /// server has heard of it.
    Remember {
        /// The page clock's reading.
        begun: Millis,
    },
    /// Drop what was remembered.
    Forget,
}

/// Why the page is asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asking {
    /// For the result of a confirm.
    Result,
    /// After a refusal: whether the order may be paid again.
    Refusal,
    /// Since the page was shown again.
    Return,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wait {
    begun: Millis,
    already: Millis,
}

impl Wait {
    fn elapsed(self, now: Millis) -> Millis {
        self.already.plus(now.less(self.begun))
    }

    /// The page clock's reading at which `elapsed` is reached.
    fn at(self, elapsed: Millis) -> Millis {
        self.begun.plus(elapsed.less(self.already))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Nothing is under way; what is known stands.
    Idle,
    /// The confirm is in flight.
    Confirming(Wait),
    /// The page asks; `grid` is where the steps are counted from, `next` when the next poll is due.
    Checking {
        wait: Wait,
        asking: Asking,
        grid: Millis,
        next: Millis,
    },
    /// The wait is over; the last poll may still be in flight.
    StillUnknown,
}

/// The checkout page of one order.
#[derive(Debug, Clone)]
pub struct Checkout {
    times: PageTimes,
    phase: Phase,
    order: Option<OrderState>,
    /// The attempt that was known when this page's confirm began: heard of again, it only says that the confirm has not
    /// arrived.
    before: Option<AttemptView>,
    /// When the poll in flight was sent.
    polling: Option<Millis>,
    last_poll: Option<Millis>,
}

impl Checkout {
    /// A page as the server rendered it. `confirming_for` is how long ago the open attempt was claimed, by the server's
    /// clock, so that a reload, a second tab and a page without script all continue one and the same wait. The page clock
    /// starts at zero.
    #[must_use]
    pub fn new(
        times: PageTimes,
        order: Option<OrderState>,
        confirming_for: Option<Millis>,
    ) -> Self {
        let mut page = Self {
            times,
            phase: Phase::Idle,
            order,
            before: None,
            polling: None,
            last_poll: None,
        };
        let doubt = page.order.as_ref().is_some_and(in_doubt);
        if doubt {
            let already = confirming_for.unwrap_or(Millis::ZERO);
            page.phase = if already >= times.total_wait() {
                Phase::StillUnknown
            } else {
                let wait = Wait {
                    begun: Millis::ZERO,
                    already,
                };
                Phase::Checking {
                    wait,
                    asking: Asking::Result,
                    grid: Millis::ZERO,
                    next: Millis::ZERO,
                }
            };
        }
        page
    }

    /// What people see now.
    #[must_use]
    pub fn view(&self) -> View {
        match self.phase {
            Phase::Idle => self.known_view(),
            Phase::Confirming(wait) => self.waiting(Stage::Confirming, wait),
            Phase::Checking {
                wait,
                asking: Asking::Result,
                ..
            } => self.waiting(Stage::Checking, wait),
            Phase::Checking {
                asking: Asking::Refusal | Asking::Return,
                ..
            } => View::plain(Stage::Looking),
            // What is under way is known, however long it takes.
            Phase::StillUnknown => View::plain(self.under_way().unwrap_or(Stage::StillUnknown)),
        }
    }

    /// The order as last heard of.
    #[must_use]
    pub const fn order(&self) -> Option<&OrderState> {
        self.order.as_ref()
    }

    /// Takes one event and returns what to do, the next wake last.
    #[must_use]
    pub fn handle(&mut self, event: Event, now: Millis) -> Vec<Command> {
        let mut commands = Vec::new();
        match event {
            Event::Loaded | Event::Woke => {}
            Event::ConfirmStarted { already } => self.confirm_started(already, now, &mut commands),
            Event::ConfirmAnswered(answer) => self.confirm_answered(answer, now, &mut commands),
            Event::ConfirmLost => self.confirm_lost(now),
            Event::PollAnswered(order) => self.poll_answered(order, now, &mut commands),
            Event::PollLost => self.poll_ended(None, now),
            Event::PollShed { retry_after } => {
                self.poll_ended(Some(retry_after.unwrap_or(self.times.poll_interval)), now);
            }
            Event::PageShown => self.page_shown(now, &mut commands),
        }
        self.keep_time(now, &mut commands);
        commands
    }

    fn known_view(&self) -> View {
        self.order
            .as_ref()
            .map_or(View::plain(Stage::Looking), View::of_known)
    }

    /// What the gateway is doing, where that is no longer a question whether it was paid.
    fn under_way(&self) -> Option<Stage> {
        match Standing::of(self.order.as_ref()?) {
            Standing::ReturningMoney => Some(Stage::ReturningMoney),
            Standing::ClosingAccount => Some(Stage::ClosingAccount),
            _ => None,
        }
    }

    fn waiting(&self, stage: Stage, wait: Wait) -> View {
        let stage = match stage {
            Stage::Checking => self.under_way().unwrap_or(stage),
            _ => stage,
        };
        let progress = Progress {
            begun: wait.begun,
            already: wait.already,
            total: self.times.total_wait(),
        };
        View {
            stage,
            progress: Some(progress),
            button: None,
        }
    }

    /// A confirm may start only where the order is proven not charged, and never while one is under way.
    fn confirm_started(&mut self, already: Millis, now: Millis, commands: &mut Vec<Command>) {
        let proven = self
            .order
            .as_ref()
            .is_some_and(|order| matches!(Standing::of(order), Standing::NotCharged(..)));
        if self.phase != Phase::Idle || !proven {
            return;
        }
        let total = self.times.total_wait();
        // What an abandoned page began longer ago than a whole wait is over: this is a new wait.
        let already = if already >= total {
            Millis::ZERO
        } else {
            already
        };
        let wait = Wait {
            begun: now,
            already,
        };
        self.phase = Phase::Confirming(wait);
        self.before = self.order.as_ref().and_then(|order| order.attempt.clone());
        commands.push(Command::Remember {
            begun: now.less(already),
        });
        commands.push(Command::SendConfirm {
            time_left: total.less(already),
        });
    }

    fn confirm_answered(
        &mut self,
        answer: ConfirmAnswer,
        now: Millis,
        commands: &mut Vec<Command>,
    ) {
        // An answer after the wait for it was given up is as good as none: the polls tell.
        let Phase::Confirming(wait) = self.phase else {
            return;
        };
        match answer {
            ConfirmAnswer::Order(order) => {
                let hint = Millis::new(order.poll_after_ms);
                let known = !in_doubt(&order);
                self.order = Some(order);
                if known {
                    self.know(commands);
                } else {
                    let next = now.plus(self.step(Some(hint)));
                    self.phase = Phase::Checking {
                        wait,
                        asking: Asking::Result,
                        grid: now,
                        next,
                    };
                }
            }
            ConfirmAnswer::Refused { code, retry_after } => {
                let asking = if code.is_some() {
                    Asking::Refusal
                } else {
                    Asking::Result
                };
                // Only a refusal for load asks for patience; every other answer is followed up at once.
                let patience = matches!(
                    code,
                    Some(ProblemCode::Overloaded | ProblemCode::RateLimited)
                );
                let next = if patience {
                    now.plus(self.step(retry_after))
                } else {
                    now
                };
                self.phase = Phase::Checking {
                    wait,
                    asking,
                    grid: now,
                    next,
                };
            }
        }
    }

    fn confirm_lost(&mut self, now: Millis) {
        let Phase::Confirming(wait) = self.phase else {
            return;
        };
        let next = now.plus(self.times.poll_interval);
        self.phase = Phase::Checking {
            wait,
            asking: Asking::Result,
            grid: now,
            next,
        };
    }

    fn poll_answered(&mut self, order: OrderState, now: Millis, commands: &mut Vec<Command>) {
        if matches!(self.phase, Phase::Confirming(_)) {
            return;
        }
        let hint = Millis::new(order.poll_after_ms);
        let settled = match self.phase {
            // While a confirm of this page may still be on its way, "ready", or the failure before it, only says that it
            // has not arrived.
            Phase::Checking {
                wait,
                asking: Asking::Result,
                ..
            } => {
                let before = self.before.is_some() && order.attempt == self.before;
                let ready = before || View::of_known(&order).stage == Stage::Offer;
                let over = wait.elapsed(now) >= self.times.total_wait();
                !in_doubt(&order) && (!ready || over)
            }
            Phase::Checking { .. } | Phase::StillUnknown | Phase::Idle => !in_doubt(&order),
            Phase::Confirming(_) => false,
        };
        self.order = Some(order);
        if settled {
            self.polling = None;
            self.know(commands);
            return;
        }
        if let Phase::Checking {
            wait,
            asking: Asking::Refusal | Asking::Return,
            grid,
            next,
        } = self.phase
        {
            // Somebody else's confirm is under way: from here on this is a wait for its result.
            self.phase = Phase::Checking {
                wait,
                asking: Asking::Result,
                grid,
                next,
            };
        }
        self.poll_ended(Some(hint), now);
    }

    /// The poll in flight is over without a result.
    fn poll_ended(&mut self, hint: Option<Millis>, now: Millis) {
        let sent = self.polling.take();
        if let Phase::Checking { grid, next, .. } = &mut self.phase {
            let interval = self.times.poll_interval;
            let hint = hint.map_or(interval, |hint| hint.clamp(SHORTEST_HINT, LONGEST_HINT));
            *next = if hint > interval {
                sent.unwrap_or(now).plus(hint)
            } else {
                next_on_grid(*grid, interval, now)
            };
        }
    }

    fn page_shown(&mut self, now: Millis, commands: &mut Vec<Command>) {
        match &mut self.phase {
            Phase::Confirming(_) => {}
            Phase::Checking { next, .. } => *next = now.max(recently(self.last_poll)),
            Phase::StillUnknown => {
                if self.polling.is_none() && now >= recently(self.last_poll) {
                    self.send_poll(now, commands);
                }
            }
            // What is final and offers nothing needs no second look: a lost poll must not cast doubt on it.
            Phase::Idle => {
                let final_word = self.order.is_some() && self.known_view().button.is_none();
                if self.polling.is_none() && !final_word {
                    let wait = Wait {
                        begun: now,
                        already: Millis::ZERO,
                    };
                    let next = now.max(recently(self.last_poll));
                    self.phase = Phase::Checking {
                        wait,
                        asking: Asking::Return,
                        grid: now,
                        next,
                    };
                }
            }
        }
    }

    fn know(&mut self, commands: &mut Vec<Command>) {
        self.phase = Phase::Idle;
        self.before = None;
        commands.push(Command::Forget);
    }

    fn step(&self, hint: Option<Millis>) -> Millis {
        hint.map_or(self.times.poll_interval, |hint| {
            hint.clamp(SHORTEST_HINT, LONGEST_HINT)
                .max(self.times.poll_interval)
        })
    }

    fn send_poll(&mut self, now: Millis, commands: &mut Vec<Command>) {
        self.polling = Some(now);
        self.last_poll = Some(now);
        commands.push(Command::Poll);
    }

    /// Does what is due at `now` and names the next wake. Called after every event, so a wake needs no code of its own.
    fn keep_time(&mut self, now: Millis, commands: &mut Vec<Command>) {
        if let Phase::Confirming(wait) = self.phase {
            // The response is waited for from this page's own send; what went before it shortens only the whole wait.
            let give_up = wait
                .begun
                .plus(self.times.response_wait)
                .min(wait.at(self.times.total_wait()));
            if now < give_up {
                commands.push(Command::WakeAt(give_up));
                return;
            }
            commands.push(Command::AbortConfirm);
            let grid = give_up;
            // A wake that came late has missed steps of the grid: ask at once.
            let first = grid.plus(self.times.poll_interval);
            let next = if first < now { now } else { first };
            self.phase = Phase::Checking {
                wait,
                asking: Asking::Result,
                grid,
                next,
            };
        }
        if let Some(sent) = self.polling {
            let limit = sent.plus(self.times.poll_limit);
            if now < limit {
                self.wake_with_poll_in_flight(limit, commands);
                return;
            }
            commands.push(Command::AbortPoll);
            self.poll_ended(None, now);
        }
        let Phase::Checking { wait, next, .. } = self.phase else {
            return;
        };
        let end = wait.at(self.times.total_wait());
        if now >= end {
            // The last poll is sent in any case; what it says still counts, but the waiting is over.
            self.phase = Phase::StillUnknown;
            self.send_poll(now, commands);
        } else if now >= next {
            self.send_poll(now, commands);
        } else {
            commands.push(Command::WakeAt(next.min(end)));
            return;
        }
        self.wake_with_poll_in_flight(now.plus(self.times.poll_limit), commands);
    }

    fn wake_with_poll_in_flight(&self, limit: Millis, commands: &mut Vec<Command>) {
        commands.push(Command::WakeAt(limit));
    }
}

fn in_doubt(order: &OrderState) -> bool {
    matches!(
        Standing::of(order),
        Standing::InDoubt | Standing::ReturningMoney | Standing::ClosingAccount
    )
}

/// The first step after `now`, counted from `grid`.
fn next_on_grid(grid: Millis, interval: Millis, now: Millis) -> Millis {
    let steps = now.less(grid).get() / interval.get().max(1) + 1;
    grid.plus(Millis::new(interval.get().saturating_mul(steps)))
}

/// The earliest moment for another poll: never more than one a second, whatever events come.
fn recently(last_poll: Option<Millis>) -> Millis {
    last_poll.map_or(Millis::ZERO, |sent| sent.plus(SHORTEST_HINT))
}

//! The payment gateway: authenticates, confirms, tells, gives back, and breaks its promises when a fault strikes. It goes
//! on with a call whose caller hung up, and never dies with a node.

use std::sync::Arc;

use crate::fault::Fault;
use crate::ledger::{Charge, Payment, Said, Send, Way};
use crate::world::{World, lock};
use crate::{hooks, world};

/// What comes back on the wire of a confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    Said(Said),
    /// 429.
    TooMany,
    /// 409: the same key is being worked on.
    InProgress,
    /// 500.
    Error,
    /// Something that cannot be read.
    Garbled,
    /// Nothing: the connection broke.
    Broken,
    /// Nothing, ever.
    Silence,
}

/// What an inquiry finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Nothing,
    Pending,
    Declined,
    Lapsed,
    Charged { amount: u64, canceled: u64 },
}

/// A confirm on the wire.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    pub(crate) key: String,
    pub(crate) order_id: String,
    pub(crate) amount: u64,
    pub(crate) idem: String,
}

/// A cancel on the wire.
#[derive(Debug, Clone)]
pub(crate) struct Back {
    /// All that is left when absent.
    pub(crate) amount: Option<u64>,
    /// What must be left of the charge, else nothing is done.
    pub(crate) balance: Option<u64>,
    pub(crate) reason: String,
    pub(crate) idem: String,
}

/// What became of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gave {
    /// Done, now or before: what the gateway holds now.
    Now { amount: u64, canceled: u64 },
    /// Another amount is left than the call says: nothing was done.
    AnotherBalance,
    /// There is nothing to give back.
    Nothing,
}

impl World {
    /// The shopper authenticates a payment; returns its key.
    pub(crate) fn authenticate(&self, order: &str, order_id: &str, amount: u64) -> String {
        let now = self.now().get();
        let mut ledger = lock(&self.ledger);
        let key = format!("pk_{}", ledger.payments.len() + 1);
        let payment = Payment {
            order_id: order_id.to_owned(),
            order: order.to_owned(),
            amount,
            window_until: now + self.plan.times.confirm_window.get(),
            declined: false,
            charges: Vec::new(),
        };
        ledger.payments.insert(key.clone(), payment);
        drop(ledger);
        self.note("bank", format_args!("{key} authenticated for {order_id}"));
        key
    }

    /// Puts a confirm on the wire. Returns its number in the books.
    pub(crate) fn send_off(&self, wire: &Wire) -> usize {
        let now = self.now().get();
        let mut ledger = lock(&self.ledger);
        ledger.sends.push(Send {
            key: wire.key.clone(),
            idem: wire.idem.clone(),
            way: Way::Travelling,
            late: false,
        });
        if let Some(order) = ledger.order_of(&wire.key) {
            ledger.follow(&order, now);
        }
        ledger.sends.len() - 1
    }

    /// Notes how far a send has come.
    fn set_way(&self, send: usize, way: Way, late: bool) {
        let now = self.now().get();
        let mut ledger = lock(&self.ledger);
        let key = {
            let send = &mut ledger.sends[send];
            send.way = way;
            send.late |= late;
            send.key.clone()
        };
        if let Some(order) = ledger.order_of(&key) {
            ledger.follow(&order, now);
        }
    }

    /// Works on a confirm from the wire to the answer.
    pub(crate) async fn serve_confirm(self: Arc<Self>, send: usize, wire: Wire) -> Reply {
        self.pause(1, 30).await;
        if self.strikes(Fault::CallLost) {
            self.set_way(send, Way::Over, false);
            return if self.perhaps(0.5) {
                Reply::Broken
            } else {
                Reply::Silence
            };
        }
        let arrived = self.now().get();
        self.set_way(send, Way::Working, false);
        self.note("bank", format_args!("confirm {} {}", wire.key, wire.idem));
        while lock(&self.nodes).bank_stopped {
            self.pause(200, 600).await;
        }
        if let Some(reply) = self.refuse_at_the_door(&wire) {
            self.set_way(send, Way::Over, false);
            return reply;
        }
        let late = self.work(send).await;
        let said = self.decide(&wire, arrived, late);
        lock(&self.ledger)
            .idem
            .insert(wire.idem.clone(), Some(said));
        self.set_way(send, Way::Over, late);
        self.note("bank", format_args!("{} is {said:?}", wire.key));
        if let Said::Charged(_) = said {
            let order = lock(&self.ledger).order_of(&wire.key).unwrap_or_default();
            self.check_booked(&order, &wire.idem, late);
        }
        if said != Said::Processed {
            hooks::tell(&self, &wire.key, &wire.order_id, late);
        }
        self.pause(1, 30).await;
        if self.strikes(Fault::AnswerLost) {
            return if self.perhaps(0.5) {
                Reply::Broken
            } else {
                Reply::Silence
            };
        }
        if self.strikes(Fault::ErrorAfter) {
            return Reply::Error;
        }
        if self.strikes(Fault::AnswerGarbled) {
            return Reply::Garbled;
        }
        Reply::Said(said)
    }

    /// What is said before anything is processed; else the key is bound to this work.
    fn refuse_at_the_door(&self, wire: &Wire) -> Option<Reply> {
        if self.strikes(Fault::GatewayBusy) {
            return Some(Reply::TooMany);
        }
        if self.strikes(Fault::ErrorBefore) {
            return Some(Reply::Error);
        }
        if self.strikes(Fault::FalseInProgress) {
            return Some(Reply::InProgress);
        }
        if self.plan.keyless {
            return None;
        }
        let mut ledger = lock(&self.ledger);
        match ledger.idem.get(&wire.idem) {
            Some(Some(said)) => Some(Reply::Said(*said)),
            Some(None) => Some(Reply::InProgress),
            None => {
                ledger.idem.insert(wire.idem.clone(), None);
                None
            }
        }
    }

    /// Takes its time; true when it took longer than any promise.
    async fn work(&self, send: usize) -> bool {
        let times = &self.plan.times;
        if self.strikes(Fault::VeryLateBooking) {
            self.set_way(send, Way::Working, true);
            let settles = times.settling_time().get() + 3 * times.database_wait.get();
            self.pause(settles + 5_000, settles + 60_000).await;
            return true;
        }
        if self.strikes(Fault::GatewaySlow) {
            let longest = (times.pg_timeout.get() * 3 / 2).min(times.confirm_window.get() / 3);
            self.pause(times.pg_timeout.get() / 20, longest).await;
        } else {
            self.pause(5, 300).await;
        }
        false
    }

    fn decide(&self, wire: &Wire, arrived: u64, late: bool) -> Said {
        let declined = self.strikes(Fault::Declined);
        let wrong = self.strikes(Fault::WrongAmount);
        let hidden = self.strikes(Fault::NotFoundYet);
        let now = self.now().get();
        let seen_from = if hidden {
            now + self.draw(500, self.plan.times.pg_timeout.get().min(8_000))
        } else {
            now
        };
        let mut ledger = lock(&self.ledger);
        let Some(payment) = ledger.payments.get_mut(&wire.key) else {
            return Said::Declined;
        };
        if payment.declined {
            return Said::Declined;
        }
        if !payment.charges.is_empty() && self.plan.charges_once {
            return Said::Processed;
        }
        if arrived >= payment.window_until {
            return Said::Lapsed;
        }
        // Another order or amount than was authenticated is refused, as the real one does.
        if declined || payment.order_id != wire.order_id || payment.amount != wire.amount {
            payment.declined = true;
            return Said::Declined;
        }
        let amount = if wrong {
            wire.amount + 100
        } else {
            wire.amount
        };
        payment.charges.push(Charge {
            idem: wire.idem.clone(),
            amount,
            canceled: 0,
            gave: Vec::new(),
            seen_from,
            late,
        });
        let order = payment.order.clone();
        ledger.follow(&order, now);
        Said::Charged(amount)
    }

    /// What an inquiry sees at this moment.
    pub(crate) fn look_up(&self, key: &str) -> Known {
        let now = self.now().get();
        let ledger = lock(&self.ledger);
        let Some(payment) = ledger.payments.get(key) else {
            return Known::Nothing;
        };
        if let Some(charge) = payment.charges.first() {
            return if charge.seen_from <= now {
                Known::Charged {
                    amount: charge.amount,
                    canceled: charge.canceled,
                }
            } else {
                Known::Nothing
            };
        }
        let working = ledger
            .sends
            .iter()
            .any(|send| send.key == key && send.way == Way::Working);
        if payment.declined {
            Known::Declined
        } else if now >= payment.window_until && !working {
            Known::Lapsed
        } else {
            Known::Pending
        }
    }

    /// The reasons of all that was given back of a payment.
    pub(crate) fn given_back(&self, key: &str) -> Vec<String> {
        let ledger = lock(&self.ledger);
        let payment = ledger.payments.get(key);
        let charges = payment.into_iter().flat_map(|payment| &payment.charges);
        charges.flat_map(|charge| charge.gave.clone()).collect()
    }

    /// Gives money back once per key, where there are keys; the balance that the call names is a lock everywhere.
    pub(crate) fn give_back(&self, key: &str, back: &Back) -> Gave {
        let now = self.now().get();
        let mut ledger = lock(&self.ledger);
        let replay = !self.plan.keyless && ledger.cancels.contains_key(&back.idem);
        let Some(payment) = ledger.payments.get_mut(key) else {
            return Gave::Nothing;
        };
        let (order, order_amount) = (payment.order.clone(), payment.amount);
        if replay {
            let charge = payment.charges.first();
            return charge.map_or(Gave::Nothing, |charge| Gave::Now {
                amount: charge.amount,
                canceled: charge.canceled,
            });
        }
        let Some(charge) = payment.charges.iter_mut().find(|charge| charge.stands()) else {
            return Gave::Nothing;
        };
        let left = charge.amount - charge.canceled;
        let wanted = back.amount.unwrap_or(left);
        if back.balance.is_some_and(|balance| balance != left) || wanted > left {
            return Gave::AnotherBalance;
        }
        let again = charge.gave.contains(&back.reason);
        charge.canceled += wanted;
        charge.gave.push(back.reason.clone());
        let charge = charge.clone();
        ledger.cancels.insert(back.idem.clone(), wanted);
        ledger.follow(&order, now);
        drop(ledger);
        self.note("bank", format_args!("{key} gave {wanted} back"));
        if again {
            self.wrong(format_args!("{} was carried out twice", back.reason));
        }
        self.check_given_back(order_amount, &charge);
        Gave::Now {
            amount: charge.amount,
            canceled: charge.canceled,
        }
    }
}

/// Stops and restarts the gateway while faults strike.
pub(crate) async fn weather(world: Arc<World>) {
    while !world.is_calm() {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        if world.strikes(Fault::GatewayStops) {
            lock(&world.nodes).bank_stopped = true;
            let longest = world.plan.times.confirm_window.get() / 3;
            let length = world.draw(500, longest.min(40_000));
            world.note("bank", format_args!("stops for {length} ms"));
            tokio::time::sleep(std::time::Duration::from_millis(length)).await;
            world::lock(&world.nodes).bank_stopped = false;
            world.note("bank", format_args!("answers again"));
        }
    }
}

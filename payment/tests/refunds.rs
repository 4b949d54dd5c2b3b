//! Refunds under any mixture of wishes, refunds at the gateway's desk, lost answers and refusals.

use payment::attempt::{Attempt, AttemptStatus, Event, Finding, LateSuccess, Source};
use payment::money::{Money, Won};
use payment::refund::{Heard, Refund, RefundStatus, RefusedFor, begin_next, follow, free_balance};
use proptest::prelude::*;

const CHARGE: i64 = 10_000;

fn won(amount: i64) -> Won {
    Won::new(amount).expect("a valid value")
}

fn apply(attempt: Attempt, event: Event) -> Attempt {
    attempt.apply(event, LateSuccess::Cancel).next
}

fn charged(canceled: Won) -> Event {
    let finding = Finding::Charged {
        charged: Money::won(won(CHARGE)),
        canceled,
    };
    Event::Found(finding, Source::Inquiry)
}

fn paid() -> Attempt {
    let claimed = apply(Attempt::new(Money::won(won(CHARGE))), Event::Claimed);
    apply(claimed, charged(Won::ZERO))
}

/// A shop that drives refunds, and a gateway that keeps its own books.
struct World {
    attempt: Attempt,
    refunds: Vec<Refund>,
    /// What the gateway gave back: each call by its refund and key, and what was given back at its desk.
    executed: Vec<(usize, Won)>,
    desk: Won,
    /// The calls that the gateway has refused: their keys are dead.
    dead: Vec<(usize, u32)>,
}

#[derive(Debug, Clone, Copy)]
enum Happens {
    Asked(i64, bool),
    AtTheDesk(i64),
    /// The call is made; whether the gateway has time for it, and whether its answer is heard.
    Called {
        executed: bool,
        heard: bool,
    },
    RefusedForGood,
    Inquired,
}

impl World {
    fn given_back(&self) -> Won {
        let calls = self.executed.iter().map(|(_, amount)| *amount);
        calls.fold(self.desk, |sum, amount| {
            sum.plus(amount).expect("within the charge")
        })
    }

    fn asked(&self) -> Option<usize> {
        let asked = |refund: &Refund| refund.status == RefundStatus::Asked;
        self.refunds.iter().position(asked)
    }

    fn learn(&mut self, event: Event, heard: impl Fn(usize) -> Heard) {
        let attempt = apply(self.attempt, event);
        let heard: Vec<_> = (0..self.refunds.len()).map(heard).collect();
        (self.attempt, self.refunds) = follow(attempt, &self.refunds, &heard);
    }

    fn inquire(&mut self) {
        let done: Vec<usize> = self.executed.iter().map(|(refund, _)| *refund).collect();
        let listed = |n: usize| {
            if done.contains(&n) {
                Heard::Done
            } else {
                Heard::NotListed
            }
        };
        self.learn(charged(self.given_back()), listed);
    }

    fn call(&mut self, executed: bool, heard: bool) {
        let Some(n) = self.asked() else { return };
        let refund = self.refunds[n];
        let already = self.executed.iter().any(|(refund, _)| *refund == n);
        let locked = won(CHARGE).less(self.given_back()) == refund.lock;
        let dead = self.dead.contains(&(n, refund.keys));
        if !already && !locked && executed {
            self.dead.push((n, refund.keys));
        }
        if !already && locked && !dead && executed {
            self.executed.push((n, refund.amount));
        }
        if heard && self.executed.iter().any(|(refund, _)| *refund == n) {
            let event = charged(self.given_back());
            self.learn(event, |other| {
                if other == n {
                    Heard::Done
                } else {
                    Heard::Nothing
                }
            });
        }
    }

    fn happens(&mut self, what: Happens) {
        match what {
            Happens::Asked(amount, whole) => {
                let free = free_balance(&self.attempt, &self.refunds);
                let amount = if whole { free } else { won(amount) };
                if amount == Won::ZERO || amount > free {
                    return;
                }
                let refund = Refund {
                    status: RefundStatus::Waiting,
                    amount,
                    whole,
                    lock: Won::ZERO,
                    keys: 1,
                };
                self.refunds.push(refund);
                (self.attempt, self.refunds) = begin_next(self.attempt, self.refunds.clone());
            }
            Happens::AtTheDesk(amount) => {
                let left = won(CHARGE).less(self.given_back());
                self.desk = self.desk.plus(won(amount).min(left)).expect("fits");
            }
            Happens::Called { executed, heard } => self.call(executed, heard),
            Happens::RefusedForGood => {
                let Some(n) = self.asked() else { return };
                if self.executed.iter().any(|(refund, _)| *refund == n) {
                    return;
                }
                self.learn(Event::CancelRefused, |other| {
                    if other == n {
                        Heard::Refused
                    } else {
                        Heard::Nothing
                    }
                });
            }
            Happens::Inquired => self.inquire(),
        }
    }

    fn check(&self) {
        assert!(self.given_back() <= won(CHARGE), "more than the charge");
        for n in 0..self.refunds.len() {
            let times = self.executed.iter().filter(|(refund, _)| *refund == n);
            assert!(times.count() <= 1, "refund {n} was executed twice");
        }
        let asked = self
            .refunds
            .iter()
            .filter(|r| r.status == RefundStatus::Asked);
        assert!(asked.count() <= 1, "two cancels under way");
        assert_eq!(
            self.asked().is_some(),
            self.attempt.status == AttemptStatus::CancelRequested
        );
        if self.asked().is_none() {
            let waits = |r: &Refund| r.status == RefundStatus::Waiting;
            assert!(
                !self.refunds.iter().any(waits),
                "something waits for nothing"
            );
        }
    }
}

fn anything() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => (1_i64..6_000, prop::bool::weighted(0.2)).prop_map(|(amount, whole)| Happens::Asked(amount, whole)),
        1 => (1_i64..4_000).prop_map(Happens::AtTheDesk),
        5 => (any::<bool>(), any::<bool>()).prop_map(|(executed, heard)| Happens::Called { executed, heard }),
        1 => Just(Happens::RefusedForGood),
        2 => Just(Happens::Inquired),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn refunds_never_exceed_the_charge_happen_once_and_all_come_to_an_end(all in prop::collection::vec(anything(), 0..40)) {
        let mut world = World {
            attempt: paid(),
            refunds: Vec::new(),
            executed: Vec::new(),
            desk: Won::ZERO,
            dead: Vec::new(),
        };
        for what in all {
            world.happens(what);
            world.check();
        }
        // A gateway that works: each call is executed and heard, each inquiry answered.
        for _ in 0..100 {
            if world.asked().is_none() {
                break;
            }
            world.inquire();
            world.check();
            world.call(true, true);
            world.check();
        }
        world.inquire();
        prop_assert!(world.refunds.iter().all(|refund| !refund.status.is_open()), "{:?}", world.refunds);
        prop_assert_eq!(world.attempt.canceled, world.given_back());
        // What is told as done is what the gateway did, and nothing else.
        for (n, refund) in world.refunds.iter().enumerate() {
            let executed = world.executed.iter().find(|(refund, _)| *refund == n);
            prop_assert_eq!(refund.status == RefundStatus::Done, executed.is_some(), "refund {}", n);
            if let Some((_, amount)) = executed {
                prop_assert_eq!(refund.amount, *amount);
            }
        }
    }
}

fn asked(amount: i64, lock: i64) -> Refund {
    Refund {
        status: RefundStatus::Asked,
        amount: won(amount),
        whole: false,
        lock: won(lock),
        keys: 1,
    }
}

#[test]
fn as_much_given_back_at_the_desk_is_not_taken_for_our_own_cancel() {
    let attempt = apply(paid(), Event::CancelAsked(won(3_000)));
    let attempt = apply(attempt, charged(won(3_000)));
    let (attempt, refunds) = follow(attempt, &[asked(3_000, 10_000)], &[Heard::NotListed]);
    assert_eq!(attempt.status, AttemptStatus::CancelRequested);
    let again = Refund {
        keys: 2,
        ..asked(3_000, 7_000)
    };
    assert_eq!(refunds, [again]);
}

#[test]
fn a_gateway_without_a_list_is_believed_by_its_balance() {
    let attempt = apply(paid(), Event::CancelAsked(won(3_000)));
    let attempt = apply(attempt, charged(won(3_000)));
    let (attempt, refunds) = follow(attempt, &[asked(3_000, 10_000)], &[Heard::Nothing]);
    assert_eq!(attempt.status, AttemptStatus::PartiallyCanceled);
    assert_eq!(refunds[0].status, RefundStatus::Done);
}

#[test]
fn less_than_a_refund_given_back_at_a_gateway_without_a_list_is_not_that_refund() {
    for (desk, expected) in [(2_999, 7_001), (1, 9_999)] {
        let attempt = apply(paid(), Event::CancelAsked(won(3_000)));
        let attempt = apply(attempt, charged(won(desk)));
        let (attempt, refunds) = follow(attempt, &[asked(3_000, 10_000)], &[Heard::Nothing]);
        assert_eq!(attempt.status, AttemptStatus::CancelRequested);
        let again = Refund {
            keys: 2,
            ..asked(3_000, expected)
        };
        assert_eq!(refunds, [again], "{desk}");
    }
    // Nothing, or more than it, settles nothing: the call is made again under the lock that it has.
    for desk in [0, 3_001, 9_999] {
        let attempt = apply(paid(), Event::CancelAsked(won(3_000)));
        let attempt = apply(attempt, charged(won(desk)));
        let (_, refunds) = follow(attempt, &[asked(3_000, 10_000)], &[Heard::Nothing]);
        assert_eq!(refunds, [asked(3_000, 10_000)], "{desk}");
    }
}

#[test]
fn all_given_back_at_the_desk_ends_what_was_asked_for() {
    let attempt = apply(paid(), Event::CancelAsked(won(3_000)));
    let attempt = apply(attempt, charged(won(CHARGE)));
    let (attempt, refunds) = follow(attempt, &[asked(3_000, 10_000)], &[Heard::NotListed]);
    assert_eq!(attempt.status, AttemptStatus::Canceled);
    let elsewhere = RefundStatus::Refused(RefusedFor::GivenBackElsewhere);
    assert_eq!(refunds[0].status, elsewhere);
}

#[test]
fn a_refund_that_is_under_way_holds_whatever_the_balance_says() {
    for fallen in [0, 1, 3_000, 9_999] {
        let attempt = apply(paid(), Event::CancelAsked(won(3_000)));
        let attempt = apply(attempt, charged(won(fallen)));
        let (attempt, refunds) = follow(attempt, &[asked(3_000, 10_000)], &[Heard::UnderWay]);
        assert_eq!(attempt.status, AttemptStatus::CancelRequested);
        assert_eq!(refunds, [asked(3_000, 10_000)], "{fallen}");
    }
}

#[test]
fn a_refund_that_is_aborted_is_refused_and_the_next_begins() {
    let attempt = apply(paid(), Event::CancelAsked(won(3_000)));
    let attempt = apply(attempt, charged(Won::ZERO));
    let waiting = Refund {
        status: RefundStatus::Waiting,
        ..asked(2_000, 0)
    };
    let heard = [Heard::Aborted, Heard::NotListed];
    let (attempt, refunds) = follow(attempt, &[asked(3_000, 10_000), waiting], &heard);
    assert_eq!(attempt.status, AttemptStatus::CancelRequested);
    let refused = RefundStatus::Refused(RefusedFor::Gateway);
    assert_eq!(refunds[0].status, refused);
    assert_eq!(refunds[1], asked(2_000, 10_000));
    // Alone, it leads back to where it came from.
    let attempt = apply(paid(), Event::CancelAsked(won(3_000)));
    let attempt = apply(attempt, charged(Won::ZERO));
    let (attempt, refunds) = follow(attempt, &[asked(3_000, 10_000)], &[Heard::Aborted]);
    assert_eq!(attempt.status, AttemptStatus::Approved);
    assert_eq!(refunds[0].status, refused);
}

#[test]
fn every_status_is_read_back() {
    for status in RefundStatus::ALL {
        assert_eq!(RefundStatus::parse(status.as_str()), Some(status));
    }
}

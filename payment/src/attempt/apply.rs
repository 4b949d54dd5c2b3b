//! What each event does to an attempt: the one place where what was learned about money becomes a state.

use super::{
    Alarm, Attempt, AttemptStatus, CameFrom, Event, Finding, LateSuccess, OperatorWord, Source,
    Step,
};
use crate::money::{Money, Won};
use crate::reach::{NotSent, Reach, Reason};

impl Attempt {
    /// Applies one event. Every state meets every event; what changes nothing says so.
    #[must_use]
    pub fn apply(&self, event: Event, late: LateSuccess) -> Step {
        match event {
            Event::Claimed => self.claimed(),
            Event::WindowClosed => self.window_closed(),
            Event::SendRefused(why) => self.send_refused(why),
            Event::RefusedByGateway => self.refused_by_gateway(),
            Event::AnswerLost(how) => {
                self.in_doubt(Reason::Lost(how), how.reach(), "the answer was lost")
            }
            Event::Interrupted => self.in_doubt(
                Reason::Interrupted,
                Reach::MayHaveBeenSent,
                "the process died after the claim",
            ),
            Event::Found(finding, source) => self.found(finding, source, late),
            Event::OperatorSaid(word) => self.operator_said(word),
            Event::CancelAsked(amount) => self.cancel_asked(amount),
            Event::CloseAsked => self.close_asked(),
            Event::CancelRefused => self.cancel_refused(),
            Event::CancelEnded => self.cancel_ended(),
        }
    }

    const fn stay(&self, why: &'static str) -> Step {
        Step {
            next: *self,
            alarm: None,
            why,
        }
    }

    fn to(&self, status: AttemptStatus, reason: Option<Reason>, why: &'static str) -> Step {
        Step {
            next: Self {
                status,
                reason,
                ..*self
            },
            alarm: None,
            why,
        }
    }

    fn claimed(&self) -> Step {
        if self.status != AttemptStatus::Ready {
            return self.stay("only a ready attempt can be claimed");
        }
        let mut step = self.to(AttemptStatus::Approving, None, "claimed by a confirm");
        step.next.reach = Reach::MayHaveBeenSent;
        step
    }

    fn window_closed(&self) -> Step {
        if self.status != AttemptStatus::Ready {
            return self.stay("only a ready attempt can lapse by our clock");
        }
        self.to(
            AttemptStatus::Expired,
            Some(Reason::WindowClosed),
            "the payment window closed unused",
        )
    }

    fn send_refused(&self, why: NotSent) -> Step {
        if self.status != AttemptStatus::Approving {
            return self.stay("only the first send of an approving attempt can be proven not sent");
        }
        let mut step = self.to(
            AttemptStatus::Failed,
            Some(Reason::NotSent(why)),
            "nothing was sent to the gateway",
        );
        step.next.reach = Reach::NotSent;
        step
    }

    fn refused_by_gateway(&self) -> Step {
        if self.status != AttemptStatus::Approving {
            return self.stay("a refusal before processing says nothing about another send");
        }
        let mut step = self.to(
            AttemptStatus::Failed,
            Some(Reason::PgRefused),
            "the gateway refused the only send before processing it",
        );
        step.next.reach = Reach::Answered;
        step
    }

    fn in_doubt(&self, reason: Reason, reach: Reach, why: &'static str) -> Step {
        if self.status != AttemptStatus::Approving {
            return self.stay("already past approving");
        }
        let mut step = self.to(AttemptStatus::Unknown, Some(reason), why);
        step.next.reach = self.reach.max(reach);
        step
    }

    fn found(&self, finding: Finding, source: Source, late: LateSuccess) -> Step {
        match finding {
            Finding::Charged { charged, canceled } => self.charged(charged, canceled, late),
            Finding::AwaitingDeposit => self.awaiting_deposit(),
            Finding::Closed => self.account_closed(late),
            Finding::Declined(class) => {
                self.not_charged(Reason::Declined(class), source, "the gateway declined")
            }
            Finding::Lapsed => {
                self.not_charged(Reason::PgExpired, source, "the gateway let it lapse")
            }
            Finding::Pending { settled } | Finding::NotFound { settled } => {
                self.no_charge_seen(settled)
            }
        }
    }

    /// The gateway holds a charge: facts join, and the one that gave more back is the newer one.
    fn charged(&self, charged: Money, canceled: Won, late: LateSuccess) -> Step {
        if self.charged.is_some_and(|money| money != charged) {
            let alarm = Some(Alarm::Conflict);
            return Step {
                alarm,
                ..self.stay("the gateway names another amount than before")
            };
        }
        let mut next = *self;
        next.reach = Reach::Answered;
        next.charged = Some(charged);
        next.canceled = self.canceled.max(canceled);
        match self.status {
            AttemptStatus::Ready | AttemptStatus::Approving | AttemptStatus::Unknown => {
                next.first_charge()
            }
            AttemptStatus::AwaitingDeposit => {
                next.deposit = true;
                next.first_charge()
            }
            // Closed before anybody paid into its account, and paid all the same: it is over, so the money goes back.
            AttemptStatus::Canceled if self.charged.is_none() => {
                next.late_success(self, LateSuccess::Cancel)
            }
            AttemptStatus::Approved
            | AttemptStatus::PartiallyCanceled
            | AttemptStatus::Canceled
            | AttemptStatus::Mischarged => next.more_given_back(),
            // Somebody paid before the account could be closed: that pays the order.
            AttemptStatus::CancelRequested if self.closes_account() => Self {
                cancel: None,
                ..next
            }
            .first_charge(),
            AttemptStatus::CancelRequested => next.cancel_seen(),
            AttemptStatus::Failed | AttemptStatus::Expired => next.late_success(self, late),
        }
    }

    /// From "no charge known" to what the gateway holds now. `self` carries the facts already.
    fn first_charge(self) -> Step {
        let charged = self.charged.unwrap_or(self.expected);
        if charged != self.expected {
            let next = Self { void: true, ..self };
            if self.canceled >= charged.amount {
                return next.to(
                    AttemptStatus::Canceled,
                    Some(Reason::WrongAmount),
                    "a wrong charge, given back",
                );
            }
            let alarm = Some(Alarm::WrongAmount);
            let reason = Some(Reason::WrongAmount);
            return Step {
                alarm,
                ..next.to(
                    AttemptStatus::Mischarged,
                    reason,
                    "another amount was charged",
                )
            };
        }
        self.given_back()
    }

    /// The state of a right charge after what was given back of it.
    fn given_back(self) -> Step {
        let amount = self.charged.unwrap_or(self.expected).amount;
        let next = Self {
            cancel: None,
            ..self
        };
        if self.canceled >= amount {
            next.to(
                AttemptStatus::Canceled,
                None,
                "the gateway has given all of it back",
            )
        } else if self.canceled > Won::ZERO {
            next.to(
                AttemptStatus::PartiallyCanceled,
                None,
                "the gateway has given part of it back",
            )
        } else {
            next.to(
                AttemptStatus::Approved,
                None,
                "the gateway has charged the right amount",
            )
        }
    }

    fn more_given_back(self) -> Step {
        let amount = self.charged.unwrap_or(self.expected).amount;
        match self.status {
            AttemptStatus::Mischarged if self.canceled >= amount => self.to(
                AttemptStatus::Canceled,
                self.reason,
                "the wrong charge was given back",
            ),
            AttemptStatus::Mischarged => self.stay("the wrong charge still stands"),
            AttemptStatus::Canceled => self.stay("all of it was given back already"),
            AttemptStatus::Ready
            | AttemptStatus::Approving
            | AttemptStatus::Unknown
            | AttemptStatus::AwaitingDeposit
            | AttemptStatus::Approved
            | AttemptStatus::CancelRequested
            | AttemptStatus::PartiallyCanceled
            | AttemptStatus::Failed
            | AttemptStatus::Expired => self.given_back(),
        }
    }

    fn cancel_seen(self) -> Step {
        let Some((wanted, _)) = self.cancel else {
            return self.stay("no cancel is wanted");
        };
        let amount = self.charged.unwrap_or(self.expected).amount;
        if self.canceled >= amount {
            let next = Self {
                cancel: None,
                ..self
            };
            return next.to(
                AttemptStatus::Canceled,
                self.reason,
                "the gateway has given all of it back",
            );
        }
        if self.cancels_on_request() {
            // Somebody else may have given back as much; the call that was made may still be under way.
            return self.stay("a cancel that was asked for lasts until its own end is known");
        }
        if self.canceled >= wanted {
            let next = Self {
                cancel: None,
                ..self
            };
            return next.to(
                AttemptStatus::PartiallyCanceled,
                self.reason,
                "the gateway has given part of it back",
            );
        }
        self.stay("the gateway has not given it back yet")
    }

    /// A charge of an attempt that had ended without one. `self` carries the facts, `before` the stored row.
    fn late_success(self, before: &Self, late: LateSuccess) -> Step {
        let charged = self.charged.unwrap_or(self.expected);
        if self.canceled >= charged.amount {
            let next = Self { void: true, ..self };
            return next.stay("charged late and given back already: nothing is owed");
        }
        let alarm = Some(Alarm::LateSuccess);
        // What was once decided to go back is never sold after all: its cancel may be on its way.
        if late == LateSuccess::Revive && charged == self.expected && !self.void {
            return Step {
                alarm,
                why: "charged after it had ended: it pays the order after all",
                ..self.given_back()
            };
        }
        let from = if before.status == AttemptStatus::Expired {
            CameFrom::Expired
        } else {
            CameFrom::Failed
        };
        let next = Self {
            void: true,
            cancel: Some((charged.amount, from)),
            ..self
        };
        let reason = Some(Reason::LateSuccess);
        Step {
            alarm,
            ..next.to(
                AttemptStatus::CancelRequested,
                reason,
                "charged after it had ended: to be given back",
            )
        }
    }

    fn awaiting_deposit(&self) -> Step {
        let mut next = *self;
        next.deposit = true;
        next.reach = Reach::Answered;
        match self.status {
            AttemptStatus::Approving | AttemptStatus::Unknown => next.to(
                AttemptStatus::AwaitingDeposit,
                None,
                "a virtual account was issued",
            ),
            AttemptStatus::Approved if self.deposit => {
                next.charged = None;
                next.to(
                    AttemptStatus::AwaitingDeposit,
                    None,
                    "the deposit was undone",
                )
            }
            AttemptStatus::Approved
            | AttemptStatus::Ready
            | AttemptStatus::AwaitingDeposit
            | AttemptStatus::Mischarged
            | AttemptStatus::CancelRequested
            | AttemptStatus::PartiallyCanceled
            | AttemptStatus::Canceled
            | AttemptStatus::Failed
            | AttemptStatus::Expired => self.stay("a virtual account changes nothing here"),
        }
    }

    /// An account that nobody paid into, or whose deposit the bank has taken back before, is closed: it ends the order, and no
    /// money moved. Of a charge that is known it can only be the end, whoever has the money now.
    fn account_closed(&self, late: LateSuccess) -> Step {
        let next = Self {
            deposit: true,
            reach: Reach::Answered,
            cancel: None,
            ..*self
        };
        match (self.status, self.charged) {
            (
                AttemptStatus::Ready
                | AttemptStatus::Approving
                | AttemptStatus::Unknown
                | AttemptStatus::AwaitingDeposit,
                _,
            )
            | (AttemptStatus::CancelRequested, None) => next.to(
                AttemptStatus::Canceled,
                None,
                "its account was closed before anybody paid into it",
            ),
            (
                AttemptStatus::Approved
                | AttemptStatus::PartiallyCanceled
                | AttemptStatus::Mischarged
                | AttemptStatus::CancelRequested,
                Some(charged),
            ) => self.charged(charged, charged.amount, late),
            _ => self.stay("ended already"),
        }
    }

    fn not_charged(&self, reason: Reason, source: Source, why: &'static str) -> Step {
        let mut next = *self;
        next.reach = next.reach.max(Reach::Answered);
        match self.status {
            // While its own send is unanswered, only that answer may end it (Rule 0).
            AttemptStatus::Approving if source == Source::Inquiry => {
                self.stay("its own send is unanswered: no other word can end it")
            }
            // The account's time is over: nothing failed, nobody paid.
            AttemptStatus::AwaitingDeposit if reason == Reason::PgExpired => {
                next.to(AttemptStatus::Expired, Some(reason), why)
            }
            AttemptStatus::Ready
            | AttemptStatus::Approving
            | AttemptStatus::Unknown
            | AttemptStatus::AwaitingDeposit => next.to(AttemptStatus::Failed, Some(reason), why),
            // It was to be closed, and its time is over: nobody paid, and nobody can.
            AttemptStatus::CancelRequested if self.closes_account() => {
                let next = Self {
                    cancel: None,
                    ..next
                };
                next.to(
                    AttemptStatus::Canceled,
                    None,
                    "its account is over, as was asked",
                )
            }
            AttemptStatus::Approved
            | AttemptStatus::PartiallyCanceled
            | AttemptStatus::Mischarged => Step {
                alarm: Some(Alarm::Conflict),
                ..self.stay("a charge is known: a refusal cannot undo it")
            },
            AttemptStatus::CancelRequested
            | AttemptStatus::Canceled
            | AttemptStatus::Failed
            | AttemptStatus::Expired => self.stay("ended already"),
        }
    }

    fn no_charge_seen(&self, settled: bool) -> Step {
        if self.status == AttemptStatus::Unknown && settled {
            return self.to(
                AttemptStatus::Failed,
                Some(Reason::NeverCharged),
                "the gateway's settling time is over and it has no charge",
            );
        }
        self.stay("no charge seen yet: weak evidence")
    }

    /// An operator's word ends a doubt and nothing else. The reach stays: it is no answer of the gateway, whose own word
    /// may still come, as a late success or as a contradiction.
    fn operator_said(&self, word: OperatorWord) -> Step {
        if self.status != AttemptStatus::Unknown {
            return self.stay("an operator's word ends only an unknown attempt");
        }
        match word {
            OperatorWord::Charged => {
                let mut step = self.to(
                    AttemptStatus::Approved,
                    None,
                    "an operator has seen the charge",
                );
                step.next.charged = Some(self.expected);
                step
            }
            OperatorWord::NotCharged => self.to(
                AttemptStatus::Failed,
                Some(Reason::OperatorEnded),
                "an operator has seen that there is no charge",
            ),
        }
    }

    fn cancel_asked(&self, amount: Won) -> Step {
        let Some(from) = CameFrom::of(self.status) else {
            return self.stay("there is no known charge to give back");
        };
        if matches!(from, CameFrom::Failed | CameFrom::Expired) {
            return self.stay("it ended without a charge");
        }
        if from == CameFrom::AwaitingDeposit {
            return self.stay("nobody has paid into its account yet");
        }
        let charge = self.charged.unwrap_or(self.expected).amount;
        let wanted = self.canceled.plus(amount).unwrap_or(charge);
        if amount == Won::ZERO || wanted > charge {
            return self.stay("no more than the charge can be given back");
        }
        let next = Self {
            cancel: Some((wanted, from)),
            ..*self
        };
        next.to(
            AttemptStatus::CancelRequested,
            self.reason,
            "money is to be given back",
        )
    }

    fn close_asked(&self) -> Step {
        if self.status != AttemptStatus::AwaitingDeposit {
            return self.stay("no account of it waits for a deposit");
        }
        let next = Self {
            cancel: Some((self.expected.amount, CameFrom::AwaitingDeposit)),
            ..*self
        };
        next.to(
            AttemptStatus::CancelRequested,
            None,
            "its account is to be closed before its deposit",
        )
    }

    fn cancel_refused(&self) -> Step {
        let Some((_, from)) = self.cancel else {
            return self.stay("no cancel is wanted");
        };
        let next = Self {
            cancel: None,
            ..*self
        };
        if from == CameFrom::AwaitingDeposit {
            // Nobody's money is kept from anybody: the account waits as before.
            return next.to(from.status(), None, "the gateway did not close its account");
        }
        Step {
            alarm: Some(Alarm::CancelRefused),
            ..next.to(
                from.status(),
                self.reason,
                "the gateway refused to give it back",
            )
        }
    }

    fn cancel_ended(&self) -> Step {
        if !self.cancels_on_request() {
            return self.stay("no cancel that people asked for is under way");
        }
        self.given_back()
    }
}

//! What must hold for any order, number and mixture of events.

use payment::attempt::{
    Attempt, AttemptStatus, Event, Finding, Holding, LateSuccess, OperatorWord, Source,
};
use payment::checkout::{Checkout, Command, ConfirmAnswer, Event as PageEvent};
use payment::deadline::{Deadline, TimeLeft, parse_timeout};
use payment::id::OrderId;
use payment::money::{Money, Won};
use payment::order::{OrderStatus, derive};
use payment::proof::NotCharged;
use payment::reach::{Decline, Lost, NotSent, Reach, Reason};
use payment::time::{Millis, PageTimes};
use payment::transitions::{events, example};
use payment::view::{Stage, Standing};
use payment::wire::{AttemptView, OrderState, ProblemCode};
use proptest::prelude::*;

const PRICE: i64 = 10_000;

fn won(amount: i64) -> Won {
    Won::new(amount).expect("a valid value")
}

/// What a gateway that charged `charged` and then gave back in steps could say at different times.
fn snapshots(charged: i64, steps: &[i64]) -> Vec<Finding> {
    let mut canceled = 0;
    let mut said = vec![Finding::Charged {
        charged: Money::won(won(charged)),
        canceled: Won::ZERO,
    }];
    for step in steps {
        canceled = (canceled + step).min(charged);
        said.push(Finding::Charged {
            charged: Money::won(won(charged)),
            canceled: won(canceled),
        });
    }
    said
}

fn weak() -> impl Strategy<Value = Finding> {
    prop_oneof![
        Just(Finding::Pending { settled: false }),
        Just(Finding::NotFound { settled: false }),
    ]
}

prop_compose! {
    /// One true history of a payment, and the same facts in any order, with repeats and weak words between them.
    fn histories()(
        charged in prop_oneof![4 => Just(PRICE), 1 => 1_i64..20_000],
        steps in prop::collection::vec(1_i64..6_000, 0..4),
    )(
        facts in {
            let said = snapshots(charged, &steps);
            let repeated = prop::collection::vec(prop::sample::select(said.clone()), 0..6);
            let noise = prop::collection::vec(weak(), 0..4);
            (Just(said), repeated, noise)
        }
        .prop_flat_map(|(said, repeated, noise)| {
            let all: Vec<Finding> = said.into_iter().chain(repeated).chain(noise).collect();
            Just(all).prop_shuffle()
        }),
        charged in Just(charged),
        steps in Just(steps),
        lost in any::<bool>(),
        answers in prop::collection::vec(any::<bool>(), 16),
    ) -> (i64, Vec<i64>, Vec<Finding>, bool, Vec<bool>) {
        (charged, steps, facts, lost, answers)
    }
}

fn learn(start: Attempt, facts: &[Finding], answers: &[bool]) -> Attempt {
    facts
        .iter()
        .zip(answers.iter().cycle())
        .fold(start, |attempt, (finding, answer)| {
            let source = if *answer {
                Source::Answer
            } else {
                Source::Inquiry
            };
            attempt
                .apply(Event::Found(*finding, source), LateSuccess::Cancel)
                .next
        })
}

fn claimed() -> Attempt {
    Attempt::new(Money::won(won(PRICE)))
        .apply(Event::Claimed, LateSuccess::Cancel)
        .next
}

fn any_event() -> impl Strategy<Value = Event> {
    let all: Vec<Event> = events().into_iter().map(|(_, event)| event).collect();
    prop_oneof![
        4 => prop::sample::select(all),
        1 => (1_i64..20_000).prop_map(|amount| Event::CancelAsked(won(amount))),
        1 => Just(Event::Found(Finding::Declined(Decline::Other), Source::Answer)),
        1 => Just(Event::AnswerLost(Lost::Reset)),
        1 => Just(Event::SendRefused(NotSent::Connect)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2_000) })]

    #[test]
    fn money_facts_in_any_order_and_number_give_the_same_state((charged, steps, facts, lost, answers) in histories()) {
        let start = if lost {
            claimed().apply(Event::AnswerLost(Lost::TimedOut), LateSuccess::Cancel).next
        } else {
            claimed()
        };
        let in_order = learn(start, &snapshots(charged, &steps), &[true]);
        let shuffled = learn(start, &facts, &answers);
        prop_assert_eq!(shuffled, in_order);
        prop_assert_eq!(derive(&[shuffled], false), derive(&[in_order], false));
    }

    #[test]
    fn nothing_leads_from_approved_to_failed(all in prop::collection::vec(any_event(), 0..30)) {
        let mut attempt = Attempt::new(Money::won(won(PRICE)));
        let mut charged = false;
        for event in all {
            let before = attempt;
            attempt = attempt.apply(event, LateSuccess::Cancel).next;
            if before.status == AttemptStatus::Approved {
                prop_assert_ne!(attempt.status, AttemptStatus::Failed);
            }
            if attempt.status == AttemptStatus::Failed && before.status != AttemptStatus::Failed {
                let back = before.status == AttemptStatus::CancelRequested;
                prop_assert!(back || attempt.reach != Reach::MayHaveBeenSent
                    || attempt.reason.is_some_and(|reason| matches!(reason, Reason::NeverCharged | Reason::OperatorEnded)));
            }
            // A right charge that was given back is never more than the charge.
            charged |= attempt.charged.is_some();
            if let (true, Some(money)) = (charged, attempt.charged) {
                prop_assert!(attempt.canceled <= money.amount);
            }
        }
    }

    #[test]
    fn an_operators_word_moves_only_an_unknown_attempt_and_the_gateways_word_outranks_it(
        before in prop::collection::vec(any_event(), 0..20), charged in any::<bool>(),
        after in prop::collection::vec(any_event(), 0..20),
    ) {
        let word = if charged { OperatorWord::Charged } else { OperatorWord::NotCharged };
        let late = LateSuccess::Cancel;
        let start = before.into_iter().fold(Attempt::new(Money::won(won(PRICE))), |attempt, event| attempt.apply(event, late).next);
        let said = start.apply(Event::OperatorSaid(word), late);
        prop_assert!(said.alarm.is_none());
        if start.status != AttemptStatus::Unknown {
            prop_assert_eq!(said.next, start);
            return Ok(());
        }
        let ends = if charged { AttemptStatus::Approved } else { AttemptStatus::Failed };
        prop_assert_eq!((said.next.status, said.next.reach), (ends, start.reach));
        // The same word again, or its opposite, changes nothing any more.
        for again in [OperatorWord::Charged, OperatorWord::NotCharged] {
            prop_assert_eq!(said.next.apply(Event::OperatorSaid(again), late).next, said.next);
        }
        // The gateway's word of a charge is never lost: it is given back after "not charged", and agrees with "charged".
        let now = after.into_iter().fold(said.next, |attempt, event| attempt.apply(event, late).next);
        let seen = Finding::Charged { charged: Money::won(won(PRICE)), canceled: Won::ZERO };
        let told = said.next.apply(Event::Found(seen, Source::Inquiry), late).next;
        if charged {
            prop_assert_eq!(told.status, AttemptStatus::Approved);
            prop_assert_ne!(now.status, AttemptStatus::Failed);
        } else {
            prop_assert_eq!(told.status, AttemptStatus::CancelRequested);
            prop_assert!(told.void && told.owes_cancel());
            prop_assert!(!now.counts_as_paid());
        }
    }

    #[test]
    fn an_ended_attempt_holds_no_stock_and_an_open_one_does(all in prop::collection::vec(any_event(), 0..30)) {
        let mut attempt = Attempt::new(Money::won(won(PRICE)));
        for event in all {
            attempt = attempt.apply(event, LateSuccess::Cancel).next;
            match attempt.status {
                AttemptStatus::Approving | AttemptStatus::Unknown | AttemptStatus::Mischarged =>
                    prop_assert_eq!(attempt.holding(), Holding::Reserved),
                AttemptStatus::Failed | AttemptStatus::Expired | AttemptStatus::Canceled =>
                    prop_assert_eq!(attempt.holding(), Holding::Nothing),
                AttemptStatus::Approved => prop_assert_eq!(attempt.holding(), Holding::Sold),
                AttemptStatus::CancelRequested if attempt.closes_account() =>
                    prop_assert_eq!(attempt.holding(), Holding::Reserved),
                _ => {}
            }
        }
    }

    #[test]
    fn a_charge_is_never_proven_not_charged(all in prop::collection::vec(any_event(), 0..30)) {
        let mut attempt = Attempt::new(Money::won(won(PRICE)));
        for event in all {
            attempt = attempt.apply(event, LateSuccess::Cancel).next;
            let order = derive(&[attempt], false);
            let proof = NotCharged::of_attempts(order, [&attempt]);
            prop_assert!(proof.is_none() || !attempt.holds_money(), "{:?}", attempt);
        }
    }

    #[test]
    fn the_header_is_read_or_refused_and_never_panics(value in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Ok(TimeLeft::Left(ms)) = parse_timeout([value.as_slice()]) {
            prop_assert!(ms.get() >= 1 && ms.get() <= 600_000);
        }
    }

    #[test]
    fn a_deadline_never_leaves_more_than_the_header_said(
        left in 1_u64..600_000, received in any::<u64>(), queued in any::<u64>(), later in any::<u64>(),
    ) {
        let deadline = Deadline::new(TimeLeft::Left(Millis::new(left)), Millis::new(received), Millis::new(queued));
        let at = deadline.answer_by(Millis::ZERO);
        prop_assert!(at.less(Millis::new(received)).get() <= left);
        prop_assert_eq!(deadline.passed(Millis::new(later)), later >= at.get());
    }
}

proptest! {
    /// By either policy, and if it changes between two words.
    #[test]
    fn a_charge_that_shows_late_is_sold_or_goes_back_and_never_forgotten(
        (charged, _, facts, _, answers) in histories(),
        policies in prop::collection::vec(any::<bool>(), 16),
    ) {
        let failed = claimed()
            .apply(Event::AnswerLost(Lost::TimedOut), LateSuccess::Cancel).next
            .apply(Event::Found(Finding::NotFound { settled: true }, Source::Inquiry), LateSuccess::Cancel).next;
        prop_assert_eq!(failed.status, AttemptStatus::Failed);
        let mut attempt = failed;
        let mut alarms = 0;
        for (n, finding) in facts.iter().enumerate() {
            let source = if answers[n % 16] { Source::Answer } else { Source::Inquiry };
            let late = if policies[n % 16] { LateSuccess::Revive } else { LateSuccess::Cancel };
            let step = attempt.apply(Event::Found(*finding, source), late);
            prop_assert!(!attempt.void || step.next.void, "decided to go back, and kept");
            alarms += u32::from(step.alarm.is_some());
            attempt = step.next;
            let forgotten = attempt.status == AttemptStatus::Failed && attempt.holds_money();
            prop_assert!(!forgotten, "{:?}", attempt);
            prop_assert!(!attempt.counts_as_paid() || attempt.charged == Some(attempt.expected));
            prop_assert!(!attempt.void || attempt.holding() != Holding::Sold, "{:?}", attempt);
        }
        prop_assert!(alarms <= 1);
        prop_assert!(charged == PRICE || !attempt.counts_as_paid());
    }
}

#[test]
fn every_example_is_in_its_state_and_meets_every_event() {
    for status in AttemptStatus::ALL {
        assert_eq!(example(status).status, status);
        for (_, event) in events() {
            for late in [LateSuccess::Cancel, LateSuccess::Revive] {
                assert!(!example(status).apply(event, late).why.is_empty());
            }
        }
    }
}

// The page.

fn order_state() -> impl Strategy<Value = OrderState> {
    let attempt = prop::option::weighted(0.95, prop::sample::select(AttemptStatus::ALL.to_vec()));
    let status = prop::sample::select(OrderStatus::ALL.to_vec());
    let hint = prop_oneof![Just(2_000_u64), Just(0), Just(u64::MAX), 0_u64..100_000];
    (attempt, status, any::<bool>(), hint).prop_map(|(attempt, status, payable, poll_after_ms)| {
        OrderState {
            order_id: OrderId::parse("ord_1").expect("a valid value"),
            status,
            attempt: attempt.map(|status| AttemptView {
                number: 1,
                status,
                reach: Reach::MayHaveBeenSent,
                reason: None,
            }),
            // A server that lies about "payable" must not be believed either.
            payable,
            poll_after_ms,
            deposit: None,
            closed_unpaid: false,
        }
    })
}

fn doubtful() -> OrderState {
    OrderState {
        order_id: OrderId::parse("ord_1").expect("a valid value"),
        status: OrderStatus::Pending,
        attempt: Some(AttemptView {
            number: 1,
            status: AttemptStatus::Unknown,
            reach: Reach::MayHaveBeenSent,
            reason: None,
        }),
        payable: false,
        poll_after_ms: 2_000,
        deposit: None,
        closed_unpaid: false,
    }
}

fn ready() -> OrderState {
    let attempt = AttemptView {
        number: 1,
        status: AttemptStatus::Ready,
        reach: Reach::NotSent,
        reason: None,
    };
    OrderState {
        attempt: Some(attempt),
        payable: true,
        ..doubtful()
    }
}

fn page_event() -> impl Strategy<Value = PageEvent> {
    let code = prop::option::of(prop::sample::select(ProblemCode::ALL.to_vec()));
    let retry = prop::option::of((0_u64..1 << 40).prop_map(Millis::new));
    prop_oneof![
        1 => Just(PageEvent::Loaded),
        1 => (0_u64..200_000).prop_map(|ms| PageEvent::ConfirmStarted { already: Millis::new(ms) }),
        1 => order_state().prop_map(|order| PageEvent::ConfirmAnswered(ConfirmAnswer::Order(order))),
        1 => (code, retry.clone())
            .prop_map(|(code, retry_after)| PageEvent::ConfirmAnswered(ConfirmAnswer::Refused { code, retry_after })),
        1 => Just(PageEvent::ConfirmLost),
        3 => order_state().prop_map(PageEvent::PollAnswered),
        2 => Just(PageEvent::PollAnswered(doubtful())),
        1 => Just(PageEvent::PollLost),
        1 => retry.prop_map(|retry_after| PageEvent::PollShed { retry_after }),
        1 => Just(PageEvent::PageShown),
        4 => Just(PageEvent::Woke),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1_000) })]

    #[test]
    fn no_sequence_of_events_offers_a_button_while_unknown(
        first in prop::option::of(order_state()),
        already in prop::option::of(0_u64..100_000),
        all in prop::collection::vec((page_event(), 0_u64..20_000), 0..40),
    ) {
        let times = PageTimes::DEFAULT;
        let mut page = Checkout::new(times, first, already.map(Millis::new));
        let mut now = Millis::ZERO;
        let mut begun: Option<Millis> = None;
        let mut last_poll: Option<Millis> = None;
        for (event, step) in all {
            now = now.plus(Millis::new(step));
            let before = page.view();
            let commands = page.handle(event, now);
            for command in &commands {
                match command {
                    Command::SendConfirm { time_left } => {
                        // A confirm starts only from a proof, and never carries more than what is left.
                        prop_assert!(before.button.is_some());
                        prop_assert!(*time_left <= times.total_wait() && *time_left > Millis::ZERO);
                        let Some(Command::Remember { begun: at }) = commands.first() else { panic!("not remembered") };
                        prop_assert!(time_left.plus(now.less(*at)) <= times.total_wait().plus(Millis::new(0)).max(*time_left));
                        begun = Some(now);
                    }
                    Command::Poll => {
                        if let Some(last) = last_poll {
                            prop_assert!(now.less(last) >= Millis::from_secs(1) || now == last || begun == Some(now)
                                || matches!(before.stage, Stage::Confirming | Stage::Checking | Stage::ReturningMoney), "{:?} {:?}", last, now);
                        }
                        last_poll = Some(now);
                    }
                    Command::WakeAt(at) => prop_assert!(*at > now),
                    Command::AbortConfirm | Command::AbortPoll | Command::Remember { .. } | Command::Forget => {}
                }
            }
            let view = page.view();
            if view.button.is_some() {
                let order = page.order().expect("a button stands on an order");
                prop_assert!(matches!(Standing::of(order), Standing::NotCharged(..)));
                prop_assert!(order.payable && order.status == OrderStatus::Pending);
            }
            if let Some(progress) = view.progress {
                prop_assert!(progress.elapsed(now) <= times.total_wait());
            }
        }
    }

    #[test]
    fn the_whole_wait_ends_on_time_whatever_the_polls_do(
        polls in prop::collection::vec((0_u8..4, 0_u64..8_000), 60),
        lateness in prop::collection::vec(0_u64..1_500, 200),
        hint in prop_oneof![Just(2_000_u64), 0_u64..90_000],
    ) {
        let times = PageTimes::DEFAULT;
        let mut page = Checkout::new(times, Some(ready()), None);
        let mut now = Millis::ZERO;
        let mut commands = page.handle(PageEvent::ConfirmStarted { already: Millis::ZERO }, now);
        let mut polls = polls.into_iter();
        let mut lateness = lateness.into_iter();
        let mut sent_polls = Vec::new();
        for _ in 0..180 {
            let mut wake = None;
            let mut poll = false;
            for command in &commands {
                match command {
                    Command::WakeAt(at) => wake = Some(*at),
                    Command::Poll => { poll = true; sent_polls.push(now); }
                    _ => {}
                }
            }
            let Some(wake) = wake else { break };
            let reply = if poll { polls.next() } else { None };
            let event = match reply {
                Some((0, after)) if now.plus(Millis::new(after)) < wake => {
                    now = now.plus(Millis::new(after));
                    PageEvent::PollAnswered(OrderState { poll_after_ms: hint, ..doubtful() })
                }
                Some((1, after)) if now.plus(Millis::new(after)) < wake => {
                    now = now.plus(Millis::new(after));
                    PageEvent::PollLost
                }
                _ => {
                    now = wake.plus(Millis::new(lateness.next().unwrap_or(0)));
                    PageEvent::Woke
                }
            };
            commands = page.handle(event, now);
        }
        prop_assert_eq!(page.view().stage, Stage::StillUnknown);
        // The last poll is sent when the wait is over, never before, and at most a step or a poll's limit late.
        let last = sent_polls.last().copied().expect("polls were sent");
        let end = times.total_wait();
        prop_assert!(last >= end && last <= end.plus(times.poll_limit).plus(Millis::from_secs(3)), "{}", last);
    }
}

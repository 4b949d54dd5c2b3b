//! Stories of the page machine, as text: what happens, what it does, what people see.

use payment::attempt::AttemptStatus;
use payment::checkout::{Checkout, Command, ConfirmAnswer, Event};
use payment::id::OrderId;
use payment::order::OrderStatus;
use payment::proof::NotCharged;
use payment::reach::{Reach, Reason};
use payment::time::{Millis, PageTimes};
use payment::view::PayAction;
use payment::wire::{AttemptView, OrderState, ProblemCode};

/// An order whose only attempt is in this state, as the server would tell it.
fn order(words: &str) -> OrderState {
    let mut words = words.split(' ');
    let status = AttemptStatus::parse(words.next().unwrap_or_default()).expect("a state");
    let mut state = OrderState {
        order_id: OrderId::parse("ord_1").expect("a valid value"),
        status: match status {
            AttemptStatus::Approved => OrderStatus::Paid,
            _ => OrderStatus::Pending,
        },
        attempt: None,
        payable: false,
        poll_after_ms: 2_000,
        deposit: None,
        closed_unpaid: false,
    };
    let mut attempt = AttemptView {
        number: 1,
        status,
        reach: Reach::MayHaveBeenSent,
        reason: None,
    };
    for word in words {
        match word.split_once('=') {
            Some(("reach", reach)) => attempt.reach = Reach::parse(reach).expect("a reach"),
            Some(("reason", reason)) => {
                attempt.reason = Some(Reason::parse(reason).expect("a reason"))
            }
            Some(("after", ms)) => state.poll_after_ms = ms.parse().expect("milliseconds"),
            _ => panic!("unknown word {word}"),
        }
    }
    state.payable = NotCharged::prove(state.status, [status]).is_some();
    state.attempt = Some(attempt);
    state
}

fn event(words: &str) -> Event {
    let (verb, rest) = words.split_once(' ').unwrap_or((words, ""));
    match verb {
        "start" => Event::ConfirmStarted {
            already: Millis::new(rest.parse().unwrap_or(0)),
        },
        "answer" => Event::ConfirmAnswered(ConfirmAnswer::Order(order(rest))),
        "refused" => {
            let (code, after) = rest.split_once(' ').unwrap_or((rest, ""));
            let retry_after = after.parse().ok().map(Millis::new);
            Event::ConfirmAnswered(ConfirmAnswer::Refused {
                code: ProblemCode::parse(code),
                retry_after,
            })
        }
        "lost" => Event::ConfirmLost,
        "told" => Event::PollAnswered(order(rest)),
        "poll-lost" => Event::PollLost,
        "shed" => Event::PollShed {
            retry_after: rest.parse().ok().map(Millis::new),
        },
        "shown" => Event::PageShown,
        "wake" => Event::Woke,
        "load" => Event::Loaded,
        _ => panic!("unknown event {words}"),
    }
}

fn say(command: Command) -> String {
    match command {
        Command::SendConfirm { time_left } => format!("confirm {}", time_left.get()),
        Command::AbortConfirm => "abort confirm".to_owned(),
        Command::Poll => "poll".to_owned(),
        Command::AbortPoll => "abort poll".to_owned(),
        Command::WakeAt(at) => format!("wake {}", at.get()),
        Command::Remember { begun } => format!("remember {}", begun.get()),
        Command::Forget => "forget".to_owned(),
    }
}

fn see(page: &Checkout) -> String {
    let view = page.view();
    let button = match view.button {
        None => "no button",
        Some((PayAction::Pay, _)) => "pay",
        Some((PayAction::PayAgain, _)) => "pay again",
        Some((PayAction::ConfirmAgain, _)) => "confirm again",
    };
    format!("{:?}, {button}", view.stage)
}

/// Runs a story: `open <state> [<ms since the claim>]`, then `at <ms> <event>`, `> <commands>`, `see <view>`.
fn check(story: &str) {
    let mut page = None;
    let mut done = String::new();
    for line in story.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if let Some(rest) = line.strip_prefix("open ") {
            let (state, already) = rest
                .split_once(", claimed ")
                .map_or((rest, None), |(state, ms)| (state, ms.parse().ok()));
            page = Some(Checkout::new(
                PageTimes::DEFAULT,
                Some(order(state)),
                already.map(Millis::new),
            ));
            continue;
        }
        let page = page.as_mut().expect("a story opens a page first");
        if let Some(rest) = line.strip_prefix("at ") {
            let (at, words) = rest.split_once(' ').expect("at <ms> <event>");
            let at = Millis::new(at.parse().expect("milliseconds"));
            done = page
                .handle(event(words), at)
                .into_iter()
                .map(say)
                .collect::<Vec<_>>()
                .join(", ");
        } else if let Some(expected) = line.strip_prefix('>').map(str::trim) {
            assert_eq!(done, expected, "in the story:\n{story}");
        } else if let Some(expected) = line.strip_prefix("see ") {
            assert_eq!(see(page), expected, "in the story:\n{story}");
        } else {
            panic!("a story has no line like {line:?}");
        }
    }
}

#[test]
fn a_quick_answer_is_shown_at_once() {
    check(
        "open ready reach=not_sent
         see Offer, pay
         at 0 start
         > remember 0, confirm 65000, wake 15000
         see Confirming, no button
         at 800 answer approved
         > forget
         see Paid, no button",
    );
}

#[test]
fn a_bank_that_takes_twenty_seconds_is_found_paid_by_the_third_poll() {
    check(
        "open ready
         at 0 start
         at 15003 wake
         > abort confirm, wake 17000
         see Checking, no button
         at 17000 wake
         > poll, wake 22000
         at 17030 told approving
         > wake 19000
         at 19001 wake
         > poll, wake 24001
         at 19020 told approving
         > wake 21000
         at 21000 wake
         at 21010 told approved
         > forget
         see Paid, no button",
    );
}

#[test]
fn a_bank_that_never_answers_leaves_no_button_and_one_last_poll() {
    check(
        "open ready
         at 0 start
         at 15000 wake
         at 63000 wake
         > poll, wake 68000
         at 63010 told unknown
         > wake 65000
         at 65000 wake
         > poll, wake 70000
         see StillUnknown, no button
         at 65020 told unknown
         >
         see StillUnknown, no button
         at 200000 shown
         > poll, wake 205000
         at 200010 told approved
         > forget
         see Paid, no button",
    );
}

#[test]
fn a_late_answer_is_not_believed_and_the_polls_tell() {
    check(
        "open ready
         at 0 start
         at 15000 wake
         at 15200 answer approved
         > wake 17000
         see Checking, no button
         at 15300 refused declined
         > wake 17000
         see Checking, no button",
    );
}

#[test]
fn a_full_cap_is_asked_about_before_anything_is_offered() {
    check(
        "open ready
         at 0 start
         at 40 refused pg_cap_reached 3000
         > poll, wake 5040
         see Looking, no button
         at 50 told failed reach=not_sent reason=pg_cap_reached
         > forget
         see NotCharged(Some(NotSent(Cap))), confirm again
         at 3000 start
         > remember 3000, confirm 65000, wake 18000",
    );
}

#[test]
fn a_refusal_that_meets_another_attempt_in_doubt_waits_for_it() {
    check(
        "open ready
         at 0 start
         at 40 refused attempt_in_progress
         > poll, wake 5040
         at 50 told approving
         > wake 2040
         see Checking, no button",
    );
}

#[test]
fn a_request_refused_for_load_is_asked_about_after_the_servers_hint() {
    check(
        "open ready
         at 0 start
         at 10 refused overloaded 4000
         > wake 4010
         see Looking, no button
         at 4010 wake
         > poll, wake 9010
         at 4020 shed 7000
         > wake 11010
         see Looking, no button
         at 11010 wake
         at 11020 told ready reach=not_sent
         > forget
         see Offer, pay",
    );
}

#[test]
fn a_broken_connection_is_unknown_and_a_ready_attempt_does_not_yet_prove_anything() {
    check(
        "open ready
         at 0 start
         at 1000 lost
         > wake 3000
         see Checking, no button
         at 3000 wake
         at 3010 told ready
         > wake 5000
         see Checking, no button
         at 65000 wake
         > poll, wake 70000
         at 65010 told ready reach=not_sent
         > forget
         see Offer, pay",
    );
}

#[test]
fn a_lost_confirm_after_a_failure_is_not_taken_for_that_failure() {
    check(
        "open failed reach=not_sent reason=pg_cap_reached
         see NotCharged(Some(NotSent(Cap))), confirm again
         at 0 start
         at 100 lost
         at 2100 wake
         at 2150 told failed reach=not_sent reason=pg_cap_reached
         see Checking, no button
         at 65000 wake
         at 65050 told failed reach=not_sent reason=pg_cap_reached
         see NotCharged(Some(NotSent(Cap))), confirm again",
    );
    check(
        "open failed reach=not_sent reason=pg_cap_reached
         at 0 start
         at 100 lost
         at 2100 wake
         at 2150 told failed reach=answered reason=card_refused
         see NotCharged(Some(Declined(CardRefused))), pay again",
    );
}

#[test]
fn a_reload_goes_on_with_the_same_wait() {
    check(
        "open approving, claimed 16000
         see Checking, no button
         at 0 load
         > poll, wake 5000
         at 20 told approving
         > wake 2000
         at 48999 wake
         > poll, wake 53999
         at 49010 wake
         > wake 53999
         at 53999 wake
         > abort poll, poll, wake 58999
         see StillUnknown, no button",
    );
}

#[test]
fn a_page_opened_after_the_whole_wait_does_not_wait_again() {
    check(
        "open unknown, claimed 65000
         see StillUnknown, no button
         at 0 load
         >
         at 1000 shown
         > poll, wake 6000",
    );
}

#[test]
fn a_page_from_the_back_forward_cache_offers_nothing_before_it_has_asked() {
    check(
        "open ready
         see Offer, pay
         at 9000 shown
         > poll, wake 14000
         see Looking, no button
         at 9010 poll-lost
         > wake 11000
         see Looking, no button
         at 11000 wake
         at 11010 told approved
         > forget
         see Paid, no button",
    );
}

#[test]
fn a_throttled_timer_that_fires_late_asks_at_once() {
    check(
        "open ready
         at 0 start
         at 41500 wake
         > abort confirm, poll, wake 46500
         see Checking, no button",
    );
}

#[test]
fn a_confirm_cut_off_by_a_reload_goes_on_with_what_is_left() {
    check(
        "open ready
         at 100 start 5000
         > remember 0, confirm 60000, wake 15100",
    );
    check(
        "open ready
         at 100 start 65000
         > remember 100, confirm 65000, wake 15100",
    );
    check(
        "open ready
         at 100 start 20000
         > remember 0, confirm 45000, wake 15100
         see Confirming, no button",
    );
    check(
        "open ready
         at 100 start 60000
         > remember 0, confirm 5000, wake 5100
         at 5100 wake
         > abort confirm, poll, wake 10100
         see StillUnknown, no button",
    );
}

#[test]
fn money_on_its_way_back_is_said_so_and_then_the_order_can_be_paid() {
    check(
        "open ready
         at 0 start
         at 500 answer mischarged
         > wake 2500
         see ReturningMoney, no button
         at 2500 wake
         at 2510 told canceled
         > forget
         see NotCharged(None), pay again",
    );
}

#[test]
fn money_that_takes_longer_to_come_back_than_the_wait_is_still_said_to_come_back() {
    check(
        "open cancel_requested, claimed 70000
         see ReturningMoney, no button",
    );
    check(
        "open mischarged, claimed 64000
         at 0 load
         at 10 told cancel_requested
         at 1000 wake
         > poll, wake 6000
         see ReturningMoney, no button",
    );
}

#[test]
fn a_paid_page_that_is_shown_again_stays_paid_whatever_the_network_does() {
    check(
        "open approved
         at 5000 shown
         >
         see Paid, no button",
    );
}

#[test]
fn a_server_that_asks_for_patience_is_heard_but_the_last_poll_stays() {
    check(
        "open approving, claimed 1000
         at 0 load
         at 10 told approving after=30000
         > wake 30000
         at 30000 wake
         at 30010 told approving after=99999999
         > wake 64000
         at 64000 wake
         > poll, wake 69000",
    );
}

#[test]
fn a_second_confirm_cannot_start_while_one_is_under_way_or_nothing_is_proven() {
    check(
        "open ready
         at 0 start
         at 10 start
         > wake 15000
         at 20 answer unknown
         at 30 start
         > wake 2020",
    );
    check(
        "open unknown
         at 0 start
         > poll, wake 5000
         see Checking, no button",
    );
}

/// What servers and proxies have been seen to hint at, in ms; a header that is no number is no hint.
const HINTS: [Option<u64>; 9] = [
    None,
    Some(0),
    Some(1),
    Some(999),
    Some(60_001),
    Some(1 << 31),
    Some(1 << 53),
    Some(u64::MAX - 1),
    Some(u64::MAX),
];

#[test]
fn whatever_a_server_hints_at_the_page_asks_at_most_once_a_second_and_in_the_end() {
    for hint in HINTS {
        for shed in [false, true] {
            let mut page = Checkout::new(
                PageTimes::DEFAULT,
                Some(order("ready reach=not_sent")),
                None,
            );
            let begin = Event::ConfirmStarted {
                already: Millis::ZERO,
            };
            let mut commands = page.handle(begin, Millis::ZERO);
            commands.extend(page.handle(
                Event::ConfirmAnswered(ConfirmAnswer::Order(order("unknown"))),
                Millis::new(100),
            ));
            let (mut polls, mut wake) = (Vec::new(), Millis::ZERO);
            let mut now = Millis::new(100);
            while polls
                .last()
                .is_none_or(|last| *last < Millis::from_secs(65))
            {
                for command in &commands {
                    match command {
                        Command::Poll => polls.push(now),
                        Command::WakeAt(at) => wake = *at,
                        _ => {}
                    }
                }
                let asked = commands.contains(&Command::Poll);
                let event = match (asked, shed, hint) {
                    (false, ..) => {
                        assert!(wake > now, "{hint:?}: a wake in the past");
                        now = wake;
                        Event::Woke
                    }
                    (true, true, hint) => Event::PollShed {
                        retry_after: hint.map(Millis::new),
                    },
                    (true, false, hint) => {
                        let mut state = order("unknown");
                        state.poll_after_ms = hint.unwrap_or(2_000);
                        Event::PollAnswered(state)
                    }
                };
                commands = page.handle(event, now);
                assert!(now <= Millis::from_secs(66), "{hint:?}: {polls:?}");
            }
            // The one at the end comes whatever came just before.
            let last = polls.pop();
            assert!(last.is_some_and(|last| last >= Millis::from_secs(65)));
            let mut before = Millis::new(100);
            for at in &polls {
                assert!(
                    at.less(before) >= Millis::from_secs(1),
                    "{hint:?}: {polls:?}"
                );
                before = *at;
            }
        }
    }
}

//! The transition table as a document, generated from [`Attempt::apply`] itself.

use std::fmt::Write as _;

use crate::attempt::{
    Attempt, AttemptStatus, CameFrom, Event, Finding, LateSuccess, OperatorWord, Source,
};
use crate::money::{Currency, Money, Won};
use crate::reach::{Decline, Lost, NotSent, Reach};

fn won(amount: i64) -> Won {
    Won::new(amount).unwrap_or(Won::ZERO)
}

fn expected() -> Money {
    Money::won(won(10_000))
}

/// A typical attempt in each state, with what must be known of it there.
#[must_use]
pub fn example(status: AttemptStatus) -> Attempt {
    let sent = Attempt {
        status,
        reach: Reach::MayHaveBeenSent,
        ..Attempt::new(expected())
    };
    let answered = Attempt {
        reach: Reach::Answered,
        ..sent
    };
    let charged = Attempt {
        charged: Some(expected()),
        ..answered
    };
    match status {
        AttemptStatus::Ready | AttemptStatus::Expired => Attempt {
            reach: Reach::NotSent,
            ..sent
        },
        AttemptStatus::Approving | AttemptStatus::Unknown => sent,
        AttemptStatus::AwaitingDeposit => Attempt {
            deposit: true,
            ..answered
        },
        AttemptStatus::Mischarged => Attempt {
            charged: Some(Money::won(won(9_000))),
            void: true,
            ..answered
        },
        AttemptStatus::Approved => charged,
        AttemptStatus::CancelRequested => Attempt {
            cancel: Some((won(10_000), CameFrom::Approved)),
            ..charged
        },
        AttemptStatus::PartiallyCanceled => Attempt {
            canceled: won(4_000),
            ..charged
        },
        AttemptStatus::Canceled => Attempt {
            canceled: won(10_000),
            ..charged
        },
        AttemptStatus::Failed => answered,
    }
}

/// An attempt whose virtual account is being closed before its deposit.
#[must_use]
pub fn closing() -> Attempt {
    let waits = example(AttemptStatus::AwaitingDeposit);
    waits.apply(Event::CloseAsked, LateSuccess::Cancel).next
}

/// What the document shows, by its headings: an attempt in each state, and what else differs within a state.
fn shown() -> Vec<(String, Attempt)> {
    let mut shown = Vec::new();
    for status in AttemptStatus::ALL {
        let open = if status.is_open() { " (open)" } else { "" };
        shown.push((format!("{}{open}", status.as_str()), example(status)));
        if status == AttemptStatus::CancelRequested {
            let heading = format!("{}, of an account that waits{open}", status.as_str());
            shown.push((heading, closing()));
        }
    }
    shown
}

/// Every kind of event with its words in the table.
#[must_use]
pub fn events() -> Vec<(&'static str, Event)> {
    let mut events = vec![
        ("claimed", Event::Claimed),
        ("window closed", Event::WindowClosed),
        (
            "send refused (cap, circuit, deadline, connect)",
            Event::SendRefused(NotSent::Cap),
        ),
        (
            "refused by gateway before processing",
            Event::RefusedByGateway,
        ),
        ("answer lost", Event::AnswerLost(Lost::TimedOut)),
        ("process died", Event::Interrupted),
    ];
    events.extend(charges());
    events.extend(refusals());
    events.push((
        "operator: charged",
        Event::OperatorSaid(OperatorWord::Charged),
    ));
    events.push((
        "operator: not charged",
        Event::OperatorSaid(OperatorWord::NotCharged),
    ));
    events.push(("cancel asked", Event::CancelAsked(won(10_000))));
    events.push(("account's order to be cancelled", Event::CloseAsked));
    events.push(("cancel refused", Event::CancelRefused));
    events.push(("cancel ended", Event::CancelEnded));
    events
}

fn charges() -> Vec<(&'static str, Event)> {
    let charged = |money: Money, canceled: i64| {
        let finding = Finding::Charged {
            charged: money,
            canceled: won(canceled),
        };
        Event::Found(finding, Source::Inquiry)
    };
    let foreign = Money {
        amount: won(10_000),
        currency: Currency::Other,
    };
    vec![
        ("gateway: charged, right amount", charged(expected(), 0)),
        (
            "gateway: charged, part given back",
            charged(expected(), 5_000),
        ),
        (
            "gateway: charged, all given back",
            charged(expected(), 10_000),
        ),
        (
            "gateway: charged, wrong amount",
            charged(Money::won(won(9_000)), 0),
        ),
        ("gateway: charged, wrong currency", charged(foreign, 0)),
        (
            "gateway: virtual account issued",
            Event::Found(Finding::AwaitingDeposit, Source::Inquiry),
        ),
    ]
}

fn refusals() -> Vec<(&'static str, Event)> {
    let found = |finding| Event::Found(finding, Source::Inquiry);
    let declined = Finding::Declined(Decline::CardRefused);
    vec![
        (
            "answer to its send: declined",
            Event::Found(declined, Source::Answer),
        ),
        (
            "inquiry: declined or aborted",
            found(Finding::Declined(Decline::Other)),
        ),
        ("inquiry: account closed", found(Finding::Closed)),
        ("inquiry: lapsed", found(Finding::Lapsed)),
        (
            "inquiry: in progress",
            found(Finding::Pending { settled: false }),
        ),
        (
            "inquiry: in progress, settling time over",
            found(Finding::Pending { settled: true }),
        ),
        (
            "inquiry: not found",
            found(Finding::NotFound { settled: false }),
        ),
        (
            "inquiry: not found, settling time over",
            found(Finding::NotFound { settled: true }),
        ),
    ]
}

/// The document `docs/transitions.md`: a diagram of all ways between states, and the table of every state and event.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::from(
        "# Attempt states: every state, every event\n\n\
         Generated by `cargo xtask transitions` from `payment::attempt::Attempt::apply`; a test fails when this file \
         differs.\nThe late-success policy is the default (`cancel`). A cell that stays says why nothing changes.\n\n\
         ## Diagram\n\n```mermaid\nstateDiagram-v2\n    [*] --> ready\n",
    );
    let mut ways: Vec<(AttemptStatus, AttemptStatus, Vec<&'static str>)> = Vec::new();
    for (_, attempt) in shown() {
        let status = attempt.status;
        for (name, event) in events() {
            let next = attempt.apply(event, LateSuccess::Cancel).next.status;
            if next == status {
                continue;
            }
            match ways
                .iter_mut()
                .find(|(from, to, _)| (*from, *to) == (status, next))
            {
                Some((_, _, names)) if names.contains(&name) => {}
                Some((_, _, names)) => names.push(name),
                None => ways.push((status, next, vec![name])),
            }
        }
    }
    for (from, to, names) in &ways {
        let _ = writeln!(
            text,
            "    {} --> {} : {}",
            from.as_str(),
            to.as_str(),
            names.join(" / ").replace(':', "")
        );
    }
    text.push_str("```\n\n## Table\n");
    for (heading, attempt) in shown() {
        let _ = write!(
            text,
            "\n### {heading}\n\n| event | next | alarm | why |\n| --- | --- | --- | --- |\n"
        );
        for (name, event) in events() {
            let step = attempt.apply(event, LateSuccess::Cancel);
            let next = if step.next.status == attempt.status {
                "stays"
            } else {
                step.next.status.as_str()
            };
            let alarm = step.alarm.map_or("", crate::attempt::Alarm::as_str);
            let _ = writeln!(text, "| {name} | {next} | {alarm} | {} |", step.why);
        }
    }
    text
}

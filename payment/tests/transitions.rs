//! Every state meets every event, and the document says what the code does.

use payment::attempt::{AttemptStatus, Event, LateSuccess};
use payment::reach::Reach;
use payment::transitions::{closing, events, example, markdown};

#[test]
fn the_document_is_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/transitions.md");
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == markdown(),
        "docs/transitions.md is stale: run `cargo xtask transitions`"
    );
}

#[test]
fn every_way_is_one_the_contract_allows() {
    use AttemptStatus::*;
    let allowed = |from, to| match from {
        Ready => matches!(
            to,
            Approving | Expired | Failed | Approved | PartiallyCanceled | Canceled | Mischarged
        ),
        Approving | Unknown => matches!(
            to,
            Approved
                | Failed
                | Unknown
                | AwaitingDeposit
                | Mischarged
                | Canceled
                | PartiallyCanceled
        ),
        AwaitingDeposit => {
            matches!(
                to,
                Approved
                    | Failed
                    | Canceled
                    | Expired
                    | PartiallyCanceled
                    | Mischarged
                    | CancelRequested
            )
        }
        Approved | PartiallyCanceled => {
            matches!(to, CancelRequested | PartiallyCanceled | Canceled)
        }
        Mischarged => matches!(to, CancelRequested | Canceled),
        CancelRequested => matches!(to, Canceled | PartiallyCanceled | Approved),
        Failed | Expired => matches!(to, CancelRequested),
        Canceled => false,
    };
    for from in AttemptStatus::ALL {
        for (name, event) in events() {
            let to = example(from).apply(event, LateSuccess::Cancel).next.status;
            assert!(
                to == from || allowed(from, to),
                "{from:?} --{name}--> {to:?}"
            );
        }
    }
}

#[test]
fn failed_needs_a_proof_that_nothing_was_sent_or_a_word_that_ends_the_doubt() {
    for from in AttemptStatus::ALL
        .into_iter()
        .filter(|from| *from != AttemptStatus::Failed)
    {
        for (name, event) in events() {
            let next = example(from).apply(event, LateSuccess::Cancel).next;
            if next.status == AttemptStatus::Failed {
                let word = name.starts_with("inquiry")
                    || name.starts_with("answer to")
                    || name.starts_with("refused by")
                    || (from == AttemptStatus::Unknown && name == "operator: not charged");
                assert!(
                    next.reach == Reach::NotSent || word,
                    "{from:?} --{name}--> failed"
                );
            }
        }
    }
}

#[test]
fn an_account_that_is_being_closed_is_closed_or_paid_or_waits_again() {
    use AttemptStatus::*;
    assert!(closing().closes_account() && closing().ends_unpaid());
    for (name, event) in events() {
        let step = closing().apply(event, LateSuccess::Cancel);
        let next = step.next;
        let allowed = matches!(
            next.status,
            CancelRequested
                | Canceled
                | AwaitingDeposit
                | Approved
                | PartiallyCanceled
                | Mischarged
        );
        assert!(allowed, "--{name}--> {:?}", next.status);
        assert_eq!(
            next.cancel.is_some(),
            next.status == CancelRequested,
            "{name}"
        );
        // What was paid is known, and counts: it is neither lost nor called closed.
        assert_eq!(
            next.ends_unpaid(),
            next.charged.is_none() && next.status != AwaitingDeposit,
            "{name}"
        );
        assert_eq!(
            next.counts_as_paid(),
            matches!(next.status, Approved | PartiallyCanceled),
            "{name}"
        );
        assert_eq!(step.alarm.is_some(), next.status == Mischarged, "{name}");
    }
    // A wish for money back moves no account that waits, and a wish to close one moves nothing else.
    let waits = example(AwaitingDeposit);
    let asked = Event::CancelAsked(waits.expected.amount);
    assert_eq!(waits.apply(asked, LateSuccess::Cancel).next, waits);
    for status in AttemptStatus::ALL
        .into_iter()
        .filter(|status| *status != AwaitingDeposit)
    {
        let other = example(status);
        assert_eq!(
            other.apply(Event::CloseAsked, LateSuccess::Cancel).next,
            other
        );
    }
}

//! What Toss Payments' answers mean. Pure: a call and what was heard in, an outcome out.
//!
//! What is not provably an end is unknown: unlisted codes, unlisted pairs of code and status, unlisted status words,
//! answers about another payment, answers that contradict themselves.

mod codes;

use payment::attempt::Finding;
use payment::id::{GatewayOrderId, PaymentKey};
use payment::money::{Currency, Money, Won};
use payment::reach::{Lost, NotSent};

use super::wire::{self, CancelEntry, CancelProgress, PaymentObject};
use crate::gateway::exchange::{Answer, Heard, alarming, redirected, told, unheard, word};
use crate::gateway::{
    CancelCall, CancelOutcome, ConfirmCall, ConfirmOutcome, InquiryOutcome, Told, reference_in,
};
use codes::{CancelClass, ConfirmClass};

/// What a look-up brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LookedUp {
    /// An end of the inquiry.
    Settled(InquiryOutcome),
    /// Toss knows no such payment on this route; another route may.
    Absent(Told),
}

/// What a confirm's exchange means.
pub(super) fn confirmed(call: &ConfirmCall, heard: Heard) -> ConfirmOutcome {
    let answer = match heard {
        Heard::NotConnected => return ConfirmOutcome::NotSent(NotSent::Connect),
        Heard::Nothing(lost) => return ConfirmOutcome::Lost(lost, unheard(lost)),
        Heard::Answer(answer) => answer,
    };
    let status = answer.status;
    // These two say all they say by their head, whatever became of the body.
    if status == 429 {
        return ConfirmOutcome::Refused(told(status, &code_of(&answer, "too_many_requests")));
    }
    if let Some(told) = redirected(status) {
        return ConfirmOutcome::Lost(Lost::Inconclusive, told);
    }
    let body = match answer.body {
        Ok(body) => body,
        Err(lost) => return ConfirmOutcome::Lost(lost, told(status, word(lost))),
    };
    if status == 200 {
        return match PaymentObject::parse(&body) {
            Some(payment) => confirmed_payment(call, &payment),
            None => ConfirmOutcome::Lost(Lost::Unreadable, told(status, word(Lost::Unreadable))),
        };
    }
    let Some(code) = wire::error_code(&body) else {
        return ConfirmOutcome::Lost(Lost::Unreadable, told(status, word(Lost::Unreadable)));
    };
    let quiet = told(status, &code);
    match codes::class_of(codes::CONFIRM, status, &code) {
        Some(ConfirmClass::Declined(class)) => {
            ConfirmOutcome::Found(Finding::Declined(class), quiet)
        }
        Some(ConfirmClass::Fault(class)) => {
            ConfirmOutcome::Found(Finding::Declined(class), alarming(quiet))
        }
        Some(ConfirmClass::Refused) => ConfirmOutcome::Refused(quiet),
        Some(ConfirmClass::InProgress) => ConfirmOutcome::Lost(Lost::InProgress, quiet),
        Some(ConfirmClass::Ask) => ConfirmOutcome::Lost(Lost::Inconclusive, quiet),
        None => ConfirmOutcome::Lost(Lost::Inconclusive, alarming(quiet)),
    }
}

fn confirmed_payment(call: &ConfirmCall, payment: &PaymentObject) -> ConfirmOutcome {
    let quiet = Told {
        deposit: payment.deposit(),
        ..told(200, &payment.status)
    };
    match said(payment, Some(&call.payment_key), &call.gateway_order_id) {
        // An answer to a confirm that is no end yet is no answer.
        Ok(Finding::Pending { .. }) => ConfirmOutcome::Lost(Lost::Inconclusive, quiet),
        Ok(finding @ Finding::Charged { charged, .. }) if charged != Money::won(call.amount) => {
            ConfirmOutcome::Found(finding, alarming(quiet))
        }
        // Whoever pays that much into it pays a wrong amount.
        Ok(Finding::AwaitingDeposit) if payment.total().is_some_and(|won| won != call.amount) => {
            ConfirmOutcome::Found(Finding::AwaitingDeposit, alarming(quiet))
        }
        Ok(finding) => ConfirmOutcome::Found(finding, quiet),
        Err(contradiction) => {
            ConfirmOutcome::Lost(Lost::Inconclusive, alarming(told(200, contradiction)))
        }
    }
}

/// What a look-up's exchange means. `key` is known unless no confirm was ever sent.
pub(super) fn looked_up(
    key: Option<&PaymentKey>,
    order: &GatewayOrderId,
    heard: Heard,
) -> LookedUp {
    let answer = match heard {
        Heard::NotConnected => {
            return LookedUp::Settled(InquiryOutcome::NoAnswer(Told {
                code: "not_connected".to_owned(),
                ..Told::default()
            }));
        }
        Heard::Nothing(lost) => return LookedUp::Settled(InquiryOutcome::NoAnswer(unheard(lost))),
        Heard::Answer(answer) => answer,
    };
    let status = answer.status;
    if let Some(told) = redirected(status) {
        return LookedUp::Settled(InquiryOutcome::NoWord(told));
    }
    let code = code_of(&answer, "no_code");
    if status == 429 || status >= 500 || (status, &*code) == (403, "FORBIDDEN_CONSECUTIVE_REQUEST")
    {
        return LookedUp::Settled(InquiryOutcome::NoWord(told(status, &code)));
    }
    if status == 401 {
        return LookedUp::Settled(InquiryOutcome::NoWord(alarming(told(status, &code))));
    }
    let unreadable = |lost| LookedUp::Settled(InquiryOutcome::NoAnswer(told(status, word(lost))));
    let body = match answer.body {
        Ok(body) => body,
        Err(lost) => return unreadable(lost),
    };
    if status == 200 {
        let Some(payment) = PaymentObject::parse(&body) else {
            return unreadable(Lost::Unreadable);
        };
        if another_uncharged(&payment, key, order) {
            return LookedUp::Absent(told(200, "another_payment_not_charged"));
        }
        return LookedUp::Settled(match said(&payment, key, order) {
            Ok(finding) => InquiryOutcome::Found(finding, listing(&payment)),
            Err(contradiction) => InquiryOutcome::NoWord(alarming(told(200, contradiction))),
        });
    }
    if wire::error_code(&body).is_none() {
        return unreadable(Lost::Unreadable);
    }
    if (status, &*code) == (404, "NOT_FOUND_PAYMENT") {
        return LookedUp::Absent(told(status, &code));
    }
    // The rest says that something is wrong with us (keys of another shop, a bad path), never "not charged".
    LookedUp::Settled(InquiryOutcome::NoWord(alarming(told(status, &code))))
}

/// What a cancel's exchange means.
pub(super) fn canceled(call: &CancelCall, heard: Heard) -> CancelOutcome {
    let answer = match heard {
        // Nothing was sent, so the same key serves again.
        Heard::NotConnected => {
            return CancelOutcome::Unknown(Told {
                code: "not_connected".to_owned(),
                ..Told::default()
            });
        }
        Heard::Nothing(lost) => return CancelOutcome::Unknown(unheard(lost)),
        Heard::Answer(answer) => answer,
    };
    let status = answer.status;
    if status == 429 {
        let quiet = told(status, &code_of(&answer, "too_many_requests"));
        // Bound to the key: the same one would be refused for ever.
        return if answer.replayed {
            CancelOutcome::RetryWithNewKey(quiet)
        } else {
            CancelOutcome::Unknown(quiet)
        };
    }
    if let Some(told) = redirected(status) {
        return CancelOutcome::Unknown(told);
    }
    let body = match answer.body {
        Ok(body) => body,
        Err(lost) => return CancelOutcome::Unknown(told(status, word(lost))),
    };
    if status == 200 {
        return match PaymentObject::parse(&body) {
            Some(payment) => canceled_payment(call, &payment),
            None => CancelOutcome::Unknown(told(status, word(Lost::Unreadable))),
        };
    }
    let Some(code) = wire::error_code(&body) else {
        return CancelOutcome::Unknown(told(status, word(Lost::Unreadable)));
    };
    let quiet = told(status, &code);
    match codes::class_of(codes::CANCEL, status, &code) {
        Some(CancelClass::AskUntilReplayed) if answer.replayed => {
            CancelOutcome::RetryWithNewKey(quiet)
        }
        Some(CancelClass::Ask | CancelClass::AskUntilReplayed) => CancelOutcome::Unknown(quiet),
        Some(CancelClass::NewKey) => CancelOutcome::RetryWithNewKey(quiet),
        Some(CancelClass::Repair) => CancelOutcome::RetryWithNewKey(alarming(quiet)),
        Some(CancelClass::Final) => CancelOutcome::Refused(quiet),
        Some(CancelClass::Mistake) => CancelOutcome::Refused(alarming(quiet)),
        None => CancelOutcome::Unknown(alarming(quiet)),
    }
}

fn canceled_payment(call: &CancelCall, payment: &PaymentObject) -> CancelOutcome {
    let quiet = listing(payment);
    if payment.payment_key != call.payment_key.as_str() {
        return CancelOutcome::Unknown(alarming(told(200, "another_payment")));
    }
    let finding = match standing(payment) {
        Ok(finding @ (Finding::Charged { .. } | Finding::Closed)) => finding,
        Ok(_) => return CancelOutcome::Unknown(alarming(quiet)),
        Err(contradiction) => return CancelOutcome::Unknown(alarming(told(200, contradiction))),
    };
    match progress(call, payment) {
        Progress::Done => CancelOutcome::Found(finding, quiet),
        Progress::Running => CancelOutcome::Unknown(told(200, "cancel_in_progress")),
        // Accepted at first and then not done: as good as refused. Whoever wants it all the same asks anew.
        Progress::Aborted => CancelOutcome::Refused(alarming(told(200, "cancel_aborted"))),
        Progress::NotSeen => CancelOutcome::Unknown(alarming(told(200, "cancel_not_seen"))),
    }
}

enum Progress {
    Done,
    Running,
    Aborted,
    NotSeen,
}

/// Whether this cancel is among the payment's, and how far it got.
fn progress(call: &CancelCall, payment: &PaymentObject) -> Progress {
    let Some(entry) = entry_of(call, payment) else {
        return Progress::NotSeen;
    };
    // How much the gateway must still hold for the cancel to have happened once and no more.
    let left = match (call.amount, call.balance) {
        // Of an account that was closed before its deposit the balance says nothing.
        _ if is_closed_unpaid(payment) => None,
        (None, _) => Some(Won::ZERO),
        (Some(amount), Some(balance)) => Some(balance.less(amount)),
        (Some(_), None) => None,
    };
    match entry.progress() {
        CancelProgress::Done if left.is_none() || payment.balance() == left => Progress::Done,
        CancelProgress::Running => Progress::Running,
        CancelProgress::Aborted => Progress::Aborted,
        CancelProgress::Done | CancelProgress::Other => Progress::NotSeen,
    }
}

/// The entry of a cancel: by its reference; where no entry has that, the newest of its amount that has no other.
fn entry_of<'a>(call: &CancelCall, payment: &'a PaymentObject) -> Option<&'a CancelEntry> {
    let own = reference_in(&call.reason);
    let wanted = call.amount.or(call.balance);
    let same_amount = |entry: &&CancelEntry| wanted.is_none() || entry.amount() == wanted;
    // The newest is last.
    let entries = payment.cancels.as_deref().unwrap_or_default().iter().rev();
    let entries: Vec<_> = entries.filter(same_amount).collect();
    let by_reference = entries.iter().find(|entry| entry.reference() == own);
    let nameless = || entries.iter().find(|entry| entry.reference().is_none());
    by_reference.or_else(nameless).copied()
}

/// What a Payment object says about the payment that was asked for.
fn said(
    payment: &PaymentObject,
    key: Option<&PaymentKey>,
    order: &GatewayOrderId,
) -> Result<Finding, &'static str> {
    let same_key = key.is_none_or(|key| payment.payment_key == key.as_str());
    if !same_key || payment.order_id != order.as_str() {
        return Err("another_payment");
    }
    standing(payment)
}

/// Whether the order's look-up shows another payment of it that holds no money: then it knows nothing of ours.
fn another_uncharged(
    payment: &PaymentObject,
    key: Option<&PaymentKey>,
    order: &GatewayOrderId,
) -> bool {
    let another = key.is_some_and(|key| payment.payment_key != key.as_str());
    let uncharged = matches!(
        standing(payment),
        Ok(Finding::Pending { .. } | Finding::Declined(_) | Finding::Lapsed | Finding::Closed)
    );
    another && payment.order_id == order.as_str() && uncharged
}

/// What a Payment object says, or how it contradicts itself.
fn standing(payment: &PaymentObject) -> Result<Finding, &'static str> {
    match payment.status.as_str() {
        "DONE" if payment.failure.is_some() => Err("done_with_failure"),
        "DONE" if payment.approved_at.is_none() => Err("done_without_approval"),
        "DONE" => charged(payment),
        // An account that was closed before anybody paid into it: whether a balance is left then, is not documented.
        "CANCELED" if is_closed_unpaid(payment) => Ok(Finding::Closed),
        // Which of the two it is says the balance, not the word: cancelled in parts down to zero it stays `PARTIAL_…`.
        // But cancelled with everything left contradicts itself, and must not be taken for a charge that stands.
        // Unless a cancel is under way or was aborted: then word and balance may run ahead of the truth, or behind it.
        "CANCELED" if payment.balance() != Some(Won::ZERO) && all_done(payment) => {
            Err("canceled_with_balance")
        }
        "PARTIAL_CANCELED" if payment.balance() == payment.total() && all_done(payment) => {
            Err("canceled_nothing")
        }
        "CANCELED" | "PARTIAL_CANCELED" => charged(payment),
        "WAITING_FOR_DEPOSIT" => Ok(Finding::AwaitingDeposit),
        "READY" | "IN_PROGRESS" => Ok(Finding::Pending { settled: false }),
        "ABORTED" => Ok(Finding::Declined(codes::decline_of(failure_code(payment)))),
        "EXPIRED" => Ok(Finding::Lapsed),
        _ => Err("unknown_status"),
    }
}

fn charged(payment: &PaymentObject) -> Result<Finding, &'static str> {
    let (Some(total), Some(balance), Some(currency)) =
        (payment.total(), payment.balance(), &payment.currency)
    else {
        return Err("charge_without_amounts");
    };
    if balance > total {
        return Err("balance_above_total");
    }
    let fallen = total.less(balance);
    Ok(Finding::Charged {
        charged: Money {
            amount: total,
            currency: Currency::of(currency),
        },
        // The balance may fall when a cancel is accepted: only what is done was given back.
        canceled: if all_done(payment) {
            fallen
        } else {
            done_in_all(payment).min(fallen)
        },
    })
}

/// Whether no cancel is under way, and none was aborted.
fn all_done(payment: &PaymentObject) -> bool {
    let cancels = payment.cancels.as_deref().unwrap_or_default();
    let open = |entry: &CancelEntry| {
        matches!(
            entry.progress(),
            CancelProgress::Running | CancelProgress::Aborted
        )
    };
    !cancels.iter().any(open)
}

/// What the cancels that are done come to.
fn done_in_all(payment: &PaymentObject) -> Won {
    let cancels = payment.cancels.as_deref().unwrap_or_default();
    let done = cancels
        .iter()
        .filter(|entry| entry.progress() == CancelProgress::Done);
    done.filter_map(CancelEntry::amount)
        .fold(Won::ZERO, |sum, amount| sum.plus(amount).unwrap_or(sum))
}

/// Whether it is a virtual account that was closed before anybody paid into it.
fn is_closed_unpaid(payment: &PaymentObject) -> bool {
    payment.status == "CANCELED" && payment.is_by_account() && payment.approved_at.is_none()
}

fn failure_code(payment: &PaymentObject) -> &str {
    let failure = payment.failure.as_ref();
    failure
        .and_then(|failure| failure.code.as_deref())
        .unwrap_or_default()
}

/// The code of an answer's body if it has one, else our own word.
fn code_of(answer: &Answer, otherwise: &str) -> String {
    let body = answer.body.as_deref().unwrap_or_default();
    wire::error_code(body).unwrap_or_else(|| otherwise.to_owned())
}

/// Evidence of an answer about our payment, with its lists of cancels: done, under way, aborted.
fn listing(payment: &PaymentObject) -> Told {
    let cancels = payment.cancels.as_deref().unwrap_or_default();
    let reasons = |progress: CancelProgress| {
        let those = cancels.iter().filter(|entry| entry.progress() == progress);
        those
            .filter_map(|entry| entry.cancel_reason.clone())
            .collect()
    };
    let aborted: Vec<String> = reasons(CancelProgress::Aborted);
    let code = if aborted.is_empty() {
        payment.status.clone()
    } else {
        format!("{} cancel_aborted", payment.status)
    };
    Told {
        given_back: Some(reasons(CancelProgress::Done)),
        running: reasons(CancelProgress::Running),
        aborted,
        deposit: payment.deposit(),
        ..told(200, &code)
    }
}

#[cfg(test)]
mod tests;

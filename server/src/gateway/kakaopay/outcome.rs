//! What KakaoPay's answers mean. Pure: a call and what was heard in, an outcome out.
//!
//! What is not provably an end is unknown: unlisted codes, unlisted pairs of code and status, unlisted status words,
//! answers about another payment, answers that contradict themselves. There is no idempotency key and no webhook, so what
//! is unknown is asked about by its `tid` and by nothing else.

mod codes;

use payment::attempt::Finding;
use payment::id::{GatewayHandle, GatewayOrderId};
use payment::money::{Money, Won};
use payment::reach::{Decline, Lost, NotSent};
use reqwest::Url;

use super::wire::{Action, ErrorWord, PaymentObject, ReadyAnswer};
use super::{partner_user_id, payload_of_approve};
use crate::gateway::exchange::{Answer, Heard, alarming, redirected, told, unheard, word};
use crate::gateway::{CancelOutcome, ConfirmOutcome, InquiryOutcome, OpenOutcome, Told, Window};
use codes::{ApproveClass, AskedClass, CancelClass};

/// A payment as its names tell it apart from every other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    /// The shop's code.
    pub(super) cid: &'a str,
    /// KakaoPay's name for the payment.
    pub(super) tid: &'a GatewayHandle,
    /// Ours, where the caller knows it.
    pub(super) order: Option<&'a GatewayOrderId>,
}

/// What an approve's exchange brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Approved {
    /// An end of the call.
    Ended(ConfirmOutcome),
    /// Refused: a decline, unless an order look-up shows a charge all the same or cannot tell.
    Refused(Decline, Told),
}

/// How much a cancel is to give back, of how much that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GiveBack {
    /// Of this cancel.
    pub(super) amount: Won,
    /// Before it.
    pub(super) balance: Won,
}

/// What was read of an answer.
enum Read {
    /// A 200 with this body.
    Good(Vec<u8>),
    /// An error with its code.
    Error(ErrorWord),
    /// Something that says nothing. An undocumented status or a redirect alarms.
    Nothing(Lost, Told),
}

/// Reads an answer. A body that holds an error code is an error whatever its status, and then the pair of both decides.
fn read(answer: &Answer) -> Read {
    let status = answer.status;
    if let Some(told) = redirected(status) {
        return Read::Nothing(Lost::Inconclusive, told);
    }
    let body = match &answer.body {
        Ok(body) => body,
        Err(lost) => return Read::Nothing(*lost, told(status, word(*lost))),
    };
    if let Some(error) = ErrorWord::parse(body) {
        return Read::Error(error);
    }
    if status == 200 {
        return Read::Good(body.clone());
    }
    Read::Nothing(Lost::Unreadable, told(status, word(Lost::Unreadable)))
}

/// What a ready's exchange means. Nothing can have been charged by it: a payment that nobody can name lapses by itself.
pub(super) fn opened(heard: Heard, allowed: impl Fn(&Url) -> bool) -> OpenOutcome {
    let answer = match heard {
        Heard::NotConnected => return OpenOutcome::NoAnswer(not_connected()),
        Heard::Nothing(lost) => return OpenOutcome::NoAnswer(unheard(lost)),
        Heard::Answer(answer) => answer,
    };
    let status = answer.status;
    let body = match read(&answer) {
        Read::Good(body) => body,
        Read::Error(error) => {
            let quiet = told(status, &error.told());
            let passes = codes::class_of(codes::ASKED, status, error.code);
            let passes = passes == Some(AskedClass::Trouble);
            return OpenOutcome::Refused(if passes { quiet } else { alarming(quiet) });
        }
        Read::Nothing(Lost::TimedOut, told) => return OpenOutcome::NoAnswer(told),
        Read::Nothing(_, told) => return OpenOutcome::Refused(told),
    };
    let unusable = |why| OpenOutcome::Refused(alarming(told(status, why)));
    let Some(ready) = ReadyAnswer::parse(&body) else {
        return unusable(word(Lost::Unreadable));
    };
    let Ok(handle) = GatewayHandle::parse(&ready.tid) else {
        return unusable("unusable_tid");
    };
    let urls = [&ready.next_redirect_pc_url, &ready.next_redirect_mobile_url];
    // The pages' policy would let no form go anywhere else, so the shopper would press a button that does nothing.
    if !urls
        .iter()
        .all(|url| Url::parse(url).is_ok_and(|url| allowed(&url)))
    {
        return unusable("window_elsewhere");
    }
    OpenOutcome::Opened {
        window: Window {
            desktop: ready.next_redirect_pc_url,
            mobile: ready.next_redirect_mobile_url,
        },
        handle: Some(handle),
    }
}

/// What an approve's exchange means.
pub(super) fn approved(named: Named<'_>, amount: Won, heard: Heard) -> Approved {
    let lost = |lost, told| Approved::Ended(ConfirmOutcome::Lost(lost, told));
    let answer = match heard {
        Heard::NotConnected => {
            return Approved::Ended(ConfirmOutcome::NotSent(NotSent::Connect));
        }
        Heard::Nothing(how) => return lost(how, unheard(how)),
        Heard::Answer(answer) => answer,
    };
    let status = answer.status;
    let error = match read(&answer) {
        Read::Good(body) => return Approved::Ended(approved_payment(named, amount, &body)),
        // Too many requests says all it says by its head, where no code contradicts it.
        Read::Nothing(..) if status == 429 => {
            let told = alarming(told(status, "too_many_requests"));
            return Approved::Ended(ConfirmOutcome::Refused(told));
        }
        Read::Nothing(how, told) => return lost(how, told),
        Read::Error(error) => error,
    };
    let quiet = told(status, &error.told());
    match codes::class_of(codes::APPROVE, status, error.code) {
        Some(ApproveClass::Declined(class)) => {
            Approved::Ended(ConfirmOutcome::Found(Finding::Declined(class), quiet))
        }
        Some(ApproveClass::Refused(class)) => Approved::Refused(class, quiet),
        Some(ApproveClass::Fault(class)) => Approved::Refused(class, alarming(quiet)),
        Some(ApproveClass::Quota) => Approved::Ended(ConfirmOutcome::Refused(alarming(quiet))),
        Some(ApproveClass::Ask) => lost(Lost::Inconclusive, quiet),
        Some(ApproveClass::SetUp) | None => lost(Lost::Inconclusive, alarming(quiet)),
    }
}

fn approved_payment(named: Named<'_>, amount: Won, body: &[u8]) -> ConfirmOutcome {
    let contradicts = |what| ConfirmOutcome::Lost(Lost::Inconclusive, alarming(told(200, what)));
    let Some(payment) = PaymentObject::parse(body) else {
        let told = alarming(told(200, word(Lost::Unreadable)));
        return ConfirmOutcome::Lost(Lost::Unreadable, told);
    };
    if let Err(contradiction) = is_of(&payment, named) {
        return contradicts(contradiction);
    }
    if !names_both(&payment) {
        return contradicts("charge_without_names");
    }
    if payment.approved_at.is_none() {
        return contradicts("approved_without_time");
    }
    // Another amount is no answer to this call; what was charged, only the order tells.
    if payment.total() != Some(amount) {
        return contradicts("another_amount");
    }
    let finding = Finding::Charged {
        charged: Money::won(amount),
        canceled: Won::ZERO,
    };
    ConfirmOutcome::Found(finding, with_aid(&payment, "APPROVED"))
}

/// What a refused approve comes to after the order was asked.
pub(super) fn refused(
    decline: Decline,
    refusal: Told,
    amount: Won,
    asked: InquiryOutcome,
) -> ConfirmOutcome {
    match asked {
        InquiryOutcome::Found(finding @ Finding::Charged { charged, .. }, told) => {
            let alarm = told.alarm || charged != Money::won(amount);
            ConfirmOutcome::Found(finding, Told { alarm, ..told })
        }
        // Both calls say that its time is over: a payment that was charged in it would be told as a charge.
        InquiryOutcome::Found(Finding::NotFound { .. }, told)
            if told.code == refusal.code && decline == Decline::SessionExpired =>
        {
            ConfirmOutcome::Found(Finding::Declined(decline), refusal)
        }
        InquiryOutcome::Found(
            Finding::Declined(_) | Finding::Lapsed | Finding::Pending { .. },
            told,
        ) => {
            let alarm = refusal.alarm || told.alarm;
            ConfirmOutcome::Found(Finding::Declined(decline), Told { alarm, ..refusal })
        }
        InquiryOutcome::Found(
            Finding::NotFound { .. } | Finding::AwaitingDeposit | Finding::Closed,
            told,
        )
        | InquiryOutcome::NoWord(told)
        | InquiryOutcome::NoAnswer(told) => {
            let alarm = refusal.alarm || told.alarm;
            ConfirmOutcome::Lost(Lost::Inconclusive, Told { alarm, ..refusal })
        }
    }
}

/// What an order look-up's exchange means.
pub(super) fn looked_up(named: Named<'_>, heard: Heard) -> InquiryOutcome {
    let answer = match heard {
        Heard::NotConnected => return InquiryOutcome::NoAnswer(not_connected()),
        Heard::Nothing(lost) => return InquiryOutcome::NoAnswer(unheard(lost)),
        Heard::Answer(answer) => answer,
    };
    let status = answer.status;
    let error = match read(&answer) {
        Read::Good(body) => {
            let Some(payment) = PaymentObject::parse(&body) else {
                let told = told(status, word(Lost::Unreadable));
                return InquiryOutcome::NoAnswer(told);
            };
            return match said(&payment, named) {
                Ok(finding) => InquiryOutcome::Found(finding, listing(&payment, named.order)),
                Err(contradiction) => InquiryOutcome::NoWord(alarming(told(status, contradiction))),
            };
        }
        Read::Nothing(Lost::Inconclusive, told) => return InquiryOutcome::NoWord(told),
        Read::Nothing(_, told) if status == 429 => return InquiryOutcome::NoWord(alarming(told)),
        Read::Nothing(_, told) => return InquiryOutcome::NoAnswer(told),
        Read::Error(error) => error,
    };
    let quiet = told(status, &error.told());
    match codes::class_of(codes::ASKED, status, error.code) {
        Some(AskedClass::Trouble) => InquiryOutcome::NoWord(quiet),
        // KakaoPay itself gave the name, so an operator must see that it has forgotten it.
        Some(AskedClass::Absent) => {
            InquiryOutcome::Found(Finding::NotFound { settled: false }, alarming(quiet))
        }
        // As weak as that it knows nothing: whether a charge would be told in its place is not certain.
        Some(AskedClass::Over) => {
            InquiryOutcome::Found(Finding::NotFound { settled: false }, quiet)
        }
        // The rest says that something is wrong with us (key, quota, shop code), never "not charged".
        None => InquiryOutcome::NoWord(alarming(quiet)),
    }
}

/// What a cancel's exchange means.
pub(super) fn canceled(named: Named<'_>, give: GiveBack, heard: Heard) -> CancelOutcome {
    let answer = match heard {
        Heard::NotConnected => return CancelOutcome::Unknown(not_connected()),
        Heard::Nothing(lost) => return CancelOutcome::Unknown(unheard(lost)),
        Heard::Answer(answer) => answer,
    };
    let status = answer.status;
    let error = match read(&answer) {
        Read::Good(body) => return canceled_payment(named, give, &body),
        Read::Nothing(_, told) if status == 429 => return CancelOutcome::Unknown(alarming(told)),
        Read::Nothing(_, told) => return CancelOutcome::Unknown(told),
        Read::Error(error) => error,
    };
    let quiet = told(status, &error.told());
    match codes::class_of(codes::CANCEL, status, error.code) {
        Some(CancelClass::Ask) => CancelOutcome::Unknown(quiet),
        Some(CancelClass::Repair) => CancelOutcome::RetryWithNewKey(alarming(quiet)),
        Some(CancelClass::Final) => CancelOutcome::Refused(quiet),
        Some(CancelClass::Mistake) => CancelOutcome::Refused(alarming(quiet)),
        Some(CancelClass::Quota) | None => CancelOutcome::Unknown(alarming(quiet)),
    }
}

fn canceled_payment(named: Named<'_>, give: GiveBack, body: &[u8]) -> CancelOutcome {
    let contradicts = |what| CancelOutcome::Unknown(alarming(told(200, what)));
    let Some(payment) = PaymentObject::parse(body) else {
        return contradicts(word(Lost::Unreadable));
    };
    if let Err(contradiction) = is_of(&payment, named) {
        return contradicts(contradiction);
    }
    let left = give.balance.less(give.amount);
    let status = payment.status.as_deref().unwrap_or_default();
    let expected = if left == Won::ZERO {
        "CANCEL_PAYMENT"
    } else {
        "PART_CANCEL_PAYMENT"
    };
    let done = payment.given_now() == Some(give.amount) && payment.balance() == Some(left);
    if status != expected || !done {
        return contradicts("cancel_not_seen");
    }
    match said(&payment, named) {
        Ok(finding @ Finding::Charged { .. }) => {
            CancelOutcome::Found(finding, with_aid(&payment, status))
        }
        Ok(_) => contradicts("cancel_not_seen"),
        Err(contradiction) => contradicts(contradiction),
    }
}

/// Whether an answer is about the payment that was named, by every name that it tells.
fn is_of(payment: &PaymentObject, named: Named<'_>) -> Result<(), &'static str> {
    if payment.cid != named.cid || payment.tid != named.tid.as_str() {
        return Err("another_payment");
    }
    let differs = |told: Option<&str>, ours: &str| told.is_some_and(|told| told != ours);
    let another = named.order.is_some_and(|order| {
        differs(payment.partner_order_id.as_deref(), order.as_str())
            || differs(payment.partner_user_id.as_deref(), &partner_user_id(order))
    });
    if another {
        Err("another_order")
    } else {
        Ok(())
    }
}

/// A charge must tell both of our names; before one, an answer may be without them.
const fn names_both(payment: &PaymentObject) -> bool {
    payment.partner_order_id.is_some() && payment.partner_user_id.is_some()
}

/// What an answer says about the payment that was named, or how it contradicts itself.
fn said(payment: &PaymentObject, named: Named<'_>) -> Result<Finding, &'static str> {
    is_of(payment, named)?;
    match payment.status.as_deref().unwrap_or_default() {
        "SUCCESS_PAYMENT" | "PART_CANCEL_PAYMENT" | "CANCEL_PAYMENT" => charged(payment),
        "READY" | "SEND_TMS" | "OPEN_PAYMENT" | "SELECT_METHOD" | "ARS_WAITING"
        | "AUTH_PASSWORD" => Ok(Finding::Pending { settled: false }),
        "FAIL_AUTH_PASSWORD" => Ok(Finding::Declined(Decline::AuthenticationFailed)),
        "FAIL_PAYMENT" | "QUIT_PAYMENT" => Ok(Finding::Declined(Decline::Other)),
        // Only a recurring payment has it.
        "ISSUED_SID" => Err("recurring_payment"),
        _ => Err("unknown_status"),
    }
}

fn charged(payment: &PaymentObject) -> Result<Finding, &'static str> {
    if !names_both(payment) {
        return Err("charge_without_names");
    }
    let Some(total) = payment.total() else {
        return Err("charge_without_amounts");
    };
    let status = payment.status.as_deref().unwrap_or_default();
    let canceled = match payment.given_back() {
        Some(canceled) => canceled,
        // Before the first cancel there may be no sum of cancels.
        None if status == "SUCCESS_PAYMENT" => Won::ZERO,
        None => return Err("cancel_without_amounts"),
    };
    if canceled > total {
        return Err("canceled_above_total");
    }
    // What is left says which of the three it is; a word beside another sum contradicts itself.
    let fits = match status {
        "SUCCESS_PAYMENT" => canceled == Won::ZERO,
        "PART_CANCEL_PAYMENT" => canceled > Won::ZERO,
        _ => canceled == total,
    };
    if !fits {
        return Err("status_beside_another_sum");
    }
    let left = total.less(canceled);
    if payment.balance().is_some_and(|balance| balance != left) {
        return Err("balance_beside_another_sum");
    }
    Ok(Finding::Charged {
        charged: Money::won(total),
        canceled,
    })
}

/// Evidence of an answer about our payment, with the reasons of its cancels where its list can be believed.
fn listing(payment: &PaymentObject, order: Option<&GatewayOrderId>) -> Told {
    Told {
        given_back: order.and_then(|order| given_back(payment, order)),
        ..told(200, payment.status.as_deref().unwrap_or_default())
    }
}

/// The reasons of all cancels, as we gave them. That the list repeats what was given along with a call is seen in a copy of
/// an old description only; whether it does, the entry of our own approve shows. A list that does not add up is none.
fn given_back(payment: &PaymentObject, order: &GatewayOrderId) -> Option<Vec<String>> {
    let actions = payment.payment_action_details.as_deref()?;
    let of = |action: &&Action, kind: &str| action.payment_action_type.as_deref() == Some(kind);
    let marker = payload_of_approve(order);
    let repeats = actions
        .iter()
        .filter(|action| of(action, "PAYMENT"))
        .any(|action| action.payload.as_deref() == Some(marker));
    let cancels = || actions.iter().filter(|action| of(action, "CANCEL"));
    let sum = cancels().try_fold(Won::ZERO, |sum, action| sum.plus(action.won()?))?;
    if !repeats || Some(sum) != payment.given_back().or(Some(Won::ZERO)) {
        return None;
    }
    // One without a payload was made at KakaoPay's own desk.
    Some(
        cancels()
            .map(|action| action.payload.clone().unwrap_or_default())
            .collect(),
    )
}

/// Evidence with KakaoPay's number of the call itself, by which its own people find it.
fn with_aid(payment: &PaymentObject, word: &str) -> Told {
    match payment.aid.as_deref() {
        Some(aid) => told(200, &format!("{word}.{aid}")),
        None => told(200, word),
    }
}

fn not_connected() -> Told {
    Told {
        code: "not_connected".to_owned(),
        ..Told::default()
    }
}

#[cfg(test)]
mod tests;

//! The English messages.

use super::{
    Decline, MomentKind, NotSent, PanelWord, PayAction, ProblemCode, Reason, RefundStatus,
    RefusedFor, Say, Stage, Word,
};

pub(super) const NOTHING_CHARGED: &str = "You were not charged.";
pub(super) const ALL_RETURNED: &str = "Nothing of it remains charged.";

pub(super) const fn word(word: Word) -> &'static str {
    match word {
        Word::Shop => "자리 Jari",
        Word::Tagline => "Things to keep at hand",
        Word::SkipToContent => "Skip to content",
        Word::Navigation => "Main menu",
        Word::ToShop => "Shop",
        Word::ToOrders => "Orders",
        Word::OtherLanguage => "한국어",
        Word::SwitchLanguage => "Switch the language to Korean",
        Word::Promise => "Until we know how a payment ended, we call it neither paid nor failed.",
        Word::CatalogueTitle => "A place for good things",
        Word::CatalogueLead => "A few things, chosen for the table you sit at.",
        Word::Quantity => "Quantity",
        Word::Order => "Order",
        Word::SoldOut => "Sold out",
        Word::NothingOnSale => "Nothing is on sale at the moment.",
        Word::SummaryTitle => "Your order",
        Word::Total => "Total",
        Word::OrderNumber => "Order number",
        Word::OrderedAt => "Ordered",
        Word::Seller => "Sold by",
        Word::CheckoutTitle => "Checkout",
        Word::HistoryTitle => "Your orders",
        Word::NoOrders => "You have no orders yet.",
        Word::NoOrdersLead => {
            "Orders made on this device appear here, with their payments and refunds."
        }
        Word::Newer => "Newer",
        Word::Older => "Older",
        Word::Paging => "Pages of your orders",
        Word::OrderTitle => "Order",
        Word::Status => "Status",
        Word::TimelineTitle => "What happened",
        Word::GoPay => "Go to payment",
        Word::SeeProgress => "See its progress",
        Word::KeptUpToDate => "We are finding out. The result appears here as soon as we know it.",
        Word::MissingTitle => "There is no such page",
        Word::MissingBody => {
            "The address is wrong, or the order was not made on this device. Your own orders are under “Orders”."
        }
        Word::UnavailableTitle => "We cannot look this up right now",
        Word::UnavailableBody => {
            "This page opens again by itself in a moment. It says nothing about your order, \
             so please do not pay again before you have seen the result."
        }
        Word::BusyTitle => "Very busy right now",
        Word::BusyBody => {
            "This page opens again by itself in a moment. Your order and payment are as they were."
        }
        Word::RefundsTitle => "Refunds",
        Word::CancelTitle => "Cancel this order",
        Word::CancelButton => "Cancel the order",
        Word::CloseLead => {
            "Nothing has been paid yet. The virtual account is closed and the order is canceled; please do not do this if you \
             have just made the transfer."
        }
    }
}

pub(super) const fn panel(word: PanelWord) -> &'static str {
    match word {
        PanelWord::Title => "Development: the fake gateway",
        PanelWord::Lead => {
            "Only a development server shows this. Make the gateway slow, or let it lose answers."
        }
        PanelWord::Reachable => "control API answers",
        PanelWord::Unreachable => "control API does not answer",
        PanelWord::Up => "on",
        PanelWord::Down => "off",
        PanelWord::Presets => "Choose what happens",
        PanelWord::Custom => "Own values",
        PanelWord::Delay => "Delay (ms)",
        PanelWord::Loss => "Lost answers (0–1)",
        PanelWord::SlowTail => "Slow tail (0–1)",
        PanelWord::Hang => "Hang (ms)",
        PanelWord::Decline => "Declines (0–1)",
        PanelWord::Apply => "Apply",
        PanelWord::Scenario => "In force now",
        PanelWord::Ledger => "Ledger: confirm calls",
        PanelWord::Truth => "Development: what the gateway's ledger says",
        PanelWord::NoTruth => "The ledger has nothing about this order.",
    }
}

pub(super) const fn say(message: Say) -> &'static str {
    match message {
        Say::CompleteTitle => "One step is left",
        Say::CompleteBody => {
            "You are authenticated and nothing has been charged yet. Complete the payment to place your order."
        }
        Say::CompleteButton => "Complete the payment",
        Say::WindowClosed => "You closed the payment window. Nothing was charged.",
        Say::WindowRefused => "The payment window reported a refusal. Nothing was charged.",
        Say::WindowNotOpened => {
            "The payment window could not be opened. Nothing was charged. Please try again in a moment."
        }
        Say::Methods => "How to pay",
        Say::PayOtherwise => "Pay another way",
        Say::Progress => "Progress of the confirmation",
        Say::StepDone => "Done: ",
        Say::StepNext => "Next: ",
        Say::ToOrders => "See your orders",
        Say::ToOrder => "See this order",
        Say::ToShop => "Back to the shop",
    }
}

pub(super) fn method(gateway: &str) -> Option<&'static str> {
    match gateway {
        "toss" => Some("Card or transfer (Toss Payments)"),
        "kakaopay" => Some("KakaoPay"),
        "stripe" => Some("Card from abroad (Stripe)"),
        _ => None,
    }
}

pub(super) const fn heading(stage: Stage) -> &'static str {
    match stage {
        Stage::Offer => "Ready when you are",
        Stage::Confirming => "We are confirming your payment",
        Stage::Checking => "We are still waiting for the bank's answer",
        Stage::Looking => "We are looking at your order",
        Stage::Paid => "Your payment is complete",
        Stage::PartiallyRefunded => "Part of your money was refunded",
        Stage::Refunded => "Your money was refunded",
        Stage::ReturningMoney => "Your money is on its way back",
        Stage::AwaitingDeposit => "We are waiting for your deposit",
        Stage::ClosingAccount => "We are cancelling your order",
        Stage::ClosedUnpaid => "The order was canceled before a deposit",
        Stage::NotCharged(_) => "The payment did not go through",
        Stage::StillUnknown => "We do not know the result yet",
        Stage::Expired => "The time to pay is over",
    }
}

pub(super) const fn status(stage: Stage) -> &'static str {
    match stage {
        Stage::Offer => "Not paid yet",
        Stage::Confirming | Stage::Checking | Stage::Looking | Stage::StillUnknown => "Finding out",
        Stage::Paid => "Paid",
        Stage::PartiallyRefunded => "Partly refunded",
        Stage::Refunded => "Refunded",
        Stage::ReturningMoney => "Being refunded",
        Stage::AwaitingDeposit => "Awaiting deposit",
        Stage::ClosingAccount => "Being canceled",
        Stage::ClosedUnpaid => "Canceled, nothing paid",
        Stage::NotCharged(_) => "Not charged",
        Stage::Expired => "Expired",
    }
}

/// The texts without numbers; those of [`checking`] and of a proven "not charged" are made apart.
pub(super) const fn body(stage: Stage) -> &'static str {
    match stage {
        Stage::Offer => {
            "“Pay” opens the payment window. The payment becomes final only after you come back from it."
        }
        Stage::Confirming => "Please keep this page open; do not pay again.",
        Stage::Checking => "You need not do anything, and you will not be charged twice.",
        Stage::Looking => {
            "One moment, please. As soon as we know, we will tell you what you can do next."
        }
        Stage::Paid => "Thank you for your order. You find it under your orders at any time.",
        Stage::PartiallyRefunded => {
            "The rest of the payment stands. It can take some days until your card issuer shows the refund."
        }
        Stage::Refunded => {
            "The payment was cancelled in full and the order is closed. It can take some days until your card \
             issuer shows the refund."
        }
        Stage::ReturningMoney => {
            "We are cancelling what was charged. Your orders show when it is done. Please do not pay again until then."
        }
        Stage::AwaitingDeposit => {
            "Pay exactly this amount into the virtual account below in time, and your order is placed. We will tell you \
             when the deposit arrives."
        }
        Stage::ClosingAccount => {
            "We are closing the virtual account. Please pay nothing into it any more. If your deposit was faster, the order \
             stays paid, and this page says so."
        }
        Stage::ClosedUnpaid => {
            "The virtual account was closed before anything was paid into it. No money came, so there is none to give \
             back. Please pay nothing into that account."
        }
        Stage::NotCharged(_) => NOTHING_CHARGED,
        Stage::StillUnknown => {
            "We do not know yet whether the payment was made. We will keep asking; the result appears in your order \
             history. Please do not pay again."
        }
        Stage::Expired => "This order ended without a payment. You are welcome to order again.",
    }
}

pub(super) fn checking(seconds: u64) -> String {
    let every = if seconds == 1 {
        "second".to_owned()
    } else {
        format!("{seconds} seconds")
    };
    format!(
        "Your bank has it or will never get it; we ask every {every}. You need not do anything, and you will not be \
         charged twice."
    )
}

pub(super) const fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::NotSent(NotSent::Cap) => {
            "Too many people are paying right now, so we did not send this payment."
        }
        Reason::NotSent(NotSent::Circuit) => {
            "The payment gateway is answering too slowly, so we did not send this payment."
        }
        Reason::NotSent(NotSent::Deadline) => {
            "Your request reached us too late, so we did not send the payment."
        }
        Reason::NotSent(NotSent::Connect) => {
            "We could not reach the payment gateway, so nothing was sent."
        }
        Reason::PgRefused => "The payment gateway was too busy and did not process the payment.",
        Reason::Declined(class) => decline(class),
        Reason::Lost(_) | Reason::Interrupted => {
            "We got no answer, but have made sure that no payment was made."
        }
        Reason::WindowClosed => "The payment window was not finished in time.",
        Reason::PgExpired => "The time to complete this authenticated payment is over.",
        Reason::NeverCharged => "We asked the payment gateway: it never made this payment.",
        Reason::OperatorEnded => "Our staff have checked: no payment was made.",
        Reason::WrongAmount => {
            "Another amount than the order's was charged, and we cancelled it in full."
        }
        Reason::LateSuccess => "A payment was approved too late, and we cancelled it in full.",
    }
}

const fn decline(class: Decline) -> &'static str {
    match class {
        Decline::CardRefused => {
            "Your card issuer did not approve the payment. Another card may work."
        }
        Decline::CardInvalid => {
            "The card's details are wrong, or the card cannot be used. Please check it."
        }
        Decline::LimitExceeded => {
            "The limit of the card or account is exceeded. Another way to pay may work."
        }
        Decline::AuthenticationFailed => "The password or the identity check was not right.",
        Decline::NotAvailable => "This way to pay, or this instalment plan, is not available here.",
        Decline::SessionExpired => {
            "The time to authenticate ran out. Please start the payment again."
        }
        Decline::ShopSetup => {
            "The payment was refused because of the shop's set-up. It is not your fault."
        }
        Decline::Other => "The card issuer or the payment gateway declined the payment.",
    }
}

pub(super) const fn pay(action: PayAction) -> &'static str {
    match action {
        PayAction::Pay => "Pay",
        PayAction::PayAgain | PayAction::ConfirmAgain => "Pay again",
    }
}

pub(super) const fn refusal(code: ProblemCode) -> Option<&'static str> {
    match code {
        ProblemCode::OutOfStock => {
            Some("There is not enough in stock, so we went no further. You were not charged.")
        }
        ProblemCode::AmountMismatch => {
            Some("The amount is not that of the order, so we did not send the payment.")
        }
        ProblemCode::PaymentKeyUsed | ProblemCode::NewAttemptNeeded => Some(
            "This authentication cannot be used. Please authenticate again in the payment window.",
        ),
        ProblemCode::AttemptExpired => {
            Some("The time to complete this authenticated payment is over, so we did not send it.")
        }
        ProblemCode::Overloaded
        | ProblemCode::RateLimited
        | ProblemCode::DatabaseBusy
        | ProblemCode::ShuttingDown => {
            Some("We are too busy to take the request. Please try again in a moment.")
        }
        ProblemCode::InvalidRequest
        | ProblemCode::InvalidTimeoutHeader
        | ProblemCode::ForbiddenOrigin
        | ProblemCode::Unauthorized
        | ProblemCode::NotFound
        | ProblemCode::MethodNotAllowed
        | ProblemCode::BodyTooLarge
        | ProblemCode::UnsupportedMediaType
        | ProblemCode::IdempotencyKeyReused
        | ProblemCode::Internal => Some("We did not process the request."),
        // What the order itself shows, in its own words.
        ProblemCode::Declined
        | ProblemCode::OrderNotFound
        | ProblemCode::AttemptInProgress
        | ProblemCode::OrderAlreadyPaid
        | ProblemCode::OrderExpired
        | ProblemCode::OrderClosed
        | ProblemCode::RefundExceedsBalance
        | ProblemCode::PgCapReached
        | ProblemCode::CircuitOpen
        | ProblemCode::DeadlinePassed
        | ProblemCode::PgUnreachable
        | ProblemCode::PgRefused => None,
    }
}

pub(super) const fn moment(what: MomentKind) -> &'static str {
    match what {
        MomentKind::Ordered => "You placed the order",
        MomentKind::WindowOpened => "The payment window was opened",
        MomentKind::Claimed => "The payment was handed to the payment gateway",
        MomentKind::NotSent => "The payment was not sent; you were not charged",
        MomentKind::RefusedByGateway => "The payment gateway refused before processing it",
        MomentKind::Declined => "The payment was declined; you were not charged",
        MomentKind::AnswerLost => "The answer was lost; we began to find out the result",
        MomentKind::Interrupted => "The server was restarted; we began to find out the result",
        MomentKind::AskedNoResult => "We asked the payment gateway; it has no result yet",
        MomentKind::AccountIssued => "A virtual account was issued for your deposit",
        MomentKind::DepositUndone => "The bank has undone your deposit",
        MomentKind::Paid => "The payment is confirmed",
        MomentKind::FoundPaid => "We asked the payment gateway: it is paid",
        MomentKind::WrongAmount => "Another amount was charged; we began to cancel it",
        MomentKind::OperatorEnded => "Our staff found that nothing was charged",
        MomentKind::NeverCharged => "The payment gateway says that it never charged it",
        MomentKind::LateSuccess => "We learned of an approval after the payment had ended",
        MomentKind::CancelRequested => "A refund was requested",
        MomentKind::Refunded => "The payment gateway refunded the money",
        MomentKind::CloseRequested => "You asked to cancel the order before paying",
        MomentKind::AccountClosed => "The virtual account was closed; nothing had been paid",
        MomentKind::AccountNotClosed => "The payment gateway did not close the virtual account",
        MomentKind::Expired => "The time to pay is over",
        MomentKind::Other => "The order's record was updated",
    }
}

pub(super) const fn refund(status: RefundStatus) -> &'static str {
    match status {
        RefundStatus::Waiting => "Asked for; it follows the refund before it",
        RefundStatus::Asked => "Cancel asked; we are waiting for the bank's word",
        RefundStatus::Done => "Refunded",
        RefundStatus::Refused(RefusedFor::Gateway) => {
            "Not refunded: the payment gateway refused it"
        }
        RefundStatus::Refused(RefusedFor::ExceedsBalance) => {
            "Not refunded: less than this was left"
        }
        RefundStatus::Refused(RefusedFor::GivenBackElsewhere) => {
            "Not needed: the money was refunded already"
        }
    }
}

pub(super) fn cancel_lead(amount: &str) -> String {
    format!("We refund {amount}. It can take some days until your card issuer shows it.")
}

//! What mails say.

use super::Lang;

/// What a mail tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mail {
    /// The order is paid: a receipt.
    Paid,
    /// The deposit was undone.
    Unpaid,
    /// Part of the money went back.
    PartiallyCanceled,
    /// All of the money went back.
    Canceled,
    /// The account was closed before anybody paid into it: nothing went back.
    Closed,
    /// A charge that did not stand went back.
    Returned,
    /// To the shop: something about money needs a look.
    Alarm,
}

impl Lang {
    /// The subject, before the order's number.
    #[must_use]
    pub const fn mail_subject(self, mail: Mail) -> &'static str {
        match (self, mail) {
            (Self::Ko, Mail::Paid) => "결제가 완료되었어요",
            (Self::En, Mail::Paid) => "Your payment is complete",
            (Self::Ko, Mail::Unpaid) => "입금이 취소되었어요",
            (Self::En, Mail::Unpaid) => "Your deposit was undone",
            (Self::Ko, Mail::PartiallyCanceled) => "일부 금액이 환불되었어요",
            (Self::En, Mail::PartiallyCanceled) => "Part of your payment was refunded",
            (Self::Ko, Mail::Canceled) => "결제가 취소되고 전액 환불되었어요",
            (Self::En, Mail::Canceled) => "Your payment was refunded in full",
            (Self::Ko, Mail::Closed) => "입금 계좌가 닫혀서 주문이 취소되었어요",
            (Self::En, Mail::Closed) => "The account was closed and your order canceled",
            (Self::Ko, Mail::Returned) => "잘못된 승인을 전액 돌려드렸어요",
            (Self::En, Mail::Returned) => "A charge that did not count was returned",
            (Self::Ko, Mail::Alarm) => "확인이 필요한 결제가 있어요",
            (Self::En, Mail::Alarm) => "A payment needs your eye",
        }
    }

    /// What happened, in a sentence or two.
    #[must_use]
    pub const fn mail_sentence(self, mail: Mail) -> &'static str {
        match (self, mail) {
            (Self::Ko, Mail::Paid) => "주문해 주셔서 고마워요. 결제가 잘 끝났어요.",
            (Self::En, Mail::Paid) => "Thank you for your order. It is paid.",
            (Self::Ko, Mail::Unpaid) => {
                "은행이 입금을 되돌려서 이 주문은 다시 결제를 기다리고 있어요."
            }
            (Self::En, Mail::Unpaid) => {
                "The bank has undone your deposit, so this order waits to be paid again."
            }
            (Self::Ko, Mail::PartiallyCanceled) => {
                "결제하신 금액 중 아래 환불 금액을 돌려드렸어요. 카드사에 따라 며칠 뒤에 보일 수 있어요."
            }
            (Self::En, Mail::PartiallyCanceled) => {
                "The amount below was given back. Your card may show it some days later."
            }
            (Self::Ko, Mail::Canceled) => {
                "결제하신 금액을 모두 돌려드렸어요. 카드사에 따라 며칠 뒤에 보일 수 있어요."
            }
            (Self::En, Mail::Canceled) => {
                "All of the money was given back. Your card may show it some days later."
            }
            (Self::Ko, Mail::Closed) => {
                "입금 전에 가상계좌가 닫혀서 주문이 취소되었어요. 받은 금액이 없어서 환불할 금액이 없어요. 이 계좌로는 입금하지 마세요."
            }
            (Self::En, Mail::Closed) => {
                "The account was closed before anything was paid into it, so your order is canceled. No money was taken, so \
                 nothing was given back. Please pay nothing into that account any more."
            }
            (Self::Ko, Mail::Returned) => {
                "이 주문의 결제로 쓰이지 않은 승인이 있어서 그 금액을 모두 돌려드렸어요. 따로 하실 일은 없어요."
            }
            (Self::En, Mail::Returned) => {
                "There was a charge that did not pay this order, and all of it was given back. You need not do anything."
            }
            (Self::Ko, Mail::Alarm) => {
                "아래 주문의 결제에 확인할 일이 생겼어요. 운영 안내서(docs/runbook)를 봐 주세요."
            }
            (Self::En, Mail::Alarm) => {
                "Something about the payment of this order needs a look: see the runbook (docs/runbook)."
            }
        }
    }

    /// The name of an amount that went back.
    #[must_use]
    pub const fn mail_refunded(self) -> &'static str {
        match self {
            Self::Ko => "환불 금액",
            Self::En => "Refunded",
        }
    }
}

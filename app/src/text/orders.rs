//! The words of the order history's filter and of receipts.

use super::Lang;
use crate::data::OrderGroup;

/// A message of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrdersWord {
    /// Name of the filter's links.
    Filter,
    /// No order is in the chosen group.
    NoneInGroup,
    /// Link to the receipt.
    ToReceipt,
    /// Title of the receipt.
    Receipt,
    /// When it was paid.
    PaidAt,
    /// How it was paid.
    PaidWith,
    /// What was given back.
    GivenBack,
    /// What remains paid.
    Remains,
    /// What the receipt is and is not.
    Note,
    /// Back to the order.
    BackToOrder,
}

impl Lang {
    /// A message of the history's filter and of receipts.
    #[must_use]
    pub const fn orders(self, word: OrdersWord) -> &'static str {
        match (self, word) {
            (Self::Ko, OrdersWord::Filter) => "주문 상태별로 보기",
            (Self::En, OrdersWord::Filter) => "Show orders by state",
            (Self::Ko, OrdersWord::NoneInGroup) => "이 상태의 주문이 없어요.",
            (Self::En, OrdersWord::NoneInGroup) => "No order is in this state.",
            (Self::Ko, OrdersWord::ToReceipt) => "영수증 보기",
            (Self::En, OrdersWord::ToReceipt) => "See the receipt",
            (Self::Ko, OrdersWord::Receipt) => "영수증",
            (Self::En, OrdersWord::Receipt) => "Receipt",
            (Self::Ko, OrdersWord::PaidAt) => "결제 시각",
            (Self::En, OrdersWord::PaidAt) => "Paid at",
            (Self::Ko, OrdersWord::PaidWith) => "결제 수단",
            (Self::En, OrdersWord::PaidWith) => "Paid with",
            (Self::Ko, OrdersWord::GivenBack) => "환불한 금액",
            (Self::En, OrdersWord::GivenBack) => "Refunded",
            (Self::Ko, OrdersWord::Remains) => "실제 결제 금액",
            (Self::En, OrdersWord::Remains) => "Paid in the end",
            (Self::Ko, OrdersWord::Note) => {
                "이 화면을 인쇄하면 주문 내용만 나와요. 세금 처리에는 결제사가 발행한 매출전표를 써 주세요."
            }
            (Self::En, OrdersWord::Note) => {
                "Printed, this page shows the purchase alone. For taxes, please use the slip that the payment gateway issued."
            }
            (Self::Ko, OrdersWord::BackToOrder) => "주문으로 돌아가기",
            (Self::En, OrdersWord::BackToOrder) => "Back to the order",
        }
    }

    /// What an order of several products is called: its first, and how many more.
    #[must_use]
    pub fn and_more(self, first: String, more: usize) -> String {
        match (self, more) {
            (_, 0) => first,
            (Self::Ko, more) => format!("{first} 외 {more}건"),
            (Self::En, more) => format!("{first} and {more} more"),
        }
    }

    /// Date and time as this language writes them, for `strftime`.
    #[must_use]
    pub const fn time_form(self) -> &'static str {
        match self {
            Self::Ko => "%Y년 %-m월 %-d일 %H:%M",
            Self::En => "%-d %b %Y, %H:%M",
        }
    }

    /// A day before a time of day, for `strftime`.
    #[must_use]
    pub const fn day_form(self) -> &'static str {
        match self {
            Self::Ko => "%-m월 %-d일 ",
            Self::En => "%-d %b, ",
        }
    }

    /// The name of a group of orders.
    #[must_use]
    pub const fn order_group(self, group: OrderGroup) -> &'static str {
        match (self, group) {
            (Self::Ko, OrderGroup::All) => "전체",
            (Self::En, OrderGroup::All) => "All",
            (Self::Ko, OrderGroup::Pending) => "결제 전·확인 중",
            (Self::En, OrderGroup::Pending) => "Not settled",
            (Self::Ko, OrderGroup::Paid) => "결제 완료",
            (Self::En, OrderGroup::Paid) => "Paid",
            (Self::Ko, OrderGroup::Returned) => "취소·환불",
            (Self::En, OrderGroup::Returned) => "Canceled or refunded",
            (Self::Ko, OrderGroup::Expired) => "기한 지남",
            (Self::En, OrderGroup::Expired) => "Expired",
        }
    }
}

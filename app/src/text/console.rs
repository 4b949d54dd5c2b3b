//! The words of the operators' console.

use super::Lang;
use crate::data::console::Notice;

/// A message of the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpsWord {
    /// The console's name.
    Console,
    /// To the first page.
    Payments,
    /// What operators did.
    Deeds,
    /// Ends the session.
    SignOut,
    /// Begins a session.
    SignIn,
    /// Why a name is asked for.
    SignInLead,
    /// The operator's name.
    Name,
    /// The console's password.
    Password,
    /// What can be searched for.
    FindLabel,
    /// Searches.
    Find,
    /// The limits now.
    Gauges,
    /// Confirms in flight.
    InFlight,
    /// Without a limit.
    NoLimit,
    /// The circuit.
    Circuit,
    /// The gateway did not answer its last inquiry.
    Silent,
    /// The gateway answers.
    Answers,
    /// Attempts whose result is unknown.
    Unknown,
    /// Webhooks that were not looked at.
    WebhooksNew,
    /// Webhooks that wait for their attempt.
    WebhooksParked,
    /// Refunds under way.
    RefundsOpen,
    /// What shops' endpoints are still to be told.
    ShopWebhooks,
    /// What shops' endpoints did not take.
    ShopWebhooksLate,
    /// What a shop's endpoint is told.
    ToldToShop,
    /// A shop that sells through this checkout.
    Shop,
    /// The shop's own name for an order.
    ShopReference,
    /// How often something was tried.
    Tries,
    /// What is not final.
    NotFinal,
    /// Nothing is open.
    AllFinal,
    /// There are more than are shown.
    More,
    /// An order.
    Order,
    /// A state.
    Status,
    /// An amount.
    Amount,
    /// Since when.
    Since,
    /// How often it was asked.
    Asks,
    /// What was learned last.
    Last,
    /// A gateway.
    Gateway,
    /// The attempts of an order.
    Attempts,
    /// The gateway's order id.
    GatewayOrder,
    /// The payment key, masked.
    PaymentKey,
    /// What was charged.
    Charged,
    /// What was given back.
    GivenBack,
    /// When the gateway is asked next.
    NextLook,
    /// Has the gateway asked.
    AskNow,
    /// Ends a doubt.
    Resolve,
    /// What ending a doubt means.
    ResolveLead,
    /// It was charged.
    WasCharged,
    /// It was not charged.
    WasNotCharged,
    /// Why.
    Reason,
    /// Though the gateway may still charge it.
    Early,
    /// What was learned.
    Evidence,
    /// When.
    At,
    /// From whom.
    Source,
    /// What.
    Event,
    /// What was literally said.
    Told,
    /// Refunds.
    Refunds,
    /// Gives money back.
    Refund,
    /// What an empty amount means.
    AmountLabel,
    /// Nothing can be given back here.
    NothingToRefund,
    /// Who.
    Operator,
    /// What was done.
    Action,
    /// In which words.
    Detail,
    /// What it came to.
    Result,
    /// Nothing was done yet.
    NoDeeds,
}

impl Lang {
    /// A message of the console.
    #[must_use]
    pub const fn ops(self, word: OpsWord) -> &'static str {
        match self {
            Self::Ko => korean(word),
            Self::En => english(word),
        }
    }

    /// What came of an operator's form.
    #[must_use]
    pub const fn ops_notice(self, notice: Notice) -> &'static str {
        match (self, notice) {
            (Self::Ko, Notice::WrongPassword) => "이름과 비밀번호를 다시 확인해 주세요.",
            (Self::En, Notice::WrongPassword) => "Please check the name and the password.",
            (Self::Ko, Notice::TooOften) => "시도가 너무 많아요. 1분 뒤에 다시 시도해 주세요.",
            (Self::En, Notice::TooOften) => "Too many tries. Please wait a minute.",
            (Self::Ko, Notice::SignedOut) => {
                "로그인이 끝났어요. 다시 로그인해 주세요. 아무것도 바뀌지 않았어요."
            }
            (Self::En, Notice::SignedOut) => {
                "Your session is over. Please sign in again. Nothing was changed."
            }
            (Self::Ko, Notice::NotFound) => "그런 주문이나 결제가 없어요.",
            (Self::En, Notice::NotFound) => "There is no such order or payment.",
            (Self::Ko, Notice::Asked) => "결제사에 지금 묻고 있어요. 잠시 뒤에 새로 고쳐 주세요.",
            (Self::En, Notice::Asked) => "The gateway is asked now. Reload in a moment.",
            (Self::Ko, Notice::NothingSent) => "결제사에 보낸 적이 없어서 물을 것이 없어요.",
            (Self::En, Notice::NothingSent) => {
                "Nothing was ever sent, so there is nothing to ask about."
            }
            (Self::Ko, Notice::Resolved) => "확정했어요. 이유는 기록에 남아요.",
            (Self::En, Notice::Resolved) => "Resolved. The reason is kept.",
            (Self::Ko, Notice::NotUnknown) => "이미 결과가 나온 결제라 바꾸지 않았어요.",
            (Self::En, Notice::NotUnknown) => "Its result is known already. Nothing was changed.",
            (Self::Ko, Notice::TooEarly) => {
                "결제사가 아직 승인할 수 있어서 바꾸지 않았어요. 시간이 더 지난 뒤에 하거나, 확실하면 체크하고 다시 눌러 주세요."
            }
            (Self::En, Notice::TooEarly) => {
                "The gateway may still charge it, so nothing was changed. Wait, or tick the box if you are certain."
            }
            (Self::Ko, Notice::NoReason) => "이유를 적어 주세요. 아무것도 바뀌지 않았어요.",
            (Self::En, Notice::NoReason) => "Please say why. Nothing was changed.",
            (Self::Ko, Notice::NoAmount) => {
                "금액을 원 단위 숫자로 적어 주세요. 아무것도 바뀌지 않았어요."
            }
            (Self::En, Notice::NoAmount) => {
                "Please give the amount in whole won. Nothing was changed."
            }
            (Self::Ko, Notice::RefundAsked) => "환불을 시작했어요. 아래에서 진행을 볼 수 있어요.",
            (Self::En, Notice::RefundAsked) => "The refund is under way. See below how far it is.",
            (Self::Ko, Notice::RefundRefused) => {
                "환불을 시작하지 않았어요. 남은 금액과 주문 상태를 확인해 주세요."
            }
            (Self::En, Notice::RefundRefused) => {
                "The refund was not begun. Check what is left and the order's state."
            }
        }
    }

    /// How long something has been so, in the largest unit that tells it.
    #[must_use]
    pub fn ops_age(self, seconds: u64) -> String {
        let (n, ko, en) = match seconds {
            0..=119 => (seconds, "초", "s"),
            120..=7_199 => (seconds / 60, "분", "min"),
            7_200..=172_799 => (seconds / 3_600, "시간", "h"),
            _ => (seconds / 86_400, "일", "d"),
        };
        match self {
            Self::Ko => format!("{n}{ko}"),
            Self::En => format!("{n} {en}"),
        }
    }
}

const fn korean(word: OpsWord) -> &'static str {
    match word {
        OpsWord::Console => "운영 콘솔",
        OpsWord::Payments => "결제",
        OpsWord::Deeds => "작업 기록",
        OpsWord::SignOut => "로그아웃",
        OpsWord::SignIn => "로그인",
        OpsWord::SignInLead => "모든 작업은 이름과 함께 기록돼요.",
        OpsWord::Name => "이름",
        OpsWord::Password => "비밀번호",
        OpsWord::FindLabel => "주문번호, 결제 번호, 결제사 주문번호 또는 결제 키",
        OpsWord::Find => "찾기",
        OpsWord::Gauges => "지금 상태",
        OpsWord::InFlight => "진행 중인 승인",
        OpsWord::NoLimit => "제한 없음",
        OpsWord::Circuit => "차단기",
        OpsWord::Silent => "응답 없음",
        OpsWord::Answers => "응답함",
        OpsWord::Unknown => "결과를 모르는 결제",
        OpsWord::WebhooksNew => "아직 보지 않은 웹훅",
        OpsWord::WebhooksParked => "결제를 기다리는 웹훅",
        OpsWord::RefundsOpen => "진행 중인 환불",
        OpsWord::ShopWebhooks => "판매처에 보낼 웹훅",
        OpsWord::ShopWebhooksLate => "판매처가 받지 못한 웹훅",
        OpsWord::ToldToShop => "판매처에 보낸 웹훅",
        OpsWord::Shop => "판매처",
        OpsWord::ShopReference => "판매처 주문번호",
        OpsWord::Tries => "시도 횟수",
        OpsWord::NotFinal => "끝나지 않은 결제, 오래된 순",
        OpsWord::AllFinal => "모든 결제가 끝났어요.",
        OpsWord::More => "더 있어요. 오래된 것부터 보여요.",
        OpsWord::Order => "주문",
        OpsWord::Status => "상태",
        OpsWord::Amount => "금액",
        OpsWord::Since => "언제부터",
        OpsWord::Asks => "물어본 횟수",
        OpsWord::Last => "마지막으로 알게 된 것",
        OpsWord::Gateway => "결제사",
        OpsWord::Attempts => "결제 시도",
        OpsWord::GatewayOrder => "결제사 주문번호",
        OpsWord::PaymentKey => "결제 키",
        OpsWord::Charged => "청구된 금액",
        OpsWord::GivenBack => "돌려준 금액",
        OpsWord::NextLook => "다음 확인",
        OpsWord::AskNow => "지금 결제사에 묻기",
        OpsWord::Resolve => "결과 확정하기",
        OpsWord::ResolveLead => {
            "결제사의 관리 화면이나 입금 내역에서 직접 확인한 경우에만 확정하세요. 되돌릴 수 없고, 이유는 계속 남아요."
        }
        OpsWord::WasCharged => "청구됐음",
        OpsWord::WasNotCharged => "청구되지 않았음",
        OpsWord::Reason => "이유",
        OpsWord::Early => "결제사가 아직 승인할 수 있지만 확실해요",
        OpsWord::Evidence => "알게 된 것",
        OpsWord::At => "시각",
        OpsWord::Source => "출처",
        OpsWord::Event => "내용",
        OpsWord::Told => "받은 말 그대로",
        OpsWord::Refunds => "환불",
        OpsWord::Refund => "환불하기",
        OpsWord::AmountLabel => "금액(비우면 남은 전액)",
        OpsWord::NothingToRefund => "여기서 돌려줄 수 있는 금액이 없어요.",
        OpsWord::Operator => "작업자",
        OpsWord::Action => "작업",
        OpsWord::Detail => "설명",
        OpsWord::Result => "결과",
        OpsWord::NoDeeds => "아직 작업이 없어요.",
    }
}

const fn english(word: OpsWord) -> &'static str {
    match word {
        OpsWord::Console => "Console",
        OpsWord::Payments => "Payments",
        OpsWord::Deeds => "Audit",
        OpsWord::SignOut => "Sign out",
        OpsWord::SignIn => "Sign in",
        OpsWord::SignInLead => "Whatever is done here is kept with your name.",
        OpsWord::Name => "Name",
        OpsWord::Password => "Password",
        OpsWord::FindLabel => "Order, attempt number, gateway's order id or payment key",
        OpsWord::Find => "Find",
        OpsWord::Gauges => "Now",
        OpsWord::InFlight => "Confirms in flight",
        OpsWord::NoLimit => "no limit",
        OpsWord::Circuit => "Circuit",
        OpsWord::Silent => "does not answer",
        OpsWord::Answers => "answers",
        OpsWord::Unknown => "Payments whose result is unknown",
        OpsWord::WebhooksNew => "Webhooks not looked at yet",
        OpsWord::WebhooksParked => "Webhooks that wait for their payment",
        OpsWord::RefundsOpen => "Refunds under way",
        OpsWord::ShopWebhooks => "Webhooks to be sent to shops",
        OpsWord::ShopWebhooksLate => "Webhooks that shops did not take",
        OpsWord::ToldToShop => "Webhooks to the shop",
        OpsWord::Shop => "Shop",
        OpsWord::ShopReference => "Shop's own reference",
        OpsWord::Tries => "Tries",
        OpsWord::NotFinal => "Not final, the oldest first",
        OpsWord::AllFinal => "Every payment is final.",
        OpsWord::More => "There are more; the oldest are shown.",
        OpsWord::Order => "Order",
        OpsWord::Status => "State",
        OpsWord::Amount => "Amount",
        OpsWord::Since => "Since",
        OpsWord::Asks => "Asked",
        OpsWord::Last => "Learned last",
        OpsWord::Gateway => "Gateway",
        OpsWord::Attempts => "Attempts",
        OpsWord::GatewayOrder => "Gateway's order id",
        OpsWord::PaymentKey => "Payment key",
        OpsWord::Charged => "Charged",
        OpsWord::GivenBack => "Given back",
        OpsWord::NextLook => "Next look",
        OpsWord::AskNow => "Ask the gateway now",
        OpsWord::Resolve => "Resolve",
        OpsWord::ResolveLead => {
            "Only with what you saw yourself at the gateway's desk or on a bank statement. It cannot be undone, and the reason is kept for ever."
        }
        OpsWord::WasCharged => "It was charged",
        OpsWord::WasNotCharged => "It was not charged",
        OpsWord::Reason => "Reason",
        OpsWord::Early => "The gateway may still charge it, and I am certain",
        OpsWord::Evidence => "Evidence",
        OpsWord::At => "At",
        OpsWord::Source => "Source",
        OpsWord::Event => "Event",
        OpsWord::Told => "As it was said",
        OpsWord::Refunds => "Refunds",
        OpsWord::Refund => "Refund",
        OpsWord::AmountLabel => "Amount (empty: all that is left)",
        OpsWord::NothingToRefund => "Nothing can be given back here.",
        OpsWord::Operator => "Operator",
        OpsWord::Action => "Action",
        OpsWord::Detail => "Detail",
        OpsWord::Result => "Result",
        OpsWord::NoDeeds => "Nothing was done yet.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_in_the_largest_unit_that_tells_it() {
        for (seconds, ko, en) in [
            (0, "0초", "0 s"),
            (119, "119초", "119 s"),
            (120, "2분", "2 min"),
            (7_200, "2시간", "2 h"),
            (259_200, "3일", "3 d"),
        ] {
            assert_eq!(Lang::Ko.ops_age(seconds), ko);
            assert_eq!(Lang::En.ops_age(seconds), en);
        }
    }
}

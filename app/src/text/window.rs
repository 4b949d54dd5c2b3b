//! The words of the page that opens a payment window by the gateway's own script.

use super::Lang;

/// A message of that page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowWord {
    /// Its title.
    Title,
    /// The window is being opened.
    Opening,
    /// The script could not be loaded.
    Blocked,
    /// The shopper closed the window.
    Closed,
    /// The window did not open, or refused.
    Refused,
    /// This browser runs no script.
    NoScript,
    /// The link back to the checkout.
    Back,
}

impl Lang {
    /// A message of the page that opens a payment window.
    #[must_use]
    pub const fn window(self, word: WindowWord) -> &'static str {
        match (self, word) {
            (Self::Ko, WindowWord::Title) => "결제창",
            (Self::En, WindowWord::Title) => "Payment window",
            (Self::Ko, WindowWord::Opening) => "결제창을 열고 있어요.",
            (Self::En, WindowWord::Opening) => "We are opening the payment window.",
            (Self::Ko, WindowWord::Blocked) => {
                "결제창을 불러오지 못했어요. 인터넷 연결이나 차단 프로그램을 확인해 주세요. 결제된 금액은 없어요."
            }
            (Self::En, WindowWord::Blocked) => {
                "The payment window could not be loaded. Please check your connection, or what blocks it. You were not charged."
            }
            (Self::Ko, WindowWord::Closed) => "결제창을 닫으셨어요. 결제된 금액은 없어요.",
            (Self::En, WindowWord::Closed) => {
                "You closed the payment window. You were not charged."
            }
            (Self::Ko, WindowWord::Refused) => "결제창이 열리지 않았어요. 결제된 금액은 없어요.",
            (Self::En, WindowWord::Refused) => {
                "The payment window did not open. You were not charged."
            }
            (Self::Ko, WindowWord::NoScript) => {
                "이 결제창은 자바스크립트가 필요해요. 켠 뒤에 다시 열어 주세요. 결제된 금액은 없어요."
            }
            (Self::En, WindowWord::NoScript) => {
                "This payment window needs JavaScript. Please switch it on and try again. You were not charged."
            }
            (Self::Ko, WindowWord::Back) => "주문으로 돌아가기",
            (Self::En, WindowWord::Back) => "Back to your order",
        }
    }
}

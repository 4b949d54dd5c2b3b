//! The Korean messages.

use super::{
    Decline, MomentKind, NotSent, PanelWord, PayAction, ProblemCode, Reason, RefundStatus,
    RefusedFor, Say, Stage, Word,
};

pub(super) const NOTHING_CHARGED: &str = "청구된 금액은 없어요.";
pub(super) const SHOPPERS_REASON: &str = "고객 주문 취소";
pub(super) const ALL_RETURNED: &str = "남아 있는 청구 금액은 없어요.";

pub(super) const fn word(word: Word) -> &'static str {
    match word {
        Word::Shop => "자리 Jari",
        Word::Tagline => "곁에 두고 오래 쓰는 물건",
        Word::SkipToContent => "본문으로 건너뛰기",
        Word::Navigation => "주요 메뉴",
        Word::ToShop => "상점",
        Word::ToOrders => "주문내역",
        Word::OtherLanguage => "English",
        Word::SwitchLanguage => "언어를 영어로 바꾸기",
        Word::Promise => "결제 결과를 알기 전에는 성공도 실패도 말하지 않아요.",
        Word::CatalogueTitle => "오늘의 자리",
        Word::CatalogueLead => "책상 위에 놓일 물건 몇 가지를 골랐어요.",
        Word::Quantity => "수량",
        Word::Order => "주문하기",
        Word::SoldOut => "품절",
        Word::NothingOnSale => "지금은 판매하는 상품이 없어요.",
        Word::SummaryTitle => "주문 상품",
        Word::Total => "결제 금액",
        Word::OrderNumber => "주문번호",
        Word::OrderedAt => "주문 시각",
        Word::Seller => "판매처",
        Word::CheckoutTitle => "결제",
        Word::HistoryTitle => "주문내역",
        Word::NoOrders => "아직 주문이 없어요.",
        Word::NoOrdersLead => "이 기기에서 주문하면 여기에서 결제와 환불 상태를 볼 수 있어요.",
        Word::Newer => "최근 주문",
        Word::Older => "이전 주문",
        Word::Paging => "주문내역 쪽 이동",
        Word::OrderTitle => "주문 상세",
        Word::Status => "주문 상태",
        Word::TimelineTitle => "진행 기록",
        Word::GoPay => "결제하러 가기",
        Word::SeeProgress => "진행 상황 보기",
        Word::KeptUpToDate => "결과를 확인하고 있어요. 결과가 나오면 이 화면에 바로 표시돼요.",
        Word::MissingTitle => "찾을 수 없는 페이지예요",
        Word::MissingBody => {
            "주소가 잘못되었거나 이 기기에서 만든 주문이 아니에요. 내 주문은 주문내역에서 볼 수 있어요."
        }
        Word::UnavailableTitle => "지금은 정보를 불러올 수 없어요",
        Word::UnavailableBody => {
            "잠시 후 이 화면이 저절로 다시 열려요. 주문이 어떻게 되었는지는 이 화면으로 알 수 없으니, \
             결과를 확인하기 전에는 다시 결제하지 마세요."
        }
        Word::BusyTitle => "요청이 몰리고 있어요",
        Word::BusyBody => "잠시 후 이 페이지가 자동으로 다시 열려요. 주문과 결제는 그대로예요.",
        Word::RefundsTitle => "환불",
        Word::CancelTitle => "주문 취소",
        Word::CancelButton => "주문 취소하기",
        Word::CloseLead => {
            "아직 입금된 금액이 없어요. 취소하면 가상계좌가 닫히고 주문이 끝나요. 방금 이체하셨다면 취소하지 마세요."
        }
    }
}

pub(super) const fn panel(word: PanelWord) -> &'static str {
    match word {
        PanelWord::Title => "개발용: 가짜 결제대행사",
        PanelWord::Lead => "개발 서버에서만 보여요. 결제대행사가 느려지거나 답을 잃게 해 보세요.",
        PanelWord::Reachable => "제어 API 응답함",
        PanelWord::Unreachable => "제어 API 응답 없음",
        PanelWord::Up => "켜짐",
        PanelWord::Down => "꺼짐",
        PanelWord::Presets => "상황 고르기",
        PanelWord::Custom => "직접 정하기",
        PanelWord::Delay => "지연 (ms)",
        PanelWord::Loss => "답 유실 비율 (0–1)",
        PanelWord::SlowTail => "느린 꼬리 비율 (0–1)",
        PanelWord::Hang => "멈춤 (ms)",
        PanelWord::Decline => "거절 비율 (0–1)",
        PanelWord::Apply => "적용",
        PanelWord::Scenario => "지금 상황",
        PanelWord::Ledger => "원장: 승인 호출",
        PanelWord::Truth => "개발용: 결제대행사 원장의 기록",
        PanelWord::NoTruth => "원장에 이 주문의 기록이 없어요.",
    }
}

pub(super) const fn say(message: Say) -> &'static str {
    match message {
        Say::CompleteTitle => "이제 마지막 단계예요",
        Say::CompleteBody => {
            "인증이 끝났고, 아직 청구되지 않았어요. 결제를 완료하면 주문이 확정돼요."
        }
        Say::CompleteButton => "결제 완료하기",
        Say::WindowClosed => "결제창을 닫으셨어요. 청구된 금액은 없어요.",
        Say::WindowRefused => "결제창에서 거절되었어요. 청구된 금액은 없어요.",
        Say::WindowNotOpened => {
            "결제창을 열지 못했어요. 청구된 금액은 없어요. 잠시 후 다시 시도해 주세요."
        }
        Say::Methods => "결제 수단",
        Say::PayOtherwise => "다른 수단으로 결제하기",
        Say::Progress => "결제 확인 진행",
        Say::StepDone => "끝남: ",
        Say::StepNext => "다음: ",
        Say::ToOrders => "주문내역 보기",
        Say::ToOrder => "주문 상세 보기",
        Say::ToShop => "상점으로 가기",
    }
}

pub(super) fn method(gateway: &str) -> Option<&'static str> {
    match gateway {
        "toss" => Some("카드·계좌이체 (토스페이먼츠)"),
        "kakaopay" => Some("카카오페이"),
        "stripe" => Some("해외 카드(Stripe)"),
        _ => None,
    }
}

pub(super) const fn heading(stage: Stage) -> &'static str {
    match stage {
        Stage::Offer => "주문 내용을 확인하고 결제해 주세요",
        Stage::Confirming => "결제를 확인하고 있어요",
        Stage::Checking => "아직 은행의 답을 기다리고 있어요",
        Stage::Looking => "주문 상태를 살펴보고 있어요",
        Stage::Paid => "결제가 완료됐어요",
        Stage::PartiallyRefunded => "일부 금액이 환불됐어요",
        Stage::Refunded => "전액 환불됐어요",
        Stage::ReturningMoney => "돈을 돌려드리고 있어요",
        Stage::AwaitingDeposit => "입금을 기다리고 있어요",
        Stage::ClosingAccount => "주문을 취소하고 있어요",
        Stage::ClosedUnpaid => "입금 전에 주문이 취소됐어요",
        Stage::NotCharged(_) => "결제되지 않았어요",
        Stage::StillUnknown => "아직 결과를 알 수 없어요",
        Stage::Expired => "결제할 수 있는 시간이 지났어요",
    }
}

pub(super) const fn status(stage: Stage) -> &'static str {
    match stage {
        Stage::Offer => "결제 전",
        Stage::Confirming | Stage::Checking | Stage::Looking | Stage::StillUnknown => {
            "결과 확인 중"
        }
        Stage::Paid => "결제 완료",
        Stage::PartiallyRefunded => "부분 환불",
        Stage::Refunded => "환불 완료",
        Stage::ReturningMoney => "환불 진행 중",
        Stage::AwaitingDeposit => "입금 대기",
        Stage::ClosingAccount => "취소 진행 중",
        Stage::ClosedUnpaid => "입금 전 취소",
        Stage::NotCharged(_) => "결제 안 됨",
        Stage::Expired => "기한 지남",
    }
}

/// The texts without numbers; those of [`checking`] and of a proven "not charged" are made apart.
pub(super) const fn body(stage: Stage) -> &'static str {
    match stage {
        Stage::Offer => {
            "결제하기를 누르면 결제창이 열려요. 결제창에서 돌아온 뒤에 결제가 확정돼요."
        }
        Stage::Confirming => "이 화면을 그대로 열어 두세요. 다시 결제하지 마세요.",
        Stage::Checking => "아무것도 하지 않으셔도 돼요. 두 번 청구되는 일은 없어요.",
        Stage::Looking => "잠시만 기다려 주세요. 확인하는 대로 다음에 할 일을 알려 드릴게요.",
        Stage::Paid => "주문해 주셔서 고마워요. 자세한 내용은 주문내역에서 언제든 볼 수 있어요.",
        Stage::PartiallyRefunded => {
            "나머지 금액의 결제는 그대로 유지돼요. 카드사에 따라 환불이 보이기까지 며칠 걸릴 수 있어요."
        }
        Stage::Refunded => {
            "결제가 전액 취소되고 주문이 끝났어요. 카드사에 따라 환불이 보이기까지 며칠 걸릴 수 있어요."
        }
        Stage::ReturningMoney => {
            "결제된 금액을 취소하고 있어요. 끝나면 주문내역에 표시돼요. 그때까지 다시 결제하지 마세요."
        }
        Stage::AwaitingDeposit => {
            "아래 가상계좌로 기한 안에 정확한 금액을 입금하면 주문이 확정돼요. 입금이 확인되면 알려 드릴게요."
        }
        Stage::ClosingAccount => {
            "가상계좌를 닫고 있어요. 이제 이 계좌로 입금하지 마세요. 입금이 더 빨랐다면 결제가 유지되고 이 화면에 표시돼요."
        }
        Stage::ClosedUnpaid => {
            "입금 전에 가상계좌가 닫혀서 주문이 끝났어요. 받은 금액이 없어서 돌려드릴 금액도 없어요. 그 계좌로는 입금하지 마세요."
        }
        Stage::NotCharged(_) => NOTHING_CHARGED,
        Stage::StillUnknown => {
            "결제됐는지 아직 몰라요. 저희가 계속 확인하고, 결과는 주문내역에 나타나요. 다시 결제하지 마세요."
        }
        Stage::Expired => "이 주문은 결제되지 않고 끝났어요. 필요하시면 새로 주문해 주세요.",
    }
}

pub(super) fn checking(seconds: u64) -> String {
    format!(
        "결제 요청은 은행에 이미 도착했거나, 끝내 도착하지 않거나 둘 중 하나예요. {seconds}초마다 확인하고 있으니 \
         아무것도 하지 않으셔도 돼요. 두 번 청구되는 일은 없어요."
    )
}

pub(super) const fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::NotSent(NotSent::Cap) => "결제가 몰려 이번 결제는 보내지 않았어요.",
        Reason::NotSent(NotSent::Circuit) => "결제대행사의 답이 늦어 이번 결제는 보내지 않았어요.",
        Reason::NotSent(NotSent::Deadline) => "요청이 너무 늦게 도착해 결제를 보내지 않았어요.",
        Reason::NotSent(NotSent::Connect) => "결제대행사에 연결되지 않아 결제를 보내지 못했어요.",
        Reason::PgRefused => "결제대행사에 요청이 몰려 결제가 처리되지 않았어요.",
        Reason::Declined(class) => decline(class),
        Reason::Lost(_) | Reason::Interrupted => {
            "답을 받지 못했지만, 확인해 보니 결제되지 않았어요."
        }
        Reason::WindowClosed => "결제창이 제시간에 끝나지 않았어요.",
        Reason::PgExpired => "인증한 결제의 유효 시간이 지났어요.",
        Reason::NeverCharged => "결제대행사에 확인한 결과, 결제가 이루어지지 않았어요.",
        Reason::OperatorEnded => "담당자가 확인한 결과, 결제가 이루어지지 않았어요.",
        Reason::WrongAmount => "주문과 다른 금액이 결제되어 전액 취소했어요.",
        Reason::LateSuccess => "뒤늦게 승인된 결제를 전액 취소했어요.",
    }
}

const fn decline(class: Decline) -> &'static str {
    match class {
        Decline::CardRefused => "카드사가 결제를 승인하지 않았어요. 다른 카드로 결제해 보세요.",
        Decline::CardInvalid => {
            "카드 정보가 맞지 않거나 쓸 수 없는 카드예요. 카드를 확인해 주세요."
        }
        Decline::LimitExceeded => "카드나 계좌의 한도를 넘었어요. 다른 결제 수단을 써 보세요.",
        Decline::AuthenticationFailed => "비밀번호나 본인 인증이 맞지 않았어요.",
        Decline::NotAvailable => "이 결제 수단이나 할부는 여기서 쓸 수 없어요.",
        Decline::SessionExpired => {
            "인증 시간이 지나 결제가 취소되었어요. 처음부터 다시 결제해 주세요."
        }
        Decline::ShopSetup => "상점 설정 문제로 결제가 거절됐어요. 고객님의 잘못이 아니에요.",
        Decline::Other => "카드사나 결제대행사가 결제를 거절했어요.",
    }
}

pub(super) const fn pay(action: PayAction) -> &'static str {
    match action {
        PayAction::Pay => "결제하기",
        PayAction::PayAgain | PayAction::ConfirmAgain => "다시 결제하기",
    }
}

pub(super) const fn refusal(code: ProblemCode) -> Option<&'static str> {
    match code {
        ProblemCode::OutOfStock => Some("재고가 부족해 진행하지 않았어요. 청구된 금액은 없어요."),
        ProblemCode::AmountMismatch => Some("주문과 금액이 달라 결제를 보내지 않았어요."),
        ProblemCode::PaymentKeyUsed | ProblemCode::NewAttemptNeeded => {
            Some("이 인증으로는 결제할 수 없어요. 결제창에서 새로 인증해 주세요.")
        }
        ProblemCode::AttemptExpired => {
            Some("인증한 결제의 유효 시간이 지나 결제를 보내지 않았어요.")
        }
        ProblemCode::Overloaded
        | ProblemCode::RateLimited
        | ProblemCode::DatabaseBusy
        | ProblemCode::ShuttingDown => {
            Some("요청이 몰려 받지 못했어요. 잠시 후 다시 시도해 주세요.")
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
        | ProblemCode::Internal => Some("요청을 처리하지 않았어요."),
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
        MomentKind::Ordered => "주문했어요",
        MomentKind::WindowOpened => "결제창을 열었어요",
        MomentKind::Claimed => "결제대행사에 결제를 요청했어요",
        MomentKind::NotSent => "결제를 보내지 않았어요. 청구되지 않았어요",
        MomentKind::RefusedByGateway => "결제대행사가 처리하지 않고 돌려보냈어요",
        MomentKind::Declined => "결제가 거절됐어요. 청구되지 않았어요",
        MomentKind::AnswerLost => "답을 받지 못해 결과를 확인하기 시작했어요",
        MomentKind::Interrupted => "서버가 다시 켜져 결과를 확인하기 시작했어요",
        MomentKind::AskedNoResult => "결제대행사에 물었지만 아직 결과가 없어요",
        MomentKind::AccountIssued => "입금하실 가상계좌가 발급됐어요",
        MomentKind::DepositUndone => "은행이 입금을 되돌렸어요",
        MomentKind::Paid => "결제가 확인됐어요",
        MomentKind::FoundPaid => "결제대행사에 조회해 결제가 완료된 것을 확인했어요",
        MomentKind::WrongAmount => "다른 금액이 결제되어 취소를 시작했어요",
        MomentKind::OperatorEnded => "담당자가 결제되지 않은 것을 확인했어요",
        MomentKind::NeverCharged => "결제대행사가 청구하지 않았다고 확인했어요",
        MomentKind::LateSuccess => "끝난 결제가 뒤늦게 승인된 것을 알았어요",
        MomentKind::CancelRequested => "환불을 요청했어요",
        MomentKind::Refunded => "결제대행사가 환불했어요",
        MomentKind::CloseRequested => "입금 전에 주문 취소를 요청했어요",
        MomentKind::AccountClosed => "입금 없이 가상계좌가 닫혔어요",
        MomentKind::AccountNotClosed => "결제대행사가 가상계좌를 닫지 않았어요",
        MomentKind::Expired => "결제할 수 있는 시간이 지났어요",
        MomentKind::Other => "주문 기록이 갱신됐어요",
    }
}

pub(super) const fn refund(status: RefundStatus) -> &'static str {
    match status {
        RefundStatus::Waiting => "요청됐어요. 앞선 환불이 끝나면 진행돼요",
        RefundStatus::Asked => "취소를 요청했고 은행의 답을 기다리고 있어요",
        RefundStatus::Done => "환불됐어요",
        RefundStatus::Refused(RefusedFor::Gateway) => "결제대행사가 거절해 환불되지 않았어요",
        RefundStatus::Refused(RefusedFor::ExceedsBalance) => "남은 금액보다 많아 환불되지 않았어요",
        RefundStatus::Refused(RefusedFor::GivenBackElsewhere) => {
            "이미 모두 환불되어 따로 진행하지 않았어요"
        }
    }
}

pub(super) fn cancel_lead(amount: &str) -> String {
    format!("{amount}을 돌려드려요. 카드사에 환불이 표시되기까지 며칠 걸릴 수 있어요.")
}

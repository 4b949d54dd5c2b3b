//! Toss Payments' error codes: documented status and message of each.

use serde::Serialize;

use crate::engine::Answer;

/// The documented codes, by HTTP status; 429 has no documented code.
const BY_STATUS: &[(u16, &[&str])] = &[
    (
        400,
        &[
            "ALREADY_PROCESSED_PAYMENT",
            "PROVIDER_ERROR",
            "CARD_PROCESSING_ERROR",
            "INVALID_REQUEST",
            "INVALID_API_KEY",
            "INVALID_AUTHORIZE_AUTH",
            "UNAPPROVED_ORDER_ID",
            "BELOW_MINIMUM_AMOUNT",
            "INVALID_REJECT_CARD",
            "INVALID_STOPPED_CARD",
            "INVALID_CARD_LOST_OR_STOLEN",
            "INVALID_CARD_EXPIRATION",
            "INVALID_CARD_NUMBER",
            "INVALID_CARD_INSTALLMENT_PLAN",
            "NOT_SUPPORTED_INSTALLMENT_PLAN_CARD_OR_MERCHANT",
            "NOT_SUPPORTED_MONTHLY_INSTALLMENT_PLAN",
            "NOT_SUPPORTED_MONTHLY_INSTALLMENT_PLAN_BELOW_AMOUNT",
            "NOT_ALLOWED_POINT_USE",
            "EXCEED_MAX_CARD_INSTALLMENT_PLAN",
            "EXCEED_MAX_DAILY_PAYMENT_COUNT",
            "EXCEED_MAX_PAYMENT_AMOUNT",
            "EXCEED_MAX_AMOUNT",
            "EXCEED_MAX_MONTHLY_PAYMENT_AMOUNT",
            "EXCEED_MAX_ONE_DAY_WITHDRAW_AMOUNT",
            "EXCEED_MAX_ONE_TIME_WITHDRAW_AMOUNT",
            "EXCEEDS_TRANSFER_AMOUNT_MAXIMUM",
            "RESTRICTED_TRANSFER_ACCOUNT",
            "INVALID_ACCOUNT_INFO_RE_REGISTER",
            "NOT_AVAILABLE_PAYMENT",
            "NOT_FOUND_TERMINAL_ID",
            "INVALID_UNREGISTERED_SUBMALL",
            "NOT_REGISTERED_BUSINESS",
            "INVALID_IDEMPOTENCY_KEY",
            "INVALID_TEST_CODE",
            "INVALID_ORDER_ID",
            "DUPLICATED_ORDER_ID",
            "DUPLICATED_REQUEST",
            "ALREADY_COMPLETED_PAYMENT",
            "INVALID_PAYMENT_KEY",
            "PAY_PROCESS_ABORTED",
            "PAY_PROCESS_CANCELED",
            "MAINTAINED_METHOD",
            "API_VERSION_UPDATE_NEEDED",
            "ALREADY_CANCELED_PAYMENT",
            "ALREADY_REFUND_PAYMENT",
            "INVALID_REFUND_ACCOUNT_INFO",
            "INVALID_REFUND_ACCOUNT_NUMBER",
            "INVALID_BANK",
            "EXCEED_CANCEL_AMOUNT_DISCOUNT_AMOUNT",
            "NOT_MATCHES_REFUNDABLE_AMOUNT",
            "REFUND_REJECTED",
            "FORBIDDEN_BANK_REFUND_REQUEST",
        ],
    ),
    (401, &["UNAUTHORIZED_KEY"]),
    (
        403,
        &[
            "REJECT_CARD_PAYMENT",
            "REJECT_CARD_COMPANY",
            "REJECT_ACCOUNT_PAYMENT",
            "REJECT_TOSSPAY_INVALID_ACCOUNT",
            "EXCEED_MAX_AUTH_COUNT",
            "EXCEED_MAX_ONE_DAY_AMOUNT",
            "NOT_AVAILABLE_BANK",
            "INVALID_PASSWORD",
            "FDS_ERROR",
            "FORBIDDEN_REQUEST",
            "FORBIDDEN_CONSECUTIVE_REQUEST",
            "INCORRECT_BASIC_AUTH_FORMAT",
            "NOT_CANCELABLE_AMOUNT",
            "NOT_CANCELABLE_PAYMENT",
            "NOT_CANCELABLE_PAYMENT_FOR_DORMANT_USER",
            "EXCEED_MAX_REFUND_DUE",
            "NOT_ALLOWED_PARTIAL_REFUND",
            "NOT_ALLOWED_PARTIAL_REFUND_WAITING_DEPOSIT",
            "EXCEED_CANCEL_LIMIT",
        ],
    ),
    (
        404,
        &[
            "NOT_FOUND_PAYMENT",
            "NOT_FOUND_PAYMENT_SESSION",
            "NOT_FOUND",
        ],
    ),
    (409, &["IDEMPOTENT_REQUEST_PROCESSING"]),
    (429, &["TOO_MANY_REQUESTS"]),
    (
        500,
        &[
            "FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING",
            "FAILED_INTERNAL_SYSTEM_PROCESSING",
            "UNKNOWN_PAYMENT_ERROR",
            "COMMON_ERROR",
            "UNKNOWN_ERROR",
            "FAILED_DB_PROCESSING",
            "FAILED_METHOD_HANDLING",
            "FAILED_REFUND_PROCESS",
            "FAILED_PARTIAL_REFUND",
            "FAILED_METHOD_HANDLING_CANCEL",
        ],
    ),
];

/// The documented status of a code.
pub(crate) fn status_of(code: &str) -> Option<u16> {
    BY_STATUS
        .iter()
        .find(|(_, codes)| codes.contains(&code))
        .map(|(status, _)| *status)
}

/// The message that comes with a code.
pub(crate) fn message_of(code: &str) -> &'static str {
    match code {
        "ALREADY_PROCESSED_PAYMENT" => "이미 처리된 결제 입니다.",
        "ALREADY_CANCELED_PAYMENT" => "이미 취소된 결제 입니다.",
        "BELOW_MINIMUM_AMOUNT" => {
            "신용카드는 결제금액이 100원 이상, 계좌는 200원이상부터 결제가 가능합니다."
        }
        "DUPLICATED_ORDER_ID" => "이미 승인 및 취소가 진행된 중복된 주문번호 입니다.",
        "FORBIDDEN_CONSECUTIVE_REQUEST" => {
            "반복적인 요청은 허용되지 않습니다. 잠시 후 다시 시도해주세요."
        }
        "FORBIDDEN_REQUEST" => "허용되지 않은 요청입니다.",
        "IDEMPOTENT_REQUEST_PROCESSING" => "이전 멱등 요청이 처리중입니다.",
        "INCORRECT_BASIC_AUTH_FORMAT" => "잘못된 요청입니다. ':' 를 포함해 인코딩해주세요.",
        "INVALID_IDEMPOTENCY_KEY" => "멱등키는 300자 이하여야 합니다.",
        "INVALID_ORDER_ID" => {
            "주문번호는 영문 대소문자, 숫자, 특수문자(-, _) 만 허용되며 6자 이상 64자 이하여야 합니다."
        }
        "INVALID_REQUEST" => "잘못된 요청입니다.",
        "INVALID_TEST_CODE" => "유효하지 않은 테스트 코드입니다.",
        "NOT_CANCELABLE_AMOUNT" => "취소 할 수 없는 금액 입니다.",
        "NOT_CANCELABLE_PAYMENT" => "취소 할 수 없는 결제 입니다.",
        "NOT_FOUND_PAYMENT" => "존재하지 않는 결제 정보 입니다.",
        "NOT_FOUND_PAYMENT_SESSION" => "결제 시간이 만료되어 결제 진행 데이터가 존재하지 않습니다.",
        "NOT_MATCHES_REFUNDABLE_AMOUNT" => "잔액 결과가 일치하지 않습니다.",
        "PROVIDER_ERROR" => "일시적인 오류가 발생했습니다. 잠시 후 다시 시도해주세요.",
        "REJECT_CARD_COMPANY" => "결제 승인이 거절되었습니다.",
        "REJECT_CARD_PAYMENT" => "한도초과 혹은 잔액부족으로 결제에 실패했습니다.",
        "TOO_MANY_REQUESTS" => "요청이 너무 많습니다. 잠시 후 다시 시도해주세요.",
        "UNAUTHORIZED_KEY" => "인증되지 않은 시크릿 키 혹은 클라이언트 키 입니다.",
        code => match status_of(code) {
            Some(500) => "내부 시스템 처리 작업이 실패했습니다. 잠시 후 다시 시도해주세요.",
            _ => "결제를 처리할 수 없습니다.",
        },
    }
}

/// Whether a refusal with this code is the issuer's last word, which ends the payment. After a
/// passing trouble, or a refusal of the request as such, it may be confirmed again.
pub(crate) fn ends_the_payment(code: &str) -> bool {
    let final_words = [
        "BELOW_MINIMUM_AMOUNT",
        "FDS_ERROR",
        "INVALID_ACCOUNT_INFO_RE_REGISTER",
        "INVALID_PASSWORD",
        "NOT_ALLOWED_POINT_USE",
        "NOT_AVAILABLE_BANK",
        "NOT_AVAILABLE_PAYMENT",
        "RESTRICTED_TRANSFER_ACCOUNT",
    ];
    let prefixes = ["REJECT_", "EXCEED", "NOT_SUPPORTED_"];
    final_words.contains(&code)
        || prefixes.iter().any(|prefix| code.starts_with(prefix))
        || (code.starts_with("INVALID_") && code.contains("CARD"))
}

#[derive(Serialize)]
struct Body<'a> {
    code: &'a str,
    message: &'a str,
}

/// An error answer with the documented status of its code.
pub(crate) fn error(code: &str) -> Answer {
    error_with_status(status_of(code).unwrap_or(500), code)
}

/// An error answer with a status of the caller's choice.
pub(crate) fn error_with_status(status: u16, code: &str) -> Answer {
    let body = Body {
        code,
        message: message_of(code),
    };
    let text = serde_json::to_vec(&body).expect("two strings always serialize");
    Answer::json(status, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_issuers_last_word_ends_a_payment() {
        for code in [
            "REJECT_CARD_COMPANY",
            "INVALID_STOPPED_CARD",
            "EXCEED_MAX_AMOUNT",
            "FDS_ERROR",
        ] {
            assert!(ends_the_payment(code), "{code}");
        }
        for code in [
            "PROVIDER_ERROR",
            "CARD_PROCESSING_ERROR",
            "FORBIDDEN_CONSECUTIVE_REQUEST",
            "INVALID_API_KEY",
            "ALREADY_PROCESSED_PAYMENT",
            "UNKNOWN_PAYMENT_ERROR",
        ] {
            assert!(!ends_the_payment(code), "{code}");
        }
    }

    #[test]
    fn no_code_is_listed_twice() {
        let mut codes: Vec<_> = BY_STATUS
            .iter()
            .flat_map(|(_, codes)| codes.iter())
            .collect();
        let count = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), count);
    }
}

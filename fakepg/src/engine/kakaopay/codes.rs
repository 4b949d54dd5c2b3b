//! KakaoPay's error codes: which exist, their HTTP status and message, and the JSON around them.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::engine::Answer;
use crate::scenario::{HttpStatus, KakaoPaySwitches};

/// The documented codes with the HTTP status each comes with, and what it says. The statuses of the
/// codes above -700 are not documented.
const CODES: &[(i32, u16, &str)] = &[
    (-2, 400, "요청 파라미터가 잘못되었습니다."),
    (-400, 400, "Authorization 헤더가 없습니다."),
    (-401, 401, "인증되지 않은 키입니다."),
    (-403, 403, "사용할 수 없는 API입니다."),
    (-404, 404, "존재하지 않는 URL입니다."),
    (-429, 429, "사용량을 초과하였습니다."),
    (-500, 500, "내부 오류가 발생하였습니다."),
    (-503, 503, "서비스 점검 중입니다."),
    (-603, 500, "요청 처리 시간을 초과하였습니다."),
    (-701, 400, "결제 인증이 완료되지 않았습니다."),
    (-702, 400, "이미 결제가 완료된 TID입니다."),
    (-703, 400, "포인트 금액이 잘못되었습니다."),
    (-704, 400, "결제 금액이 잘못되었습니다."),
    (-705, 400, "지원하지 않는 결제 수단입니다."),
    (-706, 400, "partner_order_id가 일치하지 않습니다."),
    (-707, 400, "partner_user_id가 일치하지 않습니다."),
    (-708, 400, "pg_token이 일치하지 않습니다."),
    (-710, 400, "취소 가능 금액을 초과하였습니다."),
    (-711, 400, "승인 금액을 초과하여 취소할 수 없습니다."),
    (-721, 400, "존재하지 않는 TID입니다."),
    (-722, 400, "금액 정보가 잘못되었습니다."),
    (-723, 400, "결제 만료 시간이 지났습니다."),
    (-724, 400, "단건 결제 금액이 잘못되었습니다."),
    (-725, 400, "총 결제 금액이 잘못되었습니다."),
    (-726, 400, "주문 정보가 잘못되었습니다."),
    (-730, 400, "앱 정보가 잘못되었습니다."),
    (-731, 400, "CID가 잘못되었습니다."),
    (-732, 400, "GID가 잘못되었습니다."),
    (-733, 400, "CID_SECRET이 잘못되었습니다."),
    (-750, 400, "SID가 존재하지 않습니다."),
    (-751, 400, "비활성화된 SID입니다."),
    (-752, 400, "SID가 만료되었습니다."),
    (-753, 400, "SID 정보가 잘못되었습니다."),
    (-761, 400, "카카오톡에 가입하지 않은 전화번호입니다."),
    (-780, 400, "승인에 실패하였습니다."),
    (-781, 400, "취소에 실패하였습니다."),
    (-782, 400, "정기 결제에 실패하였습니다."),
    (-783, 400, "승인할 수 없는 상태입니다."),
    (-784, 400, "취소할 수 없는 상태입니다."),
    (-785, 400, "중복된 요청입니다."),
    (-797, 400, "1회 결제 한도를 초과하였습니다."),
    (-798, 400, "허용되지 않은 IP입니다."),
];

/// Codes that name the payment method's own word in `extras`.
const WITH_EXTRAS: [i32; 3] = [-780, -781, -782];

/// Words of a payment method after which nobody knows yet what became of the money.
const UNSURE: [&str; 2] = ["USER_LOCKED", "BANK_FIRM_UNKNOWN"];

/// A code as a scenario writes it: `-702`, or `-780:USER_LOCKED` with the method's own word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Code {
    number: i32,
    method: Option<String>,
}

impl Code {
    /// A code without the method's word.
    pub(crate) fn bare(number: i32) -> Self {
        Self {
            number,
            method: None,
        }
    }

    /// Whether a refused approve with it is the last word about the payment.
    pub(crate) fn ends_the_payment(&self) -> bool {
        let unsure = self
            .method
            .as_deref()
            .is_some_and(|word| UNSURE.contains(&word));
        matches!(self.number, -780 | -797) && !unsure
    }

    fn entry(&self) -> Option<&'static (i32, u16, &'static str)> {
        CODES.iter().find(|(number, ..)| *number == self.number)
    }
}

impl FromStr for Code {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown = || format!("unknown gateway code `{text}`");
        let (number, method) = match text.split_once(':') {
            None => (text, None),
            Some((number, method)) => (number, Some(method.to_owned())),
        };
        let code = Self {
            number: number.parse().map_err(|_| unknown())?,
            method,
        };
        let word_fits = code.method.as_deref().is_none_or(|word| {
            WITH_EXTRAS.contains(&code.number)
                && !word.is_empty()
                && word.bytes().all(|byte| byte.is_ascii_graphic())
        });
        if code.entry().is_some() && word_fits {
            Ok(code)
        } else {
            Err(unknown())
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.number)?;
        match &self.method {
            Some(word) => write!(formatter, ":{word}"),
            None => Ok(()),
        }
    }
}

#[derive(Serialize)]
struct Body<'a> {
    error_code: i32,
    error_message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    extras: Option<Extras<'a>>,
}

#[derive(Serialize)]
struct Extras<'a> {
    method_result_code: &'a str,
    method_result_message: &'a str,
}

/// An error answer with the status of its code.
pub(crate) fn error(code: &Code, switches: &KakaoPaySwitches) -> Answer {
    let status = match switches.http_status {
        HttpStatus::ByCode => code.entry().map_or(400, |(_, status, _)| *status),
        HttpStatus::Always400 => 400,
    };
    error_with(status, code, None)
}

/// An error answer with a status and, when given, a message of the caller's choice.
pub(crate) fn error_with(status: u16, code: &Code, message: Option<&str>) -> Answer {
    let told = code
        .entry()
        .map_or("오류가 발생하였습니다.", |(.., told)| told);
    let extras = code.method.as_deref().map(|word| Extras {
        method_result_code: word,
        method_result_message: "결제수단사에서 처리하지 못하였습니다.",
    });
    let body = Body {
        error_code: code.number,
        error_message: message.unwrap_or(told),
        extras,
    };
    let text = serde_json::to_vec(&body).expect("strings and numbers always serialize");
    Answer::json(status, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_reads_back_and_only_listed_ones_and_fitting_words_are_read() {
        for text in ["-702", "-780:USER_LOCKED", "-781:ANY_NEW_WORD", "-603"] {
            let code: Code = text.parse().expect(text);
            assert_eq!(code.to_string(), text);
        }
        for text in [
            "",
            "702",
            "-1",
            "-702:USER_LOCKED",
            "-780:",
            "-780:a b",
            "REJECT",
        ] {
            assert!(text.parse::<Code>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_method_that_is_unsure_does_not_end_a_payment() {
        let ends = |text: &str| text.parse::<Code>().expect(text).ends_the_payment();
        assert!(ends("-780") && ends("-780:CARD_LIMIT") && ends("-797"));
        for open in [
            "-780:USER_LOCKED",
            "-780:BANK_FIRM_UNKNOWN",
            "-785",
            "-500",
            "-429",
        ] {
            assert!(!ends(open), "{open}");
        }
    }

    #[test]
    fn no_code_is_listed_twice() {
        let mut listed: Vec<_> = CODES.iter().map(|(number, ..)| number).collect();
        let count = listed.len();
        listed.sort_unstable();
        listed.dedup();
        assert_eq!(listed.len(), count);
    }
}

//! The words of a wait: how long it has lasted and can last, what is done, what is being done, what comes next.

use payment::time::{Millis, PageTimes};
use payment::view::Stage;

use super::{Lang, whole_seconds};

impl Lang {
    /// How long a wait has lasted.
    #[must_use]
    pub fn elapsed(self, elapsed: Millis) -> String {
        let seconds = elapsed.get() / 1_000;
        match self {
            Self::Ko => format!("{seconds}초 지났어요"),
            Self::En => format!("{seconds} s passed"),
        }
    }

    /// How long a wait can still last.
    #[must_use]
    pub fn remaining(self, left: Millis) -> String {
        let seconds = left.get().div_ceil(1_000);
        match self {
            Self::Ko => format!("길어야 {seconds}초 남았어요"),
            Self::En => format!("at most {seconds} s left"),
        }
    }

    /// What is done, what is being done and what comes next, where a result is still to come; nothing elsewhere. None of
    /// them says more than is known: that something was asked for is known, that the bank has it is not.
    #[must_use]
    pub fn steps(self, stage: Stage, times: &PageTimes) -> Option<[String; 3]> {
        let wait = whole_seconds(times.response_wait);
        let total = whole_seconds(times.total_wait());
        match (stage, self) {
            (Stage::Confirming, Self::Ko) => Some([
                "결제 인증을 마쳤어요".to_owned(),
                "결제 승인을 요청하고 은행의 답을 기다리고 있어요".to_owned(),
                format!("{wait}초 안에 답이 없으면 저희가 결과를 직접 조회해요"),
            ]),
            (Stage::Confirming, Self::En) => Some([
                "You have authenticated the payment".to_owned(),
                "We asked for its approval and are waiting for your bank".to_owned(),
                format!("Without an answer in {wait} s, we ask for the result ourselves"),
            ]),
            (Stage::Checking, Self::Ko) => Some([
                "결제 승인을 요청했어요".to_owned(),
                "답이 늦어져 결과를 직접 조회하고 있어요".to_owned(),
                format!(
                    "{total}초가 지나도 결과를 모르면, 확인은 저희가 계속하고 주문내역에서 알려 드려요"
                ),
            ]),
            (Stage::Checking, Self::En) => Some([
                "Approval of the payment was asked for".to_owned(),
                "The answer is late, so we are asking for the result".to_owned(),
                format!("If {total} s pass without one, we go on asking and your orders show it"),
            ]),
            (Stage::StillUnknown, Self::Ko) => Some([
                format!("결제 승인을 요청했지만 {total}초 안에 결과가 오지 않았어요"),
                "저희가 계속 확인하고 있어요. 이 화면은 닫아도 괜찮아요".to_owned(),
                "결과가 나오면 주문내역에 바로 표시돼요".to_owned(),
            ]),
            (Stage::StillUnknown, Self::En) => Some([
                format!("Approval was asked for, and no result came in {total} s"),
                "We go on asking; you may close this page".to_owned(),
                "The result appears in your orders as soon as it is known".to_owned(),
            ]),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_told_in_whole_seconds_that_add_up() {
        let told = |lang: Lang| {
            let (elapsed, left) = (Millis::new(12_400), Millis::new(52_600));
            [lang.elapsed(elapsed), lang.remaining(left)]
        };
        assert_eq!(told(Lang::Ko), ["12초 지났어요", "길어야 53초 남았어요"]);
        assert_eq!(told(Lang::En), ["12 s passed", "at most 53 s left"]);
    }

    #[test]
    fn the_steps_of_a_wait_name_the_times_of_the_page() {
        for lang in Lang::ALL {
            let [_, _, next] = lang.steps(Stage::Confirming, &PageTimes::DEFAULT).unwrap();
            assert!(next.contains("15"), "{next}");
            let [_, _, next] = lang.steps(Stage::Checking, &PageTimes::DEFAULT).unwrap();
            assert!(next.contains("65"), "{next}");
            assert_eq!(lang.steps(Stage::Paid, &PageTimes::DEFAULT), None);
        }
    }
}

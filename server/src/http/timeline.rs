//! Times as people read them, and an order's timeline: what the stored evidence says to its shopper.

use app::data::{Moment, MomentKind};
use app::text::Lang;

use crate::clock::EpochMs;
use crate::store::EvidenceRow;

/// The timeline of an order, oldest first.
pub(super) fn of(ordered: EpochMs, evidence: &[EvidenceRow], lang: Lang) -> Vec<Moment> {
    let mut timeline = vec![Moment {
        at: time_after(ordered, None, lang),
        what: MomentKind::Ordered,
        waited: None,
    }];
    let mut before = ordered;
    let mut claimed = None;
    let (mut asked, mut paid) = (false, false);
    for row in evidence {
        let what = match moment(row) {
            // The charge was known: somebody wants it back, and the gateway was asked meanwhile.
            MomentKind::LateSuccess if asked => MomentKind::Other,
            MomentKind::AccountIssued if paid => MomentKind::DepositUndone,
            MomentKind::Paid if row.source == "inquiry" => MomentKind::FoundPaid,
            what => what,
        };
        asked |= what == MomentKind::CancelRequested;
        paid = matches!(what, MomentKind::Paid | MomentKind::FoundPaid)
            || (paid && what != MomentKind::DepositUndone);
        if what == MomentKind::Claimed {
            claimed = Some(row.at);
        }
        let waited = claimed.filter(|_| what == MomentKind::AnswerLost);
        timeline.push(Moment {
            at: time_after(row.at, Some(before), lang),
            what,
            waited: waited.map(|claimed| row.at.since(claimed)),
        });
        before = row.at;
    }
    timeline
}

/// What an entry of the evidence says to its shopper.
pub(super) fn moment(row: &EvidenceRow) -> MomentKind {
    match (row.event.as_str(), row.status.as_str()) {
        ("window_opened", _) => MomentKind::WindowOpened,
        ("claimed", _) => MomentKind::Claimed,
        ("not_sent", _) => MomentKind::NotSent,
        ("refused_by_gateway", _) => MomentKind::RefusedByGateway,
        ("declined", "failed") => MomentKind::Declined,
        ("answer_lost", "unknown") => MomentKind::AnswerLost,
        ("interrupted", _) => MomentKind::Interrupted,
        ("pending" | "not_found", "failed") => MomentKind::NeverCharged,
        ("pending" | "not_found", _) => MomentKind::AskedNoResult,
        ("operator_not_charged", "failed") => MomentKind::OperatorEnded,
        ("awaiting_deposit", "awaiting_deposit") => MomentKind::AccountIssued,
        ("charged" | "operator_charged", "approved") => MomentKind::Paid,
        ("charged", "mischarged") => MomentKind::WrongAmount,
        ("charged", "canceled" | "partially_canceled") => MomentKind::Refunded,
        ("charged", "cancel_requested") if row.source != "cancel" => MomentKind::LateSuccess,
        ("cancel_asked", "cancel_requested") => MomentKind::CancelRequested,
        ("close_asked", "cancel_requested") => MomentKind::CloseRequested,
        ("account_closed" | "lapsed" | "declined", "canceled") => MomentKind::AccountClosed,
        ("cancel_refused", "awaiting_deposit") => MomentKind::AccountNotClosed,
        ("window_closed" | "lapsed", _) => MomentKind::Expired,
        _ => MomentKind::Other,
    }
}

fn korea(at: EpochMs) -> Option<jiff::civil::DateTime> {
    // Korea has one time zone and no daylight saving: a fixed offset needs no time zone database.
    jiff::Timestamp::from_millisecond(at.0)
        .ok()
        .map(|at| jiff::tz::offset(9).to_datetime(at))
}

/// The time of day in Korea, behind its date where that is another than that of `before`.
fn time_after(at: EpochMs, before: Option<EpochMs>, lang: Lang) -> String {
    let day = |at: EpochMs| korea(at).map(|at| at.date());
    let other_day = before.is_some_and(|before| day(before) != day(at));
    let form = if other_day { lang.day_form() } else { "" };
    let form = format!("{form}%H:%M:%S");
    korea(at).map_or_else(String::new, |at| at.strftime(&form).to_string())
}

/// Date and time in Korea, as people in this language write them.
pub(super) fn korean_time(at: EpochMs, lang: Lang) -> String {
    let form = lang.time_form();
    korea(at).map_or_else(String::new, |at| at.strftime(form).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-02-28T15:05:00Z is five past midnight on the first of March in Korea.
    const MARCH: EpochMs = EpochMs(1_772_291_100_000);

    fn row(after_ms: i64, source: &str, event: &str, status: &str) -> EvidenceRow {
        EvidenceRow {
            at: EpochMs(MARCH.0 + after_ms),
            source: source.to_owned(),
            event: event.to_owned(),
            status: status.to_owned(),
            told: String::new(),
        }
    }

    #[test]
    fn times_are_koreas_whatever_the_servers_zone() {
        assert_eq!(korean_time(MARCH, Lang::Ko), "2026년 3월 1일 00:05");
        assert_eq!(korean_time(MARCH, Lang::En), "1 Mar 2026, 00:05");
        assert_eq!(time_after(MARCH, None, Lang::Ko), "00:05:00");
    }

    #[test]
    fn a_lost_answer_an_inquiry_and_its_result_are_told_in_plain_words() {
        let evidence = [
            row(3_000, "confirm", "claimed", "approving"),
            row(63_200, "answer", "answer_lost", "unknown"),
            row(65_000, "inquiry", "pending", "unknown"),
            row(66_000, "inquiry", "charged", "approved"),
        ];
        let told = |lang: Lang| -> Vec<String> {
            of(MARCH, &evidence, lang)
                .into_iter()
                .map(|moment| format!("{} {}", moment.at, lang.moment(moment.what, moment.waited)))
                .collect()
        };
        assert_eq!(
            told(Lang::En),
            [
                "00:05:00 You placed the order",
                "00:05:03 The payment was handed to the payment gateway",
                "00:06:03 The bank did not answer in 60 s; we began to find out the result",
                "00:06:05 We asked the payment gateway; it has no result yet",
                "00:06:06 We asked the payment gateway: it is paid",
            ]
        );
        assert!(told(Lang::Ko)[2].contains("60초 동안 은행의 답이 없어"));
    }

    #[test]
    fn an_entry_of_another_day_says_which() {
        let evidence = [
            row(1_000, "window", "window_opened", "ready"),
            row(86_400_000, "cancel", "cancel_asked", "cancel_requested"),
        ];
        let at = |lang| {
            of(MARCH, &evidence, lang)
                .into_iter()
                .map(|moment| moment.at)
        };
        assert!(at(Lang::En).eq(["00:05:00", "00:05:01", "2 Mar, 00:05:00"]));
        assert!(at(Lang::Ko).eq(["00:05:00", "00:05:01", "3월 2일 00:05:00"]));
    }
}

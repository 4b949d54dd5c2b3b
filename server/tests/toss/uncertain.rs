//! What nobody outside knows of the real gateway: the adapter gives the same meaning under each reading.

use fakepg::Handle;
use fakepg::engine::Method;
use fakepg::scenario::Scenario;
use payment::attempt::Finding;
use payment::money::{Money, Won};
use payment::reach::Decline;
use server::gateway::secret::Secret;
use server::gateway::toss::Toss;
use server::gateway::{CancelOutcome, ConfirmOutcome, Gateway, InquiryOutcome, Told};

use crate::bench::{self, PATIENT, PRICE, cancel_of, confirm_of, names, toss};

async fn fake(scenario: &str) -> (Handle, Toss) {
    let pg = fakepg::spawn(fakepg::Config::default()).await.unwrap();
    set(&pg, scenario).await;
    let toss = toss(&pg.url(), PATIENT);
    (pg, toss)
}

async fn set(pg: &Handle, scenario: &str) {
    let scenario = Scenario::from_json(scenario.as_bytes()).unwrap();
    pg.set_scenario(scenario).await.unwrap();
}

fn pay(pg: &Handle, method: Method, order: &str) -> String {
    pg.authenticate_by(method, order, u64::try_from(PRICE.get()).unwrap())
}

fn charged(canceled: i64) -> Finding {
    Finding::Charged {
        charged: Money::won(PRICE),
        canceled: Won::new(canceled).unwrap(),
    }
}

async fn asked(toss: &Toss, key: &str, order: &str) -> (Finding, Told) {
    match toss
        .inquire(&names(Some(&bench::key(key)), &bench::order(order)))
        .await
    {
        InquiryOutcome::Found(finding, told) => (finding, told),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn no_1_an_error_bound_to_its_key_or_not_is_asked_about() {
    for bound in [true, false] {
        let (pg, toss) = fake(&format!(
            r#"{{"bindServerErrors":{bound},"error":{{"status":500,"code":"UNKNOWN_PAYMENT_ERROR"}}}}"#
        ))
        .await;
        let key = pay(&pg, Method::Card, "order_1");
        let call = confirm_of(&key, "order_1", "k1");
        for _ in 0..2 {
            let outcome = toss.confirm(&call).await;
            assert!(matches!(outcome, ConfirmOutcome::Lost(..)), "{outcome:?}");
        }
    }
}

#[tokio::test]
async fn no_2_a_payment_that_is_not_confirmed_is_no_charge_whether_a_look_up_shows_it_or_not() {
    for (shown, expected) in [
        ("payment", Finding::Pending { settled: false }),
        ("notFound", Finding::NotFound { settled: false }),
    ] {
        let (pg, toss) = fake(&format!(r#"{{"unconfirmed":"{shown}"}}"#)).await;
        let key = pay(&pg, Method::Card, "order_1");
        assert_eq!(asked(&toss, &key, "order_1").await.0, expected);
    }
}

#[tokio::test]
async fn no_3_another_amount_than_was_authenticated_is_refused_with_alarm_by_either_code() {
    for code in ["INVALID_REQUEST", "FORBIDDEN_REQUEST"] {
        let (pg, toss) = fake(&format!(r#"{{"mismatchCode":"{code}"}}"#)).await;
        let key = pg.authenticate("order_1", 100);
        let outcome = toss.confirm(&confirm_of(&key, "order_1", "k1")).await;
        assert!(
            matches!(&outcome, ConfirmOutcome::Found(Finding::Declined(Decline::ShopSetup), told) if told.alarm),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn no_4_a_repeat_after_the_window_never_hides_the_charge_from_an_inquiry() {
    for reading in ["processed", "session"] {
        let (pg, toss) = fake("{}").await;
        let key = pay(&pg, Method::Card, "order_1");
        let first = toss.confirm(&confirm_of(&key, "order_1", "k1")).await;
        assert!(matches!(first, ConfirmOutcome::Found(..)));
        set(
            &pg,
            &format!(r#"{{"confirmWindowMs":0,"uncertain":{{"repeatAfterWindow":"{reading}"}}}}"#),
        )
        .await;
        // The same key is answered as the first time, whatever the window.
        let again = toss.confirm(&confirm_of(&key, "order_1", "k1")).await;
        assert!(
            matches!(&again, ConfirmOutcome::Found(found, _) if *found == charged(0)),
            "{again:?}"
        );
        assert_eq!(asked(&toss, &key, "order_1").await.0, charged(0));
    }
}

#[tokio::test]
async fn no_5_a_provider_error_is_asked_about_whether_it_ends_the_payment_or_not() {
    for (reading, declined) in [("every", true), ("none", false)] {
        let uncertain = format!(r#""uncertain":{{"afterRefusal":"{reading}"}}"#);
        let (pg, toss) = fake(&format!(
            r#"{{"decline":{{"code":"PROVIDER_ERROR"}},{uncertain}}}"#
        ))
        .await;
        let key = pay(&pg, Method::Card, "order_1");
        let outcome = toss.confirm(&confirm_of(&key, "order_1", "k1")).await;
        assert!(matches!(outcome, ConfirmOutcome::Lost(..)), "{outcome:?}");
        let (finding, _) = asked(&toss, &key, "order_1").await;
        assert_eq!(
            matches!(finding, Finding::Declined(_)),
            declined,
            "{finding:?}"
        );
    }
}

#[tokio::test]
async fn no_7_a_429_is_a_refusal_before_processing_whatever_its_body() {
    for body in ["json", "empty", "html"] {
        let (pg, toss) = fake(&format!(
            r#"{{"rateLimit":0,"uncertain":{{"limitedBody":"{body}","retryAfterS":3}}}}"#
        ))
        .await;
        let key = pay(&pg, Method::Card, "order_1");
        let outcome = toss.confirm(&confirm_of(&key, "order_1", "k1")).await;
        assert!(
            matches!(&outcome, ConfirmOutcome::Refused(told) if !told.alarm),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn no_11_a_cancel_is_done_by_its_entry_and_the_balance_with_or_without_a_status() {
    for known in [true, false] {
        let (pg, toss) = fake(&format!(
            r#"{{"uncertain":{{"refundableAmount":{known},"cancelStatus":{known}}}}}"#
        ))
        .await;
        let key = pay(&pg, Method::Card, "order_1");
        let _charged = toss.confirm(&confirm_of(&key, "order_1", "k1")).await;
        let part = cancel_of(&key, Some(3_000), Some(33_000));
        let outcome = toss.cancel(&part).await;
        assert!(
            matches!(&outcome, CancelOutcome::Found(found, told) if *found == charged(3_000) && !told.alarm),
            "{outcome:?}"
        );
        let (finding, told) = asked(&toss, &key, "order_1").await;
        assert_eq!(finding, charged(3_000));
        assert_eq!(told.given_back.map(|reasons| reasons.len()), Some(1));
    }
}

#[tokio::test]
async fn no_12_an_accounts_secret_comes_with_the_confirm_and_perhaps_with_a_look_up() {
    for shown in [true, false] {
        let (pg, toss) = fake(&format!(r#"{{"deposits":{{"secretInLookup":{shown}}}}}"#)).await;
        let key = pay(&pg, Method::VirtualAccount, "order_1");
        let outcome = toss.confirm(&confirm_of(&key, "order_1", "k1")).await;
        let ConfirmOutcome::Found(Finding::AwaitingDeposit, told) = outcome else {
            panic!("{outcome:?}");
        };
        let issued = told.deposit.expect("an account");
        assert_eq!(issued.account.bank, "20");
        assert!(issued.account.due.is_some() && issued.secret.is_some() && !issued.over);
        assert!(!format!("{issued:?}").contains("ps_fake"));
        let (finding, told) = asked(&toss, &key, "order_1").await;
        assert_eq!(finding, Finding::AwaitingDeposit);
        let looked = told.deposit.expect("an account");
        assert_eq!(looked.account, issued.account);
        assert_eq!(looked.secret.is_some(), shown);
        assert!(looked.secret.is_none() || looked.secret == issued.secret);
        pg.deposit("order_1", false).unwrap();
        let (finding, told) = asked(&toss, &key, "order_1").await;
        assert_eq!(finding, charged(0));
        assert!(told.deposit.is_some());
    }
}

#[tokio::test]
async fn an_account_is_over_when_the_gateway_says_so_and_one_closed_in_time_was_never_charged() {
    for (expired, over) in [("flagged", true), ("unflagged", false)] {
        let (pg, toss) = fake(&format!(
            r#"{{"deposits":{{"dueMs":0,"expired":"{expired}"}}}}"#
        ))
        .await;
        let key = pay(&pg, Method::VirtualAccount, "order_1");
        let _issued = toss.confirm(&confirm_of(&key, "order_1", "k1")).await;
        let (finding, told) = asked(&toss, &key, "order_1").await;
        assert_eq!(finding, Finding::AwaitingDeposit);
        assert_eq!(told.deposit.expect("an account").over, over);
    }
    for balance in ["zero", "whole"] {
        let (pg, toss) = fake(&format!(
            r#"{{"deposits":{{"canceledBalance":"{balance}"}}}}"#
        ))
        .await;
        let key = pay(&pg, Method::VirtualAccount, "order_1");
        let _issued = toss.confirm(&confirm_of(&key, "order_1", "k1")).await;
        let outcome = toss.cancel(&cancel_of(&key, None, None)).await;
        assert!(
            matches!(&outcome, CancelOutcome::Found(found, _) if *found == Finding::Closed),
            "{outcome:?}"
        );
        assert_eq!(asked(&toss, &key, "order_1").await.0, Finding::Closed);
    }
}

#[tokio::test]
async fn a_test_code_is_answered_with_its_error() {
    let pg = fakepg::spawn(fakepg::Config::default()).await.unwrap();
    for (code, known) in [("REJECT_CARD_COMPANY", true), ("NO_SUCH_CODE", false)] {
        let config = server::gateway::toss::TossConfig {
            secret_key: Secret::new("test_sk_fake"),
            test_code: Some(code.to_owned()),
            ..bench::config(&pg.url(), PATIENT)
        };
        let toss = Toss::new(config).unwrap();
        let key = pay(&pg, Method::Card, "order_1");
        let outcome = toss.confirm(&confirm_of(&key, "order_1", code)).await;
        let declined = matches!(
            outcome,
            ConfirmOutcome::Found(Finding::Declined(Decline::CardRefused), _)
        );
        // 400 INVALID_TEST_CODE is no row of ours: unknown, with alarm.
        let unlisted = matches!(&outcome, ConfirmOutcome::Lost(_, told) if told.alarm);
        assert_eq!((declined, unlisted), (known, !known), "{outcome:?}");
    }
}

//! Against the fake gateway: every row of the error tables, and whole payments.

use fakepg::Handle;
use fakepg::scenario::Scenario;
use payment::attempt::Finding;
use payment::money::{Money, Won};
use payment::reach::{Decline, Lost};
use server::gateway::secret::Secret;
use server::gateway::toss::{Toss, TossConfig};
use server::gateway::{
    CancelOutcome, ConfirmOutcome, Gateway, InquiryOutcome, OpenOutcome, Told, WindowRequest,
};

use crate::bench::{PATIENT, PRICE, cancel_of, config, confirm_of, key, names, order, toss};
use crate::rows;

async fn fake() -> (Handle, Toss) {
    let pg = fakepg::spawn(fakepg::Config::default()).await.unwrap();
    let toss = toss(&pg.url(), PATIENT);
    (pg, toss)
}

async fn set(pg: &Handle, scenario: &str) {
    let scenario = Scenario::from_json(scenario.as_bytes()).unwrap();
    pg.set_scenario(scenario).await.unwrap();
}

fn authenticate(pg: &Handle, order_id: &str) -> String {
    pg.authenticate(order_id, u64::try_from(PRICE.get()).unwrap())
}

fn charges(pg: &Handle, order_id: &str) -> u64 {
    pg.ledger()
        .orders
        .get(order_id)
        .map_or(0, |order| order.charges)
}

/// A charge of the price, of which so much was given back.
fn charged(canceled: i64) -> Finding {
    Finding::Charged {
        charged: Money::won(PRICE),
        canceled: Won::new(canceled).unwrap(),
    }
}

#[track_caller]
fn assert_quiet(told: &Told, status: u16, code: &str) {
    let seen = (told.status, told.code.as_str(), told.alarm);
    assert_eq!(seen, (Some(status), code, false));
}

#[track_caller]
fn found(outcome: InquiryOutcome) -> Finding {
    match outcome {
        InquiryOutcome::Found(finding, told) => {
            assert!(!told.alarm, "{told:?}");
            finding
        }
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn no_word_with_alarm(outcome: InquiryOutcome) {
    match outcome {
        InquiryOutcome::NoWord(told) => assert!(told.alarm, "{told:?}"),
        other => panic!("{other:?}"),
    }
}

fn confirm_class(outcome: &ConfirmOutcome) -> rows::Confirm {
    match outcome {
        ConfirmOutcome::Found(Finding::Declined(class), told) if told.alarm => {
            rows::Confirm::DeclinedWithAlarm(*class)
        }
        ConfirmOutcome::Found(Finding::Declined(class), _) => rows::Confirm::Declined(*class),
        ConfirmOutcome::Refused(told) if !told.alarm => rows::Confirm::Refused,
        ConfirmOutcome::Lost(Lost::InProgress, told) if !told.alarm => rows::Confirm::InProgress,
        ConfirmOutcome::Lost(Lost::Inconclusive, told) if !told.alarm => rows::Confirm::Ask,
        other => panic!("no row becomes {other:?}"),
    }
}

fn cancel_class(outcome: &CancelOutcome) -> rows::Cancel {
    match outcome {
        CancelOutcome::Unknown(told) if !told.alarm => rows::Cancel::Unknown,
        CancelOutcome::RetryWithNewKey(told) if told.alarm => rows::Cancel::NewKeyWithAlarm,
        CancelOutcome::RetryWithNewKey(_) => rows::Cancel::NewKey,
        CancelOutcome::Refused(told) if told.alarm => rows::Cancel::RefusedWithAlarm,
        CancelOutcome::Refused(_) => rows::Cancel::Refused,
        other => panic!("no row becomes {other:?}"),
    }
}

#[tokio::test]
async fn every_error_answer_to_a_confirm_becomes_what_its_row_says() {
    let (pg, toss) = fake().await;
    for (n, (status, code, expected)) in rows::CONFIRM.iter().enumerate() {
        let order_id = format!("order_{n}");
        let payment_key = authenticate(&pg, &order_id);
        set(
            &pg,
            &format!(r#"{{"error":{{"status":{status},"code":"{code}"}}}}"#),
        )
        .await;
        let outcome = toss
            .confirm(&confirm_of(&payment_key, &order_id, &format!("k{n}")))
            .await;
        assert_eq!(confirm_class(&outcome), *expected, "{status} {code}");
        assert_eq!(charges(&pg, &order_id), 0, "{code}");
    }
}

#[tokio::test]
async fn every_code_has_the_status_that_the_fake_has_it_with() {
    let (pg, toss) = fake().await;
    let mut known = 0;
    for (n, (status, code, expected)) in rows::CONFIRM.iter().enumerate() {
        // The fake answers a decline with the status of its own tables, which share nothing with ours.
        let decline = format!(r#"{{"decline":{{"code":"{code}"}}}}"#);
        let Ok(scenario) = Scenario::from_json(decline.as_bytes()) else {
            continue;
        };
        known += 1;
        pg.set_scenario(scenario).await.unwrap();
        let order_id = format!("order_{n}");
        let payment_key = authenticate(&pg, &order_id);
        let outcome = toss
            .confirm(&confirm_of(&payment_key, &order_id, &format!("k{n}")))
            .await;
        assert_eq!(confirm_class(&outcome), *expected, "{status} {code}");
    }
    // All but the made-up code of a 429.
    assert_eq!(known, rows::CONFIRM.len() - 1);
}

#[tokio::test]
async fn an_unlisted_code_or_a_listed_one_with_another_status_is_unknown_and_alarms() {
    let (pg, toss) = fake().await;
    for (n, (status, code)) in [
        (400, "SOMETHING_NEW"),
        (500, "SOMETHING_NEW"),
        (400, "REJECT_CARD_PAYMENT"),
        (500, "REJECT_CARD_PAYMENT"),
        (403, "PROVIDER_ERROR"),
        (404, "UNAUTHORIZED_KEY"),
    ]
    .iter()
    .enumerate()
    {
        let order_id = format!("order_{n}");
        let payment_key = authenticate(&pg, &order_id);
        let error = format!(r#""error":{{"status":{status},"code":"{code}"}}"#);
        set(
            &pg,
            &format!(r#"{{"operations":["confirm","cancel"],{error}}}"#),
        )
        .await;
        let outcome = toss
            .confirm(&confirm_of(&payment_key, &order_id, &format!("k{n}")))
            .await;
        let ConfirmOutcome::Lost(Lost::Inconclusive, told) = outcome else {
            panic!("{status} {code}: {outcome:?}");
        };
        assert!(told.alarm);
        let outcome = toss.cancel(&cancel_of(&payment_key, None, None)).await;
        assert!(
            matches!(&outcome, CancelOutcome::Unknown(told) if told.alarm),
            "{outcome:?}"
        );
    }
}

#[tokio::test]
async fn every_error_answer_to_a_cancel_becomes_what_its_row_says() {
    let (pg, toss) = fake().await;
    for (n, (status, code, expected)) in rows::CANCEL.iter().enumerate() {
        let order_id = format!("order_{n}");
        let payment_key = authenticate(&pg, &order_id);
        let error = format!(r#""error":{{"status":{status},"code":"{code}"}}"#);
        set(&pg, &format!(r#"{{"operations":["cancel"],{error}}}"#)).await;
        let outcome = toss.cancel(&cancel_of(&payment_key, None, None)).await;
        assert_eq!(cancel_class(&outcome), *expected, "{status} {code}");
    }
}

#[tokio::test]
async fn a_server_error_bound_to_its_key_asks_for_a_new_one_once_it_is_replayed() {
    let (pg, toss) = fake().await;
    let payment_key = authenticate(&pg, "order_1");
    let error = r#""error":{"status":500,"code":"FAILED_REFUND_PROCESS"}"#;
    set(
        &pg,
        &format!(r#"{{"operations":["cancel"],"bindServerErrors":true,{error}}}"#),
    )
    .await;
    let call = cancel_of(&payment_key, None, None);
    let first = toss.cancel(&call).await;
    assert_eq!(cancel_class(&first), rows::Cancel::Unknown);
    let again = toss.cancel(&call).await;
    assert_eq!(cancel_class(&again), rows::Cancel::NewKey);
}

#[tokio::test]
async fn a_payment_is_confirmed_looked_up_and_given_back_in_parts() {
    let (pg, toss) = fake().await;
    let payment_key = authenticate(&pg, "order_1");
    let (paid, ord) = (key(&payment_key), order("order_1"));
    let before = found(toss.inquire(&names(Some(&paid), &ord)).await);
    assert_eq!(before, Finding::Pending { settled: false });

    let call = confirm_of(&payment_key, "order_1", "idem-1");
    for _ in 0..2 {
        // The second is the same send again: answered from the key, not charged again.
        let ConfirmOutcome::Found(finding, told) = toss.confirm(&call).await else {
            panic!("not approved");
        };
        assert_eq!(finding, charged(0));
        assert_quiet(&told, 200, "DONE");
    }
    assert_eq!(charges(&pg, "order_1"), 1);
    assert_eq!(
        found(toss.inquire(&names(Some(&paid), &ord)).await),
        charged(0)
    );
    assert_eq!(found(toss.inquire(&names(None, &ord)).await), charged(0));

    for (amount, balance, canceled) in [
        (Some(3_000), Some(33_000), 3_000),
        (Some(10_000), None, 13_000),
        (None, Some(20_000), 33_000),
    ] {
        let outcome = toss.cancel(&cancel_of(&payment_key, amount, balance)).await;
        let CancelOutcome::Found(finding, told) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(finding, charged(canceled));
        assert!(!told.alarm);
        assert_eq!(
            found(toss.inquire(&names(Some(&paid), &ord)).await),
            charged(canceled)
        );
    }
    let nothing_left = toss.cancel(&cancel_of(&payment_key, None, None)).await;
    assert!(
        matches!(nothing_left, CancelOutcome::RetryWithNewKey(_)),
        "{nothing_left:?}"
    );
    assert_eq!(pg.ledger().orders["order_1"].canceled_won, 33_000);
}

#[tokio::test]
async fn a_whole_charge_is_given_back_once_and_another_balance_stops_a_cancel() {
    let (pg, toss) = fake().await;
    let payment_key = authenticate(&pg, "order_1");
    let _approved = toss
        .confirm(&confirm_of(&payment_key, "order_1", "idem-1"))
        .await;
    let stale = toss
        .cancel(&cancel_of(&payment_key, Some(1_000), Some(32_000)))
        .await;
    assert!(
        matches!(stale, CancelOutcome::RetryWithNewKey(_)),
        "{stale:?}"
    );
    for _ in 0..2 {
        let outcome = toss.cancel(&cancel_of(&payment_key, None, None)).await;
        assert!(
            matches!(&outcome, CancelOutcome::Found(finding, _) if *finding == charged(33_000)),
            "{outcome:?}"
        );
    }
    assert_eq!(pg.ledger().orders["order_1"].canceled_won, 33_000);
}

#[tokio::test]
async fn a_charge_whose_answer_was_lost_is_found_by_asking() {
    let (pg, toss) = fake().await;
    let payment_key = authenticate(&pg, "order_1");
    set(&pg, r#"{"loss":{"when":"after"},"notFoundForMs":60000}"#).await;
    let outcome = toss
        .confirm(&confirm_of(&payment_key, "order_1", "idem-1"))
        .await;
    assert!(
        matches!(outcome, ConfirmOutcome::Lost(Lost::Reset, _)),
        "{outcome:?}"
    );
    // At first the gateway says that it knows nothing, on both routes.
    let (sent, ord) = (key(&payment_key), order("order_1"));
    let asked = found(toss.inquire(&names(Some(&sent), &ord)).await);
    assert_eq!(asked, Finding::NotFound { settled: false });
    set(&pg, "{}").await;
    assert_eq!(
        found(toss.inquire(&names(Some(&sent), &ord)).await),
        charged(0)
    );
}

#[tokio::test]
async fn a_broken_answer_after_the_charge_is_lost_and_a_wrong_amount_is_a_charge_with_alarm() {
    let (pg, toss) = fake().await;
    for body in ["broken", "html"] {
        let order_id = format!("order_{body}");
        let payment_key = authenticate(&pg, &order_id);
        set(&pg, &format!(r#"{{"body":"{body}"}}"#)).await;
        let call = confirm_of(&payment_key, &order_id, body);
        let outcome = toss.confirm(&call).await;
        assert!(
            matches!(outcome, ConfirmOutcome::Lost(Lost::Unreadable, _)),
            "{outcome:?}"
        );
        assert_eq!(charges(&pg, &order_id), 1);
    }
    let payment_key = authenticate(&pg, "order_1");
    set(&pg, r#"{"body":"wrongAmount"}"#).await;
    let outcome = toss
        .confirm(&confirm_of(&payment_key, "order_1", "idem-1"))
        .await;
    let ConfirmOutcome::Found(Finding::Charged { charged, .. }, told) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(charged, Money::won(Won::new(34_000).unwrap()));
    assert!(told.alarm);
}

#[tokio::test]
async fn another_payment_of_the_same_order_is_never_taken_for_this_one() {
    let (pg, toss) = fake().await;
    let other = authenticate(&pg, "order_1");
    let _approved = toss.confirm(&confirm_of(&other, "order_1", "idem-1")).await;
    let ord = order("order_1");
    no_word_with_alarm(toss.inquire(&names(Some(&key("not_that_one")), &ord)).await);
    // Nor a payment whose order is another one.
    no_word_with_alarm(
        toss.inquire(&names(Some(&key(&other)), &order("order_2")))
            .await,
    );
    // A key that no address can name is only looked for by its order.
    no_word_with_alarm(toss.inquire(&names(Some(&key("..")), &ord)).await);
    let unaddressable = toss.cancel(&cancel_of("..", None, None)).await;
    assert!(matches!(unaddressable, CancelOutcome::Unknown(told) if told.alarm));
    // An idempotency key used for another payment brings that payment's answer.
    let third = authenticate(&pg, "order_3");
    let outcome = toss.confirm(&confirm_of(&third, "order_3", "idem-1")).await;
    assert!(
        matches!(&outcome, ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_wrong_secret_declines_a_confirm_with_alarm_and_makes_an_inquiry_no_word() {
    let pg = fakepg::spawn(fakepg::Config::default()).await.unwrap();
    let wrong = Toss::new(TossConfig {
        secret_key: Secret::new("test_sk_wrong"),
        ..config(&pg.url(), PATIENT)
    })
    .unwrap();
    let payment_key = authenticate(&pg, "order_1");
    let outcome = wrong
        .confirm(&confirm_of(&payment_key, "order_1", "idem-1"))
        .await;
    let expected = rows::Confirm::DeclinedWithAlarm(Decline::ShopSetup);
    assert_eq!(confirm_class(&outcome), expected);
    no_word_with_alarm(
        wrong
            .inquire(&names(Some(&key(&payment_key)), &order("order_1")))
            .await,
    );
}

#[tokio::test]
async fn an_inquiry_that_is_limited_or_failing_has_no_word_without_alarm() {
    let (pg, toss) = fake().await;
    let payment_key = authenticate(&pg, "order_1");
    for error in [
        r#"{"status":429}"#,
        r#"{"status":429,"code":"TOO_MANY_REQUESTS"}"#,
        r#"{"status":403,"code":"FORBIDDEN_CONSECUTIVE_REQUEST"}"#,
        r#"{"status":500,"code":"FAILED_PAYMENT_INTERNAL_SYSTEM_PROCESSING"}"#,
        r#"{"status":502}"#,
    ] {
        set(&pg, &format!(r#"{{"operations":["get"],"error":{error}}}"#)).await;
        let asked = toss
            .inquire(&names(Some(&key(&payment_key)), &order("order_1")))
            .await;
        assert!(
            matches!(&asked, InquiryOutcome::NoWord(told) if !told.alarm),
            "{asked:?}"
        );
    }
    for error in [
        r#"{"status":400,"code":"INVALID_API_KEY"}"#,
        r#"{"status":403,"code":"INCORRECT_BASIC_AUTH_FORMAT"}"#,
        r#"{"status":404,"code":"NOT_FOUND"}"#,
    ] {
        set(&pg, &format!(r#"{{"operations":["get"],"error":{error}}}"#)).await;
        no_word_with_alarm(
            toss.inquire(&names(Some(&key(&payment_key)), &order("order_1")))
                .await,
        );
    }
}

#[tokio::test]
async fn the_payment_window_gets_every_value_as_it_was() {
    let (pg, toss) = fake().await;
    let request = WindowRequest {
        gateway_order_id: order("order_1-2"),
        order_name: "머그컵 & 차 100% #1".to_owned(),
        quantity: 1,
        amount: PRICE,
        authenticate_by: server::clock::EpochMs(0),
        success_url: "http://127.0.0.1:3000/r/ref?a=1&b=2".to_owned(),
        fail_url: "http://127.0.0.1:3000/f".to_owned(),
        close_url: "http://127.0.0.1:3000/c".to_owned(),
        page_url: String::new(),
    };
    let OpenOutcome::Opened { window, handle } = toss.open(&request).await else {
        panic!("not opened");
    };
    assert_eq!((handle, &window.desktop), (None, &window.mobile));
    let url = window.desktop;
    let parsed = reqwest::Url::parse(&url).unwrap();
    let pairs: Vec<_> = parsed.query_pairs().into_owned().collect();
    let expected = [
        ("gateway", "toss"),
        ("clientKey", "test_ck_fake"),
        ("orderId", "order_1-2"),
        ("orderName", "머그컵 & 차 100% #1"),
        ("amount", "33000"),
        ("successUrl", "http://127.0.0.1:3000/r/ref?a=1&b=2"),
        ("failUrl", "http://127.0.0.1:3000/f"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(pairs, expected);
    assert_eq!(toss.window_origins(), [pg.url()]);
    let page = reqwest::get(url).await.unwrap();
    assert_eq!(page.status(), 200);
    assert!(page.text().await.unwrap().contains("머그컵"));
}

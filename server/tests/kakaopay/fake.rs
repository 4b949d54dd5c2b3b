//! Against the fake gateway, which shares no code with the adapter: whole payments, lost answers, and each reading of what
//! is not known about KakaoPay.

use fakepg::Handle;
use fakepg::scenario::Scenario;
use payment::attempt::Finding;
use payment::id::{GatewayHandle, GatewayOrderId, IdempotencyKey, PaymentKey};
use payment::money::Money;
use payment::reach::{Decline, Lost};
use server::gateway::kakaopay::KakaoPay;
use server::gateway::{
    CancelCall, CancelOutcome, ConfirmCall, ConfirmOutcome, Gateway as _, InquiryOutcome,
    OpenOutcome, PaymentNames,
};

use crate::bench::{PATIENT, PRICE, charged, kakaopay, window, won};

struct Shop {
    pg: Handle,
    kakaopay: KakaoPay,
}

/// A payment that was opened and authenticated.
struct Opened {
    order: GatewayOrderId,
    tid: GatewayHandle,
    token: PaymentKey,
}

impl Opened {
    fn names(&self) -> PaymentNames {
        PaymentNames {
            handle: Some(self.tid.clone()),
            payment_key: Some(self.token.clone()),
            gateway_order_id: self.order.clone(),
        }
    }

    fn confirm(&self) -> ConfirmCall {
        ConfirmCall {
            handle: Some(self.tid.clone()),
            payment_key: self.token.clone(),
            gateway_order_id: self.order.clone(),
            amount: PRICE,
            idempotency_key: IdempotencyKey::parse("idem-1").unwrap(),
        }
    }

    fn cancel(&self, amount: Option<i64>, balance: Option<i64>, reason: &str) -> CancelCall {
        CancelCall {
            handle: Some(self.tid.clone()),
            payment_key: self.token.clone(),
            gateway_order_id: self.order.clone(),
            amount: amount.map(won),
            balance: balance.map(won),
            reason: reason.to_owned(),
            account: None,
            idempotency_key: IdempotencyKey::parse("cancel-1").unwrap(),
        }
    }
}

impl Shop {
    async fn open() -> Self {
        let pg = fakepg::spawn(fakepg::Config::default()).await.unwrap();
        let kakaopay = kakaopay(&pg.url(), PATIENT);
        Self { pg, kakaopay }
    }

    async fn scenario(&self, scenario: &str) {
        let scenario = Scenario::from_json(scenario.as_bytes()).unwrap();
        self.pg.set_scenario(scenario).await.unwrap();
    }

    /// Opens a payment, and the shopper authenticates.
    async fn authenticated(&self, order: &str) -> Opened {
        let order = GatewayOrderId::parse(order).unwrap();
        let mut request = window();
        request.gateway_order_id = order.clone();
        let opened = self.kakaopay.open(&request).await;
        let OpenOutcome::Opened { window, handle } = opened else {
            panic!("{opened:?}");
        };
        assert_ne!(window.desktop, window.mobile);
        let amount = u64::try_from(PRICE.get()).unwrap();
        let token = self.pg.authenticate_ready(order.as_str(), amount).unwrap();
        Opened {
            order,
            tid: handle.unwrap(),
            token: PaymentKey::parse(&token).unwrap(),
        }
    }

    async fn paid(&self, order: &str) -> Opened {
        let opened = self.authenticated(order).await;
        let outcome = self.kakaopay.confirm(&opened.confirm()).await;
        assert!(
            matches!(&outcome, ConfirmOutcome::Found(finding, told) if *finding == charged(0) && !told.alarm),
            "{outcome:?}"
        );
        opened
    }

    /// What an inquiry finds, with the reasons of what was given back.
    async fn asked(&self, opened: &Opened) -> (Finding, Option<Vec<String>>) {
        match self.kakaopay.inquire(&opened.names()).await {
            InquiryOutcome::Found(finding, told) => {
                assert!(!told.alarm, "{told:?}");
                (finding, told.given_back)
            }
            other => panic!("{other:?}"),
        }
    }

    fn charges(&self, opened: &Opened) -> u64 {
        let ledger = self.pg.ledger();
        let order = ledger.orders.get(opened.order.as_str());
        order.map_or(0, |order| order.charges)
    }

    fn given_back(&self, opened: &Opened) -> u64 {
        self.pg.ledger().orders[opened.order.as_str()].canceled_won
    }
}

#[tokio::test]
async fn a_payment_is_opened_approved_looked_up_and_given_back_in_parts() {
    let shop = Shop::open().await;
    let opened = shop.authenticated("order_1").await;
    let before = shop.asked(&opened).await.0;
    assert_eq!(before, Finding::Pending { settled: false });
    let outcome = shop.kakaopay.confirm(&opened.confirm()).await;
    assert!(
        matches!(&outcome, ConfirmOutcome::Found(finding, _) if *finding == charged(0)),
        "{outcome:?}"
    );
    assert_eq!(shop.asked(&opened).await, (charged(0), Some(Vec::new())));

    let mut reasons = Vec::new();
    for (amount, balance, canceled) in [
        (Some(3_000), Some(33_000), 3_000),
        (Some(10_000), None, 13_000),
        (None, Some(20_000), 33_000),
    ] {
        let reason = format!("wish {canceled} [r{canceled}]");
        let outcome = shop
            .kakaopay
            .cancel(&opened.cancel(amount, balance, &reason))
            .await;
        assert!(
            matches!(&outcome, CancelOutcome::Found(finding, told) if *finding == charged(canceled) && !told.alarm),
            "{outcome:?}"
        );
        reasons.push(reason);
        assert_eq!(
            shop.asked(&opened).await,
            (charged(canceled), Some(reasons.clone()))
        );
    }
    assert_eq!(
        (shop.charges(&opened), shop.given_back(&opened)),
        (1, 33_000)
    );
}

#[tokio::test]
async fn an_approve_whose_answer_was_lost_is_found_by_its_tid_and_a_repeat_charges_nothing() {
    let shop = Shop::open().await;
    for (n, when, charges) in [(0, "before", 0), (1, "after", 1)] {
        let opened = shop.authenticated(&format!("order_{n}")).await;
        shop.scenario(&format!(r#"{{"loss":{{"when":"{when}"}}}}"#))
            .await;
        let outcome = shop.kakaopay.confirm(&opened.confirm()).await;
        assert!(
            matches!(outcome, ConfirmOutcome::Lost(Lost::Reset, _)),
            "{outcome:?}"
        );
        assert_eq!(shop.charges(&opened), charges);
        shop.scenario("{}").await;
        let found = shop.asked(&opened).await.0;
        let expected = match charges {
            0 => Finding::Pending { settled: false },
            _ => charged(0),
        };
        assert_eq!(found, expected);
    }
    // Nothing of ours does this; if anything did, the tid is paid already and only the order tells.
    let paid = shop.paid("order_2").await;
    let again = shop.kakaopay.confirm(&paid.confirm()).await;
    let ConfirmOutcome::Lost(Lost::Inconclusive, told) = again else {
        panic!("{again:?}");
    };
    assert_eq!((told.code.as_str(), told.alarm), ("-702", false));
    assert_eq!(shop.charges(&paid), 1);
}

#[tokio::test]
async fn the_platform_gives_up_on_a_slow_approve_which_goes_on_behind_it() {
    let shop = Shop::open().await;
    for status in ["byCode", "always400"] {
        let opened = shop.authenticated(&format!("order_{status}")).await;
        let switches = format!(r#"{{"platformTimeoutMs":50,"httpStatus":"{status}"}}"#);
        shop.scenario(&format!(r#"{{"delayMs":1000,"kakaopay":{switches}}}"#))
            .await;
        let outcome = shop.kakaopay.confirm(&opened.confirm()).await;
        let ConfirmOutcome::Lost(Lost::Inconclusive, told) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!((told.code.as_str(), told.alarm), ("-603", false));
        shop.scenario("{}").await;
        // Until the work behind it has ended.
        while shop.charges(&opened) == 0 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(shop.asked(&opened).await.0, charged(0));
    }
}

#[tokio::test]
async fn a_cancel_whose_answer_was_lost_is_seen_by_asking_and_the_lock_makes_a_second_impossible() {
    let shop = Shop::open().await;
    for (n, amount) in [(0, Some(3_000)), (1, None)] {
        let paid = shop.paid(&format!("order_{n}")).await;
        let call = paid.cancel(amount, Some(33_000), "wish [r1]");
        shop.scenario(r#"{"operations":["cancel"],"loss":{"when":"after"}}"#)
            .await;
        let lost = shop.kakaopay.cancel(&call).await;
        assert!(matches!(lost, CancelOutcome::Unknown(_)), "{lost:?}");
        shop.scenario("{}").await;
        let given = amount.unwrap_or(33_000);
        let (finding, listed) = shop.asked(&paid).await;
        assert_eq!(finding, charged(given));
        assert_eq!(listed, Some(vec!["wish [r1]".to_owned()]));
        // The very same call once more, as if nobody had asked.
        let again = shop.kakaopay.cancel(&call).await;
        assert!(matches!(again, CancelOutcome::Refused(_)), "{again:?}");
        assert_eq!(shop.given_back(&paid), u64::try_from(given).unwrap());
    }
    let paid = shop.paid("order_2").await;
    let stale = shop
        .kakaopay
        .cancel(&paid.cancel(Some(1_000), Some(32_000), "wish [r2]"))
        .await;
    assert!(matches!(stale, CancelOutcome::Refused(_)), "{stale:?}");
    assert_eq!(shop.given_back(&paid), 0);
}

#[tokio::test]
async fn broken_and_wrong_answers_after_the_charge_are_unknown_and_the_order_tells_the_truth() {
    let shop = Shop::open().await;
    for (body, lost) in [
        ("broken", Lost::Unreadable),
        ("html", Lost::Unreadable),
        ("wrongAmount", Lost::Inconclusive),
    ] {
        let opened = shop.authenticated(&format!("order_{body}")).await;
        shop.scenario(&format!(r#"{{"body":"{body}"}}"#)).await;
        let outcome = shop.kakaopay.confirm(&opened.confirm()).await;
        assert!(
            matches!(&outcome, ConfirmOutcome::Lost(how, _) if *how == lost),
            "{body}: {outcome:?}"
        );
        shop.scenario("{}").await;
        assert_eq!(shop.charges(&opened), 1);
        // The last one was in fact charged too much: the order says so, and the machine gives it back.
        let amount = if body == "wrongAmount" {
            won(34_000)
        } else {
            PRICE
        };
        let expected = Finding::Charged {
            charged: Money::won(amount),
            canceled: won(0),
        };
        assert_eq!(shop.asked(&opened).await.0, expected);
    }
}

#[tokio::test]
async fn a_forged_token_an_unfinished_authentication_and_another_amount_are_declines_that_charge_nothing()
 {
    let shop = Shop::open().await;
    let mut forged = shop.authenticated("order_1").await;
    let right = forged.token;
    forged.token = PaymentKey::parse("0123456789abcdef0123").unwrap();
    let outcome = shop.kakaopay.confirm(&forged.confirm()).await;
    let declined = Finding::Declined(Decline::AuthenticationFailed);
    assert!(
        matches!(&outcome, ConfirmOutcome::Found(finding, told) if *finding == declined && !told.alarm),
        "{outcome:?}"
    );
    forged.token = right;
    let mut dear = forged.confirm();
    dear.amount = won(34_000);
    let outcome = shop.kakaopay.confirm(&dear).await;
    assert!(
        matches!(&outcome, ConfirmOutcome::Found(Finding::Declined(_), told) if told.alarm),
        "{outcome:?}"
    );
    let mut request = window();
    request.gateway_order_id = GatewayOrderId::parse("order_2").unwrap();
    let OpenOutcome::Opened { handle, .. } = shop.kakaopay.open(&request).await else {
        panic!("not opened");
    };
    let unfinished = Opened {
        order: request.gateway_order_id,
        tid: handle.unwrap(),
        token: PaymentKey::parse("0123456789abcdef0123").unwrap(),
    };
    let outcome = shop.kakaopay.confirm(&unfinished.confirm()).await;
    assert!(
        matches!(&outcome, ConfirmOutcome::Found(finding, _) if *finding == declined),
        "{outcome:?}"
    );
    assert_eq!(shop.charges(&forged) + shop.charges(&unfinished), 0);
}

/// Fact 13: whether card and action details are told, and what a refused approve leaves behind.
#[tokio::test]
async fn details_that_are_told_or_not_change_no_word_about_money() {
    let shop = Shop::open().await;
    for (reading, listed) in [
        ("shown", Some(vec!["wish [r1]".to_owned()])),
        ("absent", None),
    ] {
        shop.scenario(&format!(
            r#"{{"kakaopay":{{"cardInfo":"{reading}","actionDetails":"{reading}"}}}}"#
        ))
        .await;
        let paid = shop.paid(&format!("order_{reading}")).await;
        let outcome = shop
            .kakaopay
            .cancel(&paid.cancel(Some(3_000), Some(33_000), "wish [r1]"))
            .await;
        assert!(matches!(outcome, CancelOutcome::Found(..)), "{outcome:?}");
        assert_eq!(shop.asked(&paid).await, (charged(3_000), listed));
    }
}

#[tokio::test]
async fn a_failure_at_the_method_is_a_decline_or_pending_by_the_orders_word_only() {
    let shop = Shop::open().await;
    let failed = Finding::Declined(Decline::Other);
    let pending = Finding::Pending { settled: false };
    for (n, (code, leaves, expected)) in [
        ("-780", "failed", failed),
        ("-780", "pending", pending),
        ("-780:USER_LOCKED", "failed", pending),
        ("-780:BANK_FIRM_UNKNOWN", "failed", pending),
    ]
    .into_iter()
    .enumerate()
    {
        let opened = shop.authenticated(&format!("order_{n}")).await;
        let switches = format!(r#"{{"declineLeaves":"{leaves}"}}"#);
        shop.scenario(&format!(
            r#"{{"decline":{{"code":"{code}"}},"kakaopay":{switches}}}"#
        ))
        .await;
        let outcome = shop.kakaopay.confirm(&opened.confirm()).await;
        assert!(
            matches!(&outcome, ConfirmOutcome::Lost(Lost::Inconclusive, told) if !told.alarm),
            "{code}: {outcome:?}"
        );
        shop.scenario("{}").await;
        assert_eq!(shop.asked(&opened).await.0, expected, "{code} {leaves}");
        assert_eq!(shop.charges(&opened), 0);
    }
}

/// Fact 14: whether a token may come again while its payment is pending. We never send it again; under both readings a
/// lost approve is known by asking, and a second one of somebody else's making ends in no second charge.
#[tokio::test]
async fn a_token_that_may_come_again_or_not_is_charged_once() {
    let shop = Shop::open().await;
    for reading in ["reusable", "once"] {
        let opened = shop.authenticated(&format!("order_{reading}")).await;
        let switches = format!(r#"{{"pgToken":"{reading}"}}"#);
        shop.scenario(&format!(
            r#"{{"decline":{{"code":"-780:USER_LOCKED"}},"kakaopay":{switches}}}"#
        ))
        .await;
        let first = shop.kakaopay.confirm(&opened.confirm()).await;
        assert!(
            matches!(first, ConfirmOutcome::Lost(Lost::Inconclusive, _)),
            "{first:?}"
        );
        shop.scenario(&format!(r#"{{"kakaopay":{switches}}}"#))
            .await;
        let pending = Finding::Pending { settled: false };
        assert_eq!(shop.asked(&opened).await.0, pending);
        let second = shop.kakaopay.confirm(&opened.confirm()).await;
        let (finding, charges) = match reading {
            "reusable" => (charged(0), 1),
            _ => (Finding::Declined(Decline::AuthenticationFailed), 0),
        };
        assert!(
            matches!(&second, ConfirmOutcome::Found(found, _) if *found == finding),
            "{reading}: {second:?}"
        );
        assert_eq!(shop.charges(&opened), charges);
    }
}

#[tokio::test]
async fn a_booked_payment_that_is_not_seen_yet_and_one_whose_time_is_over_are_weak_words() {
    let shop = Shop::open().await;
    let opened = shop.authenticated("order_1").await;
    shop.scenario(r#"{"loss":{"when":"after"},"notFoundForMs":60000}"#)
        .await;
    let outcome = shop.kakaopay.confirm(&opened.confirm()).await;
    assert!(matches!(outcome, ConfirmOutcome::Lost(..)), "{outcome:?}");
    let weak = |asked: &InquiryOutcome| {
        matches!(
            asked,
            InquiryOutcome::Found(
                Finding::NotFound { settled: false } | Finding::Pending { settled: false },
                _
            )
        )
    };
    let asked = shop.kakaopay.inquire(&opened.names()).await;
    assert!(weak(&asked), "{asked:?}");
    shop.scenario("{}").await;
    assert_eq!(shop.asked(&opened).await.0, charged(0));

    for (reading, lapses) in [
        ("lastStatus", false),
        ("failPayment", true),
        ("refused", false),
    ] {
        shop.scenario("{}").await;
        let opened = shop.authenticated(&format!("order_{reading}")).await;
        let switches = format!(r#"{{"expiredOrder":"{reading}"}}"#);
        shop.scenario(&format!(r#"{{"confirmWindowMs":0,"kakaopay":{switches}}}"#))
            .await;
        let asked = shop.kakaopay.inquire(&opened.names()).await;
        let failed = matches!(&asked, InquiryOutcome::Found(Finding::Declined(_), _));
        assert!(
            if lapses { failed } else { weak(&asked) },
            "{reading}: {asked:?}"
        );
        // An approve of it is refused, and nothing is charged.
        let outcome = shop.kakaopay.confirm(&opened.confirm()).await;
        let expected = Finding::Declined(Decline::SessionExpired);
        assert!(
            matches!(&outcome, ConfirmOutcome::Found(finding, _) if *finding == expected),
            "{reading}: {outcome:?}"
        );
        assert_eq!(shop.charges(&opened), 0);
    }
}

#[tokio::test]
async fn a_wrong_key_opens_nothing_leaves_an_approve_unknown_and_makes_an_inquiry_no_word() {
    let shop = Shop::open().await;
    let opened = shop.authenticated("order_1").await;
    for status in ["byCode", "always400"] {
        shop.scenario(&format!(r#"{{"kakaopay":{{"httpStatus":"{status}"}}}}"#))
            .await;
        let mut config = crate::bench::config(&shop.pg.url(), PATIENT);
        config.secret_key = server::gateway::secret::Secret::new("DEV_wrong");
        let wrong = KakaoPay::new(config).unwrap();
        let refused = wrong.open(&window()).await;
        assert!(
            matches!(&refused, OpenOutcome::Refused(told) if told.alarm),
            "{refused:?}"
        );
        let outcome = wrong.confirm(&opened.confirm()).await;
        assert!(
            matches!(&outcome, ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm),
            "{outcome:?}"
        );
        let asked = wrong.inquire(&opened.names()).await;
        assert!(
            matches!(&asked, InquiryOutcome::NoWord(told) if told.alarm),
            "{asked:?}"
        );
        let canceled = wrong
            .cancel(&opened.cancel(None, Some(33_000), "wish [r1]"))
            .await;
        assert!(
            matches!(&canceled, CancelOutcome::RetryWithNewKey(told) if told.alarm),
            "{canceled:?}"
        );
    }
    // Once it is repaired, the same payment is approved.
    shop.scenario("{}").await;
    let outcome = shop.kakaopay.confirm(&opened.confirm()).await;
    assert!(matches!(outcome, ConfirmOutcome::Found(..)), "{outcome:?}");
}

//! Against the fake gateway, which shares no code with the adapter: whole payments, lost answers, repeats under one key.

use fakepg::Handle;
use fakepg::scenario::Scenario;
use payment::attempt::Finding;
use payment::id::{GatewayHandle, GatewayOrderId, IdempotencyKey, PaymentKey};
use payment::reach::{Decline, Lost};
use server::gateway::stripe::Stripe;
use server::gateway::{
    CancelCall, CancelOutcome, ConfirmCall, ConfirmOutcome, Gateway as _, InquiryOutcome,
    OpenOutcome, PaymentNames,
};

use crate::bench::{PRICE, charged, stripe, window, won};

struct Shop {
    pg: Handle,
    stripe: Stripe,
}

/// A payment whose window was opened.
struct Opened {
    order: GatewayOrderId,
    intent: GatewayHandle,
}

impl Opened {
    fn names(&self) -> PaymentNames {
        PaymentNames {
            handle: Some(self.intent.clone()),
            payment_key: PaymentKey::parse("cs_test_1").ok(),
            gateway_order_id: self.order.clone(),
        }
    }

    fn confirm(&self, key: &str) -> ConfirmCall {
        ConfirmCall {
            handle: Some(self.intent.clone()),
            payment_key: PaymentKey::parse("cs_test_1").unwrap(),
            gateway_order_id: self.order.clone(),
            amount: PRICE,
            idempotency_key: IdempotencyKey::parse(key).unwrap(),
        }
    }

    fn cancel(&self, amount: Option<i64>, balance: i64, key: &str) -> CancelCall {
        CancelCall {
            handle: Some(self.intent.clone()),
            payment_key: PaymentKey::parse("cs_test_1").unwrap(),
            gateway_order_id: self.order.clone(),
            amount: amount.map(won),
            balance: Some(won(balance)),
            reason: format!("wish [{key}]"),
            idempotency_key: IdempotencyKey::parse(key).unwrap(),
            account: None,
        }
    }
}

impl Shop {
    async fn open() -> Self {
        let pg = fakepg::spawn(fakepg::Config::default()).await.unwrap();
        let stripe = stripe(&pg.url());
        Self { pg, stripe }
    }

    async fn scenario(&self, scenario: &str) {
        let scenario = Scenario::from_json(scenario.as_bytes()).unwrap();
        self.pg.set_scenario(scenario).await.unwrap();
    }

    async fn opened(&self, order: &str) -> Opened {
        let order = GatewayOrderId::parse(order).unwrap();
        let mut request = window();
        request.gateway_order_id = order.clone();
        let opened = self.stripe.open(&request).await;
        let OpenOutcome::Opened { handle, .. } = opened else {
            panic!("{opened:?}");
        };
        Opened {
            order,
            intent: handle.unwrap(),
        }
    }

    /// Opens a payment, and the shopper authorises it.
    async fn authorised(&self, order: &str) -> Opened {
        let opened = self.opened(order).await;
        let amount = u64::try_from(PRICE.get()).unwrap();
        self.pg.authorise(order, amount).unwrap();
        opened
    }

    /// What an inquiry finds, with the reasons of what was given back.
    async fn asked(&self, opened: &Opened) -> (Finding, Option<Vec<String>>) {
        match self.stripe.inquire(&opened.names()).await {
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

fn is_charged(outcome: &ConfirmOutcome) -> bool {
    matches!(outcome, ConfirmOutcome::Found(finding, told) if *finding == charged(0) && !told.alarm)
}

#[tokio::test]
async fn a_payment_is_opened_authorised_captured_looked_up_and_given_back_in_parts() {
    let shop = Shop::open().await;
    let opened = shop.opened("order_1").await;
    let pending = Finding::Pending { settled: false };
    assert_eq!(shop.asked(&opened).await.0, pending);
    // Nobody authorised it: there is nothing to capture.
    let early = shop.stripe.confirm(&opened.confirm("early")).await;
    assert!(
        matches!(
            early,
            ConfirmOutcome::Found(Finding::Declined(Decline::AuthenticationFailed), _)
        ),
        "{early:?}"
    );
    shop.pg.authorise("order_1", 33_000).unwrap();
    assert_eq!(shop.asked(&opened).await.0, pending);
    assert_eq!(shop.charges(&opened), 0, "an authorisation is no charge");
    let outcome = shop.stripe.confirm(&opened.confirm("idem-1")).await;
    assert!(is_charged(&outcome), "{outcome:?}");
    assert_eq!(shop.asked(&opened).await, (charged(0), Some(Vec::new())));

    let mut reasons = Vec::new();
    for (amount, balance, canceled) in [
        (Some(3_000), 33_000, 3_000),
        (Some(10_000), 30_000, 13_000),
        (None, 20_000, 33_000),
    ] {
        let key = format!("r{canceled}");
        let outcome = shop
            .stripe
            .cancel(&opened.cancel(amount, balance, &key))
            .await;
        assert!(
            matches!(&outcome, CancelOutcome::Found(finding, told) if *finding == charged(canceled) && !told.alarm),
            "{outcome:?}"
        );
        reasons.push(format!("wish [{key}]"));
        assert_eq!(
            shop.asked(&opened).await,
            (charged(canceled), Some(reasons.clone()))
        );
    }
    assert_eq!(
        (shop.charges(&opened), shop.given_back(&opened)),
        (1, 33_000)
    );
    let more = shop
        .stripe
        .cancel(&opened.cancel(Some(1_000), 1_000, "more"))
        .await;
    assert!(matches!(more, CancelOutcome::Refused(_)), "{more:?}");
}

#[tokio::test]
async fn a_capture_whose_answer_was_lost_is_found_by_its_name_and_repeated_under_its_key() {
    let shop = Shop::open().await;
    for (when, charges) in [("before", 0), ("after", 1)] {
        let opened = shop.authorised(&format!("order_{when}")).await;
        let call = opened.confirm(&format!("idem-{when}"));
        shop.scenario(&format!(r#"{{"loss":{{"when":"{when}"}}}}"#))
            .await;
        let outcome = shop.stripe.confirm(&call).await;
        assert!(
            matches!(outcome, ConfirmOutcome::Lost(Lost::Reset, _)),
            "{outcome:?}"
        );
        assert_eq!(shop.charges(&opened), charges);
        shop.scenario("{}").await;
        let expected = match charges {
            0 => Finding::Pending { settled: false },
            _ => charged(0),
        };
        assert_eq!(shop.asked(&opened).await.0, expected);
        // The very same call once more: the first answer, or the first time that it arrives.
        let again = shop.stripe.confirm(&call).await;
        assert!(is_charged(&again), "{when}: {again:?}");
        // Under another key it is refused, and the payment tells the truth.
        let other = shop
            .stripe
            .confirm(&opened.confirm(&format!("o-{when}")))
            .await;
        assert!(is_charged(&other), "{when}: {other:?}");
        assert_eq!(shop.charges(&opened), 1);
    }
}

#[tokio::test]
async fn another_payment_under_a_key_that_was_used_is_unknown_and_not_charged() {
    let shop = Shop::open().await;
    let first = shop.authorised("order_1").await;
    let second = shop.authorised("order_2").await;
    let outcome = shop.stripe.confirm(&first.confirm("idem-1")).await;
    assert!(is_charged(&outcome), "{outcome:?}");
    // One key is one request of the whole account.
    let stolen = shop.stripe.confirm(&second.confirm("idem-1")).await;
    assert!(
        matches!(&stolen, ConfirmOutcome::Lost(Lost::Inconclusive, told) if told.alarm),
        "{stolen:?}"
    );
    assert_eq!((shop.charges(&first), shop.charges(&second)), (1, 0));
}

#[tokio::test]
async fn a_declined_capture_charges_nothing_and_leaves_nothing_to_capture() {
    let shop = Shop::open().await;
    for (code, class) in [
        ("card_declined", Decline::CardRefused),
        ("insufficient_funds", Decline::LimitExceeded),
        ("charge_expired_for_capture", Decline::SessionExpired),
    ] {
        shop.scenario(&format!(r#"{{"decline":{{"code":"{code}"}}}}"#))
            .await;
        let opened = shop.authorised(&format!("order_{code}")).await;
        let outcome = shop.stripe.confirm(&opened.confirm(code)).await;
        assert!(
            matches!(&outcome, ConfirmOutcome::Found(Finding::Declined(found), _) if *found == class),
            "{code}: {outcome:?}"
        );
        shop.scenario("{}").await;
        let later = shop
            .stripe
            .confirm(&opened.confirm(&format!("later-{code}")))
            .await;
        assert!(
            matches!(later, ConfirmOutcome::Found(Finding::Declined(_), _)),
            "{code}: {later:?}"
        );
        assert_eq!(shop.charges(&opened), 0);
    }
}

#[tokio::test]
async fn an_authorisation_that_is_closed_is_never_charged_however_late_its_capture_comes() {
    let shop = Shop::open().await;
    let opened = shop.authorised("order_1").await;
    let closed = shop.stripe.close(&opened.names()).await;
    assert!(
        matches!(closed, InquiryOutcome::Found(Finding::Lapsed, _)),
        "{closed:?}"
    );
    let late = shop.stripe.confirm(&opened.confirm("late")).await;
    assert!(
        matches!(late, ConfirmOutcome::Found(Finding::Declined(_), _)),
        "{late:?}"
    );
    assert_eq!(shop.charges(&opened), 0);
    // And what was captured is closed by nobody.
    let paid = shop.authorised("order_2").await;
    let outcome = shop.stripe.confirm(&paid.confirm("idem-2")).await;
    assert!(is_charged(&outcome), "{outcome:?}");
    let closed = shop.stripe.close(&paid.names()).await;
    assert!(
        matches!(&closed, InquiryOutcome::Found(finding, _) if *finding == charged(0)),
        "{closed:?}"
    );
}

#[tokio::test]
async fn a_refund_whose_answer_was_lost_is_made_once_under_its_key() {
    let shop = Shop::open().await;
    for (when, amount) in [
        ("before", Some(3_000)),
        ("after", Some(3_000)),
        ("after", None),
    ] {
        let order = format!("order_{when}_{}", amount.unwrap_or(0));
        let opened = shop.authorised(&order).await;
        let paid = shop.stripe.confirm(&opened.confirm(&order)).await;
        assert!(is_charged(&paid), "{paid:?}");
        let call = opened.cancel(amount, 33_000, &format!("r-{order}"));
        shop.scenario(&format!(
            r#"{{"operations":["cancel"],"loss":{{"when":"{when}"}}}}"#
        ))
        .await;
        let lost = shop.stripe.cancel(&call).await;
        assert!(matches!(lost, CancelOutcome::Unknown(_)), "{lost:?}");
        shop.scenario("{}").await;
        let given = amount.unwrap_or(33_000);
        for _ in 0..2 {
            let again = shop.stripe.cancel(&call).await;
            assert!(
                matches!(&again, CancelOutcome::Found(finding, _) if *finding == charged(given)),
                "{again:?}"
            );
        }
        assert_eq!(shop.given_back(&opened), u64::try_from(given).unwrap());
        let listed = shop.asked(&opened).await.1;
        assert_eq!(listed, Some(vec![format!("wish [r-{order}]")]));
    }
}

#[tokio::test]
async fn a_refund_counts_whether_it_begins_as_done_or_as_pending() {
    let shop = Shop::open().await;
    for status in ["succeeded", "pending"] {
        shop.scenario(&format!(r#"{{"stripe":{{"refundStatus":"{status}"}}}}"#))
            .await;
        let opened = shop.authorised(&format!("order_{status}")).await;
        let paid = shop.stripe.confirm(&opened.confirm(status)).await;
        assert!(is_charged(&paid), "{status}: {paid:?}");
        let key = format!("r-{status}");
        let call = opened.cancel(Some(3_000), 33_000, &key);
        let outcome = shop.stripe.cancel(&call).await;
        assert!(
            matches!(&outcome, CancelOutcome::Found(finding, told) if *finding == charged(3_000) && !told.alarm),
            "{status}: {outcome:?}"
        );
        let listed = vec![format!("wish [{key}]")];
        assert_eq!(shop.asked(&opened).await, (charged(3_000), Some(listed)));
    }
}

//! A gateway that is silent, gone, or answers with rubbish, beside every part of the shop.

use reqwest::header::COOKIE;
use serde_json::json;

use super::{Stand, offers, quiet};
use crate::shop::{Reply, Shop};

const ENV: [(&str, &str); 3] = [
    ("JARI_PG_TIMEOUT_MS", "4000"),
    ("JARI_RESEND", "off"),
    ("JARI_CIRCUIT", "off"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    Silent,
    Gone,
    Garbles,
}
use Trouble::{Garbles, Gone, Silent};

impl Stand {
    async fn beside(trouble: Trouble) -> Self {
        let stand = Self::in_shop(Shop::with(&ENV).await).await;
        stand.strike(trouble).await;
        stand
    }

    async fn strike(&self, trouble: Trouble) {
        let everything = json!(["confirm", "get", "cancel"]);
        match trouble {
            Silent => {
                self.set(quiet(json!({"stop": true, "operations": everything})))
                    .await;
            }
            Gone => self.pg.pause_listening().await,
            Garbles => {
                self.set(quiet(json!({"body": "html", "operations": everything})))
                    .await;
            }
        }
    }

    /// The gateway is well again, and what was in doubt becomes known.
    async fn lift(&self) {
        let _ = self.pg.resume_listening().await;
        self.set(quiet(json!({}))).await;
        self.until_status(&self.unknown, "paid").await;
    }
}

async fn the_checkout_page_renders(trouble: Trouble) {
    let stand = Stand::beside(trouble).await;
    let (status, page) = stand.checkout_of(&stand.fresh).await;
    assert_eq!(status, 200);
    assert!(offers(&page), "it can be tried");
    let (status, page) = stand.checkout_of(&stand.unknown).await;
    assert_eq!(status, 200);
    assert!(page.contains("data-stage=\"checking\"") && !offers(&page));
    let (status, page) = stand.checkout_of(&stand.paid).await;
    assert_eq!(status, 200);
    assert!(page.contains("data-stage=\"paid\"") && !offers(&page));
    stand.lift().await;
    stand.end().await;
}

#[tokio::test]
async fn the_checkout_page_renders_beside_a_silent_gateway() {
    the_checkout_page_renders(Silent).await;
}

#[tokio::test]
async fn the_checkout_page_renders_without_a_gateway() {
    the_checkout_page_renders(Gone).await;
}

#[tokio::test]
async fn the_checkout_page_renders_beside_a_gateway_that_garbles() {
    the_checkout_page_renders(Garbles).await;
}

#[tokio::test]
async fn a_confirm_to_a_silent_gateway_is_answered_at_the_deadline_and_ends_known() {
    let stand = Stand::beside(Silent).await;
    let key = stand.key(&stand.fresh.id, stand.fresh.amount);
    let request = stand
        .confirm_request(&stand.fresh, &stand.fresh.id, &key)
        .header("X-Request-Timeout-Ms", "2000");
    let reply = Reply::of(request.send().await.unwrap()).await;
    assert_eq!(reply.status, 202, "{:?}", reply.body);
    assert_eq!(reply.body["payable"], false);
    let state = stand.until_attempt(&stand.fresh, "unknown").await;
    assert_eq!(state.body["attempt"]["reason"], "timed_out");
    stand.lift().await;
    // Lifted, the gateway drops whom it had not begun to serve: what it never began is not charged, and was never offered.
    stand.poll(&stand.fresh).await.attempt("unknown");
    stand.end().await;
}

#[tokio::test]
async fn a_confirm_without_a_gateway_is_never_sent_and_can_be_paid_again() {
    let stand = Stand::beside(Gone).await;
    let key = stand.key(&stand.fresh.id, stand.fresh.amount);
    let reply = stand.confirm(&stand.fresh, &key).await;
    reply.refused(503, "pg_unreachable");
    assert_eq!(reply.body["reach"], "not_sent");
    assert_eq!(stand.poll(&stand.fresh).await.body["payable"], true);
    // The page says so, and that it may be tried.
    let (_, page) = stand.checkout_of(&stand.fresh).await;
    assert!(page.contains("data-stage=\"not_charged\"") && offers(&page));
    stand.lift().await;
    assert_eq!(stand.confirm(&stand.fresh, &key).await.status, 200);
    stand.end().await;
}

#[tokio::test]
async fn a_confirm_to_a_gateway_that_garbles_is_unknown_until_it_can_be_read() {
    let stand = Stand::beside(Garbles).await;
    let reply = stand.pay(&stand.fresh).await;
    assert_eq!(reply.status, 202, "{:?}", reply.body);
    reply.attempt("unknown");
    assert_eq!(reply.body["payable"], false);
    let (_, page) = stand.checkout_of(&stand.fresh).await;
    assert!(page.contains("data-stage=\"checking\"") && !offers(&page));
    stand.lift().await;
    stand.until_status(&stand.fresh, "paid").await;
    assert_eq!(stand.charges(&stand.fresh.id), 1);
    stand.end().await;
}

async fn a_poll_tells_the_stored_truth(trouble: Trouble) {
    let stand = Stand::beside(trouble).await;
    for _ in 0..5 {
        let reply = stand.poll(&stand.unknown).await;
        assert_eq!((reply.status, &reply.body["payable"]), (200, &json!(false)));
        reply.attempt("unknown");
        assert_eq!(stand.poll(&stand.paid).await.body["status"], "paid");
        assert_eq!(stand.poll(&stand.fresh).await.body["payable"], true);
    }
    stand.lift().await;
    stand.end().await;
}

#[tokio::test]
async fn a_poll_tells_the_stored_truth_beside_a_silent_gateway() {
    a_poll_tells_the_stored_truth(Silent).await;
}

#[tokio::test]
async fn a_poll_tells_the_stored_truth_without_a_gateway() {
    a_poll_tells_the_stored_truth(Gone).await;
}

#[tokio::test]
async fn a_poll_tells_the_stored_truth_beside_a_gateway_that_garbles() {
    a_poll_tells_the_stored_truth(Garbles).await;
}

async fn a_webhook_is_stored_and_only_hints(trouble: Trouble) {
    let stand = Stand::beside(trouble).await;
    let key = stand.unknown_key();
    assert_eq!(stand.hook("hint", &stand.unknown, &key).await, 200);
    assert_eq!(stand.hook("hint", &stand.unknown, &key).await, 200);
    let counted =
        |result: &str| format!("webhook_events_total{{gateway=\"toss\",result=\"{result}\"}}");
    stand.until_metric(&counted("applied"), 1.0).await;
    assert_eq!(stand.metric(&counted("stored")).await, 1.0);
    assert_eq!(stand.metric(&counted("duplicate")).await, 1.0);
    // It says DONE, and nothing is paid by its word.
    stand.poll(&stand.unknown).await.attempt("unknown");
    stand.lift().await;
    stand.end().await;
}

#[tokio::test]
async fn a_webhook_is_stored_and_only_hints_beside_a_silent_gateway() {
    a_webhook_is_stored_and_only_hints(Silent).await;
}

#[tokio::test]
async fn a_webhook_is_stored_and_only_hints_without_a_gateway() {
    a_webhook_is_stored_and_only_hints(Gone).await;
}

#[tokio::test]
async fn a_webhook_is_stored_and_only_hints_beside_a_gateway_that_garbles() {
    a_webhook_is_stored_and_only_hints(Garbles).await;
}

async fn the_history_shows_doubt_as_doubt(trouble: Trouble) {
    let stand = Stand::beside(trouble).await;
    let (status, page) = stand.page("/orders").await;
    assert_eq!(status, 200);
    let count = |text: &str| page.matches(text).count();
    assert_eq!(count("data-testid=\"order-row\""), 3);
    for state in ["paid", "checking", "offer"] {
        assert_eq!(count(&format!("data-status=\"{state}\"")), 1, "{state}");
    }
    let request = stand
        .get(&format!("/orders/{}", stand.unknown.id))
        .header(COOKIE, &stand.unknown.cookie);
    let page = request.send().await.unwrap().text().await.unwrap();
    assert!(page.contains("data-status=\"checking\"") && !offers(&page));
    stand.lift().await;
    stand.end().await;
}

#[tokio::test]
async fn the_history_shows_doubt_as_doubt_beside_a_silent_gateway() {
    the_history_shows_doubt_as_doubt(Silent).await;
}

#[tokio::test]
async fn the_history_shows_doubt_as_doubt_without_a_gateway() {
    the_history_shows_doubt_as_doubt(Gone).await;
}

#[tokio::test]
async fn the_history_shows_doubt_as_doubt_beside_a_gateway_that_garbles() {
    the_history_shows_doubt_as_doubt(Garbles).await;
}

/// Twenty payments in doubt, each due to be asked about.
async fn twenty_in_doubt(shop: &Shop) -> Vec<crate::shop::Order> {
    shop.set(quiet(
        json!({"operations": ["confirm", "get"], "loss": {"when": "after"}}),
    ))
    .await;
    let mut orders = Vec::new();
    for _ in 0..20 {
        let order = shop.order("mug", 1).await;
        shop.pay(&order).await.attempt("unknown");
        orders.push(order);
    }
    orders
}

#[tokio::test]
async fn recovery_asks_a_silent_gateway_in_its_own_places_only() {
    let shop = Shop::with(&ENV).await;
    let orders = twenty_in_doubt(&shop).await;
    shop.set(quiet(json!({"stop": true, "operations": ["get"]})))
        .await;
    let asking = "pg_in_flight{gateway=\"toss\",operation=\"inquire\"}";
    shop.until_metric(asking, 8.0).await;
    // All its places are taken, and a shopper pays as ever.
    let fresh = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&fresh).await.status, 200);
    assert!(shop.pg.ledger().peak_in_flight.get <= 8);
    for order in &orders {
        shop.poll(order).await.attempt("unknown");
    }
    shop.set(quiet(json!({}))).await;
    for order in &orders {
        shop.until_status(order, "paid").await;
    }
    shop.end().await;
}

#[tokio::test]
async fn recovery_asks_ever_more_rarely_without_a_gateway_and_at_once_when_it_is_back() {
    let shop = Shop::with(&ENV).await;
    let began = std::time::Instant::now();
    let orders = twenty_in_doubt(&shop).await;
    shop.pg.pause_listening().await;
    let inquiries = "pg_calls_total{gateway=\"toss\",operation=\"inquire\"";
    let asked = || async {
        let text = shop.metrics().await;
        let lines = text.lines().filter(|line| line.starts_with(inquiries));
        let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        counts.sum::<f64>()
    };
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    // Each at 1, 2, 4, 8 s and on, so about as often as the time can be halved, and one of them more often, to notice the
    // gateway's return. Once a tick each would be twice as many.
    let asked = asked().await;
    let spent = began.elapsed().as_secs_f64();
    let most = 20.0 * ((spent + 1.0).log2() + 2.0) + spent / 2.0 + 2.0;
    assert!(asked <= most, "{asked} questions in {spent} s");
    for order in &orders {
        shop.poll(order).await.attempt("unknown");
    }
    shop.set(quiet(json!({}))).await;
    shop.pg.resume_listening().await.unwrap();
    for order in &orders {
        shop.until_status(order, "paid").await;
    }
    shop.end().await;
}

#[tokio::test]
async fn recovery_never_lets_doubt_grow_into_failure_while_a_gateway_garbles() {
    let soon = [
        ("JARI_PG_CONFIRM_WINDOW_MS", "300"),
        ("JARI_PG_TIMEOUT_MS", "900"),
        ("JARI_DATABASE_WAIT_MS", "300"),
        ("JARI_RESEND", "off"),
        ("JARI_CIRCUIT", "off"),
    ];
    let stand = Stand::in_shop(Shop::with(&soon).await).await;
    stand.strike(Garbles).await;
    let before = stand.pg.ledger().calls.get.received;
    // "Not found" would count by now; a page of HTML does not, however often it comes.
    stand
        .until_ledger(|ledger| ledger.calls.get.received >= before + 6)
        .await;
    let state = stand.poll(&stand.unknown).await;
    state.attempt("unknown");
    assert_eq!(state.body["payable"], false);
    stand.lift().await;
    stand.end().await;
}

//! A database that is held or silent for a while, beside every part of the shop: on SQLite another program has the write
//! lock, on PostgreSQL a table is locked or nothing comes through.

use std::time::Duration;

use serde_json::json;

use super::{Stand, offers, quiet, says_nothing_of_orders};
use crate::beside::Beside;
use crate::shop::Shop;

const ENV: [(&str, &str); 4] = [
    ("JARI_DATABASE_WAIT_MS", "700"),
    ("JARI_PG_TIMEOUT_MS", "4000"),
    ("JARI_RESEND", "off"),
    ("JARI_CIRCUIT", "off"),
];

async fn sqlite() -> Stand {
    Stand::in_shop(Shop::with(&ENV).await).await
}

async fn postgres() -> Stand {
    Stand::in_shop(Shop::on_postgres(&ENV).await).await
}

impl Stand {
    async fn held(&self) -> Beside {
        let mut beside = Beside::of(self).await;
        beside.hold().await;
        beside
    }

    /// Free again, what was in doubt becomes known.
    async fn freed(&self, mut beside: Beside) {
        beside.let_go().await;
        self.set(quiet(json!({}))).await;
        self.until_status(&self.unknown, "paid").await;
    }
}

/// A page either is what it would be, or an apology that offers nothing.
fn true_or_an_apology((status, page): (u16, String), stage: &str) {
    match status {
        200 => assert!(page.contains(stage), "{page}"),
        503 => assert!(!offers(&page) && page.contains("refresh"), "{page}"),
        status => panic!("{status}: {page}"),
    }
}

async fn the_checkout_page_is_slower_or_apologizes(stand: Stand) {
    let beside = stand.held().await;
    let checking = "data-stage=\"checking\"";
    true_or_an_apology(stand.checkout_of(&stand.unknown).await, checking);
    true_or_an_apology(stand.checkout_of(&stand.fresh).await, "data-testid=\"pay\"");
    // Held for less than the wait, it is only slower.
    let releasing = async {
        tokio::time::sleep(Duration::from_millis(200)).await;
        stand.freed(beside).await;
    };
    let (page, ()) = tokio::join!(stand.checkout_of(&stand.paid), releasing);
    true_or_an_apology(page, "data-stage=\"paid\"");
    let (status, page) = stand.checkout_of(&stand.paid).await;
    assert!(status == 200 && page.contains("data-stage=\"paid\""));
    stand.end().await;
}

#[tokio::test]
async fn the_checkout_page_is_slower_or_apologizes_beside_a_held_database() {
    the_checkout_page_is_slower_or_apologizes(sqlite().await).await;
}

#[tokio::test]
async fn so_it_is_on_postgres() {
    the_checkout_page_is_slower_or_apologizes(postgres().await).await;
}

async fn a_poll_tells_the_truth_or_nothing(stand: Stand) {
    let beside = stand.held().await;
    for _ in 0..4 {
        let reply = stand.poll(&stand.unknown).await;
        if reply.status == 200 {
            reply.attempt("unknown");
            assert_eq!(reply.body["payable"], false);
        } else {
            says_nothing_of_orders(&reply);
        }
    }
    stand.freed(beside).await;
    stand.end().await;
}

#[tokio::test]
async fn a_poll_tells_the_truth_or_nothing_beside_a_held_database() {
    a_poll_tells_the_truth_or_nothing(sqlite().await).await;
}

#[tokio::test]
async fn so_it_tells_on_postgres() {
    a_poll_tells_the_truth_or_nothing(postgres().await).await;
}

async fn a_webhook_is_stored_or_refused_so_that_it_comes_again(stand: Stand) {
    let key = stand.unknown_key();
    let beside = stand.held().await;
    assert_eq!(stand.hook("held", &stand.unknown, &key).await, 503);
    let stored = "webhook_events_total{gateway=\"toss\",result=\"stored\"}";
    assert_eq!(stand.metric(stored).await, 0.0);
    stand.freed(beside).await;
    // Sent again it is new, and once more it is not.
    assert_eq!(stand.hook("held", &stand.unknown, &key).await, 200);
    assert_eq!(stand.hook("held", &stand.unknown, &key).await, 200);
    assert_eq!(stand.metric(stored).await, 1.0);
    stand.end().await;
}

#[tokio::test]
async fn a_webhook_is_refused_by_a_held_database_so_that_it_comes_again() {
    a_webhook_is_stored_or_refused_so_that_it_comes_again(sqlite().await).await;
}

#[tokio::test]
async fn so_it_is_refused_on_postgres() {
    a_webhook_is_stored_or_refused_so_that_it_comes_again(postgres().await).await;
}

async fn the_history_is_true_or_apologizes(stand: Stand) {
    let beside = stand.held().await;
    true_or_an_apology(stand.page("/orders").await, "data-status=\"checking\"");
    stand.freed(beside).await;
    let (status, page) = stand.page("/orders").await;
    assert!(status == 200 && page.contains("data-testid=\"order-row\""));
    stand.end().await;
}

#[tokio::test]
async fn the_history_is_true_or_apologizes_beside_a_held_database() {
    the_history_is_true_or_apologizes(sqlite().await).await;
}

#[tokio::test]
async fn so_the_history_is_on_postgres() {
    the_history_is_true_or_apologizes(postgres().await).await;
}

async fn recovery_pauses_and_goes_on(stand: Stand) {
    let beside = stand.held().await;
    stand.set(quiet(json!({}))).await;
    // Whatever it learns, it cannot record; nobody is told anything else meanwhile.
    let mut answered = 0;
    while answered < 3 {
        let reply = stand.poll(&stand.unknown).await;
        assert_ne!(reply.body["payable"], true);
        assert_ne!(reply.body["status"], "paid");
        answered += 1;
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
    stand.freed(beside).await;
    assert_eq!(stand.confirms(), 2);
    stand.end().await;
}

#[tokio::test]
async fn recovery_pauses_beside_a_held_database_and_goes_on_when_it_is_free() {
    recovery_pauses_and_goes_on(sqlite().await).await;
}

#[tokio::test]
async fn so_recovery_does_on_postgres() {
    recovery_pauses_and_goes_on(postgres().await).await;
}

//! A database that is gone, or from which nothing comes, beside every part of the shop: PostgreSQL behind a way that is
//! cut or frozen, and an SQLite file whose tables are not there.

use serde_json::json;

use super::{Stand, offers, quiet, says_nothing_of_orders};
use crate::beside::Beside;
use crate::link::Link;
use crate::shop::{Reply, Shop};

const ENV: [(&str, &str); 5] = [
    ("JARI_DATABASE_WAIT_MS", "700"),
    ("JARI_PG_TIMEOUT_MS", "4000"),
    ("JARI_NODE_LEASE_MS", "30000"),
    ("JARI_RESEND", "off"),
    ("JARI_CIRCUIT", "off"),
];

/// How the database went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gone {
    Cut,
    Frozen,
    Broken,
}

/// A stand, and what stands between it and its database.
struct Down {
    stand: Stand,
    how: Gone,
    link: Option<Link>,
}

const TABLES: [&str; 4] = ["orders", "attempts", "products", "webhooks"];

impl Down {
    async fn prepare(how: Gone) -> Self {
        let (shop, link) = if how == Gone::Broken {
            (Shop::with(&ENV).await, None)
        } else {
            let (shop, link) = Shop::on_postgres_behind(&ENV).await;
            (shop, Some(link))
        };
        let stand = Stand::in_shop(shop).await;
        Self { stand, how, link }
    }

    async fn strike(&mut self) {
        match (self.how, &mut self.link) {
            (Gone::Cut, Some(link)) => link.cut().await,
            (Gone::Frozen, Some(link)) => link.freeze(),
            _ => self.rename("", "_gone").await,
        }
    }

    async fn lift(&mut self) {
        match &mut self.link {
            Some(link) => link.mend(),
            None => self.rename("_gone", "").await,
        }
        self.stand.set(quiet(json!({}))).await;
        self.stand.until_well(&self.stand.unknown).await;
    }

    async fn rename(&self, from: &str, to: &str) {
        let mut beside = Beside::of(&self.stand).await;
        for table in TABLES {
            let sql = format!("ALTER TABLE {table}{from} RENAME TO {table}{to}");
            beside.run(&sql).await;
        }
    }

    /// A refusal that proves nothing about any order.
    #[track_caller]
    fn refused(&self, reply: &Reply) {
        if self.how == Gone::Broken && reply.status == 500 {
            assert_eq!(reply.code(), "internal", "{:?}", reply.body);
            assert_eq!(reply.body["reach"], json!(null));
        } else {
            says_nothing_of_orders(reply);
        }
    }
}

impl Stand {
    /// Polls through whatever the database still does until the order is paid.
    async fn until_well(&self, order: &crate::shop::Order) {
        let began = std::time::Instant::now();
        loop {
            let reply = self.poll(order).await;
            if reply.body["status"] == "paid" {
                return;
            }
            assert_ne!(reply.body["payable"], true, "{:?}", reply.body);
            assert!(began.elapsed().as_secs() < 60, "{:?}", reply.body);
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    }
}

async fn pages_apologize_and_offer_nothing(how: Gone) {
    let mut down = Down::prepare(how).await;
    down.strike().await;
    let stand = &down.stand;
    for order in [&stand.fresh, &stand.unknown, &stand.paid] {
        let (status, page) = stand.checkout_of(order).await;
        assert_eq!(status, 503, "{page}");
        assert!(!offers(&page) && page.contains("refresh"), "{page}");
    }
    let (status, page) = stand.page("/orders").await;
    assert_eq!(status, 503, "{page}");
    assert!(!page.contains("order-row"), "{page}");
    let ready = stand.get("/readyz").send().await.unwrap().status();
    assert!(how == Gone::Broken || ready == 503, "{ready}");
    assert_eq!(stand.get("/healthz").send().await.unwrap().status(), 200);
    down.lift().await;
    let (status, page) = down.stand.checkout_of(&down.stand.paid).await;
    assert!(status == 200 && page.contains("data-stage=\"paid\""));
    down.stand.end().await;
}

#[tokio::test]
async fn pages_apologize_and_offer_nothing_without_a_database() {
    pages_apologize_and_offer_nothing(Gone::Cut).await;
}

#[tokio::test]
async fn pages_apologize_and_offer_nothing_when_nothing_comes_from_the_database() {
    pages_apologize_and_offer_nothing(Gone::Frozen).await;
}

#[tokio::test]
async fn pages_apologize_and_offer_nothing_over_a_broken_file() {
    pages_apologize_and_offer_nothing(Gone::Broken).await;
}

async fn a_confirm_is_refused_before_anything_is_sent(how: Gone) {
    let mut down = Down::prepare(how).await;
    let sent = down.stand.confirms();
    down.strike().await;
    let stand = &down.stand;
    let key = stand.key(&stand.fresh.id, stand.fresh.amount);
    for _ in 0..3 {
        let reply = stand.confirm(&stand.fresh, &key).await;
        down.refused(&reply);
    }
    assert_eq!(stand.confirms(), sent);
    down.lift().await;
    let stand = &down.stand;
    let fresh = &stand.fresh;
    // A claim whose commit's answer was lost on the way is asked about first; all else can be paid at once.
    let state = stand
        .until(fresh, |body| {
            body["payable"] == true || body["status"] == "paid"
        })
        .await;
    if state.body["payable"] == true {
        assert_eq!(stand.confirm(fresh, &key).await.status, 200);
    }
    assert_eq!(stand.charges(&fresh.id), 1);
    down.stand.end().await;
}

#[tokio::test]
async fn a_confirm_without_a_database_is_refused_before_anything_is_sent() {
    a_confirm_is_refused_before_anything_is_sent(Gone::Cut).await;
}

#[tokio::test]
async fn a_confirm_is_refused_when_nothing_comes_from_the_database() {
    a_confirm_is_refused_before_anything_is_sent(Gone::Frozen).await;
}

#[tokio::test]
async fn a_confirm_over_a_broken_file_is_refused_before_anything_is_sent() {
    a_confirm_is_refused_before_anything_is_sent(Gone::Broken).await;
}

/// The gateway answers while there is no database: the answer is kept until it can be written.
async fn an_answer_waits_for_the_database(how: Gone, dies: bool) {
    let mut down = Down::prepare(how).await;
    down.stand.set(quiet(json!({"delayMs": 1_500}))).await;
    let order = down.stand.fresh.clone();
    let key = down.stand.key(&order.id, order.amount);
    let paying = down.stand.start_pay(&order, &key);
    down.stand
        .until_ledger(|ledger| {
            ledger
                .orders
                .get(&order.id)
                .is_some_and(|of| of.confirms == 1)
        })
        .await;
    down.strike().await;
    down.stand
        .until_ledger(|ledger| ledger.orders[&order.id].charges == 1)
        .await;
    if dies {
        down.stand.shop.kill();
        assert!(paying.await.unwrap().is_none());
        if let Some(link) = &mut down.link {
            link.mend();
        } else {
            down.rename("_gone", "").await;
        }
        down.stand.set(quiet(json!({}))).await;
        down.stand.shop.restart().await;
        down.stand.until_well(&order).await;
    } else {
        let reply = down.stand.poll(&order).await;
        assert!(reply.body["payable"] != true, "{:?}", reply.body);
        down.lift().await;
        down.stand.until_well(&order).await;
        let reply = paying.await.unwrap().expect("an answer");
        assert!(matches!(reply.status, 200 | 202), "{:?}", reply.body);
    }
    let booked = &down.stand.pg.ledger().orders[&order.id];
    assert_eq!((booked.confirms, booked.charges), (1, 1));
    down.stand.end().await;
}

#[tokio::test]
async fn an_answer_that_meets_no_database_is_written_when_it_is_back() {
    an_answer_waits_for_the_database(Gone::Cut, false).await;
}

#[tokio::test]
async fn an_answer_that_meets_a_silent_database_is_written_when_it_speaks() {
    an_answer_waits_for_the_database(Gone::Frozen, false).await;
}

#[tokio::test]
async fn an_answer_that_meets_a_broken_file_is_written_when_it_is_whole() {
    an_answer_waits_for_the_database(Gone::Broken, false).await;
}

#[tokio::test]
async fn an_answer_that_met_no_database_and_died_with_its_process_is_found_by_asking() {
    an_answer_waits_for_the_database(Gone::Cut, true).await;
}

#[tokio::test]
async fn an_answer_that_met_a_broken_file_and_died_with_its_process_is_found_by_asking() {
    an_answer_waits_for_the_database(Gone::Broken, true).await;
}

async fn polls_and_webhooks_are_refused(how: Gone) {
    let mut down = Down::prepare(how).await;
    let key = down.stand.unknown_key();
    down.strike().await;
    let stand = &down.stand;
    for _ in 0..3 {
        for order in [&stand.unknown, &stand.fresh] {
            let reply = stand.poll(order).await;
            // From memory while that is believed; afterwards no word.
            if reply.status == 200 {
                let known = &reply.body["attempt"];
                assert!(known["status"] == "unknown" || known == &json!(null));
            } else {
                down.refused(&reply);
            }
        }
    }
    let status = stand.hook("down", &stand.unknown, &key).await;
    assert!(matches!(status, 500 | 503), "{status}");
    down.lift().await;
    // The gateway sends it again.
    assert_eq!(
        down.stand.hook("down", &down.stand.unknown, &key).await,
        200
    );
    down.stand.end().await;
}

#[tokio::test]
async fn polls_and_webhooks_are_refused_without_a_database() {
    polls_and_webhooks_are_refused(Gone::Cut).await;
}

#[tokio::test]
async fn polls_and_webhooks_are_refused_when_nothing_comes_from_the_database() {
    polls_and_webhooks_are_refused(Gone::Frozen).await;
}

#[tokio::test]
async fn polls_and_webhooks_are_refused_over_a_broken_file() {
    polls_and_webhooks_are_refused(Gone::Broken).await;
}

async fn recovery_pauses_and_goes_on(how: Gone) {
    let mut down = Down::prepare(how).await;
    down.strike().await;
    down.stand.set(quiet(json!({}))).await;
    // Long enough for several looks that cannot be recorded.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let asked = down.stand.pg.ledger().calls.get.received;
    assert!(
        asked <= 10,
        "{asked} questions whose answers nobody can write"
    );
    down.lift().await;
    assert_eq!(down.stand.confirms(), 2);
    down.stand.end().await;
}

#[tokio::test]
async fn recovery_pauses_without_a_database_and_goes_on() {
    recovery_pauses_and_goes_on(Gone::Cut).await;
}

#[tokio::test]
async fn recovery_pauses_when_nothing_comes_from_the_database_and_goes_on() {
    recovery_pauses_and_goes_on(Gone::Frozen).await;
}

#[tokio::test]
async fn recovery_pauses_over_a_broken_file_and_goes_on() {
    recovery_pauses_and_goes_on(Gone::Broken).await;
}

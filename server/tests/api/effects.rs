//! What an outcome causes outside: each mail once, whole, and never in a payment's way.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use tempfile::TempDir;

use crate::books;
use crate::node::PATIENCE;
use crate::shop::{Order, Shop};

const DONE: &str = "outbox_effects_total{kind=\"order_paid\",result=\"done\"}";
const FAILED: &str = "outbox_effects_total{kind=\"order_paid\",result=\"failed\"}";

/// A folder that mails are written to.
pub(crate) struct Folder {
    path: String,
    /// Gone when this is.
    _parent: TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let parent = tempfile::tempdir().expect("a folder");
        Self {
            path: parent.path().join("mail").display().to_string(),
            _parent: parent,
        }
    }

    /// The setting that makes a shop write here.
    pub(crate) fn setting(&self) -> (&str, &str) {
        ("JARI_MAIL_DIR", &self.path)
    }

    fn path(&self) -> &Path {
        Path::new(&self.path)
    }

    /// All that is in it, by name; what is not whole yet begins with a dot.
    fn files(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.path()) else {
            return Vec::new();
        };
        let files = entries.map(|entry| entry.expect("an entry").path());
        let mut files: Vec<_> = files.collect();
        files.sort();
        files
    }

    fn names(&self) -> Vec<String> {
        let names = self.files().into_iter().map(|path| {
            let name = path.file_name().expect("a name");
            name.to_string_lossy().into_owned()
        });
        names.filter(|name| !name.starts_with('.')).collect()
    }
}

/// The mails about an order, once nothing of it is to be done any more.
pub(crate) async fn mails(folder: &Folder, order: &Order) -> Vec<String> {
    let names = folder.names();
    let of_order = names.into_iter().filter(|name| name.starts_with(&order.id));
    let texts = of_order.map(|name| std::fs::read_to_string(folder.path().join(name)));
    texts.map(|text| text.expect("a text")).collect()
}

/// Waits until nothing is left to be done.
async fn until_done(shop: &Shop) {
    let started = Instant::now();
    loop {
        let left = books::waiting(&shop.database()).await;
        if left == 0 {
            return;
        }
        assert!(started.elapsed() < PATIENCE * 2, "{left} are not done");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The headers of a mail, unfolded, and its body as it stands.
fn parts(mail: &str) -> (Vec<(String, String)>, String) {
    let (head, body) = mail.split_once("\r\n\r\n").expect("a head and a body");
    let unfolded = head.replace("\r\n ", " ").replace("\r\n\t", " ");
    let headers = unfolded.split("\r\n").map(|line| {
        let (name, value) = line.split_once(':').expect("a name and a value");
        (name.to_lowercase(), value.trim().to_owned())
    });
    (headers.collect(), body.to_owned())
}

#[tokio::test]
async fn a_receipt_is_a_mail_in_the_shoppers_language_without_the_payments_key() {
    let folder = Folder::new();
    let shop = Shop::with(&[folder.setting()]).await;
    for (language, sentence) in [("en-GB", "Thank you for your order"), ("ko", "")] {
        let items = json!([{"sku": "mug", "quantity": 2}]);
        let order = shop.order_of(&items, language).await;
        let key = shop.key(&order.id, order.amount);
        assert_eq!(shop.confirm(&order, &key).await.status, 200);
        shop.until_told(&order, &["order_paid"]).await;
        let mails = mails(&folder, &order).await;
        let [mail] = &mails[..] else {
            panic!("{mails:?}");
        };
        let (headers, body) = parts(mail);
        let header = |name: &str| {
            let mut found = headers.iter().filter(|(known, _)| known == name);
            let value = found.next().map(|(_, value)| value.clone());
            assert!(found.next().is_none(), "two of {name}");
            value.unwrap_or_default()
        };
        for name in [
            "from",
            "to",
            "date",
            "subject",
            "message-id",
            "mime-version",
        ] {
            assert!(!header(name).is_empty(), "no {name}: {mail}");
        }
        assert!(header("message-id").contains(&order.id), "{mail}");
        assert!(mail.is_ascii() || header("content-transfer-encoding") == "8bit");
        assert!(body.contains(sentence), "{mail}");
        assert!(
            !mail.contains(&key),
            "the payment's key is nobody's business"
        );
    }
    let told = books::told(&shop.database()).await;
    let body: Value = serde_json::from_str(&told[0].2).unwrap();
    assert_eq!(
        (&body["event"], &body["amount"], &body["currency"]),
        (&json!("order_paid"), &json!(36_000), &json!("KRW"))
    );
    assert_eq!(
        (&body["orderId"], &body["attempt"]),
        (&json!(told[0].0), &json!(1))
    );
    assert_eq!(shop.metric(DONE).await, 2.0);
    shop.end().await;
}

#[tokio::test]
async fn each_step_of_the_money_is_one_mail() {
    let folder = Folder::new();
    let shop = Shop::with(&[folder.setting()]).await;
    let order = shop.order("mug", 1).await;
    let key = shop.key(&order.id, order.amount);
    assert_eq!(shop.confirm(&order, &key).await.status, 200);
    for (amount, status) in [(Some(5_000), "partially_canceled"), (None, "canceled")] {
        let mut body = json!({"cancelReason": "at the desk"});
        if let Some(amount) = amount {
            body["cancelAmount"] = json!(amount);
        }
        let cancel = shop
            .client
            .post(format!("{}/v1/payments/{key}/cancel", shop.pg.url()))
            .basic_auth("test_sk_fake", Some(""))
            .json(&body);
        assert_eq!(cancel.send().await.unwrap().status(), 200);
        shop.until_status(&order, status).await;
    }
    let all = ["order_paid", "order_partially_canceled", "order_canceled"];
    shop.until_told(&order, &all).await;
    assert_eq!(mails(&folder, &order).await.len(), 3);
    shop.end().await;
}

#[tokio::test]
async fn without_a_folder_no_mail_is_written_and_the_shops_systems_are_told() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&order).await.status, 200);
    shop.until_told(&order, &["order_paid"]).await;
    shop.until_metric("outbox_waiting", 0.0).await;
    assert_eq!(shop.metric("outbox_oldest_seconds").await, 0.0);
    shop.end().await;
}

#[tokio::test]
async fn a_folder_that_cannot_be_written_holds_up_neither_payments_nor_what_is_told() {
    let folder = Folder::new();
    std::fs::write(folder.path(), "a file stands where the folder should be").unwrap();
    let shop = Shop::with(&[folder.setting()]).await;
    let order = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&order).await.status, 200);
    shop.until_told(&order, &["order_paid"]).await;
    shop.until_metric("outbox_waiting", 1.0).await;
    assert!(shop.metric(FAILED).await >= 1.0);
    assert_eq!(shop.metric(DONE).await, 0.0);
    let other = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&other).await.status, 200);
    shop.until_told(&other, &["order_paid"]).await;
    std::fs::remove_file(folder.path()).unwrap();
    until_done(&shop).await;
    assert_eq!(folder.names().len(), 2);
    for order in [&order, &other] {
        shop.until_told(order, &["order_paid"]).await;
    }
    shop.end().await;
}

#[tokio::test]
async fn a_server_killed_after_a_mail_and_before_it_said_so_writes_no_second_one() {
    let folder = Folder::new();
    let mut shop = Shop::on_postgres(&[folder.setting()]).await;
    // Nothing can be ended while somebody holds the table that ending writes to.
    let mut beside = PgConnection::connect(&shop.database()).await.unwrap();
    let mut held = beside.begin().await.unwrap();
    let lock = "LOCK TABLE notifications IN EXCLUSIVE MODE";
    sqlx::query(lock).execute(&mut *held).await.unwrap();
    let order = shop.order("mug", 1).await;
    assert_eq!(shop.pay(&order).await.status, 200);
    let started = Instant::now();
    while folder.names().is_empty() {
        assert!(started.elapsed() < PATIENCE, "no mail");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    shop.kill();
    let first = mails(&folder, &order).await;
    held.rollback().await.unwrap();
    assert_eq!(
        books::waiting(&shop.database()).await,
        1,
        "it never said so"
    );
    // Whatever took the mail away to send it must not find another.
    shop.restart().await;
    until_done(&shop).await;
    assert_eq!(mails(&folder, &order).await, first);
    assert_eq!(folder.files().len(), 1, "no part is left");
    shop.until_told(&order, &["order_paid"]).await;
    shop.end().await;
}

#[tokio::test]
async fn a_server_killed_at_any_moment_of_its_side_effects_does_each_once() {
    let folder = Folder::new();
    let mut shop = Shop::with(&[folder.setting(), ("JARI_DATABASE_WAIT_MS", "1000")]).await;
    let mut orders = Vec::new();
    // At least ten times, and until it was caught three times between a mail and saying so.
    let (mut kills, mut caught) = (0, 0);
    while kills < 10 || caught < 3 {
        assert!(kills < 60, "caught {caught} times only");
        let written = folder.names().len();
        let mut paying = Vec::new();
        for _ in 0..4 {
            let order = shop.order("mug", 1).await;
            paying.push(shop.start_pay(&order, &shop.key(&order.id, order.amount)));
            orders.push(order);
        }
        for reply in paying {
            assert_eq!(reply.await.unwrap().expect("an answer").status, 200);
        }
        // As it begins to write this batch, or a little later.
        let started = Instant::now();
        while folder.names().len() == written {
            assert!(started.elapsed() < PATIENCE, "no mail");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_millis(kills % 4 * 3)).await;
        shop.kill();
        let ended = books::told(&shop.database()).await.len();
        caught += u32::from(folder.names().len() > ended);
        kills += 1;
        shop.restart().await;
    }
    until_done(&shop).await;
    assert_eq!(folder.names().len(), orders.len());
    let told = books::told(&shop.database()).await;
    assert_eq!(told.len(), orders.len());
    for order in &orders {
        assert_eq!(mails(&folder, order).await.len(), 1);
        shop.until_told(order, &["order_paid"]).await;
    }
    shop.end().await;
}

#[tokio::test]
async fn two_nodes_share_one_outbox_and_each_mail_is_written_once() {
    let folder = Folder::new();
    let shop = Shop::on_postgres(&[folder.setting()]).await;
    let other = shop.another_node().await;
    let places = "pg_places{gateway=\"toss\",operation=\"confirm\"}";
    shop.until_metric(places, 20.0).await;
    other.until_metric(places, 20.0).await;
    let mut paying = Vec::new();
    for n in 0..40 {
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        let node = if n % 2 == 0 { &*shop } else { &other };
        paying.push(node.start_pay(&order, &key));
        if paying.len() == 8 {
            for reply in paying.drain(..) {
                assert_eq!(reply.await.unwrap().expect("an answer").status, 200);
            }
        }
    }
    until_done(&shop).await;
    let told = books::told(&shop.database()).await;
    assert_eq!((folder.names().len(), told.len()), (40, 40));
    assert_eq!(folder.files().len(), 40, "no part is left");
    let done = async |node: &crate::shop::Node| node.metric(DONE).await;
    let started = Instant::now();
    while (done(&shop).await + done(&other).await - 40.0).abs() > 1e-9 {
        assert!(started.elapsed() < PATIENCE, "some were done twice");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    shop.end().await;
}

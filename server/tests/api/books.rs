//! Our own books, whichever database keeps them, held against the gateway's ledger.

use fakepg::ledger::Ledger;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Connection as _, FromRow, PgConnection, SqliteConnection};

enum Books {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Books {
    async fn open(url: &str) -> Self {
        if url.starts_with("sqlite:") {
            let db = SqliteConnection::connect(url).await;
            return Self::Sqlite(db.expect("the database"));
        }
        let db = PgConnection::connect(url).await;
        Self::Postgres(db.expect("the database"))
    }

    async fn change(&mut self, sql: &'static str) {
        let changed = match self {
            Self::Sqlite(db) => sqlx::query(sql).execute(db).await.map(drop),
            Self::Postgres(db) => sqlx::query(sql).execute(db).await.map(drop),
        };
        changed.expect("changed");
    }

    async fn rows<T>(&mut self, sql: &'static str) -> Vec<T>
    where
        T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        let rows = match self {
            Self::Sqlite(db) => sqlx::query_as(sql).fetch_all(db).await,
            Self::Postgres(db) => sqlx::query_as(sql).fetch_all(db).await,
        };
        rows.expect("rows")
    }
}

/// What the shop's own systems were told: of which order, what, and the whole of it; in the order in which it happened.
pub(crate) async fn told(url: &str) -> Vec<(String, String, String)> {
    let mut books = Books::open(url).await;
    books
        .rows("SELECT order_id, kind, body FROM notifications ORDER BY seq")
        .await
}

/// An account of a refund as it is stored: bank, number, holder, and what may be seen of it.
pub(crate) type StoredAccount = (
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
);

/// What is stored of the accounts that refunds go to.
pub(crate) async fn refund_accounts(url: &str) -> Vec<StoredAccount> {
    let mut books = Books::open(url).await;
    books
        .rows("SELECT account_bank, account_number, account_holder, account_mark FROM refunds ORDER BY id")
        .await
}

/// How many side effects are not done.
pub(crate) async fn waiting(url: &str) -> i64 {
    let mut books = Books::open(url).await;
    let rows: Vec<(i64,)> = books
        .rows("SELECT count(*) FROM outbox WHERE done_at IS NULL")
        .await;
    rows[0].0
}

/// Runs one statement on our books.
pub(crate) async fn change(url: &str, sql: &'static str) {
    Books::open(url).await.change(sql).await;
}

/// The sources and the literal words of an order's evidence, oldest first.
pub(crate) async fn evidence(url: &str, order: &str) -> Vec<(String, String)> {
    let all: Vec<(String, String, String)> = Books::open(url)
        .await
        .rows("SELECT order_id, source, told FROM evidence ORDER BY id")
        .await;
    let of_order = all.into_iter().filter(|(id, ..)| id == order);
    of_order.map(|(_, source, told)| (source, told)).collect()
}

/// The side effects that were queued for an order, in their order: kind and payload.
pub(crate) async fn effects(url: &str, order: &str) -> Vec<(String, String)> {
    let mut books = Books::open(url).await;
    let all: Vec<(String, String, String)> = books
        .rows("SELECT order_id, kind, payload FROM outbox ORDER BY id")
        .await;
    let of_order = all.into_iter().filter(|(id, _, _)| id == order);
    of_order.map(|(_, kind, payload)| (kind, payload)).collect()
}

/// Asserts that what was given back of each charge is the same in our books and in the gateway's.
pub(crate) async fn check_balances(url: &str, ledger: &Ledger) {
    let mut books = Books::open(url).await;
    let charges: Vec<(String, i64)> = books
        .rows("SELECT payment_key, canceled_won FROM attempts WHERE charged_won IS NOT NULL")
        .await;
    assert!(!charges.is_empty());
    for (key, canceled) in &charges {
        let payment = &ledger.payments[key];
        let theirs = payment.total_amount - payment.balance_amount;
        assert_eq!(u64::try_from(*canceled).ok(), Some(theirs), "{key}");
    }
}

/// Asserts what must always hold of money and stock.
pub(crate) async fn check(url: &str, ledger: &Ledger) {
    for (id, order) in &ledger.orders {
        assert!(
            order.charges <= order.cancels + 1,
            "{id} was charged twice: {order:?}"
        );
    }
    let mut books = Books::open(url).await;
    let attempts: Vec<(String, String, String, String, String)> = books
        .rows(
            "SELECT gateway_order_id, payment_key, idempotency_key, status, reach FROM attempts \
             WHERE payment_key IS NOT NULL AND idempotency_key IS NOT NULL",
        )
        .await;
    for (order, key, idempotency_key, status, reach) in &attempts {
        assert!(
            reach != "not_sent" || !ledger.keys.contains_key(idempotency_key),
            "a send that was proven not sent is in the ledger"
        );
        let payment = ledger.payments.get(key);
        let is_charged = payment.is_some_and(|payment| payment.status == "DONE");
        let stands_elsewhere = attempts.iter().any(|(_, other, _, status, _)| {
            other == key && matches!(status.as_str(), "approved" | "unknown" | "approving")
        });
        assert!(
            status != "failed" || !is_charged || stands_elsewhere,
            "{order} is failed while the gateway holds its charge"
        );
    }
    // Refunds that are done are within what was given back, and none is reserved beyond the charge.
    let refunds: Vec<(String, i64, i64)> = books
        .rows(
            "SELECT a.payment_key, CAST(a.canceled_won - coalesce(sum(CASE WHEN r.state = 'done' THEN r.amount_won END), 0) \
             AS BIGINT), CAST(coalesce(a.charged_won, 0) - a.canceled_won - coalesce(sum(CASE WHEN r.state IN ('waiting', \
             'asked') THEN r.amount_won END), 0) AS BIGINT) \
             FROM attempts a JOIN refunds r ON r.attempt_id = a.id GROUP BY a.id, a.payment_key, a.canceled_won, a.charged_won",
        )
        .await;
    for (key, elsewhere, left) in refunds {
        assert!(
            elsewhere >= 0 && left >= 0,
            "the refunds of {key} are more than its money"
        );
    }
    let stock: Vec<(String, i64, i64)> = books
        .rows(
            "SELECT p.sku, CAST(p.reserved - coalesce(sum(CASE WHEN a.status IN ('approving', 'unknown', \
             'awaiting_deposit', 'mischarged') OR (a.status = 'cancel_requested' AND a.cancel_from = 'mischarged') \
             THEN l.quantity END), 0) AS BIGINT), \
             CAST(p.sold - coalesce(sum(CASE WHEN a.status IN ('approved', 'partially_canceled') OR (a.status = \
             'cancel_requested' AND a.cancel_from IN ('approved', 'partially_canceled')) THEN l.quantity END), 0) \
             AS BIGINT) \
             FROM products p LEFT JOIN order_lines l ON l.sku = p.sku LEFT JOIN attempts a ON a.order_id = l.order_id \
             GROUP BY p.sku",
        )
        .await;
    for (sku, reserved, sold) in stock {
        assert_eq!(
            (reserved, sold),
            (0, 0),
            "the stock of {sku} does not add up"
        );
    }
}

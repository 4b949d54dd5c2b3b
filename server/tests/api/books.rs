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

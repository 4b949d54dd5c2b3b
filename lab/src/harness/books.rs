//! The shop's own books: its database file, read once the server has ended.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{Connection as _, SqliteConnection};

/// Marks the webhooks that the lab sends itself, in their transmission ids.
pub(crate) const TRANSMISSION_PREFIX: &str = "lab-";

/// What the database holds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Books {
    /// The status of every order, by its id.
    pub(crate) orders: BTreeMap<String, String>,
    /// How many attempts there are in each status.
    pub(crate) attempts: BTreeMap<String, u64>,
    /// Attempts of which it is proven that no send reached the gateway.
    pub(crate) not_sent: u64,
    /// Attempts that were unknown at any time, by the evidence kept about them.
    pub(crate) ever_unknown: u64,
    /// Webhooks that the lab sent.
    pub(crate) lab_webhooks: u64,
    /// The first and the last moment of the evidence, in Unix ms.
    pub(crate) evidence_at: Option<(u64, u64)>,
}

impl Books {
    /// Reads a database file that no server has open.
    pub(crate) async fn read(file: &Path) -> anyhow::Result<Self> {
        let options = SqliteConnectOptions::new().filename(file).read_only(true);
        let mut db = SqliteConnection::connect_with(&options)
            .await
            .with_context(|| format!("opening {}", file.display()))?;
        let orders: Vec<(String, String)> = sqlx::query_as("SELECT id, status FROM orders")
            .fetch_all(&mut db)
            .await?;
        let attempts: Vec<(String, i64)> =
            sqlx::query_as("SELECT status, count(*) FROM attempts GROUP BY status")
                .fetch_all(&mut db)
                .await?;
        let (first, last): (Option<i64>, Option<i64>) =
            sqlx::query_as("SELECT min(at), max(at) FROM evidence")
                .fetch_one(&mut db)
                .await?;
        let unsigned = |(first, last): (i64, i64)| (first.unsigned_abs(), last.unsigned_abs());
        let books = Self {
            evidence_at: first.zip(last).map(unsigned),
            orders: orders.into_iter().collect(),
            attempts: attempts
                .into_iter()
                .map(|(status, count)| (status, count.unsigned_abs()))
                .collect(),
            not_sent: count(
                &mut db,
                "SELECT count(*) FROM attempts WHERE status = 'failed' AND reach = 'not_sent'",
                "",
            )
            .await?,
            ever_unknown: count(
                &mut db,
                "SELECT count(DISTINCT attempt_id) FROM evidence WHERE status = 'unknown'",
                "",
            )
            .await?,
            lab_webhooks: count(
                &mut db,
                "SELECT count(*) FROM webhooks WHERE transmission LIKE ?1 || '%'",
                TRANSMISSION_PREFIX,
            )
            .await?,
        };
        db.close().await?;
        Ok(books)
    }

    /// How many orders are in a status.
    pub(crate) fn orders_in(&self, status: &str) -> u64 {
        self.orders
            .values()
            .filter(|known| *known == status)
            .count() as u64
    }

    /// How many attempts are in a status.
    pub(crate) fn attempts_in(&self, status: &str) -> u64 {
        self.attempts.get(status).copied().unwrap_or(0)
    }
}

async fn count(db: &mut SqliteConnection, query: &'static str, bound: &str) -> anyhow::Result<u64> {
    let query = sqlx::query_scalar::<_, i64>(query);
    let count = if bound.is_empty() {
        query.fetch_one(db).await
    } else {
        query.bind(bound.to_owned()).fetch_one(db).await
    };
    Ok(count.context("counting rows")?.unsigned_abs())
}

//! The rows of either database, held against the gateway's ledger: what must always hold of money and stock.

use std::collections::BTreeMap;

use anyhow::Context as _;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{AssertSqlSafe, Connection as _, FromRow, PgConnection, SqliteConnection};

use super::gateway::Ledger;
use crate::plan::{Condition, Criterion, Findings};
use crate::verdict::Rule;

/// A connection to the shop's database.
#[derive(Debug)]
pub(crate) enum Rows {
    /// To a file.
    Sqlite(SqliteConnection),
    /// To a server.
    Postgres(PgConnection),
}

/// One attempt, as it is stored.
#[derive(Debug, Clone, FromRow)]
pub(crate) struct Attempt {
    id: i64,
    order_id: String,
    gateway_order_id: String,
    payment_key: Option<String>,
    idempotency_key: Option<String>,
    status: String,
    reach: String,
    canceled_won: i64,
}

/// Everything that is judged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth {
    /// The status of every order, by its id.
    pub(crate) orders: BTreeMap<String, String>,
    attempts: Vec<Attempt>,
    /// The idempotency keys of attempts in the middle of which a process died, as the next one found them.
    interrupted: Vec<String>,
    /// Stock whose books are wrong, in pieces.
    stock_off: i64,
    /// How many "paid" effects there are of each attempt.
    paid_effects: BTreeMap<i64, i64>,
    /// Webhooks by their state.
    pub(crate) webhooks: BTreeMap<String, u64>,
    /// The first and the last moment of the evidence, in Unix ms.
    pub(crate) evidence_at: Option<(u64, u64)>,
}

/// Of an order reserved or sold that is not in the attempts, or the other way round.
const STOCK_OFF: &str = "SELECT CAST(abs(p.reserved - coalesce(sum(CASE WHEN a.status IN ('approving', 'unknown', \
    'awaiting_deposit', 'mischarged') OR (a.status = 'cancel_requested' AND a.cancel_from = 'mischarged') \
    THEN l.quantity END), 0)) + abs(p.sold - coalesce(sum(CASE WHEN a.status IN ('approved', 'partially_canceled') \
    OR (a.status = 'cancel_requested' AND a.cancel_from IN ('approved', 'partially_canceled')) THEN l.quantity END), 0)) \
    AS BIGINT) FROM products p LEFT JOIN order_lines l ON l.sku = p.sku LEFT JOIN attempts a ON a.order_id = l.order_id \
    GROUP BY p.sku, p.reserved, p.sold";

impl Rows {
    /// Connects.
    pub(crate) async fn open(url: &str) -> anyhow::Result<Self> {
        if url.starts_with("sqlite:") {
            let db = SqliteConnection::connect(url).await;
            return Ok(Self::Sqlite(db.context("opening the database")?));
        }
        let db = PgConnection::connect(url).await;
        Ok(Self::Postgres(db.context("opening the database")?))
    }

    /// All rows of a statement.
    pub(crate) async fn all<T>(&mut self, sql: &str) -> anyhow::Result<Vec<T>>
    where
        T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        // Every statement is ours; some hold a time or a number of ours.
        let sql = AssertSqlSafe(sql.to_owned());
        let rows = match self {
            Self::Sqlite(db) => sqlx::query_as(sql).fetch_all(db).await,
            Self::Postgres(db) => sqlx::query_as(sql).fetch_all(db).await,
        };
        rows.context("reading rows")
    }

    /// The one number that a statement gives.
    pub(crate) async fn number(&mut self, sql: &str) -> anyhow::Result<u64> {
        let rows: Vec<(i64,)> = self.all(sql).await?;
        let row = rows.first().context("a statement without a row")?;
        Ok(u64::try_from(row.0).unwrap_or(0))
    }

    /// How many attempts are in progress or in doubt.
    pub(crate) async fn in_doubt(&mut self) -> anyhow::Result<u64> {
        self.number("SELECT count(*) FROM attempts WHERE status IN ('approving', 'unknown', 'mischarged', 'cancel_requested')")
            .await
    }

    /// Reads all that is judged.
    pub(crate) async fn truth(mut self) -> anyhow::Result<Truth> {
        let orders: Vec<(String, String)> = self.all("SELECT id, status FROM orders").await?;
        let attempts = "SELECT id, order_id, gateway_order_id, payment_key, idempotency_key, status, reach, canceled_won \
                        FROM attempts ORDER BY id";
        let attempts: Vec<Attempt> = self.all(attempts).await?;
        let interrupted = "SELECT DISTINCT a.idempotency_key FROM evidence e JOIN attempts a ON a.id = e.attempt_id \
                           WHERE e.event = 'interrupted' AND a.idempotency_key IS NOT NULL";
        let interrupted: Vec<(String,)> = self.all(interrupted).await?;
        let stock: Vec<(i64,)> = self.all(STOCK_OFF).await?;
        let effects =
            "SELECT attempt_id, count(*) FROM outbox WHERE kind = 'order_paid' GROUP BY attempt_id";
        let effects: Vec<(i64, i64)> = self.all(effects).await?;
        let webhooks: Vec<(String, i64)> = self
            .all("SELECT state, count(*) FROM webhooks GROUP BY state")
            .await?;
        let span: Vec<(Option<i64>, Option<i64>)> =
            self.all("SELECT min(at), max(at) FROM evidence").await?;
        let evidence_at = span.first().and_then(|(first, last)| first.zip(*last));
        Ok(Truth {
            evidence_at: evidence_at
                .map(|(first, last)| (first.unsigned_abs(), last.unsigned_abs())),
            orders: orders.into_iter().collect(),
            attempts,
            interrupted: interrupted.into_iter().map(|(key,)| key).collect(),
            stock_off: stock.into_iter().map(|(off,)| off).sum(),
            paid_effects: effects.into_iter().collect(),
            webhooks: counted(webhooks),
        })
    }
}

fn counted(rows: Vec<(String, i64)>) -> BTreeMap<String, u64> {
    let count = |(what, count): (String, i64)| (what, count.unsigned_abs());
    rows.into_iter().map(count).collect()
}

/// What must not be, and how many there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Breach {
    /// Names the criterion.
    pub(crate) id: &'static str,
    /// What is counted.
    pub(crate) says: &'static str,
    /// How many.
    pub(crate) count: u64,
}

impl Truth {
    /// The net charges of each order of the shop, over all its gateway order ids.
    pub(crate) fn net_charges(&self, ledger: &Ledger) -> BTreeMap<&str, i64> {
        let mut net = BTreeMap::new();
        let mut seen = std::collections::BTreeSet::new();
        for attempt in &self.attempts {
            if seen.insert(&attempt.gateway_order_id) {
                *net.entry(attempt.order_id.as_str()).or_default() +=
                    ledger.net_charges(&attempt.gateway_order_id);
            }
        }
        net
    }

    /// How many attempts a process claimed and died before the gateway ever got their send.
    pub(crate) fn claimed_and_never_sent(&self, ledger: &Ledger) -> u64 {
        let unseen = |key: &&String| !ledger.saw_key(key);
        self.interrupted.iter().filter(unseen).count() as u64
    }

    /// The attempts in each status.
    pub(crate) fn statuses(&self) -> BTreeMap<&str, u64> {
        let mut counts = BTreeMap::new();
        for attempt in &self.attempts {
            *counts.entry(attempt.status.as_str()).or_default() += 1;
        }
        counts
    }

    /// Everything that must not be, counted.
    pub(crate) fn breaches(&self, ledger: &Ledger) -> Vec<Breach> {
        let net = self.net_charges(ledger);
        let charged = |order: &str| net.get(order).copied().unwrap_or(0);
        let of_attempts = |wrong: &dyn Fn(&Attempt) -> bool| {
            self.attempts.iter().filter(|one| wrong(one)).count() as u64
        };
        let of_orders = |wrong: &dyn Fn(&str, &str) -> bool| {
            let orders = self.orders.iter();
            orders.filter(|(id, status)| wrong(id, status)).count() as u64
        };
        let breach = |id, says, count| Breach { id, says, count };
        vec![
            breach(
                "charged-twice",
                "orders with more than one charge that was not given back",
                of_orders(&|id, _| charged(id) > 1),
            ),
            breach(
                "charge-lost",
                "orders charged at the gateway and not paid in the shop",
                of_orders(&|id, status| {
                    charged(id) > 0 && !["paid", "partially_canceled"].contains(&status)
                }),
            ),
            breach(
                "charge-invented",
                "orders paid in the shop and not charged at the gateway",
                of_orders(&|id, status| {
                    ["paid", "partially_canceled"].contains(&status) && charged(id) < 1
                }),
            ),
            breach(
                "not-known",
                "attempts still in progress or in doubt",
                of_attempts(&|one| {
                    let open = ["approving", "unknown", "mischarged", "cancel_requested"];
                    open.contains(&one.status.as_str())
                }),
            ),
            breach(
                "failed-but-charged",
                "attempts failed or expired while the gateway holds their charge",
                of_attempts(&|one| self.is_charged_but_ended(one, ledger)),
            ),
            breach(
                "not-sent-but-sent",
                "attempts that were proven not sent, with a call in the gateway's ledger",
                of_attempts(&|one| {
                    let key = one.idempotency_key.as_deref();
                    one.reach == "not_sent" && key.is_some_and(|key| ledger.saw_key(key))
                }),
            ),
            breach(
                "stock-off",
                "pieces of stock reserved or sold for nobody, or for somebody and not counted",
                self.stock_off.unsigned_abs(),
            ),
            breach(
                "refunds-off",
                "gateway order ids whose refunds differ between shop and gateway",
                self.refunds_off(ledger),
            ),
            breach(
                "effects-off",
                "paid attempts without exactly one effect",
                of_attempts(&|one| {
                    let effects = self.paid_effects.get(&one.id).copied().unwrap_or(0);
                    effects > 1 || (one.status == "approved" && effects != 1)
                }),
            ),
        ]
    }

    /// Whether the charge of an attempt that has ended stands, and no other attempt of the order stands for it.
    fn is_charged_but_ended(&self, one: &Attempt, ledger: &Ledger) -> bool {
        let ended = ["failed", "expired"].contains(&one.status.as_str());
        let Some(key) = one.payment_key.as_deref().filter(|_| ended) else {
            return false;
        };
        let stands = |other: &Attempt| {
            other.payment_key.as_deref() == Some(key)
                && ["approved", "unknown", "approving"].contains(&other.status.as_str())
        };
        ledger.payment_is(key, "DONE") && !self.attempts.iter().any(stands)
    }

    fn refunds_off(&self, ledger: &Ledger) -> u64 {
        let mut refunds: BTreeMap<&str, i64> = BTreeMap::new();
        for attempt in &self.attempts {
            *refunds.entry(&attempt.gateway_order_id).or_default() += attempt.canceled_won;
        }
        let off = |(id, won): &(&&str, &i64)| ledger.canceled_won(id) != won.unsigned_abs();
        refunds.iter().filter(off).count() as u64
    }

    /// Notes everything that must not be as figures and as values of the criteria of one condition.
    pub(crate) fn judge(
        &self,
        condition_name: &str,
        ledger: &Ledger,
        condition: &mut Condition,
        findings: &mut Findings,
    ) {
        for breach in self.breaches(ledger) {
            condition.figure(breach.id, breach.count);
            let id = criterion_id(condition_name, breach.id);
            findings.measure(&id, breach.count as f64);
        }
        condition.figure("attempts", self.statuses());
        condition.figure("webhooks", &self.webhooks);
    }
}

fn criterion_id(condition: &str, id: &str) -> String {
    format!("{condition}: {id}")
}

/// The criteria that [`Truth::judge`] measures under a condition: none of what must not be.
pub(crate) fn criteria(condition: &str) -> Vec<Criterion> {
    let nothing = Truth::default().breaches(&Ledger::default());
    let none = Rule::exactly(0.0);
    let criterion = |breach: Breach| {
        let id = criterion_id(condition, breach.id);
        Criterion::new(condition, &id, breach.says, none)
    };
    nothing.into_iter().map(criterion).collect()
}

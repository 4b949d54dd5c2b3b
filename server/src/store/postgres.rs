//! The shared database: several nodes, each with pools of its own, and locks in place of SQLite's one writer.
//!
//! Transactions read what is committed at each statement, so whatever a decision rests on is locked before it is read, in
//! the order of [`Lock`]: an order, its attempts by id, the payment key, the stock by sku. Unique indexes and CHECKs judge
//! last. The server itself ends what waits or stands too long, so a node that stops cannot hold up the others.

use std::fmt::Write as _;
use std::str::FromStr as _;
use std::time::Duration;

use payment::time::Millis;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgRow, Postgres};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor};

use super::StoreError;
use super::sql::effects::take_effects;
use super::sql::engine::{
    Columns as _, Engine, Lock, Ran, Sql, Statement, Value, failed, fault, order_named,
    push_renumbered, run_statements, speak, values,
};
use super::sql::{SqlStore, pool};
use crate::clock::EpochMs;

/// The PostgreSQL store. Clones share its pools; each purpose has readers of its own, so that none can starve another.
pub type PostgresStore = SqlStore<Postgres>;

/// Most connections of a node that write. With its readers a node has 20, so four nodes fit into the 100 that a server
/// allows unless told otherwise.
const WRITERS: u32 = 12;
/// How long one statement may run.
const LONGEST_STATEMENT: Duration = Duration::from_secs(5);
/// How long a transaction may stand still with its locks: none waits for anything but the database.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// What is being done, for errors.
const LOCKING: &str = "waiting for a lock";
/// The advisory lock of the nodes' beats.
const NODES_LOCK: i64 = 0x6a61_7269;

impl SqlStore<Postgres> {
    /// Opens the database that `url` names (`postgres://…`) and migrates it.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be reached or migrated.
    pub async fn open(url: &str, database_wait: Millis) -> Result<Self, StoreError> {
        let plain = PgConnectOptions::from_str(url)
            .map_err(|error| fault("reading DATABASE_URL", error))?
            .application_name("jari");
        migrate(&plain).await?;
        Self::connect(plain, database_wait, WRITERS).await
    }

    /// Opens the database that `url` names as it is; migrates nothing.
    ///
    /// # Errors
    /// [`StoreError`] when it cannot be reached, or was not migrated by this version yet.
    pub async fn attach(url: &str, database_wait: Millis) -> Result<Self, StoreError> {
        let plain = PgConnectOptions::from_str(url)
            .map_err(|error| fault("reading DATABASE_URL", error))?
            .application_name("jari-operator");
        let store = Self::connect(plain, database_wait, 2).await?;
        let ours = sqlx::migrate!("migrations/postgres");
        store.check_version(&ours).await?;
        Ok(store)
    }

    async fn connect(
        plain: PgConnectOptions,
        database_wait: Millis,
        most: u32,
    ) -> Result<Self, StoreError> {
        let wait = database_wait.to_duration();
        let options = plain.options(
            [
                ("lock_timeout", wait),
                ("statement_timeout", LONGEST_STATEMENT),
                ("idle_in_transaction_session_timeout", LONGEST_PAUSE),
            ]
            .map(|(name, most)| (name, format!("{}ms", most.as_millis()))),
        );
        let writer = pool::<Postgres>(most, wait).connect_with(options.clone());
        let writer = writer
            .await
            .map_err(|error| fault("opening the database", error))?;
        Ok(Self::over(writer.clone(), writer, options, wait))
    }
}

/// Migrates on a connection of its own that may take its time. Nodes that start at once take turns, by a lock of the
/// database; one that is older than the schema leaves what it does not know, so that two versions can run side by side.
async fn migrate(options: &PgConnectOptions) -> Result<(), StoreError> {
    let connected = options.connect().await;
    let mut db: PgConnection = connected.map_err(|error| fault("opening the database", error))?;
    sqlx::migrate!("migrations/postgres")
        .set_ignore_missing(true)
        .run(&mut db)
        .await
        .map_err(|error| fault("migrating", error))?;
    // What it did is committed; how it says goodbye does not matter.
    let _ = db.close().await;
    Ok(())
}

impl Engine for Postgres {
    const BEGIN: &'static str = "BEGIN";
    const WRITER: &'static str = "core";
    const SHARED: bool = true;
    // Its writers commit side by side, and the server writes out together what commits at once. Orders that share one
    // transaction would hold each other's locks, and could wait for another such transaction in a circle.
    const GROUPS: bool = false;
}

/// A text without the one character that the database cannot store.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

speak!(Postgres, PgRow, storable);

/// How many of these statements may be one: changes of tables that differ, since within one statement none sees what
/// another does, and a row can be changed once.
fn together(statements: &[Statement<'_>]) -> usize {
    let mut tables = Vec::with_capacity(statements.len());
    for statement in statements {
        match changed_table(statement.sql) {
            Some(table) if !tables.contains(&table) => tables.push(table),
            Some(_) | None => break,
        }
    }
    tables.len().max(1)
}

/// The table that a statement changes, if it does that and answers with no rows.
fn changed_table(sql: &str) -> Option<&str> {
    let body = sql.split_once('\n').map_or(sql, |(_, body)| body);
    let changes = body
        .strip_prefix("INSERT INTO ")
        .or_else(|| body.strip_prefix("UPDATE "))?;
    let table = changes.split([' ', '(']).next();
    table.filter(|_| !body.contains("RETURNING"))
}

/// Makes changes of different tables in one statement.
async fn changed_together(
    db: &mut PgConnection,
    changes: &[Statement<'_>],
) -> Result<Vec<Ran<PgRow>>, StoreError> {
    let doing = changes.last().map_or("changing", |change| change.doing);
    let (mut text, mut before) = (String::from("WITH "), 0);
    for (place, change) in changes.iter().enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        let _ = writeln!(text, "{comma}change_{place} AS (");
        push_renumbered(&mut text, change.sql, before);
        text.push_str(" RETURNING 1)");
        before += change.values.len();
    }
    for place in 0..changes.len() {
        let union = if place == 0 { "" } else { " UNION ALL" };
        let _ = write!(
            text,
            "{union} SELECT {place} AS place, count(*) AS changed FROM change_{place}"
        );
    }
    text.push_str(" ORDER BY place");
    let values = changes.iter().flat_map(|change| &change.values);
    let rows = bound(AssertSqlSafe(text), values).fetch_all(db).await;
    let rows = rows.map_err(|error| failed::<PgConnection>(doing, error))?;
    let ran = rows.iter().map(|row| {
        let changed = u64::try_from(row.integer("changed")?).unwrap_or(0);
        let rows = Vec::new();
        Ok(Ran { changed, rows })
    });
    ran.collect()
}

impl Sql for PgConnection {
    type Row = PgRow;
    // A position is a snapshot: which transactions were over. What this statement sees and that one did not has changed
    // since, in whatever order the numbers of transactions were given out, and however long one of them takes.
    const CHANGES_AFTER: &'static str = "-- changes_after\nSELECT pg_current_snapshot()::text AS position, c.order_id \
        FROM (SELECT 1) one LEFT JOIN order_changes c ON c.xid >= pg_snapshot_xmin($1::pg_snapshot) \
        AND NOT pg_visible_in_snapshot(c.xid, $1::pg_snapshot)";
    const END_OF_CHANGES: &'static str =
        "-- end_of_changes\nSELECT pg_current_snapshot()::text AS position";
    const TAKE_EFFECTS: &'static str = take_effects!(" FOR UPDATE SKIP LOCKED");

    run_statements!();

    /// Changes of different tables that follow each other are one statement, and with it one exchange with the server.
    async fn run(
        &mut self,
        statements: &[Statement<'_>],
    ) -> Result<Vec<Ran<Self::Row>>, StoreError> {
        let mut all = Vec::with_capacity(statements.len());
        let mut rest = statements;
        while let Some(first) = rest.first() {
            let (some, later) = rest.split_at(together(rest));
            rest = later;
            let ran = if some.len() > 1 {
                changed_together(self, some).await
            } else {
                let query = bound(first.sql, &first.values);
                let ran = gathered(Executor::fetch_many(&mut *self, query)).await;
                ran.map_err(|(_, error)| failed::<Self>(first.doing, error))
            };
            all.extend(ran?);
        }
        Ok(all)
    }

    // Each lock keeps out itself and every change, but not the foreign keys of rows that are added beside.
    fn locking(what: Lock<'_>) -> Option<Statement<'_>> {
        Some(match what {
            Lock::Order(id) => {
                let sql = "-- lock_order\nSELECT 1 FROM orders WHERE id = $1 FOR NO KEY UPDATE";
                Statement::new(LOCKING, sql, values![id.as_str()])
            }
            Lock::OrderOf(id) => {
                let sql = "-- lock_order_of\nSELECT 1 FROM orders WHERE id = (SELECT order_id FROM attempts \
                           WHERE id = $1) FOR NO KEY UPDATE";
                Statement::new(LOCKING, sql, values![id.0])
            }
            Lock::OrderNamed(id) => {
                let sql = concat!(
                    "-- lock_order_named\nSELECT 1 FROM orders WHERE id = ",
                    order_named!(),
                    " FOR NO KEY UPDATE"
                );
                Statement::new(LOCKING, sql, values![id.as_str()])
            }
            Lock::Attempt(id) => {
                let sql = "-- lock_attempt\nSELECT 1 FROM attempts WHERE id = $1 FOR NO KEY UPDATE";
                Statement::new(LOCKING, sql, values![id.0])
            }
            Lock::Attempts(order) => {
                let sql = "-- lock_attempts\nSELECT 1 FROM attempts WHERE order_id = $1 ORDER BY id FOR NO KEY UPDATE";
                Statement::new(LOCKING, sql, values![order.as_str()])
            }
            Lock::AttemptsOf(id) => {
                let sql = "-- lock_attempts_of\nSELECT 1 FROM attempts WHERE order_id = (SELECT order_id FROM attempts \
                           WHERE id = $1) ORDER BY id FOR NO KEY UPDATE";
                Statement::new(LOCKING, sql, values![id.0])
            }
            Lock::AttemptsNamed(id) => {
                let sql = concat!(
                    "-- lock_attempts_named\nSELECT 1 FROM attempts WHERE order_id = ",
                    order_named!(),
                    " ORDER BY id FOR NO KEY UPDATE"
                );
                Statement::new(LOCKING, sql, values![id.as_str()])
            }
            Lock::Waiting(gateway, now) => {
                let sql = "-- lock_waiting\nSELECT 1 FROM attempts WHERE gateway = $1 AND ask_at > $2 AND status IN \
                           ('unknown', 'mischarged', 'cancel_requested') ORDER BY id FOR NO KEY UPDATE";
                Statement::new(LOCKING, sql, values![gateway.as_str(), now])
            }
            Lock::Unarmed => {
                let sql = "-- lock_unarmed\nSELECT 1 FROM attempts WHERE ask_at IS NULL AND payment_key IS NOT NULL \
                           AND status IN ('unknown', 'awaiting_deposit', 'mischarged', 'cancel_requested') \
                           ORDER BY id FOR NO KEY UPDATE";
                Statement::new(LOCKING, sql, &[])
            }
            Lock::Stock(order) => {
                let sql = "-- lock_stock\nSELECT 1 FROM products WHERE sku IN (SELECT sku FROM order_lines \
                           WHERE order_id = $1) ORDER BY sku FOR NO KEY UPDATE";
                Statement::new(LOCKING, sql, values![order.as_str()])
            }
            Lock::Nodes => {
                let sql = "-- lock_nodes\nSELECT pg_advisory_xact_lock($1)";
                Statement::new(LOCKING, sql, values![NODES_LOCK])
            }
        })
    }

    /// The database's own: the wall clocks of nodes may differ.
    async fn clock(&mut self, _: EpochMs) -> Result<EpochMs, StoreError> {
        let sql =
            "-- clock\nSELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT) AS now";
        let row = self.row("reading the clock", sql, &[]).await?;
        let row = row.ok_or(StoreError::Corrupt { what: "clock" })?;
        row.integer("now").map(EpochMs)
    }

    /// The server's own word that it ended a statement: what a transaction did before that is rolled back with it. A lost
    /// connection proves nothing, nor does a server that is shut down while it works.
    fn refused(error: &sqlx::Error) -> bool {
        let code = error.as_database_error().and_then(|error| error.code());
        code.is_some_and(|code| {
            matches!(
                code.as_ref(),
                "40001" // serialization_failure
                    | "40P01" // deadlock_detected
                    | "55P03" // lock_not_available: lock_timeout
                    | "57014" // query_canceled: statement_timeout
                    | "53300" // too_many_connections
                    | "57P03" // cannot_connect_now
            )
        })
    }

    fn commit_refused(error: &sqlx::Error) -> bool {
        let code = error.as_database_error().and_then(|error| error.code());
        code.is_some_and(|code| matches!(code.as_ref(), "40001" | "40P01"))
    }
}

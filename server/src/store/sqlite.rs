//! The embedded database: one writer, several readers, write-ahead log, every commit on disk before it is believed.

use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use payment::time::Millis;
use sqlx::sqlite::{
    Sqlite, SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteRow, SqliteSynchronous,
};
use sqlx::{AssertSqlSafe, Executor};

use super::StoreError;
use super::sql::effects::take_effects;
use super::sql::engine::{
    Engine, Lock, Ran, Sql, Statement, Value, failed, fault, push_renumbered, run_statements, speak,
};
use super::sql::{SqlStore, pool, readers};
use crate::clock::EpochMs;

/// How many statements one text holds at most: each such text is kept prepared, by its whole length.
const AT_ONCE: usize = 16;
/// How many texts a connection keeps prepared.
const PREPARED: usize = 256;

/// The SQLite store. Clones share the one writer; each purpose has readers of its own, so that none can starve another.
pub type SqliteStore = SqlStore<Sqlite>;

impl SqlStore<Sqlite> {
    /// Opens the file that `url` names (`sqlite://jari.db`), makes it if it is not there, and migrates it.
    ///
    /// # Errors
    /// [`StoreError`] when the file cannot be opened or migrated.
    pub async fn open(url: &str, database_wait: Millis) -> Result<Self, StoreError> {
        let wait = database_wait.to_duration();
        let options = options(url, wait)?.create_if_missing(true);
        let writer = pool::<Sqlite>(1, wait).connect_with(options.clone()).await;
        let writer = writer.map_err(|error| fault("opening the database", error))?;
        sqlx::migrate!("migrations/sqlite")
            .run(&writer)
            .await
            .map_err(|error| fault("migrating", error))?;
        let options = options.read_only(true).create_if_missing(false);
        let readers = readers(&options, wait).await?;
        Ok(Self::over(writer, readers, options, wait))
    }

    /// Opens the file that `url` names as it is, beside whatever else has it open; makes and migrates nothing.
    ///
    /// # Errors
    /// [`StoreError`] when there is no such file, or it was made by another version.
    pub async fn attach(url: &str, database_wait: Millis) -> Result<Self, StoreError> {
        let wait = database_wait.to_duration();
        // The server's writer is busy for a commit at most: the busy timeout takes turns with it.
        let options = options(url, wait)?.create_if_missing(false);
        let writer = pool::<Sqlite>(1, wait).connect_with(options.clone()).await;
        let writer = writer.map_err(|error| fault("opening the database", error))?;
        let store = Self::over(writer.clone(), writer, options, wait);
        store
            .check_version(&sqlx::migrate!("migrations/sqlite"))
            .await?;
        Ok(store)
    }

    /// Opens a database file at `path`.
    ///
    /// # Errors
    /// As [`SqliteStore::open`].
    pub async fn open_file(path: &Path, database_wait: Millis) -> Result<Self, StoreError> {
        Self::open(&format!("sqlite://{}", path.display()), database_wait).await
    }
}

/// How every connection to the file that `url` names writes.
fn options(url: &str, wait: Duration) -> Result<SqliteConnectOptions, StoreError> {
    let options = SqliteConnectOptions::from_str(url)
        .map_err(|error| fault("reading DATABASE_URL", error))?
        .journal_mode(SqliteJournalMode::Wal)
        // With less a committed payment can vanish when the power fails.
        .synchronous(SqliteSynchronous::Full)
        .foreign_keys(true)
        .statement_cache_capacity(PREPARED)
        .busy_timeout(wait);
    Ok(options)
}

/// The file that an address names; `None` for a database in memory, or of another kind.
#[must_use]
pub fn file_of(url: &str) -> Option<PathBuf> {
    if !url.starts_with("sqlite:") {
        return None;
    }
    let options = SqliteConnectOptions::from_str(url).ok()?;
    let file = options.get_filename();
    let named = !file.as_os_str().is_empty() && !url.contains(":memory:");
    named.then(|| file.to_owned())
}

impl Engine for Sqlite {
    // One that reads first and writes later can fail at once, whatever the busy timeout.
    const BEGIN: &'static str = "BEGIN IMMEDIATE";
    const WRITER: &'static str = "writer";
    /// One process owns the file.
    const SHARED: bool = false;
    const GROUPS: bool = true;
}

speak!(Sqlite, SqliteRow, str::to_owned);

/// Statements as one text; the values of each are numbered on from those before it.
fn joined(statements: &[Statement<'_>]) -> String {
    let (mut text, mut before) = (String::new(), 0);
    for statement in statements {
        push_renumbered(&mut text, statement.sql, before);
        text.push_str(";\n");
        before += statement.values.len();
    }
    text
}

impl Sql for SqliteConnection {
    type Row = SqliteRow;
    // Commits are in the order of `seq`, since there is one writer. The sequence outlives the rows that were swept.
    const CHANGES_AFTER: &'static str = "-- changes_after\nSELECT CAST(coalesce((SELECT seq FROM sqlite_sequence \
        WHERE name = 'order_changes'), 0) AS TEXT) AS position, c.order_id FROM (SELECT 1) \
        LEFT JOIN order_changes c ON c.seq > CAST($1 AS INTEGER)";
    const END_OF_CHANGES: &'static str = "-- end_of_changes\nSELECT CAST(coalesce((SELECT seq FROM sqlite_sequence \
        WHERE name = 'order_changes'), 0) AS TEXT) AS position";
    const TAKE_EFFECTS: &'static str = take_effects!("");

    run_statements!();

    /// Several make one text, so that they cost one exchange with the thread that the connection lives in: the exchanges, not
    /// the statements, are what takes the time. The driver runs such a text statement by statement, each prepared once.
    async fn run(
        &mut self,
        statements: &[Statement<'_>],
    ) -> Result<Vec<Ran<Self::Row>>, StoreError> {
        let mut all = Vec::with_capacity(statements.len());
        for some in statements.chunks(AT_ONCE) {
            let values = some.iter().flat_map(|statement| &statement.values);
            let query = bound(AssertSqlSafe(joined(some)), values);
            let ran = gathered(Executor::fetch_many(&mut *self, query)).await;
            all.extend(ran.map_err(|(done, error)| {
                let doing = some.get(done).map_or("running statements", |at| at.doing);
                failed::<Self>(doing, error)
            })?);
        }
        Ok(all)
    }

    /// A transaction that writes has the whole database to itself.
    fn locking(_: Lock<'_>) -> Option<Statement<'_>> {
        None
    }

    async fn clock(&mut self, own: EpochMs) -> Result<EpochMs, StoreError> {
        Ok(own)
    }

    fn refused(error: &sqlx::Error) -> bool {
        // SQLITE_BUSY and its extended codes end in 5.
        let code = error.as_database_error().and_then(|error| error.code());
        code.and_then(|code| code.parse::<u32>().ok())
            .is_some_and(|code| code & 0xff == 5)
    }

    fn commit_refused(error: &sqlx::Error) -> bool {
        Self::refused(error)
    }
}

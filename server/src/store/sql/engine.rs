//! What the verbs need of a database, so that each is written once: statements, values, columns, locks, a clock.
//!
//! Both databases read `$1` as the first value and store times, amounts and flags as 64-bit integers, so nearly every
//! statement is the same. Where they differ is said here, and how in `sqlite.rs` and `postgres.rs`.

use payment::id::{GatewayName, OrderId};
use sqlx::Transaction;

use crate::clock::EpochMs;
use crate::store::{AttemptId, StoreError};

/// A transaction of a database.
pub(super) type Tx<D> = Transaction<'static, D>;

/// A database that the verbs run on.
pub trait Engine: sqlx::Database<Connection: Sql> {
    /// How a transaction begins that will write.
    const BEGIN: &'static str;
    /// The name of the pool that writes.
    const WRITER: &'static str;
    /// Whether several nodes may share it.
    const SHARED: bool;
    /// Whether changes that wait for the writer are made in one transaction.
    const GROUPS: bool;
}

/// A connection, within a transaction or without.
pub trait Sql: Sized + Send {
    /// A row that it answers with.
    type Row: Columns;
    /// Of the change feed: the newest position, and every order that changed after position `$1`. At least one row.
    const CHANGES_AFTER: &'static str;
    /// Of the change feed: the newest position.
    const END_OF_CHANGES: &'static str;
    /// Takes side effects that are due at `$1` until `$2`, at most `$3`; their ids.
    const TAKE_EFFECTS: &'static str;

    /// Runs a statement; how many rows it changed.
    fn execute(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// All rows of a statement.
    fn rows(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Self::Row>, StoreError>> + Send;

    /// The first row of a statement, if there is one.
    fn row(
        &mut self,
        doing: &'static str,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Option<Self::Row>, StoreError>> + Send;

    /// Waits until nobody else can change this, and keeps it so until the transaction ends.
    fn lock(&mut self, what: Lock<'_>) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The time by the clock that all nodes go by; `own` is the caller's.
    fn clock(&mut self, own: EpochMs) -> impl Future<Output = Result<EpochMs, StoreError>> + Send;

    /// Whether an error proves that nothing was done: the database refused, or rolled back by itself.
    fn refused(error: &sqlx::Error) -> bool;

    /// Whether an error of a commit proves that nothing was done. Anything else leaves its result unknown.
    fn commit_refused(error: &sqlx::Error) -> bool;
}

/// What a transaction locks, in this order: locks of one order everywhere are what makes deadlocks impossible.
#[derive(Debug, Clone, Copy)]
pub enum Lock<'a> {
    /// An order: taken first by whatever changes it.
    Order(&'a OrderId),
    /// The attempts of an order that is locked, by id: hints to ask about one change it without its order.
    Attempts(&'a OrderId),
    /// One attempt, by whoever changes nothing but when it is asked about.
    Attempt(AttemptId),
    /// A gateway's attempts that are asked about later than now, by id.
    Waiting(&'a GatewayName, EpochMs),
    /// The attempts that wait without a next look, by id.
    Unarmed,
    /// The stock of an order's lines, by sku: taken last, since many orders share it.
    Stock(&'a OrderId),
    /// The division of the caps among the nodes.
    Nodes,
}

/// A value of a statement.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// A number, a time or an amount.
    Integer(Option<i64>),
    /// A text.
    Text(Option<&'a str>),
    /// A condition within the statement; stored flags are integers.
    Flag(bool),
    /// Bytes.
    Bytes(&'a [u8]),
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(Some(value))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(value: Option<i64>) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Integer(Some(i64::from(value)))
    }
}

impl From<EpochMs> for Value<'_> {
    fn from(value: EpochMs) -> Self {
        Self::Integer(Some(value.0))
    }
}

impl From<Option<EpochMs>> for Value<'_> {
    fn from(value: Option<EpochMs>) -> Self {
        Self::Integer(value.map(|at| at.0))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(Some(value))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(value: Option<&'a str>) -> Self {
        Self::Text(value)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

/// The values of a statement, in the order of their numbers.
macro_rules! values {
    ($($value:expr),* $(,)?) => {
        &[$($crate::store::sql::engine::Value::from($value)),*]
    };
}
pub(crate) use values;

/// A row's columns.
pub trait Columns: Send + Sync {
    /// A number.
    ///
    /// # Errors
    /// [`StoreError`] when it is none.
    fn integer(&self, name: &'static str) -> Result<i64, StoreError>;
    /// A number, or nothing.
    ///
    /// # Errors
    /// [`StoreError`] when it is neither.
    fn integer_or_null(&self, name: &'static str) -> Result<Option<i64>, StoreError>;
    /// A text.
    ///
    /// # Errors
    /// [`StoreError`] when it is none.
    fn text(&self, name: &'static str) -> Result<&str, StoreError>;
    /// A text, or nothing.
    ///
    /// # Errors
    /// [`StoreError`] when it is neither.
    fn text_or_null(&self, name: &'static str) -> Result<Option<&str>, StoreError>;
    /// Bytes.
    ///
    /// # Errors
    /// [`StoreError`] when they are none.
    fn bytes(&self, name: &'static str) -> Result<Vec<u8>, StoreError>;
}

/// Turns a driver's error into ours: busy is told apart, since it proves that nothing was done.
pub(crate) fn failed<C: Sql>(doing: &'static str, error: sqlx::Error) -> StoreError {
    if matches!(error, sqlx::Error::PoolTimedOut) || C::refused(&error) {
        StoreError::Busy
    } else {
        fault(doing, error)
    }
}

/// An error that proves nothing.
pub(crate) fn fault(
    doing: &'static str,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StoreError {
    StoreError::Failed {
        doing,
        source: error.into(),
    }
}

/// Statements and columns in a driver's own types; `$text` is what it makes of a text.
macro_rules! speak {
    ($database:ty, $row:ty, $text:expr) => {
        fn bound<'q>(
            sql: &'static str,
            values: &[Value<'_>],
        ) -> sqlx::query::Query<'q, $database, <$database as sqlx::Database>::Arguments> {
            let mut query = sqlx::query(sql);
            for value in values {
                query = match value {
                    Value::Integer(value) => query.bind(*value),
                    Value::Text(value) => query.bind(value.map($text)),
                    Value::Flag(value) => query.bind(*value),
                    Value::Bytes(value) => query.bind(value.to_vec()),
                };
            }
            query
        }

        impl $crate::store::sql::engine::Columns for $row {
            fn integer(&self, name: &'static str) -> Result<i64, StoreError> {
                sqlx::Row::try_get(self, name).map_err(|error| fault("reading a row", error))
            }

            fn integer_or_null(&self, name: &'static str) -> Result<Option<i64>, StoreError> {
                sqlx::Row::try_get(self, name).map_err(|error| fault("reading a row", error))
            }

            fn text(&self, name: &'static str) -> Result<&str, StoreError> {
                sqlx::Row::try_get(self, name).map_err(|error| fault("reading a row", error))
            }

            fn text_or_null(&self, name: &'static str) -> Result<Option<&str>, StoreError> {
                sqlx::Row::try_get(self, name).map_err(|error| fault("reading a row", error))
            }

            fn bytes(&self, name: &'static str) -> Result<Vec<u8>, StoreError> {
                sqlx::Row::try_get(self, name).map_err(|error| fault("reading a row", error))
            }
        }
    };
}
pub(crate) use speak;

/// The three ways to run a statement, inside an `impl Sql`.
macro_rules! run_statements {
    () => {
        async fn execute(
            &mut self,
            doing: &'static str,
            sql: &'static str,
            values: &[Value<'_>],
        ) -> Result<u64, StoreError> {
            let done = bound(sql, values).execute(self).await;
            done.map(|done| done.rows_affected())
                .map_err(|error| failed::<Self>(doing, error))
        }

        async fn rows(
            &mut self,
            doing: &'static str,
            sql: &'static str,
            values: &[Value<'_>],
        ) -> Result<Vec<Self::Row>, StoreError> {
            let rows = bound(sql, values).fetch_all(self).await;
            rows.map_err(|error| failed::<Self>(doing, error))
        }

        async fn row(
            &mut self,
            doing: &'static str,
            sql: &'static str,
            values: &[Value<'_>],
        ) -> Result<Option<Self::Row>, StoreError> {
            let row = bound(sql, values).fetch_optional(self).await;
            row.map_err(|error| failed::<Self>(doing, error))
        }
    };
}
pub(crate) use run_statements;

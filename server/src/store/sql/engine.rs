//! What the verbs need of a database, so that each is written once: statements, values, columns, locks, a clock.
//!
//! Both databases read `$1` as the first value and store times, amounts and flags as 64-bit integers, so nearly every
//! statement is the same. Where they differ is said here, and how in `sqlite.rs` and `postgres.rs`.

use payment::id::{GatewayName, GatewayOrderId, OrderId};
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

    /// Runs statements one after the other, where the database can in one exchange; what each came to, in their order. Of
    /// statements behind one that fails none is run.
    fn run(
        &mut self,
        statements: &[Statement<'_>],
    ) -> impl Future<Output = Result<Vec<Ran<Self::Row>>, StoreError>> + Send;

    /// The statement that waits until nobody else can change this, and keeps it so until the transaction ends; `None`
    /// where a transaction that writes has everything to itself.
    fn locking(what: Lock<'_>) -> Option<Statement<'_>>;

    /// Locks.
    fn lock(&mut self, what: Lock<'_>) -> impl Future<Output = Result<(), StoreError>> + Send {
        async move {
            if let Some(lock) = Self::locking(what) {
                self.execute(lock.doing, lock.sql, &lock.values).await?;
            }
            Ok(())
        }
    }

    /// The time by the clock that all nodes go by; `own` is the caller's.
    fn clock(&mut self, own: EpochMs) -> impl Future<Output = Result<EpochMs, StoreError>> + Send;

    /// Whether an error proves that nothing was done: the database refused, or rolled back by itself.
    fn refused(error: &sqlx::Error) -> bool;

    /// Whether an error of a commit proves that nothing was done. Anything else leaves its result unknown.
    fn commit_refused(error: &sqlx::Error) -> bool;
}

/// The id of the order that a gateway order id `$1` names: looked up, never parsed out of it; an order's own id is its
/// first one.
macro_rules! order_named {
    () => {
        "coalesce((SELECT order_id FROM attempts WHERE gateway_order_id = $1 ORDER BY id LIMIT 1), $1)"
    };
}
pub(in crate::store) use order_named;

/// A statement with its values, to be run along with others.
#[derive(Debug, Clone)]
pub struct Statement<'a> {
    /// What is being done, for errors.
    pub doing: &'static str,
    /// Its text.
    pub sql: &'static str,
    /// The values of `$1` and so on.
    pub values: Vec<Value<'a>>,
}

impl<'a> Statement<'a> {
    /// A statement.
    pub(in crate::store) fn new(
        doing: &'static str,
        sql: &'static str,
        values: &[Value<'a>],
    ) -> Self {
        Self {
            doing,
            sql,
            values: values.to_vec(),
        }
    }
}

/// What one of several statements came to.
#[derive(Debug)]
pub struct Ran<R> {
    /// How many rows it changed.
    pub changed: u64,
    /// The rows that it answered with.
    pub rows: Vec<R>,
}

/// What the statement at a place came to.
pub(super) fn ran_at<R>(ran: &[Ran<R>], place: usize) -> Result<&Ran<R>, StoreError> {
    ran.get(place).ok_or(StoreError::Corrupt {
        what: "answer to several statements",
    })
}

/// Adds a statement to a text, its values numbered on from so many before it.
pub(in crate::store) fn push_renumbered(text: &mut String, sql: &str, before: usize) {
    let mut pieces = sql.split('$');
    text.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let digits = piece.bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = piece.split_at(digits);
        let number: usize = number.parse().unwrap_or(0);
        text.push('$');
        text.push_str(&(before + number).to_string());
        text.push_str(rest);
    }
}

/// What a transaction locks, in this order: locks of one order everywhere are what makes deadlocks impossible.
#[derive(Debug, Clone, Copy)]
pub enum Lock<'a> {
    /// An order: taken first by whatever changes it.
    Order(&'a OrderId),
    /// The attempts of an order that is locked, by id: hints to ask about one change it without its order.
    Attempts(&'a OrderId),
    /// The order of an attempt: to which order it belongs never changes.
    OrderOf(AttemptId),
    /// The attempts of the order of an attempt, once that is locked.
    AttemptsOf(AttemptId),
    /// The order that a gateway order id names.
    OrderNamed(&'a GatewayOrderId),
    /// Its attempts, once it is locked.
    AttemptsNamed(&'a GatewayOrderId),
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
        fn bound<'q, 'v>(
            sql: impl sqlx::SqlSafeStr,
            values: impl IntoIterator<Item = &'v Value<'v>>,
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

        /// What each of several statements came to; with an error, how many came to their end before it.
        async fn gathered(
            mut answers: impl futures::Stream<
                Item = Result<
                    sqlx::Either<<$database as sqlx::Database>::QueryResult, $row>,
                    sqlx::Error,
                >,
            > + Unpin,
        ) -> Result<Vec<$crate::store::sql::engine::Ran<$row>>, (usize, sqlx::Error)> {
            let (mut all, mut rows) = (Vec::new(), Vec::new());
            while let Some(answer) = futures::StreamExt::next(&mut answers).await {
                match answer {
                    Ok(sqlx::Either::Right(row)) => rows.push(row),
                    Ok(sqlx::Either::Left(done)) => all.push($crate::store::sql::engine::Ran {
                        changed: done.rows_affected(),
                        rows: std::mem::take(&mut rows),
                    }),
                    Err(error) => return Err((all.len(), error)),
                }
            }
            Ok(all)
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

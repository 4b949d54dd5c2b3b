//! A second hand on a shop's database: holds its locks, shuts it, changes and counts rows behind the server's back.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

use crate::shop::Shop;

/// A connection of the test's own, whichever database it is.
pub(crate) enum Beside {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

impl Beside {
    pub(crate) async fn of(shop: &Shop) -> Self {
        Self::open(&shop.database()).await
    }

    pub(crate) async fn open(url: &str) -> Self {
        if url.starts_with("sqlite:") {
            let db = SqliteConnection::connect(url).await;
            return Self::Sqlite(db.expect("the database"));
        }
        let db = PgConnection::connect(url).await;
        Self::Postgres(db.expect("the database"))
    }

    pub(crate) async fn run(&mut self, sql: &str) {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self {
            Self::Sqlite(db) => sql.execute(db).await.map(drop),
            Self::Postgres(db) => sql.execute(db).await.map(drop),
        }
        .expect("the statement runs");
    }

    /// The first column of the only row.
    pub(crate) async fn number(&mut self, sql: &str) -> i64 {
        let sql = AssertSqlSafe(sql.to_owned());
        match self {
            Self::Sqlite(db) => sqlx::query_scalar(sql).fetch_one(db).await,
            Self::Postgres(db) => sqlx::query_scalar(sql).fetch_one(db).await,
        }
        .expect("a number")
    }

    /// Takes the lock that keeps every writer out, and on PostgreSQL every reader too.
    pub(crate) async fn hold(&mut self) {
        let sql = match self {
            Self::Sqlite(_) => "BEGIN IMMEDIATE",
            Self::Postgres(_) => {
                "BEGIN; LOCK TABLE orders, attempts, products, webhooks, order_lines, evidence IN ACCESS EXCLUSIVE MODE"
            }
        };
        self.run(sql).await;
    }

    pub(crate) async fn let_go(&mut self) {
        self.run("ROLLBACK").await;
    }

    /// How many rows there are of whatever a shopper's act could make.
    pub(crate) async fn rows(&mut self) -> [i64; 5] {
        let mut counted = [0; 5];
        let tables = ["orders", "attempts", "evidence", "payment_keys", "webhooks"];
        for (table, count) in tables.iter().zip(&mut counted) {
            *count = self.number(&format!("SELECT count(*) FROM {table}")).await;
        }
        counted
    }
}

//! The floor: what the same machine, web server and database do when nothing stands between the request and the commit.
//!
//! A program of its own, as the shop is one: bare axum, one row and one durable commit where the shop makes one. Grouped,
//! whatever waits for the disk goes into one commit, which is as far as anybody could take it.

use std::net::SocketAddr;

use anyhow::{Context as _, bail};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use clap::Args;
use sqlx::postgres::PgPool;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteSynchronous};
use sqlx::{Connection as _, SqliteConnection};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// Connections to a PostgreSQL server: as many as the shop writes by.
const WRITERS: u32 = 12;
/// Most rows of one grouped commit.
const GROUP: usize = 256;
/// What is answered to a read: as long as an order's state.
const STATE: &str = r#"{"orderId":"ord_00000000000000000000","status":"paid","attempt":{"number":1,"status":"approved"},"payable":false,"pollAfterMs":0}"#;

/// What to serve.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Where it listens
    #[arg(long)]
    addr: SocketAddr,
    /// The database; a file is made
    #[arg(long)]
    database: String,
    /// One commit for all that wait
    #[arg(long)]
    grouped: bool,
}

#[derive(Debug, Clone)]
enum Floor {
    Sqlite(SqlitePool),
    Grouped(mpsc::Sender<(Bytes, oneshot::Sender<()>)>),
    Postgres(PgPool),
}

/// Serves until it is ended.
pub(crate) async fn serve(options: Options) -> anyhow::Result<()> {
    let floor = Floor::open(&options).await?;
    let routes = Router::new()
        .route("/ready", get(|| async {}))
        .route("/read", get(|| async { STATE }))
        .route("/one", post(one))
        .route("/two", post(two))
        .with_state(floor);
    let listener = TcpListener::bind(options.addr).await?;
    Ok(axum::serve(listener, routes).await?)
}

/// One commit, as a new order or a webhook takes.
async fn one(State(floor): State<Floor>, body: Bytes) -> Result<&'static str, StatusCode> {
    floor
        .keep(&body)
        .await
        .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(STATE)
}

/// Two commits one after the other, as a confirm takes.
async fn two(State(floor): State<Floor>, body: Bytes) -> Result<&'static str, StatusCode> {
    for _ in 0..2 {
        let kept = floor.keep(&body).await;
        kept.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    }
    Ok(STATE)
}

/// The settings of an SQLite file that make its commits durable, as the shop has them.
pub(super) fn durable(url: &str) -> anyhow::Result<SqliteConnectOptions> {
    let options: SqliteConnectOptions = url.parse().context("reading the database's address")?;
    Ok(options
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full))
}

/// The only table, in both databases' words.
pub(super) const TABLE: &str = "CREATE TABLE IF NOT EXISTS floor (body TEXT NOT NULL)";
/// One row into it.
pub(super) const INSERT: &str = "INSERT INTO floor (body) VALUES ($1)";

impl Floor {
    async fn open(options: &Options) -> anyhow::Result<Self> {
        if options.database.starts_with("postgres") {
            let pool = sqlx::postgres::PgPoolOptions::new().max_connections(WRITERS);
            let pool = pool.connect(&options.database).await?;
            sqlx::query(TABLE).execute(&pool).await?;
            return Ok(Self::Postgres(pool));
        }
        let settings = durable(&options.database)?;
        if options.grouped {
            let mut db = SqliteConnection::connect_with(&settings).await?;
            sqlx::query(TABLE).execute(&mut db).await?;
            let (rows, waiting) = mpsc::channel(4 * GROUP);
            tokio::spawn(commit_groups(db, waiting));
            return Ok(Self::Grouped(rows));
        }
        let pool = sqlx::sqlite::SqlitePoolOptions::new().max_connections(1);
        let pool = pool.connect_with(settings).await?;
        sqlx::query(TABLE).execute(&pool).await?;
        Ok(Self::Sqlite(pool))
    }

    /// Keeps a row for ever.
    async fn keep(&self, body: &[u8]) -> anyhow::Result<()> {
        let text = std::str::from_utf8(body)?;
        match self {
            Self::Sqlite(pool) => {
                sqlx::query(INSERT).bind(text).execute(pool).await?;
            }
            Self::Postgres(pool) => {
                sqlx::query(INSERT).bind(text).execute(pool).await?;
            }
            Self::Grouped(rows) => {
                let (tell, told) = oneshot::channel();
                rows.send((Bytes::copy_from_slice(body), tell)).await?;
                told.await?;
            }
        }
        Ok(())
    }
}

async fn commit_groups(
    mut db: SqliteConnection,
    mut waiting: mpsc::Receiver<(Bytes, oneshot::Sender<()>)>,
) -> anyhow::Result<()> {
    let mut group = Vec::with_capacity(GROUP);
    loop {
        if waiting.recv_many(&mut group, GROUP).await == 0 {
            bail!("nobody is left");
        }
        let mut tx = db.begin().await?;
        for (body, _) in &group {
            let text = std::str::from_utf8(body)?;
            sqlx::query(INSERT).bind(text).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        for (_, tell) in group.drain(..) {
            // Nobody may be there any more to hear it.
            let _ = tell.send(());
        }
    }
}

//! Which store an address names.

use std::sync::Arc;

use payment::time::Millis;

use super::console::ConsoleStore;
use super::merchant::MerchantStore;
use super::postgres::PostgresStore;
use super::sql::SqlStore;
use super::sql::engine::Engine;
use super::sqlite::SqliteStore;
use super::{Store, StoreError};
use crate::config::DatabaseUrl;

/// One database, by what it is used for.
pub struct Stores {
    /// For confirms, webhooks and recovery.
    pub core: Arc<dyn Store>,
    /// For polls.
    pub polls: Arc<dyn Store>,
    /// For what is only looked at.
    pub reads: Arc<dyn Store>,
    /// For shops that sell through this checkout.
    pub merchants: Arc<dyn MerchantStore>,
}

/// Opens and migrates a database; `apart` gives each use connections of its own.
///
/// # Errors
/// [`StoreError`] when it cannot be opened or migrated.
pub async fn open(
    url: &DatabaseUrl,
    database_wait: Millis,
    apart: bool,
) -> Result<Stores, StoreError> {
    if url.is_postgres() {
        let core = PostgresStore::open(url.expose(), database_wait).await?;
        by_use(core, apart).await
    } else {
        let core = SqliteStore::open(url.expose(), database_wait).await?;
        by_use(core, apart).await
    }
}

/// Opens a database for an operator's command or console, beside a running server or without one: makes and migrates nothing.
///
/// # Errors
/// [`StoreError`] when it cannot be opened, or another version made it.
pub async fn attach(
    url: &DatabaseUrl,
    database_wait: Millis,
) -> Result<Arc<dyn ConsoleStore>, StoreError> {
    if url.is_postgres() {
        let store = PostgresStore::attach(url.expose(), database_wait).await?;
        Ok(Arc::new(store))
    } else {
        let store = SqliteStore::attach(url.expose(), database_wait).await?;
        Ok(Arc::new(store))
    }
}

async fn by_use<D: Engine>(core: SqlStore<D>, apart: bool) -> Result<Stores, StoreError> {
    let (polls, reads) = if apart {
        (core.beside("polls").await?, core.beside("reads").await?)
    } else {
        (core.clone(), core.clone())
    };
    Ok(Stores {
        core: Arc::new(core),
        polls: Arc::new(polls),
        merchants: Arc::new(reads.clone()),
        reads: Arc::new(reads),
    })
}

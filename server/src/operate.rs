//! Commands for operators. They speak to the database, beside a running server or without one, and to the gateways only
//! to ask. Nothing here moves money: what is changed goes through the machine, in the same transaction as elsewhere, and
//! the server's change feed tells its pages.

pub mod ask;
pub mod key;
pub mod output;
pub mod reconcile;
pub mod resolve;
pub mod unresolved;
pub mod webhooks;
pub mod zone;

use std::sync::Arc;

use anyhow::Context as _;
use payment::id::{GatewayOrderId, OrderId};

use crate::clock::Clock;
use crate::config::Config;
use crate::store::console::ConsoleStore;
use crate::store::open::attach;
use crate::store::{AttemptId, AttemptRecord};

/// Where an operator sits: the settings and the database of the server.
pub struct Desk {
    /// The settings.
    pub config: Config,
    /// The database, as the server left it or has it open.
    pub store: Arc<dyn ConsoleStore>,
    /// The clock.
    pub clock: Clock,
}

impl Desk {
    /// Opens the server's database; makes and migrates nothing.
    ///
    /// # Errors
    /// When it cannot be opened, or another version made it.
    pub async fn open(config: Config) -> anyhow::Result<Self> {
        Self::beside(config, Clock::new()).await
    }

    /// The same with a clock that is there already.
    ///
    /// # Errors
    /// As [`Desk::open`].
    pub async fn beside(config: Config, clock: Clock) -> anyhow::Result<Self> {
        let url = &config.database_url;
        let store = attach(url, config.times.database_wait).await;
        let store = store.with_context(|| format!("opening {url}"))?;
        Ok(Self {
            store,
            config,
            clock,
        })
    }

    /// The attempt that an operator names: by its number in `jari unresolved`, or by its order id, as the shop or as the
    /// gateway calls it; of several, the latest that was claimed.
    ///
    /// # Errors
    /// When there is none.
    pub async fn find(&self, name: &str) -> anyhow::Result<AttemptRecord> {
        if let Ok(id) = name.parse::<i64>() {
            let found = self.store.attempt(AttemptId(id)).await?;
            return found.with_context(|| format!("there is no attempt {id}"));
        }
        let mut found = Vec::new();
        if let Ok(id) = OrderId::parse(name) {
            let order = self.store.order(&id).await?;
            found = order.map_or_else(Vec::new, |order| order.attempts);
        }
        if found.is_empty()
            && let Ok(id) = GatewayOrderId::parse(name)
        {
            found = self.store.attempts_by_gateway_order(&id).await?;
        }
        // An open one is what somebody asks about; else the latest that sent something.
        let open = found
            .iter()
            .rfind(|record| record.attempt.status.is_open())
            .or_else(|| found.iter().rfind(|record| record.payment_key.is_some()));
        open.cloned()
            .with_context(|| format!("no payment was ever sent for {name:?}"))
    }
}

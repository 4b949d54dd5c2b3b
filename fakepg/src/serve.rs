//! The running gateway: the engine behind real sockets and a real clock.

mod connection;
mod gate;
mod shared;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;

use crate::engine::{Engine, Gateway, Merchant, Method, NewPayment, NoDeposit, StripeMerchant};
use crate::ledger::Ledger;
use crate::scenario::Scenario;
use crate::webhooks;
use gate::Gate;
pub(crate) use shared::Shared;

/// How long calls in progress may take to end once the gateway is shut down.
const GRACE: Duration = Duration::from_secs(1);

/// What a gateway is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where everything is served; port 0 picks a free one. Default `127.0.0.1:0`.
    pub addr: SocketAddr,
    /// Where the control API is served too. With it, `up: false` really closes the main socket.
    pub control_addr: Option<SocketAddr>,
    /// Webhooks go to `<webhook_url>/webhooks/<gateway>`; none are sent without.
    pub webhook_url: Option<String>,
    /// The merchant's secret key. Default `test_sk_fake`.
    pub secret_key: String,
    /// The merchant at KakaoPay. Default `TC0ONETIME` with the key `DEV_fake`.
    pub kakaopay: Merchant,
    /// The merchant at Stripe. Default the key `sk_test_fake`, and `whsec_fake` for its webhooks.
    pub stripe: StripeMerchant,
    /// Where browsers reach the payment window, without a slash at its end; when absent, where the
    /// call that opened a payment came to.
    pub public_url: Option<String>,
    /// Seeds all randomness. Default 1.
    pub seed: u64,
    /// The scenario at the start. Default healthy.
    pub scenario: Scenario,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            addr: SocketAddr::from(([127, 0, 0, 1], 0)),
            control_addr: None,
            webhook_url: None,
            secret_key: "test_sk_fake".to_owned(),
            kakaopay: Merchant::default(),
            stripe: StripeMerchant::default(),
            public_url: None,
            seed: 1,
            scenario: Scenario::default(),
        }
    }
}

/// Starts a gateway; it listens when this returns.
pub async fn spawn(config: Config) -> anyhow::Result<Handle> {
    let listener = gate::listen(config.addr).with_context(|| format!("bind {}", config.addr))?;
    let addr = listener.local_addr().context("read the bound address")?;
    let control = match config.control_addr {
        Some(wanted) => Some(gate::listen(wanted).with_context(|| format!("bind {wanted}"))?),
        None => None,
    };
    let control_addr = control
        .as_ref()
        .map(|listener| listener.local_addr())
        .transpose()?;

    let clock = shared::Clock::start();
    let mut engine = Engine::new(&config.secret_key, config.seed, clock.now_ms())
        .with_kakaopay(config.kakaopay)
        .with_stripe(config.stripe);
    engine.set_scenario(config.scenario.clone());
    let gate = Gate::new(addr, control.is_some());
    let mut shared = Shared::new(engine, clock, gate, config.webhook_url);
    shared.public_url = config.public_url;
    let shared = Arc::new(shared);
    let client = webhooks::client()?;
    tokio::spawn(webhooks::pump(Arc::clone(&shared), client));
    shared.gate.start(&shared, listener).await;
    if let Some(listener) = control {
        gate::serve_control(&shared, listener);
    }
    shared
        .set_scenario(config.scenario)
        .await
        .context("apply the first scenario")?;
    Ok(Handle {
        shared,
        addr,
        control_addr,
    })
}

/// A running gateway; dropping it kills it.
#[derive(Debug)]
pub struct Handle {
    shared: Arc<Shared>,
    addr: SocketAddr,
    control_addr: Option<SocketAddr>,
}

impl Handle {
    /// The bound address; stays the same while listening is paused.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The base URL of the wire and the control API, without a slash at its end.
    pub fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// The base URL of the separate control listener, if there is one.
    pub fn control_url(&self) -> Option<String> {
        self.control_addr.map(|addr| format!("http://{addr}"))
    }

    /// Sends webhooks elsewhere from now on, or nowhere.
    pub fn set_webhook_url(&self, url: Option<String>) {
        self.shared.set_webhook_url(url);
    }

    /// Replaces the scenario, as `PUT /_control/scenario` does.
    pub async fn set_scenario(&self, scenario: Scenario) -> anyhow::Result<()> {
        self.shared
            .set_scenario(scenario)
            .await
            .context("apply the scenario")
    }

    /// Makes an authenticated payment, as `POST /_control/payments` does, and gives its key.
    pub fn authenticate(&self, order_id: &str, amount: u64) -> String {
        self.authenticate_by(Method::Card, order_id, amount)
    }

    /// The same for a payment by any method.
    pub fn authenticate_by(&self, method: Method, order_id: &str, amount: u64) -> String {
        let (order_id, order_name) = (order_id.to_owned(), "주문".to_owned());
        let new = NewPayment {
            order_id,
            order_name,
            amount,
            method,
        };
        self.shared
            .engine(|engine, now_ms| engine.authenticate(Gateway::Toss, new, now_ms))
    }

    /// Makes an authenticated payment of the latest `ready` of an order at KakaoPay, as
    /// `POST /_control/payments` with that gateway does, and gives its `pg_token`.
    pub fn authenticate_ready(&self, order_id: &str, amount: u64) -> Result<String, String> {
        self.shared
            .engine(|engine, now_ms| engine.authenticate_ready(order_id, amount, now_ms))
    }

    /// Authorises the latest session of an order at Stripe, as `POST /_control/payments` with that gateway does, and gives
    /// the session's id.
    pub fn authorise(&self, order_id: &str, amount: u64) -> Result<String, String> {
        self.shared
            .engine(|engine, now_ms| engine.authorise(order_id, amount, now_ms))
    }

    /// Deposits into an order's virtual account or, with `undo`, takes the deposit back, as `POST /_control/deposits` does.
    pub fn deposit(&self, order_id: &str, undo: bool) -> Result<(), NoDeposit> {
        self.shared
            .engine(|engine, now_ms| engine.deposit(order_id, undo, now_ms))
    }

    /// The ledger as it stands, as `GET /_control/ledger` gives it.
    pub fn ledger(&self) -> Ledger {
        self.shared.engine(|engine, _| engine.ledger())
    }

    /// Starts the counting anew, as `DELETE /_control/ledger` does.
    pub fn reset_ledger(&self) {
        self.shared.engine(|engine, _| engine.reset_ledger());
    }

    /// Closes the listening socket, so that connecting is refused. Idle connections are closed,
    /// calls in progress go on, and everything known is kept.
    pub async fn pause_listening(&self) {
        self.shared.gate.close().await;
    }

    /// Listens on the same port again.
    pub async fn resume_listening(&self) -> std::io::Result<()> {
        self.shared.gate.open(&self.shared).await
    }

    /// Stops: the port is free when this returns. Calls in progress get a second to end, then
    /// their connections are reset; webhooks not sent yet are dropped.
    pub async fn shutdown(self) {
        self.shared.gate.close().await;
        self.shared.control_closing.cancel();
        self.shared.connections.close();
        // Past the grace the tasks are cancelled just below, so the result does not matter.
        let _ = tokio::time::timeout(GRACE, self.shared.connections.wait()).await;
        self.shared.stopping.cancel();
        self.shared.connections.wait().await;
    }

    /// Stops at once: every connection is reset, and the port is free when this returns.
    pub async fn kill(self) {
        self.shared.stopping.cancel();
        self.shared.gate.close().await;
        self.shared.connections.close();
        self.shared.connections.wait().await;
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.stopping.cancel();
    }
}

//! `jari serve`: opens, recovers, serves, and stops without dropping what was sent.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use axum_extra::extract::cookie::Key;
use leptos::config::LeptosOptions;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{App, Line, Working};
use crate::changes::OrderCache;
use crate::clock::Clock;
use crate::config::{Config, GatewaySettings, Switch, Wire};
use crate::console::Console;
use crate::gateway::Gateway;
use crate::gateway::kakaopay::{KakaoPay, KakaoPayConfig};
use crate::gateway::secret::Secret;
use crate::gateway::stripe::{Stripe, StripeConfig};
use crate::gateway::toss::{Toss, TossConfig};
use crate::http::guard::RateLimits;
use crate::http::{Web, accept, assets, router};
use crate::lanes::Lanes;
use crate::metrics;
use crate::operate::Desk;
use crate::pressure::Pressure;
use crate::random;
use crate::store::open::Stores;
use crate::store::sqlite;
use crate::strangers::Strangers;
use crate::{changes, deliveries, effects, gauges, inbox, nodes, pressure, recovery, store};

/// Runs a server until `stop` is cancelled, then drains it.
///
/// # Errors
/// When it cannot start: the database, a gateway's settings, or the address.
pub async fn run(
    config: Config,
    metrics: Option<PrometheusHandle>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let addr = config.addr;
    let drain = config.drain.to_duration();
    // Before anything is opened: a newer program started by mistake must not migrate the database under the running one.
    let _only = only_process(config.database_url.expose())?;
    let app = open(config, stop.clone()).await?;
    // The address first: a second server started by mistake must not take over the first one's attempts.
    let listener = TcpListener::bind(addr)
        .await
        .with_context(|| format!("listening on {addr}"))?;
    nodes::join(&app)
        .await
        .context("taking a place among the nodes")?;
    let interrupted = recovery::interrupt(&app)
        .await
        .context("taking over what was interrupted")?;
    let web = Web {
        key: cookie_key(&app).await?,
        leptos: leptos(&app.config),
        metrics,
        app: Arc::clone(&app),
    };
    tracing::info!(%addr, interrupted, env = ?app.config.env, "serving");
    let workers = [
        tokio::spawn(keep_running("recovery", Arc::clone(&app), recovery::run)),
        tokio::spawn(keep_running("inbox", Arc::clone(&app), inbox::run)),
        tokio::spawn(keep_running("changes", Arc::clone(&app), changes::run)),
        tokio::spawn(keep_running("pressure", Arc::clone(&app), pressure::run)),
        tokio::spawn(keep_running("effects", Arc::clone(&app), effects::run)),
        tokio::spawn(keep_running(
            "deliveries",
            Arc::clone(&app),
            deliveries::run,
        )),
    ];
    let place = tokio::spawn(keep_running("nodes", Arc::clone(&app), nodes::run));
    let upkeep = web
        .metrics
        .clone()
        .map(|handle| tokio::spawn(upkeep(Arc::clone(&app), handle)));
    accept::serve(listener, router(web), app.clock, stop, drain).await;
    // Sent calls may still be in flight with nobody waiting for them: their outcomes are recorded before we leave.
    app.tracker.close();
    let drained = tokio::time::timeout(drain, app.tracker.wait()).await;
    if drained.is_ok() {
        // It leaves at most a beat and a database wait later; a place that is kept ends with its lease.
        let leaving = app.config.times.database_wait.times(3).to_duration();
        let _ = tokio::time::timeout(leaving, place).await;
    } else {
        tracing::warn!(left = app.tracker.len(), "left to the next start");
    }
    for worker in workers {
        worker.abort();
    }
    if let Some(upkeep) = upkeep {
        upkeep.abort();
    }
    Ok(())
}

/// An SQLite file has one process: another would take over the first one's attempts. The lock ends with the process,
/// however that ends.
///
/// # Errors
/// When another process has it.
pub fn only_process(database_url: &str) -> anyhow::Result<Option<File>> {
    let Some(path) = sqlite::file_of(database_url) else {
        return Ok(None);
    };
    // One file by whatever name it is called.
    let path = path.canonicalize().unwrap_or(path);
    let mut lock = path.clone().into_os_string();
    lock.push(".lock");
    let lock = PathBuf::from(lock);
    let file = File::create(&lock).with_context(|| format!("opening {}", lock.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => {
            anyhow::bail!(
                "another jari uses {}: several nodes need PostgreSQL",
                path.display()
            )
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("locking {}", lock.display()))
        }
    }
}

/// A worker that panicked is started again: what it works on is in the database.
async fn keep_running<F, W>(name: &'static str, app: Arc<App>, work: W)
where
    F: Future<Output = ()> + Send + 'static,
    W: Fn(Arc<App>) -> F,
{
    while let Err(panic) = tokio::spawn(work(Arc::clone(&app))).await {
        tracing::error!(%panic, name, "a worker died and is started again");
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}

async fn upkeep(app: Arc<App>, handle: PrometheusHandle) {
    loop {
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        gauges::sample(&app);
        app.rate_limits.tidy();
        if let Some(console) = &app.console {
            console.tidy();
        }
        handle.run_upkeep();
    }
}

/// Opens the database and the gateways.
///
/// # Errors
/// When one of them cannot be opened.
pub async fn open(config: Config, stopping: CancellationToken) -> anyhow::Result<Arc<App>> {
    let lanes = config.lanes == Switch::On;
    let url = &config.database_url;
    let opened = store::open::open(url, config.times.database_wait, lanes).await;
    let Stores {
        core,
        polls,
        reads,
        merchants,
    } = opened.with_context(|| format!("opening {url}"))?;
    let clock = Clock::new();
    let lines = config
        .gateways
        .iter()
        .map(|gateway| line(gateway, &config, clock))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let console = console(&config, clock).await?;
    Ok(Arc::new(App {
        lanes: Lanes::new(lanes, config.caps()),
        pressure: Pressure::default(),
        rate_limits: RateLimits::default(),
        cache: OrderCache::default(),
        clock,
        node: random::secret(),
        store: core,
        polls,
        reads,
        merchants: Some(merchants),
        strangers: Strangers::new(&config),
        lines,
        tracker: TaskTracker::new(),
        working: Working::default(),
        stopping,
        recovery: Notify::new(),
        inbox: Notify::new(),
        console,
        config,
    }))
}

/// The console, where it has a password, with connections of its own to the database that is open by now.
async fn console(config: &Config, clock: Clock) -> anyhow::Result<Option<Console>> {
    let Some(password) = config.ops_password_hash.clone() else {
        return Ok(None);
    };
    let desk = Desk::beside(config.clone(), clock).await?;
    Ok(Some(Console::new(desk, password)))
}

fn line(settings: &GatewaySettings, config: &Config, clock: Clock) -> anyhow::Result<Arc<Line>> {
    let gateway = gateway(settings)?;
    metrics::register(&settings.name);
    Ok(Arc::new(Line::new(gateway, settings.times, config, clock)))
}

/// A gateway's adapter; it calls nobody yet.
///
/// # Errors
/// When its settings cannot be used.
pub fn gateway(settings: &GatewaySettings) -> anyhow::Result<Arc<dyn Gateway>> {
    match settings.wire {
        Wire::Toss => toss(settings),
        Wire::KakaoPay => kakaopay(settings),
        Wire::Stripe => stripe(settings),
    }
}

fn kakaopay(settings: &GatewaySettings) -> anyhow::Result<Arc<dyn Gateway>> {
    let kakaopay = KakaoPay::new(KakaoPayConfig {
        name: settings.name.clone(),
        base_url: settings.base_url.clone(),
        cid: settings.client_key.clone(),
        secret_key: settings.secret_key.clone(),
        pg_timeout: settings.times.pg_timeout,
        connect_timeout: settings.times.pg_connect_timeout,
        inquiry_timeout: KakaoPayConfig::INQUIRY_TIMEOUT,
        confirm_window: settings.times.confirm_window,
    })
    .with_context(|| format!("setting up the gateway {}", settings.name))?;
    Ok(Arc::new(kakaopay))
}

fn stripe(settings: &GatewaySettings) -> anyhow::Result<Arc<dyn Gateway>> {
    // Without one the adapter refuses to be made.
    let webhook_secret = settings.webhook_secret.clone();
    let stripe = Stripe::new(StripeConfig {
        name: settings.name.clone(),
        base_url: settings.base_url.clone(),
        secret_key: settings.secret_key.clone(),
        webhook_secret: webhook_secret.unwrap_or_else(|| Secret::new("")),
        pg_timeout: settings.times.pg_timeout,
        connect_timeout: settings.times.pg_connect_timeout,
        inquiry_timeout: StripeConfig::INQUIRY_TIMEOUT,
        confirm_window: settings.times.confirm_window,
    })
    .with_context(|| format!("setting up the gateway {}", settings.name))?;
    Ok(Arc::new(stripe))
}

fn toss(settings: &GatewaySettings) -> anyhow::Result<Arc<dyn Gateway>> {
    let toss = Toss::new(TossConfig {
        name: settings.name.clone(),
        base_url: settings.base_url.clone(),
        window_url: settings.window_url.clone(),
        client_key: settings.client_key.clone(),
        secret_key: settings.secret_key.clone(),
        test_code: settings.test_code.clone(),
        pg_timeout: settings.times.pg_timeout,
        connect_timeout: settings.times.pg_connect_timeout,
        inquiry_timeout: TossConfig::INQUIRY_TIMEOUT,
        confirm_window: settings.times.confirm_window,
    })
    .with_context(|| format!("setting up the gateway {}", settings.name))?;
    Ok(Arc::new(toss))
}

/// The key that signs cookies: the configured one; in development one that is made once and kept, so that a restart
/// keeps its shoppers.
async fn cookie_key(app: &App) -> anyhow::Result<Key> {
    let secret = match &app.config.secret_key {
        Some(secret) => secret.expose().to_owned(),
        None => app
            .store
            .setting("cookie_secret", &random::secret())
            .await
            .context("reading the cookie key")?,
    };
    Ok(Key::derive_from(secret.as_bytes()))
}

fn leptos(config: &Config) -> LeptosOptions {
    LeptosOptions::builder()
        .output_name(assets::name(Path::new(&config.site_root)))
        .site_root(config.site_root.clone())
        .site_pkg_dir("pkg")
        .site_addr(config.addr)
        .build()
}

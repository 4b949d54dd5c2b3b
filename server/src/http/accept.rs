//! The accept loop. `axum::serve` sets no timer for a request's head, so one slow client would hold a connection for
//! ever; and it waits for every connection when it stops.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use metrics::gauge;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::payments::Received;
use crate::clock::Clock;

/// A request's head must be complete within this (spec section 7).
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// A write that makes no progress for this long ends its connection.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// Most connections at once (spec section 7: at least 4,096).
const CONNECTIONS: u32 = 16_384;
/// How long a full process, or a failing accept, waits before it looks again.
const PAUSE: Duration = Duration::from_millis(20);
/// How long idle connections may take to close when the server stops.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves until `stop`, then takes no more connections and lets the exchanges under way end, at most `drain` long.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    clock: Clock,
    stop: CancellationToken,
    drain: Duration,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS as usize));
    gauge!("http_connections_max").set(f64::from(CONNECTIONS));
    let graceful = GracefulShutdown::new();
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        let Ok(place) = place else { break };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of file descriptors, most likely: others will close.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let connection = connection(stream, peer, router.clone(), clock, &graceful);
        tokio::spawn(async move {
            gauge!("http_connections").increment(1.0);
            connection.await;
            gauge!("http_connections").decrement(1.0);
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(drain.max(CLOSE_TIMEOUT), graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!("connections were still open when the drain ended");
    }
}

fn connection(
    stream: TcpStream,
    peer: SocketAddr,
    router: Router,
    clock: Clock,
    graceful: &GracefulShutdown,
) -> impl Future<Output = ()> + 'static {
    // A small answer must not wait for an acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(Received(clock.now()));
        router.clone().oneshot(request)
    });
    // Only HTTP/1: while the version is still being guessed no timer runs, and a silent client would stay for ever.
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT);
    // A client that reads nothing would keep its place for ever; the head has a timer of its own.
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let connection = builder
        .serve_connection(TokioIo::new(Box::pin(stream)), service)
        .into_owned();
    let watched = graceful.watch(connection);
    async move {
        if let Err(error) = watched.await {
            tracing::debug!(error = %error, "a connection ended early");
        }
    }
}

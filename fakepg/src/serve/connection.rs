//! One connection, which a handler may order to be reset.

use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::shared::Shared;
use crate::engine::Gateway;
use crate::http::Reset;

/// Serves one connection to its end.
pub(super) async fn serve(
    stream: TcpStream,
    shared: Arc<Shared>,
    router: Router,
    closing: CancellationToken,
) {
    // Without it small answers wait for the peer's delayed acknowledgement.
    let _ = stream.set_nodelay(true);
    let reset = CancellationToken::new();
    let io = TokioIo::new(Wire {
        stream,
        reset: reset.clone(),
    });
    let service = {
        let (shared, reset) = (Arc::clone(&shared), reset.clone());
        service_fn(move |request| {
            handle(
                request,
                Arc::clone(&shared),
                router.clone(),
                Reset(reset.clone()),
            )
        })
    };
    let mut connection = pin!(http1::Builder::new().serve_connection(io, service));
    let mut ending = false;
    loop {
        tokio::select! {
            biased;
            () = reset.cancelled() => return,
            () = shared.stopping.cancelled() => {
                reset.cancel();
                return;
            }
            _ = connection.as_mut() => return,
            () = closing.cancelled(), if !ending => {
                ending = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

async fn handle(
    request: hyper::Request<Incoming>,
    shared: Arc<Shared>,
    router: Router,
    reset: Reset,
) -> Result<axum::response::Response, Infallible> {
    let path = request.uri().path();
    let gateway = Gateway::of_path(path);
    let wire = !path.starts_with("/_control");
    if wire && shared.engine(|engine, _| engine.scenario().is_down(gateway)) {
        return reset.now().await;
    }
    let mut request: Request = request.map(Body::new);
    request.extensions_mut().insert(reset);
    router.oneshot(request).await
}

/// A TCP stream that ends in a reset (RST) in place of a farewell (FIN) when ordered so.
struct Wire {
    stream: TcpStream,
    reset: CancellationToken,
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.reset.is_cancelled() {
            // Fails only when the peer has reset the connection already.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

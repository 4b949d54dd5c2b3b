//! The listening sockets: opened, closed and opened again on the same port.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::connection;
use super::shared::Shared;
use crate::http;

/// Thousands may connect at once.
const BACKLOG: u32 = 4_096;

/// The main listening socket.
#[derive(Debug)]
pub(crate) struct Gate {
    addr: SocketAddr,
    /// Whether `up: false` closes it; only where a control listener can open it again.
    pub(crate) follows_up: bool,
    accepting: Mutex<Option<Accepting>>,
}

#[derive(Debug)]
struct Accepting {
    closing: CancellationToken,
    task: JoinHandle<()>,
}

impl Gate {
    pub(super) fn new(addr: SocketAddr, follows_up: bool) -> Self {
        Self {
            addr,
            follows_up,
            accepting: Mutex::new(None),
        }
    }

    /// Starts to accept from a bound listener.
    pub(super) async fn start(&self, shared: &Arc<Shared>, listener: TcpListener) {
        *self.accepting.lock().await = Some(self.accept_from(shared, listener));
    }

    /// Binds the same port again; nothing happens when it is open.
    pub(crate) async fn open(&self, shared: &Arc<Shared>) -> io::Result<()> {
        let mut accepting = self.accepting.lock().await;
        if accepting.is_none() {
            *accepting = Some(self.accept_from(shared, listen(self.addr)?));
        }
        Ok(())
    }

    /// Closes the socket; it is closed when this returns. Connections end once they are idle.
    pub(crate) async fn close(&self) {
        if let Some(accepting) = self.accepting.lock().await.take() {
            accepting.closing.cancel();
            // A panic in the accept loop has dropped the socket as well.
            let _ = accepting.task.await;
        }
    }

    fn accept_from(&self, shared: &Arc<Shared>, listener: TcpListener) -> Accepting {
        let closing = CancellationToken::new();
        let router = http::everything(shared);
        let task = tokio::spawn(accept(
            Arc::clone(shared),
            listener,
            router,
            closing.clone(),
        ));
        Accepting { closing, task }
    }
}

/// Serves the control API alone.
pub(super) fn serve_control(shared: &Arc<Shared>, listener: TcpListener) {
    let (router, closing) = (http::control_only(shared), shared.control_closing.clone());
    let accepting = accept(Arc::clone(shared), listener, router, closing);
    // Tracked, so that a shutdown returns only once this port is free as well.
    shared.connections.spawn(accepting);
}

/// Binds a port, also one whose old connections are not forgotten yet.
pub(super) fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

async fn accept(
    shared: Arc<Shared>,
    listener: TcpListener,
    router: Router,
    closing: CancellationToken,
) {
    loop {
        let accepted = tokio::select! {
            biased;
            () = closing.cancelled() => return,
            () = shared.stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let (shared_, router, closing) =
                    (Arc::clone(&shared), router.clone(), closing.clone());
                let serving = connection::serve(stream, shared_, router, closing);
                shared.connections.spawn(serving);
            }
            // Out of file descriptors, or the peer was gone already: the next may do.
            Err(error) => {
                tracing::warn!(%error, "accept failed");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }
}

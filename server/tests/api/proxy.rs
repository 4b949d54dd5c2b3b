//! A network between a node and its database that can be cut: what is sent meanwhile waits, and arrives when it is mended.

use std::path::{Path, PathBuf};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;

/// A running one; it ends with the test.
pub(crate) struct Proxy {
    port: u16,
    cut: watch::Sender<bool>,
}

impl Proxy {
    /// In front of the PostgreSQL server whose address names the folder of its socket.
    pub(crate) async fn before(url: &str) -> Self {
        let (_, folder) = url.split_once("host=").expect("a folder");
        let socket = Path::new(folder).join(".s.PGSQL.5432");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (cut, watched) = watch::channel(false);
        tokio::spawn(serve(listener, socket, watched));
        Self { port, cut }
    }

    /// The address of the same database through the proxy.
    pub(crate) fn url(&self, url: &str) -> String {
        let (whole, _) = url.split_once('?').expect("a folder");
        whole.replace("localhost", &format!("127.0.0.1:{}", self.port))
    }

    /// Lets nothing through any more, or everything again.
    pub(crate) fn set_cut(&self, cut: bool) {
        self.cut.send_replace(cut);
    }
}

async fn serve(listener: TcpListener, socket: PathBuf, cut: watch::Receiver<bool>) {
    while let Ok((node, _)) = listener.accept().await {
        let (socket, cut) = (socket.clone(), cut.clone());
        tokio::spawn(async move {
            let server = UnixStream::connect(socket).await.expect("the server");
            let (node_out, node_in) = node.into_split();
            let (server_out, server_in) = server.into_split();
            tokio::join!(
                forward(node_out, server_in, cut.clone()),
                forward(server_out, node_in, cut)
            );
        });
    }
}

/// Passes on what comes, until either side ends.
async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut cut: watch::Receiver<bool>,
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await.unwrap_or(0);
        // An end does not get through either.
        if cut.wait_for(|cut| !cut).await.is_err() {
            return;
        }
        if read == 0 || to.write_all(&buffer[..read]).await.is_err() {
            // Whoever is gone is gone: the other side is told.
            let _ = to.shutdown().await;
            return;
        }
    }
}

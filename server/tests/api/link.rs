//! The way from a shop to its PostgreSQL, which a test can cut, freeze and mend.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What a database's socket is called in its folder.
const SOCKET: &str = ".s.PGSQL.5432";

/// How the way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Open,
    /// Connections stay, and nothing goes through.
    Frozen,
    /// Connections end.
    Cut,
}

/// A socket in a folder of its own, and behind it the database's.
pub(crate) struct Link {
    folder: TempDir,
    behind: Arc<PathBuf>,
    way: watch::Sender<Way>,
    accepting: Option<JoinHandle<()>>,
}

impl Link {
    /// The way to the database at this address, open.
    pub(crate) fn to(url: &str) -> Self {
        let behind = url.rsplit_once("host=").expect("a socket's folder").1;
        let mut link = Self {
            folder: tempfile::tempdir().expect("a folder"),
            behind: Arc::new(Path::new(behind).join(SOCKET)),
            way: watch::Sender::new(Way::Open),
            accepting: None,
        };
        link.listen();
        link
    }

    /// The same database by this way.
    pub(crate) fn url(&self, direct: &str) -> String {
        let start = direct.rsplit_once("host=").expect("a socket's folder").0;
        format!("{start}host={}", self.folder.path().display())
    }

    fn listen(&mut self) {
        let path = self.folder.path().join(SOCKET);
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(path).expect("a socket");
        let (behind, way) = (Arc::clone(&self.behind), self.way.subscribe());
        self.accepting = Some(tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (behind, way) = (Arc::clone(&behind), way.clone());
                tokio::spawn(async move {
                    if let Ok(far) = UnixStream::connect(&*behind).await {
                        carry(near, far, way).await;
                    }
                });
            }
        }));
    }

    /// Ends all connections and takes no new one: the database is gone.
    pub(crate) async fn cut(&mut self) {
        if let Some(accepting) = self.accepting.take() {
            accepting.abort();
            let _ = accepting.await;
        }
        let _ = std::fs::remove_file(self.folder.path().join(SOCKET));
        self.way.send_replace(Way::Cut);
    }

    /// Lets nothing through and ends nothing: the database, or what lies between, is silent.
    pub(crate) fn freeze(&self) {
        self.way.send_replace(Way::Frozen);
    }

    /// Makes it whole.
    pub(crate) fn mend(&mut self) {
        self.way.send_replace(Way::Open);
        if self.accepting.is_none() {
            self.listen();
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(accepting) = &self.accepting {
            accepting.abort();
        }
    }
}

/// Carries bytes both ways until either side ends or the way is cut.
async fn carry(near: UnixStream, far: UnixStream, way: watch::Receiver<Way>) {
    let (near_out, near_in) = near.into_split();
    let (far_out, far_in) = far.into_split();
    let mut cut = way.clone();
    tokio::select! {
        _ = cut.wait_for(|way| *way == Way::Cut) => {}
        ((), ()) = async {
            tokio::join!(
                forward(near_out, far_in, way.clone()),
                forward(far_out, near_in, way)
            )
        } => {}
    }
}

/// Passes on what comes. What comes while the way is frozen waits, an end too, and arrives when it is open again.
async fn forward(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut way: watch::Receiver<Way>,
) {
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let read = from.read(&mut buffer).await.unwrap_or(0);
        if way.wait_for(|way| *way == Way::Open).await.is_err() {
            return;
        }
        if read == 0 || to.write_all(&buffer[..read]).await.is_err() {
            // Whoever is gone is gone: the other side is told.
            let _ = to.shutdown().await;
            return;
        }
    }
}

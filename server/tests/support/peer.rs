//! Gateways made of raw TCP, for the tests of the adapters: one connection that breaks as a test wants, or many that are
//! answered by a script.

use std::future::Future;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// A gateway of one connection: afterwards nobody listens, so a second connection would show as "not sent".
pub(crate) async fn peer<F, T>(
    act: impl FnOnce(TcpStream) -> F + Send + 'static,
) -> (String, JoinHandle<T>)
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let acting = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        drop(listener);
        act(stream).await
    });
    (url, acting)
}

/// Reads one whole request, head and body.
pub(crate) async fn request(stream: &mut TcpStream) -> String {
    next_request(stream)
        .await
        .expect("the request was cut short")
}

/// One whole request, or `None` when the client closes before.
async fn next_request(stream: &mut TcpStream) -> Option<String> {
    let mut read = Vec::new();
    let mut part = [0; 4_096];
    loop {
        let count = stream.read(&mut part).await.ok()?;
        if count == 0 {
            return None;
        }
        read.extend_from_slice(&part[..count]);
        let text = String::from_utf8_lossy(&read).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        if body.len() >= length {
            return Some(text);
        }
    }
}

/// An HTTP answer as its bytes.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}

pub(crate) async fn say(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

/// Ends the connection with a reset instead of an orderly close.
pub(crate) fn reset(stream: TcpStream) {
    stream.set_zero_linger().unwrap();
    drop(stream);
}

/// Answers the whole request by these bytes, and stays until the client closes too, so that no reset overtakes them.
pub(crate) async fn answer_once(mut stream: TcpStream, text: String) {
    request(&mut stream).await;
    // Only the first part may be read of it, so it is not insisted upon.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
    let _ = stream.read_to_end(&mut Vec::new()).await;
}

/// What the gateway of many connections does with a request.
pub(crate) enum Act {
    Answer(String),
    AnswerAndClose(String),
    Close,
}

/// A gateway of many connections, by a script of the request and how many came on its connection before.
pub(crate) struct Peer {
    pub(crate) url: String,
    /// Every request that came whole.
    seen: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

impl Peer {
    pub(crate) async fn serve(act: impl Fn(&str, usize) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut serving = JoinSet::new();
        let (act, seen_by) = (Arc::new(act), Arc::clone(&seen));
        serving.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (act, seen) = (Arc::clone(&act), Arc::clone(&seen_by));
                tokio::spawn(async move { serve(stream, &*act, &seen).await });
            }
        });
        Self {
            url,
            seen,
            _serving: serving,
        }
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    act: &(dyn Fn(&str, usize) -> Act + Send + Sync),
    seen: &Mutex<Vec<String>>,
) {
    for count in 0.. {
        let Some(request) = next_request(&mut stream).await else {
            return;
        };
        seen.lock().unwrap().push(request.clone());
        let (text, stay) = match act(&request, count) {
            Act::Answer(text) => (text, true),
            Act::AnswerAndClose(text) => (text, false),
            Act::Close => return,
        };
        if stream.write_all(text.as_bytes()).await.is_err() || !stay {
            return;
        }
    }
}

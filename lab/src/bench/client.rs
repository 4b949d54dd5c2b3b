//! As little client as can load a server on the machine that they share: one kept connection a shopper, closed loops.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::future::try_join_all;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{COOKIE, HOST, HeaderMap, HeaderName};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::stats::{Latencies, rounded};

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

/// What was answered, whole.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Reply {
    /// An error for any other status.
    pub(super) fn must_be(self, status: StatusCode) -> anyhow::Result<Self> {
        let said = || String::from_utf8_lossy(&self.body).into_owned();
        ensure!(self.status == status, "{}: {}", self.status, said());
        Ok(self)
    }
}

/// The address of a base URL.
pub(super) fn address(url: &str) -> anyhow::Result<SocketAddr> {
    let addr = url.trim_start_matches("http://");
    addr.parse()
        .with_context(|| format!("{url} is no address of ours"))
}

impl Connection {
    /// Connects.
    pub(super) async fn open(addr: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(addr).await.context("connecting")?;
        stream.set_nodelay(true)?;
        let (sender, exchange) = handshake(TokioIo::new(stream)).await?;
        // It ends with the connection, and what goes wrong in it is an error of the request.
        tokio::spawn(exchange);
        Ok(Self {
            sender,
            host: addr.to_string(),
        })
    }

    /// A shopper's GET.
    pub(super) async fn get(
        &mut self,
        path: &str,
        cookie: &str,
        more: &[(HeaderName, &str)],
    ) -> anyhow::Result<Reply> {
        self.ask(Method::GET, path, cookie, more, Bytes::new())
            .await
    }

    /// A POST of JSON; an empty cookie is none.
    pub(super) async fn post(
        &mut self,
        path: &str,
        cookie: &str,
        more: &[(HeaderName, &str)],
        body: impl Into<Bytes>,
    ) -> anyhow::Result<Reply> {
        let mut headers = vec![(hyper::header::CONTENT_TYPE, "application/json")];
        headers.extend_from_slice(more);
        self.ask(Method::POST, path, cookie, &headers, body.into())
            .await
    }

    async fn ask(
        &mut self,
        method: Method,
        path: &str,
        cookie: &str,
        headers: &[(HeaderName, &str)],
        body: Bytes,
    ) -> anyhow::Result<Reply> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.host);
        if !cookie.is_empty() {
            request = request.header(COOKIE, cookie);
        }
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        self.sender.ready().await?;
        let answer = self.sender.send_request(request.body(Full::new(body))?);
        let (head, body) = answer.await.context("asking")?.into_parts();
        Ok(Reply {
            status: head.status,
            headers: head.headers,
            body: body.collect().await.context("reading")?.to_bytes(),
        })
    }
}

/// What a closed loop came to.
#[derive(Debug)]
pub(super) struct Ran<R> {
    /// From the first request to the last answer.
    pub(super) wall: Duration,
    /// How long each exchange took.
    pub(super) took: Latencies,
    /// What each exchange gave.
    pub(super) gave: Vec<R>,
}

impl<R> Ran<R> {
    /// Exchanges a second.
    pub(super) fn rate(&self) -> f64 {
        rounded(self.gave.len() as f64 / self.wall.as_secs_f64())
    }
}

/// So many shoppers, each with a connection of its own that is open before the clock starts; each makes its next exchange
/// as soon as it has the answer to its last, until the items or the time are used up. Any failure ends the run: what is
/// refused or lost is no throughput.
pub(super) async fn closed_loop<T, R>(
    addr: SocketAddr,
    shoppers: usize,
    most: Duration,
    items: impl Iterator<Item = T>,
    exchange: impl AsyncFn(&mut Connection, T) -> anyhow::Result<R>,
) -> anyhow::Result<Ran<R>> {
    let open = (0..shoppers).map(|_| Connection::open(addr));
    let connections = try_join_all(open).await?;
    let items = RefCell::new(items);
    let (took, gave) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let begun = Instant::now();
    let last = Cell::new(begun);
    let next = || (begun.elapsed() < most).then(|| items.borrow_mut().next());
    let shopper = |mut connection: Connection| {
        let (next, exchange, took, gave, last) = (&next, &exchange, &took, &gave, &last);
        async move {
            while let Some(item) = next().flatten() {
                let asked = Instant::now();
                gave_one(exchange(&mut connection, item).await?, gave);
                last.set(Instant::now());
                took.borrow_mut().push(last.get() - asked);
            }
            anyhow::Ok(())
        }
    };
    try_join_all(connections.into_iter().map(shopper)).await?;
    let wall = last.get() - begun;
    Ok(Ran {
        wall,
        took: Latencies::of(took.take()),
        gave: gave.take(),
    })
}

fn gave_one<R>(one: R, all: &RefCell<Vec<R>>) {
    all.borrow_mut().push(one);
}

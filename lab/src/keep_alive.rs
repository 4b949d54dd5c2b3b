//! One HTTP/1.1 connection that is kept: as little client as thousands of waiting shoppers can share a machine with.

use std::net::SocketAddr;

use anyhow::{Context as _, bail, ensure};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// More than any answer to a poll has.
const LONGEST_ANSWER: usize = 64 * 1024;

/// An open connection.
#[derive(Debug)]
pub(crate) struct KeepAlive {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What of an answer matters to a poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The answer's version, quotes included.
    pub(crate) etag: Option<String>,
}

impl KeepAlive {
    /// Connects.
    pub(crate) async fn connect(addr: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(addr).await.context("connecting")?;
        // A request of one segment must not wait for an acknowledgement.
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: Vec::new(),
        })
    }

    /// Sends one whole request and reads its answer to the end. After an error the connection is of no use.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Reply> {
        self.stream.write_all(request).await.context("sending")?;
        self.buffer.clear();
        loop {
            if let Some(head) = read_head(&self.buffer)?
                && self.buffer.len() >= head.answer_length
            {
                ensure!(
                    self.buffer.len() == head.answer_length,
                    "more than was asked for"
                );
                return Ok(head.reply);
            }
            ensure!(
                self.buffer.len() < LONGEST_ANSWER,
                "the answer does not end"
            );
            let read = self
                .stream
                .read_buf(&mut self.buffer)
                .await
                .context("reading")?;
            ensure!(read > 0, "closed before the answer ended");
        }
    }
}

struct Head {
    reply: Reply,
    answer_length: usize,
}

/// The head of an answer, once it is there whole.
fn read_head(bytes: &[u8]) -> anyhow::Result<Option<Head>> {
    let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes[..end]).context("the head is no text")?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1));
    let status: u16 = status.context("no status line")?.parse()?;
    let (mut etag, mut length) = (None, None);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("etag") {
            etag = Some(value.trim().to_owned());
        } else if name.eq_ignore_ascii_case("content-length") {
            length = Some(value.trim().parse::<usize>()?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            bail!("the answer's length is not told");
        }
    }
    let body = match (status, length) {
        (304 | 204, _) => 0,
        (_, Some(length)) => length,
        (_, None) => bail!("the answer's length is not told"),
    };
    Ok(Some(Head {
        reply: Reply { status, etag },
        answer_length: end + 4 + body,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_with_its_body() {
        let text = b"HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 3\r\n\r\nabc";
        for short in 0..text.len() - 4 {
            assert!(
                read_head(&text[..short])
                    .unwrap()
                    .is_none_or(|head| head.answer_length > short)
            );
        }
        let head = read_head(text).unwrap().unwrap();
        assert_eq!((head.reply.status, head.answer_length), (200, text.len()));
        assert_eq!(head.reply.etag.as_deref(), Some("\"1\""));
    }

    #[test]
    fn unchanged_has_no_body_and_an_untold_length_is_an_error() {
        let unchanged = b"HTTP/1.1 304 Not Modified\r\netag: \"1\"\r\n\r\n";
        assert_eq!(
            read_head(unchanged).unwrap().unwrap().answer_length,
            unchanged.len()
        );
        assert!(read_head(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(read_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").is_err());
    }
}

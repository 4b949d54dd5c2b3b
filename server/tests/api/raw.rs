//! Requests as bytes on a socket, for what no well-behaved client sends.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::node::PATIENCE;
use crate::shop::{Node, Order};

pub(crate) async fn connect(node: &Node) -> TcpStream {
    let address = node.url.trim_start_matches("http://");
    TcpStream::connect(address).await.expect("a connection")
}

/// A confirm as a browser writes it, with more header lines (each ending in CRLF).
pub(crate) fn confirm(order: &Order, gateway_order_id: &str, key: &str, more: &str) -> Vec<u8> {
    let body = format!(
        "{{\"paymentKey\":\"{key}\",\"orderId\":\"{gateway_order_id}\",\"amount\":{}}}",
        order.amount
    );
    let head = format!(
        "POST /api/payments/confirm HTTP/1.1\r\nhost: shop\r\ncookie: {}\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n{more}\r\n",
        order.cookie,
        body.len()
    );
    [head.into_bytes(), body.into_bytes()].concat()
}

/// Sends these bytes on a connection of their own and reads the answer's status and text.
pub(crate) async fn exchange(node: &Node, bytes: &[u8]) -> (u16, String) {
    let mut stream = connect(node).await;
    stream.write_all(bytes).await.expect("sent");
    answer(&mut stream).await
}

/// Reads one answer with a `Content-Length`, or until the other side closes.
pub(crate) async fn answer(stream: &mut TcpStream) -> (u16, String) {
    let text = message(stream).await;
    let status = text.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.unwrap_or(0), text)
}

/// Reads one request or answer with a `Content-Length`, or until the other side closes.
pub(crate) async fn message(stream: &mut TcpStream) -> String {
    let read = async {
        let mut bytes = Vec::new();
        let mut part = [0; 4_096];
        loop {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            if whole(&text) {
                return text;
            }
            match stream.read(&mut part).await {
                Ok(0) | Err(_) => return text,
                Ok(count) => bytes.extend_from_slice(&part[..count]),
            }
        }
    };
    let text = tokio::time::timeout(PATIENCE.mul_f32(2.0), read).await;
    text.expect("a message or an end")
}

fn whole(text: &str) -> bool {
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    length.is_some_and(|length| body.len() >= length.parse().unwrap_or(usize::MAX))
}

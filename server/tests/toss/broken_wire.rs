//! Peers that break mid-call: only a failed connect is "not sent".

use std::io::ErrorKind;
use std::time::Duration;

use payment::id::PaymentKey;
use payment::reach::{Lost, NotSent};
use payment::time::Millis;
use server::gateway::toss::Toss;
use server::gateway::{CancelOutcome, ConfirmOutcome, Gateway, InquiryOutcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::bench::{PATIENT, cancel_of, confirm_of, names, order, toss};
use crate::peer::{answer, answer_once, peer, request, reset, say};

/// For calls that must run into their limit.
const SHORT: Millis = Millis::new(300);

async fn confirm(toss: &Toss) -> ConfirmOutcome {
    toss.confirm(&confirm_of("pk_1", "order_1", "idem-1")).await
}

/// What a confirm becomes when the whole request is answered by these bytes and then a close.
async fn confirm_answered_by(text: String) -> ConfirmOutcome {
    let (url, acting) = peer(|stream| answer_once(stream, text)).await;
    let outcome = confirm(&toss(&url, PATIENT)).await;
    acting.await.unwrap();
    outcome
}

#[track_caller]
fn assert_lost(outcome: ConfirmOutcome, expected: Lost) {
    match outcome {
        ConfirmOutcome::Lost(lost, told) => assert_eq!(lost, expected, "{told:?}"),
        other => panic!("{other:?} is not {expected:?}"),
    }
}

#[tokio::test]
async fn a_refused_connection_is_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let toss = toss(
        &format!("http://{}", listener.local_addr().unwrap()),
        PATIENT,
    );
    drop(listener);
    assert_eq!(
        confirm(&toss).await,
        ConfirmOutcome::NotSent(NotSent::Connect)
    );
    let key = PaymentKey::parse("pk_1").unwrap();
    let asked = toss.inquire(&names(Some(&key), &order("order_1"))).await;
    assert!(matches!(asked, InquiryOutcome::NoAnswer(_)), "{asked:?}");
    let canceled = toss.cancel(&cancel_of("pk_1", None, None)).await;
    assert!(
        matches!(canceled, CancelOutcome::Unknown(_)),
        "{canceled:?}"
    );
}

#[tokio::test]
async fn a_name_that_does_not_resolve_is_not_sent() {
    let toss = toss("http://no-such-host.invalid", PATIENT);
    assert_eq!(
        confirm(&toss).await,
        ConfirmOutcome::NotSent(NotSent::Connect)
    );
}

#[tokio::test]
async fn a_connection_that_is_never_accepted_is_not_sent_although_the_whole_limit_is_as_short() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let addr = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    // Fill the queue of connections that nobody accepts until the kernel lets the next one wait.
    while let Ok(connected) =
        tokio::time::timeout(Duration::from_millis(200), TcpStream::connect(addr)).await
    {
        queue.push(connected.unwrap());
    }
    // The adapter's time to connect is longer than its whole limit.
    let toss = toss(&format!("http://{addr}"), SHORT);
    assert_eq!(
        confirm(&toss).await,
        ConfirmOutcome::NotSent(NotSent::Connect)
    );
}

#[tokio::test]
async fn a_failed_tls_handshake_is_not_sent() {
    let (url, acting) = peer(|mut stream| async move {
        let mut hello = vec![0; 4_096];
        let count = stream.read(&mut hello).await.unwrap();
        say(&mut stream, "this is not TLS\r\n").await;
        stream.shutdown().await.unwrap();
        hello.truncate(count);
        let _ = stream.read_to_end(&mut hello).await;
        hello
    })
    .await;
    let outcome = confirm(&toss(&url.replace("http:", "https:"), PATIENT)).await;
    assert_eq!(outcome, ConfirmOutcome::NotSent(NotSent::Connect));
    let seen = acting.await.unwrap();
    assert!(!String::from_utf8_lossy(&seen).contains("POST"));
}

#[tokio::test]
async fn a_reset_before_the_request_is_read_may_have_been_sent() {
    let (url, acting) = peer(|stream| async move {
        // Something has come, and none of it is read.
        stream.readable().await.unwrap();
        reset(stream);
    })
    .await;
    assert_lost(confirm(&toss(&url, PATIENT)).await, Lost::Reset);
    acting.await.unwrap();
}

#[tokio::test]
async fn a_reset_after_the_whole_request_may_have_been_sent() {
    let (url, acting) = peer(|mut stream| async move {
        let seen = request(&mut stream).await;
        reset(stream);
        seen
    })
    .await;
    assert_lost(confirm(&toss(&url, PATIENT)).await, Lost::Reset);
    let seen = acting.await.unwrap();
    assert!(
        seen.starts_with("POST /v1/payments/confirm HTTP/1.1\r\n"),
        "{seen}"
    );
    assert!(
        seen.contains("\r\nauthorization: Basic dGVzdF9za19mYWtlOg==\r\n"),
        "{seen}"
    );
    assert!(seen.contains("\r\nidempotency-key: idem-1\r\n"), "{seen}");
    assert!(
        seen.contains("\r\ncontent-type: application/json\r\n"),
        "{seen}"
    );
    assert!(!seen.contains("accept-language"), "{seen}");
    let body = r#"{"paymentKey":"pk_1","orderId":"order_1","amount":33000}"#;
    assert!(seen.ends_with(body), "{seen}");
}

#[tokio::test]
async fn a_reset_on_a_reused_idle_connection_may_have_been_sent() {
    for whole in [true, false] {
        let (url, acting) = peer(move |mut stream| async move {
            request(&mut stream).await;
            say(&mut stream, &answer("429 Too Many Requests", "", "")).await;
            if whole {
                request(&mut stream).await;
            } else {
                stream.readable().await.unwrap();
            }
            reset(stream);
        })
        .await;
        let toss = toss(&url, PATIENT);
        assert!(matches!(confirm(&toss).await, ConfirmOutcome::Refused(_)));
        // Nobody listens any more, so this can only be the same connection.
        assert_lost(confirm(&toss).await, Lost::Reset);
        acting.await.unwrap();
    }
}

#[tokio::test]
async fn a_close_without_an_answer_may_have_been_sent_on_a_new_and_on_a_reused_connection() {
    for answers_before in [0, 1] {
        let (url, acting) = peer(move |mut stream| async move {
            for _ in 0..answers_before {
                request(&mut stream).await;
                say(&mut stream, &answer("429 Too Many Requests", "", "")).await;
            }
            request(&mut stream).await;
        })
        .await;
        let toss = toss(&url, PATIENT);
        for _ in 0..answers_before {
            assert!(matches!(confirm(&toss).await, ConfirmOutcome::Refused(_)));
        }
        assert_lost(confirm(&toss).await, Lost::Reset);
        acting.await.unwrap();
    }
}

#[tokio::test]
async fn silence_runs_into_the_limit_before_and_after_the_head() {
    for head in ["", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n"] {
        let (url, acting) = peer(move |mut stream| async move {
            request(&mut stream).await;
            say(&mut stream, head).await;
            // Until the client gives up.
            stream.read_to_end(&mut Vec::new()).await
        })
        .await;
        assert_lost(confirm(&toss(&url, SHORT)).await, Lost::TimedOut);
        acting.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_dripping_body_does_not_stretch_the_limit() {
    let (url, acting) = peer(|mut stream| async move {
        request(&mut stream).await;
        say(
            &mut stream,
            "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n",
        )
        .await;
        let mut bytes = 0;
        // Far more often than the limit, until the client gives up.
        while stream.write_all(b" ").await.is_ok() {
            bytes += 1;
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bytes
    })
    .await;
    assert_lost(confirm(&toss(&url, SHORT)).await, Lost::TimedOut);
    let bytes = acting.await.unwrap();
    assert!(bytes > 1 && bytes < 1_000, "{bytes} bytes were dripped");
}

#[tokio::test]
async fn a_redirect_is_never_followed_and_alarms() {
    let target = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    target.set_nonblocking(true).unwrap();
    let elsewhere = target.local_addr().unwrap();
    for status in ["301 Moved", "302 Found", "307 Temporary", "308 Permanent"] {
        let location = format!("location: http://{elsewhere}/v1/payments/confirm\r\n");
        let outcome = confirm_answered_by(answer(status, &location, "")).await;
        let ConfirmOutcome::Lost(Lost::Inconclusive, told) = outcome else {
            panic!("{status}: {outcome:?}");
        };
        assert!(told.alarm);
    }
    assert_eq!(target.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_unreadable() {
    let html = "<html>".repeat(100);
    let done = r#"{"paymentKey":"pk_1","orderId":"order_1","status":"DONE","totalAmount":33000,"#;
    for text in [
        answer("502 Bad Gateway", "content-type: text/html\r\n", &html),
        answer("500 Internal Server Error", "", ""),
        answer("503 Service Unavailable", "retry-after: 1\r\n", "{}"),
        answer("200 OK", "", ""),
        answer("200 OK", "content-type: text/html\r\n", &html),
        answer("200 OK", "", done),
        // Cut: less than the head promised.
        format!("HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{done}"),
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{done}"),
        "SSH-2.0-OpenSSH_9.6\r\n\r\n".to_owned(),
    ] {
        assert_lost(confirm_answered_by(text).await, Lost::Unreadable);
    }
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_unreadable_even_if_it_is_json() {
    let padding = " ".repeat(300_000);
    let json = format!(r#"{{"code":"REJECT_CARD_COMPANY","message":"m"}}{padding}"#);
    let text = answer("403 Forbidden", "", &json);
    let (url, acting) = peer(|stream| answer_once(stream, text)).await;
    assert_lost(confirm(&toss(&url, PATIENT)).await, Lost::Unreadable);
    acting.await.unwrap();
}

#[tokio::test]
async fn a_429_without_any_body_is_refused() {
    let outcome = confirm_answered_by(answer("429 Too Many Requests", "", "")).await;
    let ConfirmOutcome::Refused(told) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!(told.status, Some(429));
}

//! Peers that break mid-call: only a failed connect is "not sent", and nothing is sent again.

use std::io::ErrorKind;
use std::time::Duration;

use payment::reach::{Lost, NotSent};
use payment::time::Millis;
use serde_json::json;
use server::gateway::{CancelOutcome, ConfirmOutcome, Gateway as _, InquiryOutcome, OpenOutcome};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::bench::{
    PATIENT, approved, cancel, confirm, error, json_answer, kakaopay, names, window,
};
use crate::peer::{answer, answer_once, peer, request, reset, say};

/// For calls that must run into their limit.
const SHORT: Millis = Millis::new(300);

#[track_caller]
fn assert_lost(outcome: ConfirmOutcome, expected: Lost) {
    match outcome {
        ConfirmOutcome::Lost(lost, told) => assert_eq!(lost, expected, "{told:?}"),
        other => panic!("{other:?} is not {expected:?}"),
    }
}

async fn approve_answered_by(text: String) -> ConfirmOutcome {
    let (url, acting) = peer(|stream| answer_once(stream, text)).await;
    let outcome = kakaopay(&url, PATIENT).confirm(&confirm()).await;
    acting.await.unwrap();
    outcome
}

#[tokio::test]
async fn a_refused_connection_is_not_sent_and_no_call_of_it_ends_anything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let shop = kakaopay(&url, PATIENT);
    let outcome = shop.confirm(&confirm()).await;
    assert_eq!(outcome, ConfirmOutcome::NotSent(NotSent::Connect));
    let asked = shop.inquire(&names()).await;
    assert!(matches!(asked, InquiryOutcome::NoAnswer(_)), "{asked:?}");
    let canceled = shop.cancel(&cancel(None, Some(33_000))).await;
    assert!(
        matches!(canceled, CancelOutcome::Unknown(_)),
        "{canceled:?}"
    );
    let opened = shop.open(&window()).await;
    assert!(matches!(opened, OpenOutcome::NoAnswer(_)), "{opened:?}");
}

#[tokio::test]
async fn a_failed_tls_handshake_is_not_sent_and_offers_the_version_that_kakaopay_speaks() {
    let (url, acting) = peer(|mut stream| async move {
        let mut hello = vec![0; 4_096];
        let count = stream.read(&mut hello).await.unwrap();
        say(&mut stream, "this is not TLS\r\n").await;
        stream.shutdown().await.unwrap();
        hello.truncate(count);
        let _ = stream.read_to_end(&mut Vec::new()).await;
        hello
    })
    .await;
    let shop = kakaopay(&url.replace("http:", "https:"), PATIENT);
    let outcome = shop.confirm(&confirm()).await;
    assert_eq!(outcome, ConfirmOutcome::NotSent(NotSent::Connect));
    let hello = acting.await.unwrap();
    // KakaoPay is said to speak TLS 1.2 only, and a probe agreed: with or without 1.3, both can be had.
    let offered = offered_versions(&hello);
    assert!(
        offered.contains(&0x0303) && offered.contains(&0x0304),
        "{offered:x?}"
    );
}

/// The versions that a TLS client offers (extension 43), by a search that takes the first that has the form.
fn offered_versions(hello: &[u8]) -> Vec<u16> {
    hello
        .windows(5)
        .enumerate()
        .find_map(|(at, head)| {
            let [0, 43, 0, whole, list] = head else {
                return None;
            };
            let versions = hello.get(at + 5..at + 5 + usize::from(*list))?;
            let fits = usize::from(*whole) == usize::from(*list) + 1;
            fits.then(|| {
                versions
                    .chunks(2)
                    .map(|v| u16::from_be_bytes([v[0], v[1]]))
                    .collect()
            })
        })
        .unwrap_or_default()
}

#[tokio::test]
async fn a_reset_before_or_after_the_request_is_read_may_have_been_sent() {
    for whole in [false, true] {
        let (url, acting) = peer(move |mut stream| async move {
            if whole {
                request(&mut stream).await;
            } else {
                stream.readable().await.unwrap();
            }
            reset(stream);
        })
        .await;
        let outcome = kakaopay(&url, PATIENT).confirm(&confirm()).await;
        assert_lost(outcome, Lost::Reset);
        acting.await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_dies_in_its_second_use_may_have_been_sent_and_is_not_replaced() {
    let (url, acting) = peer(|mut stream| async move {
        request(&mut stream).await;
        say(&mut stream, &json_answer(400, &error(-797))).await;
        request(&mut stream).await;
    })
    .await;
    let shop = kakaopay(&url, PATIENT);
    let first = shop.confirm(&confirm()).await;
    assert!(matches!(first, ConfirmOutcome::Found(..)), "{first:?}");
    // Nobody listens any more, so this can only be the same connection.
    assert_lost(shop.confirm(&confirm()).await, Lost::Reset);
    acting.await.unwrap();
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
        let outcome = kakaopay(&url, SHORT).confirm(&confirm()).await;
        assert_lost(outcome, Lost::TimedOut);
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
    let outcome = kakaopay(&url, SHORT).confirm(&confirm()).await;
    assert_lost(outcome, Lost::TimedOut);
    let bytes = acting.await.unwrap();
    assert!(bytes > 1 && bytes < 1_000, "{bytes} bytes were dripped");
}

#[tokio::test]
async fn a_redirect_is_never_followed_and_alarms() {
    let target = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    target.set_nonblocking(true).unwrap();
    let elsewhere = target.local_addr().unwrap();
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let location = format!("location: http://{elsewhere}/online/v1/payment/approve\r\n");
        let outcome = approve_answered_by(answer(status, &location, "")).await;
        let ConfirmOutcome::Lost(Lost::Inconclusive, told) = outcome else {
            panic!("{status}: {outcome:?}");
        };
        assert!(told.alarm);
    }
    assert_eq!(target.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[tokio::test]
async fn an_answer_that_cannot_be_read_is_unreadable_and_nothing_of_it_is_kept() {
    let html = "<html>".repeat(100);
    let book = "<p>x</p>".repeat(40_000);
    let whole = approved(&json!({})).to_string();
    let cut = &whole[..whole.len() - 20];
    for text in [
        answer("502 Bad Gateway", "content-type: text/html\r\n", &html),
        answer("502 Bad Gateway", "content-type: text/html\r\n", &book),
        answer("500 Internal Server Error", "", ""),
        answer("503 Service Unavailable", "retry-after: 1\r\n", "{}"),
        answer("400 Bad Request", "", r#"{"code":-701,"msg":"m"}"#),
        answer("200 OK", "", ""),
        answer("200 OK", "content-type: text/html\r\n", &html),
        answer("200 OK", "content-type: text/html\r\n", &book),
        answer("200 OK", "", cut),
        // An approval behind more than any has.
        answer("200 OK", "", &format!("{whole}{}", " ".repeat(300_000))),
        // Cut: less than the head promised.
        format!("HTTP/1.1 200 OK\r\ncontent-length: 9000\r\n\r\n{whole}"),
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffff\r\n{whole}"),
        "SSH-2.0-OpenSSH_9.6\r\n\r\n".to_owned(),
    ] {
        let outcome = approve_answered_by(text.clone()).await;
        let ConfirmOutcome::Lost(Lost::Unreadable, told) = outcome else {
            panic!("{}: {outcome:?}", &text[..40]);
        };
        assert_eq!(told.code, "unreadable");
    }
}

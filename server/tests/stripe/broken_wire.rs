//! Peers that break mid-call: only a failed connect is "not sent", and nothing is sent again.

use payment::reach::{Lost, NotSent};
use server::gateway::{CancelOutcome, ConfirmOutcome, Gateway as _, InquiryOutcome, OpenOutcome};
use tokio::net::TcpListener;

use crate::bench::{cancel, confirm, error, intent, json_answer, names, stripe, window};
use crate::peer::{answer, answer_once, peer, request, reset, say};

#[track_caller]
fn assert_lost(outcome: &ConfirmOutcome, expected: Lost) {
    assert!(
        matches!(outcome, ConfirmOutcome::Lost(lost, _) if *lost == expected),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn a_refused_connection_is_not_sent_and_no_call_of_it_ends_anything() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let shop = stripe(&url);
    let outcome = shop.confirm(&confirm()).await;
    assert_eq!(outcome, ConfirmOutcome::NotSent(NotSent::Connect));
    for asked in [shop.inquire(&names()).await, shop.close(&names()).await] {
        assert!(matches!(asked, InquiryOutcome::NoAnswer(_)), "{asked:?}");
    }
    let canceled = shop.cancel(&cancel(None, Some(33_000))).await;
    assert!(
        matches!(canceled, CancelOutcome::Unknown(_)),
        "{canceled:?}"
    );
    let opened = shop.open(&window()).await;
    assert!(matches!(opened, OpenOutcome::NoAnswer(_)), "{opened:?}");
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
        let outcome = stripe(&url).confirm(&confirm()).await;
        assert_lost(&outcome, Lost::Reset);
        acting.await.unwrap();
    }
}

#[tokio::test]
async fn a_connection_that_dies_in_its_second_use_may_have_been_sent_and_is_not_replaced() {
    let (url, acting) = peer(|mut stream| async move {
        request(&mut stream).await;
        say(&mut stream, &json_answer(429, &error("rate_limit"))).await;
        request(&mut stream).await;
    })
    .await;
    let shop = stripe(&url);
    let first = shop.confirm(&confirm()).await;
    assert!(matches!(first, ConfirmOutcome::Refused(_)), "{first:?}");
    // Nobody listens any more, so this can only be the same connection.
    assert_lost(&shop.confirm(&confirm()).await, Lost::Reset);
    acting.await.unwrap();
}

#[tokio::test]
async fn an_answer_that_is_cut_short_or_endless_or_no_http_is_unknown() {
    let body = intent("succeeded", &[]).to_string();
    let cut = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
        body.len() + 1
    );
    let endless = answer("200 OK", "", &" ".repeat(70_000));
    for text in [cut, endless, "this is not HTTP\r\n\r\n".to_owned()] {
        let (url, acting) = peer(|stream| answer_once(stream, text)).await;
        let outcome = stripe(&url).confirm(&confirm()).await;
        assert_lost(&outcome, Lost::Unreadable);
        acting.await.unwrap();
    }
}

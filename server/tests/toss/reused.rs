//! A gateway of many connections, scripted by the request: reused connections that die, redirects, and the two ways to ask.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use payment::attempt::Finding;
use server::gateway::{CancelOutcome, ConfirmOutcome, Gateway, InquiryOutcome};
use tokio::task::JoinSet;

use crate::bench::{PATIENT, cancel_of, confirm_of, key, names, order, toss};
use crate::peer::{Act, Peer, answer};

/// How often each idempotency key came.
fn keys(peer: &Peer) -> HashMap<String, u32> {
    let mut counted = HashMap::new();
    for request in peer.requests() {
        let key = request
            .lines()
            .find_map(|line| line.strip_prefix("idempotency-key: "));
        if let Some(key) = key {
            *counted.entry(key.to_owned()).or_default() += 1;
        }
    }
    counted
}

/// The client gives a request that a dying connection took no byte of to a new one by itself. That is no second send: of
/// whatever moment the connection dies in, the gateway never has a request twice.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_whose_reused_connection_dies_at_any_moment_comes_at_most_once() {
    const ROUNDS: usize = 300;
    let busy = || answer("429 Too Many Requests", "", "");
    let peer = Peer::serve(move |_, count| match count % 2 {
        0 => Act::AnswerAndClose(busy()),
        _ => Act::Close,
    })
    .await;
    let toss = Arc::new(toss(&peer.url, PATIENT));
    let mut calls = JoinSet::new();
    let mut outcomes = HashMap::new();
    for n in 0..ROUNDS {
        // Two after each other on one connection, and others beside them: before, while and after it closes.
        for (call, pause_us) in [("a", 0), ("b", (n % 30) * 20)] {
            let toss = Arc::clone(&toss);
            let name = format!("idem-{n}-{call}");
            calls.spawn(async move {
                tokio::time::sleep(Duration::from_micros(pause_us as u64)).await;
                let call = confirm_of("pk_1", "order_1", &name);
                (name, toss.confirm(&call).await)
            });
        }
        if n % 3 == 0 {
            while let Some(ended) = calls.join_next().await {
                let (name, outcome) = ended.unwrap();
                outcomes.insert(name, outcome);
            }
        }
    }
    while let Some(ended) = calls.join_next().await {
        let (name, outcome) = ended.unwrap();
        outcomes.insert(name, outcome);
    }
    let keys = keys(&peer);
    assert_eq!(outcomes.len(), 2 * ROUNDS);
    for (name, outcome) in outcomes {
        let came = keys.get(&name).copied().unwrap_or(0);
        assert!(came <= 1, "{name} came {came} times: {outcome:?}");
        match outcome {
            ConfirmOutcome::Refused(_) => assert_eq!(came, 1, "{name}"),
            ConfirmOutcome::NotSent(_) => assert_eq!(came, 0, "{name}"),
            ConfirmOutcome::Lost(..) => {}
            other @ ConfirmOutcome::Found(..) => panic!("{name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_close_after_the_whole_request_on_a_reused_connection_is_lost_though_another_could_be_made()
 {
    // The first is answered, the second read and dropped; whoever connects anew would be answered.
    let peer = Peer::serve(|_, count| match count {
        0 => Act::Answer(answer("429 Too Many Requests", "", "")),
        _ => Act::Close,
    })
    .await;
    let toss = toss(&peer.url, PATIENT);
    for n in 0..20 {
        let first = toss
            .confirm(&confirm_of("pk_1", "order_1", &format!("first-{n}")))
            .await;
        assert!(matches!(first, ConfirmOutcome::Refused(_)), "{first:?}");
        let second = toss
            .confirm(&confirm_of("pk_1", "order_1", &format!("second-{n}")))
            .await;
        assert!(matches!(second, ConfirmOutcome::Lost(..)), "{second:?}");
    }
    let keys = keys(&peer);
    assert_eq!(keys.len(), 40);
    assert!(keys.values().all(|count| *count == 1), "{keys:?}");
}

#[tokio::test]
async fn no_call_follows_a_redirect_to_itself_or_round_a_loop() {
    for status in [
        "301 Moved",
        "302 Found",
        "303 See Other",
        "307 Temporary",
        "308 Permanent",
    ] {
        let home = Arc::new(Mutex::new(String::new()));
        let location = Arc::clone(&home);
        let peer = Peer::serve(move |request, _| {
            let path = request.split(' ').nth(1).unwrap_or_default();
            let base = location.lock().unwrap().clone();
            Act::Answer(answer(status, &format!("location: {base}{path}\r\n"), ""))
        })
        .await;
        home.lock().unwrap().clone_from(&peer.url);
        let toss = toss(&peer.url, PATIENT);
        let confirmed = toss.confirm(&confirm_of("pk_1", "order_1", "idem-1")).await;
        assert!(
            matches!(&confirmed, ConfirmOutcome::Lost(_, told) if told.alarm),
            "{confirmed:?}"
        );
        let canceled = toss.cancel(&cancel_of("pk_1", None, None)).await;
        assert!(
            matches!(&canceled, CancelOutcome::Unknown(told) if told.alarm),
            "{canceled:?}"
        );
        assert_eq!(peer.requests().len(), 2, "{status}");
        let asked = toss
            .inquire(&names(Some(&key("pk_1")), &order("order_1")))
            .await;
        assert!(
            matches!(&asked, InquiryOutcome::NoWord(told) if told.alarm),
            "{asked:?}"
        );
        // At most once by each way to ask.
        assert!(peer.requests().len() <= 4, "{status}");
    }
}

const DONE: &str = r#"{"paymentKey":"pk_1","orderId":"order_1","status":"DONE","currency":"KRW","totalAmount":33000,
    "balanceAmount":33000,"failure":null,"cancels":null,"approvedAt":"2026-10-02T10:15:41+09:00"}"#;
const ABSENT: &str = r#"{"code":"NOT_FOUND_PAYMENT","message":"m"}"#;

/// What an inquiry comes to when it is answered so by the payment's key and so by the order's id.
async fn asked(
    by_key: (&'static str, &'static str),
    by_order: (&'static str, &'static str),
) -> InquiryOutcome {
    let peer = Peer::serve(move |request, _| {
        let (status, body) = if request.contains("/orders/") {
            by_order
        } else {
            by_key
        };
        Act::Answer(answer(status, "content-type: application/json\r\n", body))
    })
    .await;
    let toss = toss(&peer.url, PATIENT);
    toss.inquire(&names(Some(&key("pk_1")), &order("order_1")))
        .await
}

#[tokio::test]
async fn not_found_counts_only_when_both_ways_to_ask_say_so() {
    let absent = ("404 Not Found", ABSENT);
    let done = ("200 OK", DONE);
    let found = asked(absent, done).await;
    assert!(
        matches!(found, InquiryOutcome::Found(Finding::Charged { .. }, _)),
        "{found:?}"
    );
    let found = asked(done, absent).await;
    assert!(
        matches!(found, InquiryOutcome::Found(Finding::Charged { .. }, _)),
        "{found:?}"
    );
    let found = asked(absent, absent).await;
    assert!(
        matches!(found, InquiryOutcome::Found(Finding::NotFound { .. }, _)),
        "{found:?}"
    );
    // A way that gives no answer agrees to nothing: an error, a page, a mixed-up key.
    for broken in [
        ("500 Internal Server Error", "<html>"),
        ("404 Not Found", "<html>no such page</html>"),
        ("404 Not Found", "{}"),
        ("429 Too Many Requests", ""),
        (
            "401 Unauthorized",
            r#"{"code":"UNAUTHORIZED_KEY","message":"m"}"#,
        ),
        (
            "403 Forbidden",
            r#"{"code":"FORBIDDEN_REQUEST","message":"m"}"#,
        ),
        (
            "400 Bad Request",
            r#"{"code":"INVALID_API_KEY","message":"m"}"#,
        ),
        ("302 Found", ""),
    ] {
        for asked in [asked(absent, broken).await, asked(broken, absent).await] {
            assert!(
                matches!(
                    asked,
                    InquiryOutcome::NoWord(_) | InquiryOutcome::NoAnswer(_)
                ),
                "{broken:?}: {asked:?}"
            );
        }
    }
}

#[tokio::test]
async fn an_error_page_as_large_as_a_book_is_unreadable_whatever_its_status() {
    let page: &'static str = Box::leak("<p>x</p>".repeat(40_000).into_boxed_str());
    for status in [
        "200 OK",
        "500 Internal Server Error",
        "502 Bad Gateway",
        "504 Gateway Timeout",
    ] {
        let peer = Peer::serve(move |_, _| {
            Act::AnswerAndClose(answer(status, "content-type: text/html\r\n", page))
        })
        .await;
        let toss = toss(&peer.url, PATIENT);
        let outcome = toss.confirm(&confirm_of("pk_1", "order_1", "idem-1")).await;
        let ConfirmOutcome::Lost(payment::reach::Lost::Unreadable, told) = outcome else {
            panic!("{status}: {outcome:?}");
        };
        // Nothing of the page is kept or logged.
        assert!(
            !told.code.contains('<') && told.code.len() < 200,
            "{}",
            told.code
        );
    }
}

//! Time values that break arithmetic: each is used, has passed, or is refused before anything is claimed.

use serde_json::json;

use crate::raw;
use crate::shop::Shop;

/// What a value of the header comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Means {
    Sent,
    Passed,
    Refused,
}

/// The header's lines as bytes, and what they mean.
const TABLE: &[(&str, Means)] = &[
    ("", Means::Sent),
    ("x-request-timeout-ms: 65000\r\n", Means::Sent),
    ("x-request-timeout-ms: 600000\r\n", Means::Sent),
    ("X-REQUEST-TIMEOUT-MS: 65000\r\n", Means::Sent),
    // White space around a value is none of it, by HTTP's own rule.
    ("x-request-timeout-ms:\t  65000 \t\r\n", Means::Sent),
    ("x-request-timeout-ms:65000\r\n", Means::Sent),
    ("x-request-timeout-ms: 0\r\n", Means::Passed),
    ("x-request-timeout-ms: -0\r\n", Means::Passed),
    ("x-request-timeout-ms: -1\r\n", Means::Passed),
    (
        "x-request-timeout-ms: -9223372036854775809\r\n",
        Means::Passed,
    ),
    ("x-request-timeout-ms: \r\n", Means::Refused),
    ("x-request-timeout-ms:\r\n", Means::Refused),
    ("x-request-timeout-ms: +5000\r\n", Means::Refused),
    ("x-request-timeout-ms: 5 000\r\n", Means::Refused),
    ("x-request-timeout-ms: 5000.5\r\n", Means::Refused),
    ("x-request-timeout-ms: 5000ms\r\n", Means::Refused),
    ("x-request-timeout-ms: 1e4\r\n", Means::Refused),
    ("x-request-timeout-ms: 0x10\r\n", Means::Refused),
    ("x-request-timeout-ms: ５０００\r\n", Means::Refused),
    ("x-request-timeout-ms: −1\r\n", Means::Refused),
    ("x-request-timeout-ms: NaN\r\n", Means::Refused),
    ("x-request-timeout-ms: inf\r\n", Means::Refused),
    ("x-request-timeout-ms: 600001\r\n", Means::Refused),
    ("x-request-timeout-ms: 2147483648\r\n", Means::Refused),
    (
        "x-request-timeout-ms: 18446744073709551615\r\n",
        Means::Refused,
    ),
    (
        "x-request-timeout-ms: 18446744073709551616\r\n",
        Means::Refused,
    ),
    (
        "x-request-timeout-ms: 99999999999999999999999\r\n",
        Means::Refused,
    ),
    ("x-request-timeout-ms: 5000, 5000\r\n", Means::Refused),
    (
        "x-request-timeout-ms: 65000\r\nx-request-timeout-ms: 65000\r\n",
        Means::Refused,
    ),
    (
        "x-request-timeout-ms: 65000\r\nx-request-timeout-ms: 0\r\n",
        Means::Refused,
    ),
];

#[tokio::test]
async fn every_value_of_the_time_header_is_used_has_passed_or_is_refused_before_the_claim() {
    let shop = Shop::open().await;
    for (line, means) in TABLE {
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        let sent = shop.confirms();
        let bytes = raw::confirm(&order, &order.id, &key, line);
        let (status, text) = raw::exchange(&shop, &bytes).await;
        let (expected, code) = match means {
            Means::Sent => (200, "\"paid\""),
            Means::Passed => (503, "deadline_passed"),
            Means::Refused => (400, "invalid_timeout_header"),
        };
        assert_eq!(status, expected, "{line:?}: {text}");
        assert!(text.contains(code), "{line:?}: {text}");
        let reached = u64::from(*means == Means::Sent);
        assert_eq!(shop.confirms() - sent, reached, "{line:?}");
        if *means == Means::Refused {
            // Not even an attempt was made.
            assert_eq!(shop.poll(&order).await.body["attempt"], json!(null));
        }
        if *means != Means::Sent {
            assert_eq!(shop.poll(&order).await.body["payable"], true, "{line:?}");
            assert_eq!(shop.confirm(&order, &key).await.status, 200, "{line:?}");
        }
    }
    let in_flight = "pg_in_flight{gateway=\"toss\",operation=\"confirm\"}";
    assert_eq!(shop.metric(in_flight).await, 0.0);
    assert_eq!(shop.metric("http_in_flight{class=\"confirm\"}").await, 0.0);
    shop.end().await;
}

#[tokio::test]
async fn a_proxys_stamp_of_any_form_never_lengthens_the_time_and_breaks_nothing() {
    let shop = Shop::with(&[("JARI_TRUSTED_PROXIES", "127.0.0.1")]).await;
    for stamp in [
        "t=0",
        "t=-1",
        "t=1",
        "t=NaN",
        "t=1e9",
        "t=99999999999999",
        "t=18446744073709551615",
        "t=99999999999999999999999",
        "",
        "0",
    ] {
        let order = shop.order("mug", 1).await;
        let key = shop.key(&order.id, order.amount);
        let lines = format!("x-request-timeout-ms: 65000\r\nx-request-start: {stamp}\r\n");
        let bytes = raw::confirm(&order, &order.id, &key, &lines);
        let (status, text) = raw::exchange(&shop, &bytes).await;
        // One from long ago has used the time up; any other is no queue.
        let long_ago = matches!(stamp, "t=0" | "t=1");
        assert_eq!(status, if long_ago { 503 } else { 200 }, "{stamp}: {text}");
        assert_eq!(u64::from(status == 200), shop.charges(&order.id));
    }
    shop.end().await;
}

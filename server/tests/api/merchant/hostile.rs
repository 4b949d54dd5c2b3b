//! Requests as nobody sends them by mistake, drawn from one seed: each is answered as the document says, and none with a
//! fault of ours.

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{Method, RequestBuilder, Url};
use serde_json::{Map, Value, json};

use super::{Merchant, id, wish};
use crate::shop::{Reply, Shop};

/// How many requests.
const REQUESTS: u32 = 800;

#[derive(Debug, Clone)]
struct Case {
    target: Target,
    /// `None` is the shop's own key.
    authorization: Option<Vec<u8>>,
    idempotency_key: Option<Vec<u8>>,
    content_type: String,
    body: Vec<u8>,
}

#[derive(Debug, Clone)]
enum Target {
    Create,
    List(String),
    Show(String),
    Refund(String),
    /// A refund of an order that is there.
    RefundOwn,
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        Just(json!(u64::MAX)),
        any::<String>().prop_map(Value::from),
        Just(json!("\u{0}")),
        Just(json!("가".repeat(300))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,8}", inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// A body that is right but for one field.
fn nearly_right() -> impl Strategy<Value = Vec<u8>> {
    let names = [
        "lines",
        "reference",
        "returnUrl",
        "language",
        "expiresInSeconds",
        "amount",
        "reason",
        "x",
    ];
    let of_line = ["name", "quantity", "unitAmount"];
    (
        any::<bool>(),
        prop::sample::select(names.to_vec()),
        prop::sample::select(of_line.to_vec()),
        value(),
    )
        .prop_map(|(in_line, name, line_name, value)| {
            let mut body = wish("fuzz");
            if in_line {
                body["lines"][0][line_name] = value;
            } else if matches!(name, "amount" | "reason" | "x") {
                body = json!({"reason": "fuzz"});
                body[name] = value;
            } else {
                body[name] = value;
            }
            body.to_string().into_bytes()
        })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => nearly_right(),
        2 => value().prop_map(|value| value.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..200),
        1 => Just("[".repeat(20_000).into_bytes()),
        1 => Just(br#"{"amount":1e400,"reason":"x"}"#.to_vec()),
        1 => Just(br#"{"reason":"x","reason":"y"}"#.to_vec()),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let target = prop_oneof![
        3 => Just(Target::Create),
        1 => any::<String>().prop_map(Target::List),
        2 => any::<String>().prop_map(Target::Show),
        1 => any::<String>().prop_map(Target::Refund),
        2 => Just(Target::RefundOwn),
    ];
    let bytes = || prop::collection::vec(any::<u8>(), 0..300);
    let word = || prop_oneof![3 => "[a-z0-9]{1,20}".prop_map(String::into_bytes), 1 => bytes()];
    let kinds = [
        "application/json",
        "application/json",
        "application/json",
        "text/plain",
        "",
        "application/json;charset=x",
    ];
    (
        target,
        prop::option::weighted(0.1, word()),
        prop::option::weighted(0.9, word()),
        prop::sample::select(kinds.to_vec()),
        body(),
    )
        .prop_map(
            |(target, authorization, idempotency_key, content_type, body)| Case {
                target,
                authorization,
                idempotency_key,
                content_type: content_type.to_owned(),
                body,
            },
        )
}

fn request(vases: &Merchant<'_>, own: &str, case: &Case) -> RequestBuilder {
    let mut url: Url = vases.shop.url.parse().expect("an address");
    let (method, parts) = match &case.target {
        Target::Create => (Method::POST, vec!["v1", "orders"]),
        Target::List(reference) => {
            url.query_pairs_mut().append_pair("reference", reference);
            (Method::GET, vec!["v1", "orders"])
        }
        Target::Show(order) => (Method::GET, vec!["v1", "orders", order]),
        Target::Refund(order) => (Method::POST, vec!["v1", "orders", order, "refunds"]),
        Target::RefundOwn => (Method::POST, vec!["v1", "orders", own, "refunds"]),
    };
    url.path_segments_mut()
        .expect("a path")
        .clear()
        .extend(parts);
    let mut request = vases.shop.client.request(method.clone(), url);
    request = match &case.authorization {
        None => request.bearer_auth(&vases.key),
        Some(bytes) => match HeaderValue::from_bytes(bytes) {
            Ok(value) => request.header(AUTHORIZATION, value),
            Err(_) => request,
        },
    };
    if let Some(Ok(key)) = case.idempotency_key.as_deref().map(HeaderValue::from_bytes) {
        request = request.header("Idempotency-Key", key);
    }
    if method == Method::POST {
        request = request
            .header(CONTENT_TYPE, &case.content_type)
            .body(case.body.clone());
    }
    request
}

#[tokio::test]
async fn no_hostile_request_is_answered_by_a_fault_or_against_the_document() {
    let shop = Shop::open().await;
    let vases = Merchant::of(&shop, "vases").await;
    let order = vases.order("A-1").await;
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let strategy = case();
    for _ in 0..REQUESTS {
        let case = strategy.new_tree(&mut runner).expect("a case").current();
        let request = request(&vases, id(&order), &case)
            .build()
            .expect("a request");
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let answer = shop.client.execute(request).await;
        let answer = answer.unwrap_or_else(|error| panic!("no answer to {case:?}: {error}"));
        let reply = Reply::of(answer).await;
        assert!(reply.status < 500, "{case:?}: {reply:?}");
        // What leads to no route is told as that.
        let nowhere = matches!(reply.code(), "not_found" | "method_not_allowed");
        if !nowhere {
            vases.document.check(&method, &path, &reply);
        }
    }
    // By hand: what no library lets through.
    for path in [
        "/v1/orders/%ff%fe",
        "/v1/orders/%00",
        "/v1/orders/a%2Fb",
        "/v1/orders?reference=%ff",
        "/v1/orders?reference=a&reference=b",
        "/v1//orders",
    ] {
        let answer = shop.get(path).bearer_auth(&vases.key).send().await;
        let status = answer.expect("an answer").status().as_u16();
        assert!(status < 500, "{path}: {status}");
    }
    shop.end().await;
}

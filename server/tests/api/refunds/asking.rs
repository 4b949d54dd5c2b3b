//! Who may ask for what, and what the answer says.

use super::*;

#[tokio::test]
async fn a_shopper_cancels_a_paid_order_and_everything_comes_back_once() {
    let shop = Shop::open().await;
    let free = shop.free("mug").await;
    let (order, _) = paid(&shop, "mug").await;
    let reply = by_shopper(&shop, &order, "k1", &json!({"reason": "변심"})).await;
    assert_eq!(reply.status, 200, "{:?}", reply.body);
    assert_eq!(reply.body["status"], "canceled");
    assert_eq!(reply.body["refunded"], order.amount);
    assert_eq!(reply.body["refund"]["status"], "done");
    assert_eq!(reply.body["payable"], false);
    assert_eq!(canceled_won(&shop, &order), order.amount);
    assert_eq!(shop.free("mug").await, free);
    // The same wish again is its present truth; a new one finds the order closed.
    let again = by_shopper(&shop, &order, "k1", &json!({"reason": "변심"})).await;
    assert_eq!((again.status, &again.body), (200, &reply.body));
    by_shopper(&shop, &order, "k2", &json!({"reason": "변심"}))
        .await
        .refused(409, "order_closed");
    assert_eq!(cancels_received(&shop), 1);
    assert_eq!(shop.metric("refunds_total{result=\"done\"}").await, 1.0);
    shop.end().await;
}

#[tokio::test]
async fn the_operator_refunds_in_parts_and_never_more_than_the_charge() {
    let shop = Shop::with(&[OPERATOR]).await;
    let (order, _) = paid(&shop, "mug").await;
    let first = by_operator(&shop, &order, "k1", Some(3_000)).await;
    assert_eq!(first.status, 200, "{:?}", first.body);
    assert_eq!(first.body["status"], "partially_canceled");
    assert_eq!(first.body["attempt"]["status"], "partially_canceled");
    assert_eq!(first.body["refunded"], 3_000);
    by_operator(&shop, &order, "k2", Some(order.amount - 2_999))
        .await
        .refused(409, "refund_exceeds_balance");
    by_operator(&shop, &order, "k1", Some(3_001))
        .await
        .refused(422, "idempotency_key_reused");
    let rest = by_operator(&shop, &order, "k3", None).await;
    assert_eq!(
        (rest.status, &rest.body["status"]),
        (200, &json!("canceled"))
    );
    assert_eq!(canceled_won(&shop, &order), order.amount);
    assert_eq!(cancels_received(&shop), 2);
    shop.end().await;
}

#[tokio::test]
async fn a_wish_needs_a_key_a_reason_and_an_amount_that_is_money() {
    let shop = Shop::with(&[OPERATOR]).await;
    let (order, _) = paid(&shop, "mug").await;
    let good = json!({"reason": "변심"});
    let path = format!("/api/orders/{}/cancel", order.id);
    let bare = || shop.post(&path).header(COOKIE, &order.cookie);
    for request in [
        bare().json(&good),
        bare().header("Idempotency-Key", "").json(&good),
        bare().header("Idempotency-Key", "a b").json(&good),
        bare()
            .header("Idempotency-Key", "k".repeat(201))
            .json(&good),
        bare()
            .header("Idempotency-Key", "a")
            .header("Idempotency-Key", "b")
            .json(&good),
        bare().header("Idempotency-Key", "k").json(&json!({})),
        bare()
            .header("Idempotency-Key", "k")
            .json(&json!({"reason": ""})),
        bare()
            .header("Idempotency-Key", "k")
            .json(&json!({"reason": "a\nb"})),
        bare()
            .header("Idempotency-Key", "k")
            .json(&json!({"reason": "x".repeat(161)})),
        bare()
            .header("Idempotency-Key", "k")
            .json(&json!({"reason": "변심", "amount": 0})),
        bare()
            .header("Idempotency-Key", "k")
            .json(&json!({"reason": "변심", "amount": -1})),
        bare()
            .header("Idempotency-Key", "k")
            .json(&json!({"reason": "변심", "amount": "all"})),
        bare()
            .header("Idempotency-Key", "k")
            .json(&json!({"reason": "변심", "key": 1})),
        // A shopper gives the whole order back, not a part of it.
        bare()
            .header("Idempotency-Key", "k")
            .json(&json!({"reason": "변심", "amount": 1})),
    ] {
        let reply = Reply::of(request.send().await.expect("an answer")).await;
        reply.refused(400, "invalid_request");
    }
    let text = bare().header("Idempotency-Key", "k").body("{}");
    let reply = Reply::of(text.send().await.expect("an answer")).await;
    reply.refused(415, "unsupported_media_type");
    let foreign = bare()
        .header("Origin", "https://elsewhere.example")
        .header("Sec-Fetch-Site", "cross-site")
        .header("Idempotency-Key", "k")
        .json(&good);
    let reply = Reply::of(foreign.send().await.expect("an answer")).await;
    reply.refused(403, "forbidden_origin");
    assert_eq!(cancels_received(&shop), 0);
    shop.end().await;
}

#[tokio::test]
async fn whoever_may_not_ask_hears_what_everybody_hears_of_a_missing_order() {
    for env in [&[OPERATOR][..], &[]] {
        let shop = Shop::with(env).await;
        let (order, _) = paid(&shop, "mug").await;
        let stranger = shop.order("mug", 1).await;
        let good = json!({"reason": "변심"});
        let ask = |id: &str| {
            shop.post(&format!("/api/orders/{id}/cancel"))
                .header("Idempotency-Key", "k")
                .json(&good)
        };
        let missing = Reply::of(ask("ord_nobody").send().await.expect("an answer")).await;
        missing.refused(404, "order_not_found");
        let wrong = format!("{}x", &TOKEN[..TOKEN.len() - 1]);
        for request in [
            ask(&order.id),
            ask(&order.id).header(COOKIE, &stranger.cookie),
            ask(&order.id).bearer_auth(&wrong),
            ask(&order.id).bearer_auth(""),
            // The right cookie does not help whoever claims to be the operator and is not.
            ask(&order.id)
                .bearer_auth(&wrong)
                .header(COOKIE, &order.cookie),
            ask("ord_nobody").bearer_auth(TOKEN),
            ask("no-order").bearer_auth(TOKEN),
        ] {
            let reply = Reply::of(request.send().await.expect("an answer")).await;
            assert_eq!((reply.status, &reply.body), (404, &missing.body));
        }
        let refused = shop.metric("operator_token_refused_total").await;
        assert!(refused >= 3.0, "{refused}");
        assert_eq!(cancels_received(&shop), 0);
        assert_eq!(shop.poll(&order).await.body["status"], "paid");
        shop.end().await;
    }
}

#[tokio::test]
async fn a_shoppers_time_to_cancel_ends_and_the_operators_does_not() {
    let shop = Shop::with(&[OPERATOR, ("JARI_CANCEL_CUTOFF_MS", "0")]).await;
    let (order, _) = paid(&shop, "mug").await;
    by_shopper(&shop, &order, "k1", &json!({"reason": "변심"}))
        .await
        .refused(409, "order_closed");
    let page = shop
        .get(&format!("/orders/{}", order.id))
        .header(COOKIE, &order.cookie);
    let page = page.send().await.expect("an answer").text().await.unwrap();
    assert!(!page.contains("data-testid=\"cancel\""));
    assert_eq!(by_operator(&shop, &order, "k2", None).await.status, 200);
    shop.end().await;
}

#[tokio::test]
async fn the_order_page_cancels_without_script_and_a_double_click_is_one_wish() {
    let shop = Shop::open().await;
    let (order, _) = paid(&shop, "mug").await;
    let path = format!("/orders/{}", order.id);
    let page = || async {
        let request = shop.get(&path).header(COOKIE, &order.cookie);
        let response = request.send().await.expect("an answer");
        response.text().await.expect("text")
    };
    let offered = page().await;
    assert!(offered.contains("data-testid=\"cancel\""), "{offered}");
    let key = offered
        .split("name=\"key\" value=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next())
        .expect("a key")
        .to_owned();
    shop.set(of_cancels(json!({"delayMs": 600}))).await;
    let press = || {
        let form = [("key", key.clone())];
        let request = shop.post(&path).header(COOKIE, &order.cookie).form(&form);
        async move { request.send().await.expect("an answer") }
    };
    let (first, second) = tokio::join!(press(), press());
    for answer in [first, second] {
        assert_eq!(answer.status(), 303);
        assert_eq!(answer.headers()["location"], path.as_str());
    }
    // Asked, and nobody says yet that it is done.
    let waiting = page().await;
    assert!(waiting.contains("data-status=\"asked\""), "{waiting}");
    assert!(!waiting.contains("data-testid=\"cancel\""));
    shop.until_status(&order, "canceled").await;
    let done = page().await;
    assert!(done.contains("data-status=\"done\""), "{done}");
    assert_eq!(cancels_received(&shop), 1);
    let late = shop
        .post(&path)
        .header(COOKIE, &order.cookie)
        .form(&[("key", "another")])
        .send()
        .await
        .expect("an answer");
    assert_eq!(
        late.headers()["location"],
        format!("{path}?notice=order_closed").as_str()
    );
    shop.end().await;
}

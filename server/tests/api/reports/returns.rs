//! What an address or a body says of amount, order and attempt is the browser's word; what was ordered is the shop's.

use reqwest::header::COOKIE;
use serde_json::json;

use crate::beside::Beside;
use crate::shop::{Order, Reply, Shop};

/// Another order of the same shopper.
async fn second_order(shop: &Shop, first: &Order, sku: &str, quantity: u32) -> Order {
    let request = shop
        .post("/api/orders")
        .header(COOKIE, &first.cookie)
        .json(&json!({"items": [{"sku": sku, "quantity": quantity}]}));
    let body = Reply::of(request.send().await.unwrap()).await.body;
    Order {
        id: body["orderId"].as_str().unwrap().to_owned(),
        amount: body["amount"].as_u64().unwrap(),
        cookie: first.cookie.clone(),
    }
}

async fn reference(shop: &Shop, order: &Order) -> String {
    let attempt = shop.attempt(order).await;
    attempt.body["reference"].as_str().unwrap().to_owned()
}

/// Posts the confirm form of an attempt's return page; where that leads.
async fn post_back(shop: &Shop, order: &Order, reference: &str, form: [(&str, &str); 3]) -> String {
    let request = shop
        .post(&format!("/checkout/{}/return/{reference}", order.id))
        .header(COOKIE, &order.cookie)
        .form(&form);
    let reply = Reply::of(request.send().await.unwrap()).await;
    assert_eq!(reply.status, 303, "{:?}", reply.body);
    reply.headers["location"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_payment_of_another_amount_is_never_charged_whatever_address_and_body_say() {
    for mismatch in ["INVALID_REQUEST", "FORBIDDEN_REQUEST"] {
        let shop = Shop::open().await;
        shop.set(json!({"mismatchCode": mismatch})).await;
        let order = shop.order("mug", 3).await;
        let reference = reference(&shop, &order).await;
        let amount = order.amount.to_string();
        // The window was opened with 100, and the address says so: refused here.
        let cheap = shop.key(&order.id, 100);
        let form = [
            ("paymentKey", cheap.as_str()),
            ("orderId", order.id.as_str()),
        ];
        let to = post_back(
            &shop,
            &order,
            &reference,
            [form[0], form[1], ("amount", "100")],
        )
        .await;
        assert_eq!(to, format!("/checkout/{}?notice=amount_mismatch", order.id));
        let forged = Order {
            amount: 100,
            ..order.clone()
        };
        shop.confirm(&forged, &cheap)
            .await
            .refused(400, "amount_mismatch");
        assert_eq!(shop.confirms(), 0);
        assert_eq!(shop.metric("payments_tampered_total").await, 2.0);
        assert_eq!(shop.poll(&order).await.body["payable"], true);
        // The address says 100, the body the order's sum: the gateway is told the shop's own sum, and it refuses.
        let to = post_back(
            &shop,
            &order,
            &reference,
            [form[0], form[1], ("amount", &amount)],
        )
        .await;
        assert!(to.contains("/return/"), "{to}");
        let state = shop.until_attempt(&order, "failed").await;
        assert_eq!(state.body["payable"], true, "{mismatch}");
        assert_eq!((shop.confirms(), shop.charges(&order.id)), (1, 0));
        // Its own shopper can still pay it.
        let again = shop.attempt(&order).await;
        let id = again.body["gatewayOrderId"].as_str().unwrap().to_owned();
        let key = shop.key(&id, order.amount);
        let paid = shop.confirm_request(&order, &id, &key).send().await;
        assert_eq!(paid.unwrap().status(), 200, "{mismatch}");
        shop.end().await;
    }
}

#[tokio::test]
async fn the_payment_of_a_cheaper_order_pays_no_dearer_one() {
    let shop = Shop::open().await;
    let cheap = shop.order("notebook", 1).await;
    let dear = second_order(&shop, &cheap, "tote", 2).await;
    assert!(cheap.amount < dear.amount);
    // Authenticated and not yet confirmed: the gateway knows what it is for.
    let key = shop.key(&cheap.id, cheap.amount);
    shop.confirm(&dear, &key).await.refused(402, "declined");
    assert_eq!((shop.charges(&dear.id), shop.charges(&cheap.id)), (0, 0));
    assert_eq!(shop.poll(&dear).await.body["payable"], true);
    assert_eq!(shop.poll(&cheap).await.body["payable"], true);
    // Confirmed already: we know what it is for.
    let key = shop.key(&cheap.id, cheap.amount);
    assert_eq!(shop.confirm(&cheap, &key).await.status, 200);
    let sent = shop.confirms();
    let again = shop.attempt(&dear).await;
    let id = again.body["gatewayOrderId"].as_str().unwrap().to_owned();
    let request = shop.confirm_request(&dear, &id, &key);
    Reply::of(request.send().await.unwrap())
        .await
        .refused(409, "payment_key_used");
    assert_eq!(shop.confirms(), sent);
    // Under the cheaper one's name it pays that one only, which is paid.
    let named = Order {
        amount: cheap.amount,
        ..dear.clone()
    };
    let request = shop.confirm_request(&named, &cheap.id, &key);
    let answer = Reply::of(request.send().await.unwrap()).await;
    assert_eq!(answer.body["orderId"], json!(cheap.id));
    assert_eq!(shop.poll(&dear).await.body["status"], "pending");
    shop.end().await;
}

#[tokio::test]
async fn a_return_belongs_to_the_attempt_that_it_names_and_never_to_the_latest() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let first = reference(&shop, &order).await;
    let first_key = shop.key(&order.id, order.amount);
    shop.set(json!({"decline": {"code": "REJECT_CARD_COMPANY"}}))
        .await;
    shop.confirm(&order, &first_key)
        .await
        .refused(402, "declined");
    shop.set(json!({})).await;
    let second = shop.attempt(&order).await;
    let (second_id, second) = (
        second.body["gatewayOrderId"].as_str().unwrap().to_owned(),
        second.body["reference"].as_str().unwrap().to_owned(),
    );
    assert_ne!(first, second);
    let sent = shop.confirms();
    let amount = order.amount.to_string();
    // The first attempt's return comes once more, while the second is the newest: it pays nothing.
    let late = shop.key(&order.id, order.amount);
    for key in [&first_key, &late] {
        let form = [
            ("paymentKey", key.as_str()),
            ("orderId", order.id.as_str()),
            ("amount", amount.as_str()),
        ];
        post_back(&shop, &order, &first, form).await;
    }
    assert_eq!(shop.confirms(), sent);
    assert_eq!(shop.poll(&order).await.body["payable"], true);
    // The second's own return pays the second.
    let key = shop.key(&second_id, order.amount);
    let form = [
        ("paymentKey", key.as_str()),
        ("orderId", second_id.as_str()),
        ("amount", amount.as_str()),
    ];
    let to = post_back(&shop, &order, &second, form).await;
    assert!(to.ends_with(&second), "{to}");
    shop.until_status(&order, "paid").await;
    assert_eq!((shop.charges(&order.id), shop.charges(&second_id)), (0, 1));
    shop.end().await;
}

#[tokio::test]
async fn a_return_with_another_orders_attempt_does_nothing_to_either() {
    let shop = Shop::open().await;
    let order = shop.order("mug", 1).await;
    let own = second_order(&shop, &order, "mug", 1).await;
    let stranger = shop.order("mug", 1).await;
    let mut beside = Beside::of(&shop).await;
    for other in [&own, &stranger] {
        let foreign = reference(&shop, other).await;
        let before = beside.rows().await;
        let key = shop.key(&order.id, order.amount);
        let amount = order.amount.to_string();
        let form = [
            ("paymentKey", key.as_str()),
            ("orderId", order.id.as_str()),
            ("amount", amount.as_str()),
        ];
        let to = post_back(&shop, &order, &foreign, form).await;
        let page = shop.get(&to).header(COOKIE, &order.cookie).send().await;
        assert_eq!(page.unwrap().status(), 404, "{to}");
        assert_eq!(beside.rows().await, before);
    }
    assert_eq!(shop.confirms(), 0);
    assert_eq!(shop.poll(&order).await.body["payable"], true);
    shop.end().await;
}

#[tokio::test]
async fn an_order_is_as_it_was_made_whatever_the_shelf_and_other_orders_become() {
    let shop = Shop::open().await;
    let order = shop.order("tote", 1).await;
    let reference = reference(&shop, &order).await;
    let key = shop.key(&order.id, order.amount);
    // While the window is open the price rises, and the shopper orders more in another tab.
    let mut beside = Beside::of(&shop).await;
    beside
        .run("UPDATE products SET price_won = price_won + 5000 WHERE sku = 'tote'")
        .await;
    let more = second_order(&shop, &order, "tote", 1).await;
    assert_eq!(more.amount, order.amount + 5_000);
    // No address takes another cart for an order that is there.
    let path = format!("/api/orders/{}", order.id);
    for method in ["PUT", "PATCH", "DELETE", "POST"] {
        let method = method.parse().unwrap();
        let request = shop
            .client
            .request(method, format!("{}{path}", shop.url))
            .header(COOKIE, &order.cookie)
            .json(&json!({"items": [{"sku": "tote", "quantity": 9}]}));
        Reply::of(request.send().await.unwrap())
            .await
            .refused(405, "method_not_allowed");
    }
    // The first window's payment pays no other order.
    shop.confirm(&more, &key).await.refused(402, "declined");
    assert_eq!(shop.charges(&more.id), 0);
    // A window that is opened anew is still for the sum that was ordered.
    let again = shop.attempt(&order).await;
    assert_eq!(again.body["reference"].as_str().unwrap(), reference);
    let amount = format!("amount={}&", order.amount);
    assert!(again.body["payUrl"].as_str().unwrap().contains(&amount));
    assert_eq!(shop.pay(&order).await.status, 200);
    assert_eq!(shop.pg.ledger().orders[&order.id].charged_won, order.amount);
    shop.end().await;
}

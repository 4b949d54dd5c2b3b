//! What the payment window adds to the addresses by which it sends the shopper back, or leaves out.

use reqwest::Url;
use reqwest::header::COOKIE;
use serde_json::json;

use crate::shop::{Order, Reply, Shop};

/// A button of Toss's window, pressed: where the shopper is sent, as path and query.
async fn press(shop: &Shop, pay_url: &str, button: &str) -> String {
    let window = Url::parse(pay_url).expect("an address");
    let fields: Vec<_> = window.query_pairs().into_owned().collect();
    let url = format!("{}/window/{button}", shop.pg.url());
    let pressed = shop.client.post(url).form(&fields).send().await;
    let reply = Reply::of(pressed.expect("an answer")).await;
    assert_eq!(reply.status, 303, "{button}: {:?}", reply.body);
    let to = reply.headers["location"].to_str().expect("text");
    let to = Url::parse(to).expect("an address");
    format!("{}?{}", to.path(), to.query().unwrap_or_default())
}

async fn page(shop: &Shop, order: &Order, path: &str) -> String {
    let request = shop.get(path).header(COOKIE, &order.cookie);
    let answer = request.header("accept-language", "en").send().await;
    let reply = Reply::of(answer.expect("an answer")).await;
    assert_eq!(reply.status, 200, "{path}");
    reply.body.as_str().expect("a page").to_owned()
}

#[tokio::test]
async fn no_10_the_return_is_understood_with_and_without_the_payments_type_and_the_closed_orders_id()
 {
    for named in [false, true] {
        let shop = Shop::open().await;
        shop.set(
            json!({"uncertain": {"paymentType": named, "orderIdOnClose": named,
            "orderIdEquals": named}}),
        )
        .await;
        let order = shop.order("mug", 1).await;
        let made = shop.attempt(&order).await;
        let pay_url = made.body["payUrl"].as_str().expect("an address");
        let gateway_order_id = made.body["gatewayOrderId"].as_str().expect("an id");
        assert!(!gateway_order_id.contains('='), "{gateway_order_id}");
        let closed = press(&shop, pay_url, "close").await;
        assert_eq!(closed.contains("orderId="), named, "{closed}");
        let shown = page(&shop, &order, &closed).await;
        assert!(shown.contains("You closed"), "{named}: {shown}");
        assert_eq!(shop.confirms(), 0);
        // The same attempt is paid by the next press.
        let back = press(&shop, pay_url, "pay").await;
        assert_eq!(back.contains("paymentType=NORMAL"), named, "{back}");
        let shown = page(&shop, &order, &back).await;
        let key = back
            .split("paymentKey=")
            .nth(1)
            .and_then(|rest| rest.split('&').next());
        let key = key.expect("a key");
        assert!(shown.contains(&format!("value=\"{key}\"")), "{shown}");
        let (path, _) = back.split_once('?').expect("a query");
        let amount = order.amount.to_string();
        let form = [
            ("paymentKey", key),
            ("orderId", gateway_order_id),
            ("amount", &amount),
        ];
        let posted = shop.post(path).header(COOKIE, &order.cookie).form(&form);
        assert_eq!(posted.send().await.expect("an answer").status(), 303);
        shop.until_status(&order, "paid").await;
        assert_eq!(shop.money(&order), (1, 0), "{named}");
        shop.end().await;
    }
}

//! The example shop sells its mug.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::header::LOCATION;
use serde_json::{Value, json};
use shop::router;

use super::arrive;
use super::endpoint::secret_in;
use crate::node::PATIENCE;
use crate::shop::Shop;

#[tokio::test]
async fn the_example_shop_ships_once_though_it_is_told_three_times() {
    let jari = Shop::open().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let own = format!("http://{}", listener.local_addr().expect("an address"));
    let args = ["key", "new", "--shop", "mugs", "--return-origin", &own];
    let (code, said) = jari.command(&args).await;
    assert_eq!(code, 0, "{said}");
    let key = said.lines().find(|line| line.starts_with("jari_"));
    let hook = format!("{own}/webhooks");
    let args = ["webhooks", "out", "set", "--shop", "mugs", "--url", &hook];
    let secret = secret_in(&jari.command(&args).await);
    let mugs = Arc::new(shop::Shop {
        urls: [jari.url.clone(), own.clone()],
        secrets: [key.expect("a key").to_owned(), secret],
        ..shop::Shop::default()
    });
    let serving = router(Arc::clone(&mugs));
    tokio::spawn(async move { axum::serve(listener, serving).await });
    let bought = jari.client.post(&own).send().await;
    let bought = bought.expect("an answer");
    let checkout = bought.headers()[LOCATION].to_str().expect("text");
    let id = checkout.split('/').nth_back(1).expect("an id");
    let order = json!({"id": id, "checkoutUrl": checkout, "amount": 18_000});
    let shopper = arrive(&jari, &order).await;
    assert_eq!(jari.pay(&shopper).await.status, 200);
    for told in 1..=3 {
        let started = Instant::now();
        while mugs.told.lock().expect("not poisoned").0 < told {
            assert!(started.elapsed() < PATIENCE, "it was not told {told} times");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let all = [
            "webhooks",
            "out",
            "replay",
            "--shop",
            "mugs",
            "--state",
            "delivered",
        ];
        if told < 3 {
            // What was told a moment ago is delivered a moment later.
            while !jari.command(&all).await.1.contains("1 are sent again") {
                assert!(started.elapsed() < PATIENCE, "it is never delivered");
            }
        }
    }
    let (webhooks, shipped) = mugs.told.lock().expect("not poisoned").clone();
    assert_eq!((webhooks, shipped.len()), (3, 1));
    assert!(shipped.contains(&format!("\"{id}\"")));
    // What nobody signed ships nothing.
    let forged = json!({"type": "order.paid", "data": {"orderId": "ord_forged"}});
    let forged = jari.client.post(&hook).json::<Value>(&forged).send().await;
    assert_eq!(forged.expect("an answer").status(), 401);
    assert_eq!(mugs.told.lock().expect("not poisoned").1.len(), 1);
    jari.end_balanced().await;
}

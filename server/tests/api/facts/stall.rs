//! KakaoPay's platform gives up on a call after 11 s; the order of times at the shipped values.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::kakaopay::{approves, at_kakaopay, authenticate, confirm, open, shop};
use crate::shop::{Order, Shop};

async fn told(shop: &Shop, order: &Order) -> String {
    let evidence = shop.evidence(&order.id).await;
    let told: Vec<_> = evidence.iter().map(|(_, told)| told.as_str()).collect();
    told.join("; ")
}

/// What the platform says after 11 s is heard before our own time is over after 15 s, and neither says anything of the
/// charge. Real seconds, since it is their order that is tried.
#[tokio::test]
async fn the_platform_gives_up_before_we_do_and_only_an_inquiry_tells_what_became_of_either() {
    // No setting of times: the shipped ones.
    let shop = shop(&[]).await;
    let (stalled, silent) = (shop.order("mug", 1).await, shop.order("mug", 1).await);
    let stalled_window = open(&shop, &stalled, "kakaopay").await;
    let stalled_token = authenticate(&shop, &stalled_window).await;
    let silent_window = open(&shop, &silent, "kakaopay").await;
    let silent_token = authenticate(&shop, &silent_window).await;
    let started = Instant::now();
    // The first: the platform gives up, and the charge is booked behind its back 2 s later. The second: the platform never
    // says anything.
    shop.set(at_kakaopay(json!({"delayMs": 13_000}))).await;
    let first = confirm(&shop, &stalled, &stalled_window, &stalled_token);
    let second = async {
        shop.until_ledger(|ledger| ledger.gateways.kakaopay.calls.confirm.received == 1)
            .await;
        let mut never = at_kakaopay(json!({"hang": {"when": "after", "ms": 600_000}}));
        never["kakaopay"] = json!({"platformTimeoutMs": 0});
        shop.set(never).await;
        confirm(&shop, &silent, &silent_window, &silent_token).await
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(first.status, 202, "{:?}", first.body);
    assert_eq!(second.status, 202, "{:?}", second.body);
    assert!(started.elapsed() >= Duration::from_secs(15));
    for order in [&stalled, &silent] {
        shop.until_status(order, "paid").await;
        assert_eq!(shop.money(order), (1, 0));
    }
    assert_eq!(approves(&shop), 2, "neither was sent again");
    let said = told(&shop, &stalled).await;
    assert!(said.contains("-603"), "the platform was heard: {said}");
    assert!(
        !said.contains("timed_out"),
        "before our own time was over: {said}"
    );
    let said = told(&shop, &silent).await;
    assert!(said.contains("timed_out"), "nobody else ends it: {said}");
    shop.end().await;
}

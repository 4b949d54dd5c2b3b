//! The last piece, wanted by several at once, however slow the database is.

use serde_json::json;

use crate::beside::Beside;
use crate::shop::{Reply, Shop};

/// Each change of the shelf takes a tenth of a second longer.
const SLOW_SHELF: &str = "CREATE FUNCTION slowly() RETURNS trigger LANGUAGE plpgsql AS \
    $$ BEGIN PERFORM pg_sleep(0.1); RETURN NEW; END $$; \
    CREATE TRIGGER slowly BEFORE UPDATE ON products FOR EACH ROW EXECUTE FUNCTION slowly()";

#[tokio::test]
async fn with_a_slow_database_no_more_is_sold_than_there_is() {
    let patient = [
        ("JARI_DATABASE_WAIT_MS", "15000"),
        ("JARI_PG_TIMEOUT_MS", "20000"),
    ];
    let shop = Shop::on_postgres(&patient).await;
    let mut beside = Beside::of(&shop).await;
    beside
        .run("UPDATE products SET total = sold + 5 WHERE sku = 'candle'")
        .await;
    beside.run(SLOW_SHELF).await;
    // One poster and two who want it; five candles and two who want three each.
    for (sku, quantity) in [("poster", 1), ("candle", 3)] {
        let orders = [
            shop.order(sku, quantity).await,
            shop.order(sku, quantity).await,
        ];
        let keys = orders
            .each_ref()
            .map(|order| shop.key(&order.id, order.amount));
        let sent = shop.confirms();
        let running = [
            shop.start_pay(&orders[0], &keys[0]),
            shop.start_pay(&orders[1], &keys[1]),
        ];
        let mut statuses = Vec::new();
        for confirm in running {
            let reply = confirm.await.unwrap().expect("an answer");
            if reply.status != 200 {
                reply.refused(409, "out_of_stock");
            }
            statuses.push(reply.status);
        }
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{sku}");
        // Refused before the gateway was called.
        assert_eq!(shop.confirms() - sent, 1, "{sku}");
    }
    // Two lines of one product are one: there are only two candles left.
    let twice =
        json!({"items": [{"sku": "candle", "quantity": 2}, {"sku": "candle", "quantity": 1}]});
    let reply = Reply::of(shop.post("/api/orders").json(&twice).send().await.unwrap()).await;
    reply.refused(409, "out_of_stock");
    shop.end().await;
}

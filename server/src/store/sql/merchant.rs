//! Shops: their keys and their orders.

use async_trait::async_trait;
use payment::id::OrderId;
use payment::time::Millis;

use super::engine::{Columns, Engine, Sql, Tx, values};
use super::rows::order_id;
use super::{SqlStore, commit, deliveries};
use crate::clock::EpochMs;
use crate::gateway::secret::Secret;
use crate::store::StoreError;
use crate::store::merchant::{
    DeliveriesWaiting, Delivery, DeliveryEnd, DeliveryFilter, DeliveryRow, KeyId, KeyRow, KnownKey,
    MerchantStore, NewKey, NewShopOrder, ShopId, ShopOrder, ShopOrderMade, ShopRow,
};

const KEYS: &str = "reading a shop's key";
const SHOPS: &str = "reading a shop";
const STORING: &str = "storing a shop's order";

#[async_trait]
impl<D: Engine> MerchantStore for SqlStore<D> {
    async fn key(&self, handle: &str) -> Result<Option<KnownKey>, StoreError> {
        key(&mut *self.reader().await?, handle).await
    }

    async fn key_used(&self, id: KeyId, at: EpochMs) -> Result<(), StoreError> {
        let sql = "-- key_used\nUPDATE api_keys SET used_at = $2 WHERE id = $1";
        let db = &mut *self.writer().await?;
        db.execute("noting a key's use", sql, values![id.0, at])
            .await?;
        Ok(())
    }

    async fn make_shop_order(&self, order: NewShopOrder) -> Result<ShopOrderMade, StoreError> {
        make_order(self.write().await?, &order).await
    }

    async fn shop_order(&self, id: &OrderId) -> Result<Option<ShopOrder>, StoreError> {
        shop_order(&mut *self.reader().await?, id).await
    }

    async fn orders_by_reference(
        &self,
        shop: ShopId,
        reference: &str,
        most: u32,
    ) -> Result<Vec<OrderId>, StoreError> {
        let sql = "-- orders_by_reference\nSELECT order_id FROM shop_orders WHERE shop_id = $1 AND reference = $2 \
                   ORDER BY created_at DESC, order_id LIMIT $3";
        let db = &mut *self.reader().await?;
        let values = values![shop.0, reference, most];
        let rows = db.rows("looking up a reference", sql, values).await?;
        let ids = rows.iter().map(|row| order_id(row.text("order_id")?));
        ids.collect()
    }

    async fn take_deliveries(
        &self,
        now: EpochMs,
        lease: Millis,
        of_shop: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        if !deliveries::is_any_due(&mut *self.reader().await?, now).await? {
            return Ok(Vec::new());
        }
        deliveries::take(self.write().await?, now, lease, of_shop).await
    }

    async fn end_delivery(&self, end: DeliveryEnd, now: EpochMs) -> Result<bool, StoreError> {
        deliveries::end(&mut *self.writer().await?, &end, now).await
    }

    async fn deliveries_waiting(&self) -> Result<DeliveriesWaiting, StoreError> {
        deliveries::waiting(&mut *self.reader().await?).await
    }

    async fn shop(&self, name: &str) -> Result<Option<ShopRow>, StoreError> {
        shop(&mut *self.reader().await?, name).await
    }

    async fn save_shop(
        &self,
        name: &str,
        title: &str,
        return_origins: &[String],
        now: EpochMs,
    ) -> Result<ShopId, StoreError> {
        let sql = "-- save_shop\nINSERT INTO shops (name, title, return_origins, created_at) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (name) DO UPDATE SET title = $2, return_origins = $3 RETURNING id";
        let origins = return_origins.join(" ");
        let values = values![name, title, origins.as_str(), now];
        let db = &mut *self.writer().await?;
        let row = db.row("storing a shop", sql, values).await?;
        let row = row.ok_or(StoreError::Corrupt { what: "shop" })?;
        row.integer("id").map(ShopId)
    }

    async fn new_key(&self, key: NewKey) -> Result<(), StoreError> {
        let sql = "-- new_key\nINSERT INTO api_keys (shop_id, handle, name, hash, created_at) VALUES ($1, $2, $3, $4, $5)";
        let (handle, name) = (key.handle.as_str(), key.name.as_str());
        let values = values![key.shop.0, handle, name, key.hash.expose(), key.at];
        let db = &mut *self.writer().await?;
        db.execute("storing a key", sql, values).await?;
        Ok(())
    }

    async fn keys(&self) -> Result<Vec<KeyRow>, StoreError> {
        let sql = "-- keys\nSELECT k.handle, s.name AS shop, k.name, k.created_at, k.used_at, k.revoked_at FROM api_keys k \
                   JOIN shops s ON s.id = k.shop_id ORDER BY k.id";
        let rows = self.reader().await?.rows(KEYS, sql, &[]).await?;
        let key = |row: &<D::Connection as Sql>::Row| {
            Ok(KeyRow {
                handle: row.text("handle")?.to_owned(),
                shop: row.text("shop")?.to_owned(),
                name: row.text("name")?.to_owned(),
                created_at: EpochMs(row.integer("created_at")?),
                used_at: row.integer_or_null("used_at")?.map(EpochMs),
                revoked_at: row.integer_or_null("revoked_at")?.map(EpochMs),
            })
        };
        rows.iter().map(key).collect()
    }

    async fn revoke_key(&self, handle: &str, now: EpochMs) -> Result<bool, StoreError> {
        let sql = "-- revoke_key\nUPDATE api_keys SET revoked_at = $2 WHERE handle = $1 AND revoked_at IS NULL";
        let db = &mut *self.writer().await?;
        let changed = db
            .execute("revoking a key", sql, values![handle, now])
            .await?;
        Ok(changed == 1)
    }

    async fn set_endpoint(
        &self,
        shop: ShopId,
        url: Option<&str>,
        secret_if_none: &Secret,
    ) -> Result<bool, StoreError> {
        let sql = "-- set_endpoint\nUPDATE shops SET webhook_url = $2, webhook_secret = coalesce(webhook_secret, $3) \
                   WHERE id = $1 RETURNING webhook_secret";
        let values = values![shop.0, url, secret_if_none.expose()];
        let db = &mut *self.writer().await?;
        let row = db.row("storing a shop's endpoint", sql, values).await?;
        let row = row.ok_or(StoreError::Corrupt { what: "shop" })?;
        Ok(row.text("webhook_secret")? == secret_if_none.expose())
    }

    async fn rotate_secret(
        &self,
        shop: ShopId,
        secret: &Secret,
        old_until: EpochMs,
    ) -> Result<(), StoreError> {
        let sql = "-- rotate_secret\nUPDATE shops SET webhook_old_secret = webhook_secret, webhook_old_until = $3, \
                   webhook_secret = $2 WHERE id = $1";
        let values = values![shop.0, secret.expose(), old_until];
        let db = &mut *self.writer().await?;
        db.execute("storing a shop's secret", sql, values).await?;
        Ok(())
    }

    async fn deliveries(
        &self,
        which: DeliveryFilter,
        most: u32,
    ) -> Result<Vec<DeliveryRow>, StoreError> {
        deliveries::list(&mut *self.reader().await?, &which, most).await
    }

    async fn replay_deliveries(
        &self,
        which: DeliveryFilter,
        now: EpochMs,
    ) -> Result<u64, StoreError> {
        deliveries::replay(&mut *self.writer().await?, &which, now).await
    }
}

/// A row with a shop's columns.
fn shop_row<R: Columns>(row: &R) -> Result<ShopRow, StoreError> {
    let origins = row.text("return_origins")?.split_whitespace();
    Ok(ShopRow {
        id: ShopId(row.integer("shop_id")?),
        name: row.text("shop")?.to_owned(),
        title: row.text("title")?.to_owned(),
        return_origins: origins.map(str::to_owned).collect(),
        webhook_url: row.text_or_null("webhook_url")?.map(str::to_owned),
    })
}

async fn key<C: Sql>(db: &mut C, handle: &str) -> Result<Option<KnownKey>, StoreError> {
    let sql = "-- key\nSELECT k.id, k.hash, k.used_at, s.id AS shop_id, s.name AS shop, s.title, s.return_origins, \
               s.webhook_url FROM api_keys k JOIN shops s ON s.id = k.shop_id WHERE k.handle = $1 AND k.revoked_at IS NULL";
    let Some(row) = db.row(KEYS, sql, values![handle]).await? else {
        return Ok(None);
    };
    Ok(Some(KnownKey {
        id: KeyId(row.integer("id")?),
        hash: Secret::new(row.text("hash")?),
        used_at: row.integer_or_null("used_at")?.map(EpochMs),
        shop: shop_row(&row)?,
    }))
}

async fn shop<C: Sql>(db: &mut C, name: &str) -> Result<Option<ShopRow>, StoreError> {
    let sql = "-- shop\nSELECT id AS shop_id, name AS shop, title, return_origins, webhook_url FROM shops WHERE name = $1";
    let row = db.row(SHOPS, sql, values![name]).await?;
    row.as_ref().map(shop_row).transpose()
}

async fn shop_order<C: Sql>(db: &mut C, id: &OrderId) -> Result<Option<ShopOrder>, StoreError> {
    let sql = "-- shop_order\nSELECT o.order_id, o.shop_id, o.reference, o.return_url, s.title, a.language FROM shop_orders o \
               JOIN shops s ON s.id = o.shop_id JOIN orders a ON a.id = o.order_id WHERE o.order_id = $1";
    let row = db.row(SHOPS, sql, values![id.as_str()]).await?;
    let order = |row: C::Row| {
        Ok(ShopOrder {
            order_id: order_id(row.text("order_id")?)?,
            shop: ShopId(row.integer("shop_id")?),
            title: row.text("title")?.to_owned(),
            reference: row.text("reference")?.to_owned(),
            return_url: row.text("return_url")?.to_owned(),
            language: row.text_or_null("language")?.map(str::to_owned),
        })
    };
    row.map(order).transpose()
}

/// Stores an order unless its wish is stored already: the unique index is the judge between two that come at once.
async fn make_order<D: Engine>(
    mut tx: Tx<D>,
    order: &NewShopOrder,
) -> Result<ShopOrderMade, StoreError> {
    let db = &mut *tx;
    if let Some(known) = known_wish(db, order).await? {
        return Ok(known);
    }
    insert_order(db, order).await?;
    let sql = "-- make_shop_order\nINSERT INTO shop_orders (order_id, shop_id, reference, return_url, idempotency_key, \
               body_hash, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7) \
               ON CONFLICT (shop_id, idempotency_key) DO NOTHING";
    let values = values![
        order.id.as_str(),
        order.shop.0,
        order.reference.as_str(),
        order.return_url.as_str(),
        order.idempotency_key.as_str(),
        order.body_hash.as_str(),
        order.at,
    ];
    if db.execute(STORING, sql, values).await? == 0 {
        // Another one came first and is committed: what was written here is dropped with the transaction.
        let known = known_wish(db, order).await?;
        return known.ok_or(StoreError::Busy);
    }
    for (position, line) in (1_u32..).zip(&order.lines) {
        let sql = "-- make_shop_line\nINSERT INTO shop_lines (order_id, position, name, quantity, price_won) \
                   VALUES ($1, $2, $3, $4, $5)";
        let (id, name) = (order.id.as_str(), line.name.as_str());
        let values = values![id, position, name, line.quantity, line.price.get()];
        db.execute(STORING, sql, values).await?;
    }
    commit::<D>(tx, STORING).await?;
    Ok(ShopOrderMade::Made)
}

async fn insert_order<C: Sql>(db: &mut C, order: &NewShopOrder) -> Result<(), StoreError> {
    let sql = "-- make_order\nINSERT INTO orders (id, owner, amount_won, created_at, expires_at, language) \
               VALUES ($1, $2, $3, $4, $5, $6)";
    let values = values![
        order.id.as_str(),
        order.link.as_str(),
        order.amount.get(),
        order.at,
        order.expires_at,
        order.language,
    ];
    db.execute(STORING, sql, values).await?;
    Ok(())
}

async fn known_wish<C: Sql>(
    db: &mut C,
    order: &NewShopOrder,
) -> Result<Option<ShopOrderMade>, StoreError> {
    let sql = "-- known_wish\nSELECT order_id, body_hash FROM shop_orders WHERE shop_id = $1 AND idempotency_key = $2";
    let values = values![order.shop.0, order.idempotency_key.as_str()];
    let Some(row) = db.row(STORING, sql, values).await? else {
        return Ok(None);
    };
    if row.text("body_hash")? != order.body_hash {
        return Ok(Some(ShopOrderMade::KeyReused));
    }
    let id = order_id(row.text("order_id")?)?;
    Ok(Some(ShopOrderMade::Repeated(id)))
}

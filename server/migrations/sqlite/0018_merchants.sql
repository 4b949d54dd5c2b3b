-- A shop of its own that sells through this checkout: what its keys may do belongs to it, so that a key can be replaced
-- without losing the orders that were made with it. `return_origins` are the origins, parted by spaces, that its shoppers
-- may be led back to. A secret that was replaced goes on signing beside the new one until `webhook_old_until`.
CREATE TABLE shops (
    id                  INTEGER PRIMARY KEY,
    name                TEXT NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 64),
    title               TEXT NOT NULL CHECK (length(title) BETWEEN 1 AND 100),
    return_origins      TEXT NOT NULL,
    webhook_url         TEXT,
    webhook_secret      TEXT,
    webhook_old_secret  TEXT,
    webhook_old_until   INTEGER,
    created_at          INTEGER NOT NULL
) STRICT;

-- A key is `jari_<handle>_<secret>`; the handle is no secret and names it. It is shown once; what is kept of it is its SHA-256, which is enough for 256 random bits. `used_at` is written at most
-- once a minute. A key that was revoked stays, for whoever looks at what it did.
CREATE TABLE api_keys (
    id          INTEGER PRIMARY KEY,
    shop_id     INTEGER NOT NULL REFERENCES shops (id),
    handle      TEXT NOT NULL UNIQUE,
    name        TEXT NOT NULL,
    hash        TEXT NOT NULL CHECK (length(hash) = 64),
    created_at  INTEGER NOT NULL,
    used_at     INTEGER,
    revoked_at  INTEGER
) STRICT;

-- What a shop's order has beyond an order. The shop's idempotency key names it for ever; `body_hash` tells the same wish
-- from another one under the same key.
CREATE TABLE shop_orders (
    order_id         TEXT PRIMARY KEY REFERENCES orders (id),
    shop_id          INTEGER NOT NULL REFERENCES shops (id),
    reference        TEXT NOT NULL,
    return_url       TEXT NOT NULL,
    idempotency_key  TEXT NOT NULL,
    body_hash        TEXT NOT NULL,
    created_at       INTEGER NOT NULL,
    UNIQUE (shop_id, idempotency_key)
) STRICT;
CREATE INDEX shop_orders_by_reference ON shop_orders (shop_id, reference, created_at DESC);

-- Its lines by the shop's own names and prices: they are on no shelf, so no stock is held for them.
CREATE TABLE shop_lines (
    order_id   TEXT NOT NULL REFERENCES orders (id),
    position   INTEGER NOT NULL,
    name       TEXT NOT NULL,
    quantity   INTEGER NOT NULL CHECK (quantity BETWEEN 1 AND 9999),
    price_won  INTEGER NOT NULL CHECK (price_won >= 0),
    PRIMARY KEY (order_id, position)
) STRICT;

-- What a shop's endpoint is told, by the number of the side effect: one row for each, written with its notification, whose
-- body it sends. That it was written and that it was delivered are two facts. `next_at` is when it may be taken; who takes
-- it moves that ahead, as a lease, and counts `takes`, its fence.
CREATE TABLE deliveries (
    seq         INTEGER PRIMARY KEY,
    key         TEXT NOT NULL UNIQUE REFERENCES notifications (key),
    shop_id     INTEGER NOT NULL REFERENCES shops (id),
    order_id    TEXT NOT NULL REFERENCES orders (id),
    state       TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'delivered', 'given_up')),
    created_at  INTEGER NOT NULL,
    -- From when its age counts: a replay begins anew.
    since       INTEGER NOT NULL,
    next_at     INTEGER NOT NULL,
    takes       INTEGER NOT NULL DEFAULT 0,
    -- Until when it may be in flight: how many of a shop are at a time is bounded.
    taken_until INTEGER NOT NULL DEFAULT 0,
    tries       INTEGER NOT NULL DEFAULT 0,
    told        TEXT NOT NULL DEFAULT '',
    ended_at    INTEGER
) STRICT;
CREATE INDEX deliveries_to_do ON deliveries (next_at, seq) WHERE state = 'waiting';
CREATE INDEX deliveries_of_order ON deliveries (order_id, seq);

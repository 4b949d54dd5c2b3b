-- What is sold. Free = total - reserved - sold, and never below zero: the CHECK is the last line of defence against
-- selling the last piece twice. Names are kept in both languages of the pages.
CREATE TABLE products (
    sku        TEXT PRIMARY KEY CHECK (length(sku) BETWEEN 1 AND 64),
    position   BIGINT NOT NULL,
    name_ko    TEXT NOT NULL,
    name_en    TEXT NOT NULL,
    blurb_ko   TEXT NOT NULL,
    blurb_en   TEXT NOT NULL,
    price_won  BIGINT NOT NULL CHECK (price_won >= 0),
    total      BIGINT NOT NULL CHECK (total >= 0),
    reserved   BIGINT NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    sold       BIGINT NOT NULL DEFAULT 0 CHECK (sold >= 0),
    CHECK (reserved + sold <= total)
);

-- What a shopper buys: frozen when it is made. The status is derived from the attempts and stored beside them, in the
-- same transaction, for lists. `lapsed_at` is set when its time to be paid is over.
CREATE TABLE orders (
    id          TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 60),
    owner       TEXT NOT NULL,
    amount_won  BIGINT NOT NULL CHECK (amount_won >= 0),
    status      TEXT NOT NULL DEFAULT 'pending'
                CHECK (status IN ('pending', 'paid', 'partially_canceled', 'canceled', 'expired')),
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    lapsed_at   BIGINT
);
CREATE INDEX orders_of_owner ON orders (owner, created_at DESC, id);
CREATE INDEX orders_to_lapse ON orders (expires_at) WHERE status = 'pending' AND lapsed_at IS NULL;

CREATE TABLE order_lines (
    order_id   TEXT NOT NULL REFERENCES orders (id),
    sku        TEXT NOT NULL REFERENCES products (sku),
    quantity   BIGINT NOT NULL CHECK (quantity BETWEEN 1 AND 9999),
    price_won  BIGINT NOT NULL CHECK (price_won >= 0),
    PRIMARY KEY (order_id, sku)
);

-- Small facts of the installation, such as the development server's cookie key.
CREATE TABLE settings (
    name   TEXT PRIMARY KEY,
    value  TEXT NOT NULL
);

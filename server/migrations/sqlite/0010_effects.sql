-- When the gateway last answered a question about the attempt after its order's time was over: an order is ended only
-- after such an answer about everything that was ever sent.
ALTER TABLE attempts ADD COLUMN answered_at INTEGER;

-- The language that the shopper read when ordering, for mails; NULL is not known.
ALTER TABLE orders ADD COLUMN language TEXT CHECK (language IN ('ko', 'en'));

-- Side effects, written with the outcome that causes them and done afterwards. `key` makes each be queued once. `next_at`
-- is when it may be taken; who takes it moves that ahead, as a lease, and counts `takes`, its fence: what an older take
-- says is not believed. `order_unpaid` is a deposit that was undone, `charge_returned` a charge that did not stand and went back.
ALTER TABLE outbox RENAME TO outbox_without_lease;
CREATE TABLE outbox (
    id          INTEGER PRIMARY KEY,
    key         TEXT NOT NULL UNIQUE,
    order_id    TEXT NOT NULL REFERENCES orders (id),
    attempt_id  INTEGER NOT NULL REFERENCES attempts (id),
    kind        TEXT NOT NULL CHECK (kind IN ('order_paid', 'order_unpaid', 'order_partially_canceled', 'order_canceled',
                'charge_returned', 'alarm')),
    payload     TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    next_at     INTEGER NOT NULL DEFAULT 0,
    takes       INTEGER NOT NULL DEFAULT 0,
    done_at     INTEGER
) STRICT;
INSERT INTO outbox (id, key, order_id, attempt_id, kind, payload, created_at, done_at)
    SELECT id, key, order_id, attempt_id, kind, payload, created_at, done_at FROM outbox_without_lease;
DROP TABLE outbox_without_lease;
CREATE INDEX outbox_to_do ON outbox (next_at, id) WHERE done_at IS NULL;

-- What the shop's own systems are told of its orders: one row for each effect, `seq` in the order in which things happened
-- to an order.
CREATE TABLE notifications (
    key         TEXT PRIMARY KEY,
    seq         INTEGER NOT NULL,
    order_id    TEXT NOT NULL REFERENCES orders (id),
    kind        TEXT NOT NULL,
    body        TEXT NOT NULL,
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX notifications_of_order ON notifications (order_id, seq);

-- One try to pay one order. The idempotency key is stored before the first byte is sent. `ask_at` is when the gateway is
-- to be asked next, whatever the state; NULL is never. `version` is the compare-and-set of every change.
CREATE TABLE attempts (
    id                BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id          TEXT NOT NULL REFERENCES orders (id),
    number            BIGINT NOT NULL CHECK (number >= 1),
    gateway           TEXT NOT NULL,
    gateway_order_id  TEXT NOT NULL,
    reference         TEXT NOT NULL UNIQUE,
    payment_key       TEXT,
    idempotency_key   TEXT UNIQUE,
    status            TEXT NOT NULL CHECK (status IN
                      ('ready', 'approving', 'unknown', 'awaiting_deposit', 'mischarged', 'approved',
                       'cancel_requested', 'partially_canceled', 'canceled', 'failed', 'expired')),
    reach             TEXT NOT NULL CHECK (reach IN ('not_sent', 'may_have_been_sent', 'answered')),
    reason            TEXT,
    amount_won        BIGINT NOT NULL CHECK (amount_won >= 0),
    charged_won       BIGINT CHECK (charged_won >= 0),
    -- 1 when the charge is in the order's currency.
    charged_in_won    BIGINT CHECK (charged_in_won IN (0, 1)),
    canceled_won      BIGINT NOT NULL DEFAULT 0 CHECK (canceled_won >= 0),
    deposit           BIGINT NOT NULL DEFAULT 0 CHECK (deposit IN (0, 1)),
    void              BIGINT NOT NULL DEFAULT 0 CHECK (void IN (0, 1)),
    cancel_won        BIGINT,
    cancel_from       TEXT,
    -- Fixed when a cancel is decided; a new one only after an inquiry showed that the old was not executed.
    cancel_key        TEXT,
    created_at        BIGINT NOT NULL,
    window_until      BIGINT NOT NULL,
    claimed_at        BIGINT,
    -- When its resend began: its last send, from which the gateway's settling time counts.
    resent_at         BIGINT,
    -- Which process claimed it: what a dead one left approving is unknown.
    node              TEXT,
    unknown_since     BIGINT,
    ask_at            BIGINT,
    asks              BIGINT NOT NULL DEFAULT 0,
    ended_at          BIGINT,
    version           BIGINT NOT NULL DEFAULT 0,
    UNIQUE (order_id, number),
    -- Whatever was claimed has a key and an idempotency key.
    CHECK (status = 'ready' OR status = 'expired' OR claimed_at IS NULL
           OR (payment_key IS NOT NULL AND idempotency_key IS NOT NULL))
);

-- One open attempt an order: the database is the judge, whatever the code believes.
CREATE UNIQUE INDEX one_open_attempt ON attempts (order_id)
    WHERE status IN ('approving', 'unknown', 'awaiting_deposit');
CREATE INDEX attempts_by_gateway_order ON attempts (gateway_order_id);
CREATE INDEX attempts_by_key ON attempts (gateway, payment_key) WHERE payment_key IS NOT NULL;
CREATE INDEX attempts_to_ask ON attempts (ask_at) WHERE ask_at IS NOT NULL;
CREATE INDEX attempts_to_lapse ON attempts (window_until) WHERE status = 'ready';
CREATE INDEX attempts_in_doubt ON attempts (status, unknown_since) WHERE status IN ('approving', 'unknown');

-- A payment key belongs to one order for ever.
CREATE TABLE payment_keys (
    gateway      TEXT NOT NULL,
    payment_key  TEXT NOT NULL,
    order_id     TEXT NOT NULL REFERENCES orders (id),
    PRIMARY KEY (gateway, payment_key)
);

-- Everything that was learned, in order, for the shopper's timeline and the operator's eyes. Never changed, never deleted.
CREATE TABLE evidence (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id    TEXT NOT NULL REFERENCES orders (id),
    attempt_id  BIGINT REFERENCES attempts (id),
    at          BIGINT NOT NULL,
    -- Where it came from: confirm, inquiry, cancel, clock, start, shopper.
    source      TEXT NOT NULL,
    -- What was learned, as the machine's event.
    event       TEXT NOT NULL,
    -- What the gateway literally said: status and code, never secrets or card data.
    told        TEXT NOT NULL DEFAULT '',
    status      TEXT NOT NULL,
    why         TEXT NOT NULL
);
CREATE INDEX evidence_of_order ON evidence (order_id, id);

-- Side effects, written with the outcome that causes them and done afterwards; `key` makes each happen once.
CREATE TABLE outbox (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key         TEXT NOT NULL UNIQUE,
    order_id    TEXT NOT NULL REFERENCES orders (id),
    attempt_id  BIGINT NOT NULL REFERENCES attempts (id),
    kind        TEXT NOT NULL CHECK (kind IN ('order_paid', 'order_partially_canceled', 'order_canceled', 'alarm')),
    payload     TEXT NOT NULL,
    created_at  BIGINT NOT NULL,
    done_at     BIGINT
);
CREATE INDEX outbox_to_do ON outbox (id) WHERE done_at IS NULL;

-- Money that people ask to have back: one row for each wish, stored before anything is asked of the gateway. Its amount is
-- reserved by being here: what was charged, less what was given back, less what is open here, is what may still be asked
-- for. Never deleted.
CREATE TABLE refunds (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id    TEXT NOT NULL REFERENCES orders (id),
    attempt_id  BIGINT NOT NULL REFERENCES attempts (id),
    -- Whoever asks names the wish: the same key again is the same wish, whichever connection or node it comes by.
    client_key  TEXT NOT NULL,
    -- What was asked for; NULL is all that was left, which shrinks when money is given back at the gateway's own desk.
    asked_won   BIGINT CHECK (asked_won > 0),
    amount_won  BIGINT NOT NULL CHECK (amount_won > 0),
    reason      TEXT NOT NULL,
    asker       TEXT NOT NULL CHECK (asker IN ('shopper', 'operator')),
    -- Part of its gateway keys, and of the reason that the gateway keeps: by it the gateway's list of cancels is read.
    reference   TEXT NOT NULL UNIQUE,
    -- How many gateway keys it has had: another one only after proof that the last was not executed.
    keys        BIGINT NOT NULL DEFAULT 1 CHECK (keys >= 1),
    -- What the gateway must hold for its call to be executed, fixed with the key: the same key has the same bytes.
    lock_won    BIGINT NOT NULL DEFAULT 0 CHECK (lock_won >= 0),
    state       TEXT NOT NULL CHECK (state IN
                ('waiting', 'asked', 'done', 'refused_by_gateway', 'exceeds_balance', 'given_back_elsewhere')),
    told        TEXT NOT NULL DEFAULT '',
    created_at  BIGINT NOT NULL,
    ended_at    BIGINT,
    UNIQUE (order_id, client_key)
);

-- One cancel under way for a charge: the database is the judge, whatever the code believes.
CREATE UNIQUE INDEX one_refund_under_way ON refunds (attempt_id) WHERE state = 'asked';
CREATE INDEX refunds_of_attempt ON refunds (attempt_id, id);
CREATE INDEX refunds_open ON refunds (created_at) WHERE state IN ('waiting', 'asked');

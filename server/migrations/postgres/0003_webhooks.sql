-- Webhooks as they came, stored before they are understood. `transmission` is the sender's own id when it names one: a
-- resend of the same event is stored once. `state`: new -> applied | parked | ignored; a parked one waits for the row
-- it belongs to.
CREATE TABLE webhooks (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    gateway       TEXT NOT NULL,
    transmission  TEXT,
    received_at   BIGINT NOT NULL,
    headers       TEXT NOT NULL,
    body          BYTEA NOT NULL,
    state         TEXT NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'applied', 'parked', 'ignored')),
    tries         BIGINT NOT NULL DEFAULT 0,
    next_at       BIGINT,
    attempt_id    BIGINT REFERENCES attempts (id)
);
CREATE UNIQUE INDEX webhooks_once ON webhooks (gateway, transmission) WHERE transmission IS NOT NULL;
CREATE INDEX webhooks_to_do ON webhooks (next_at) WHERE next_at IS NOT NULL;

-- The virtual account that a gateway issued for an attempt, as it told, until when it takes a deposit, and the secret by
-- which the gateway's own webhooks about it are known. The secret is read for that comparison alone.
ALTER TABLE attempts ADD COLUMN deposit_bank TEXT;
ALTER TABLE attempts ADD COLUMN deposit_number TEXT;
ALTER TABLE attempts ADD COLUMN deposit_holder TEXT;
ALTER TABLE attempts ADD COLUMN deposit_due INTEGER;
ALTER TABLE attempts ADD COLUMN deposit_secret TEXT;

-- A webhook about such an account with another secret, or with none, is kept as what it is: `forged`. SQLite changes no
-- CHECK in place.
CREATE TABLE webhooks_with_forged (
    id            INTEGER PRIMARY KEY,
    gateway       TEXT NOT NULL,
    transmission  TEXT,
    received_at   INTEGER NOT NULL,
    headers       TEXT NOT NULL,
    body          BLOB NOT NULL,
    state         TEXT NOT NULL DEFAULT 'new' CHECK (state IN ('new', 'applied', 'parked', 'ignored', 'forged')),
    tries         INTEGER NOT NULL DEFAULT 0,
    next_at       INTEGER,
    attempt_id    INTEGER REFERENCES attempts (id)
) STRICT;
INSERT INTO webhooks_with_forged SELECT id, gateway, transmission, received_at, headers, body, state, tries, next_at, attempt_id
    FROM webhooks;
DROP TABLE webhooks;
ALTER TABLE webhooks_with_forged RENAME TO webhooks;
CREATE UNIQUE INDEX webhooks_once ON webhooks (gateway, transmission) WHERE transmission IS NOT NULL;
CREATE INDEX webhooks_to_do ON webhooks (next_at) WHERE next_at IS NOT NULL;
CREATE INDEX webhooks_of_attempt ON webhooks (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE INDEX webhooks_of_nobody ON webhooks (received_at) WHERE attempt_id IS NULL;
CREATE INDEX webhooks_to_sweep ON webhooks (received_at) WHERE next_at IS NULL;

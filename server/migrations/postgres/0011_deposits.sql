-- The virtual account that a gateway issued for an attempt, as it told, until when it takes a deposit, and the secret by
-- which the gateway's own webhooks about it are known. The secret is read for that comparison alone.
ALTER TABLE attempts ADD COLUMN deposit_bank TEXT;
ALTER TABLE attempts ADD COLUMN deposit_number TEXT;
ALTER TABLE attempts ADD COLUMN deposit_holder TEXT;
ALTER TABLE attempts ADD COLUMN deposit_due BIGINT;
ALTER TABLE attempts ADD COLUMN deposit_secret TEXT;

-- A webhook about such an account with another secret, or with none, is kept as what it is.
ALTER TABLE webhooks DROP CONSTRAINT webhooks_state_check;
ALTER TABLE webhooks ADD CONSTRAINT webhooks_state_check
    CHECK (state IN ('new', 'applied', 'parked', 'ignored', 'forged'));

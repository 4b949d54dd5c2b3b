-- Looks at one attempt are numbered as they begin. Whoever records a word says from which look; a word from an older look
-- than the last one recorded is dropped: a node that was paused cannot undo what another has learned since.
ALTER TABLE attempts ADD COLUMN looks BIGINT NOT NULL DEFAULT 0;
ALTER TABLE attempts ADD COLUMN looked BIGINT NOT NULL DEFAULT 0;
-- When the last look that a webhook caused was, or will be, due: anyone can post a webhook, so each attempt is asked about
-- for that reason only so often.
ALTER TABLE attempts ADD COLUMN hint_at BIGINT;

-- The raw events of one payment, those that concern none of ours, and what was kept long enough.
CREATE INDEX webhooks_of_attempt ON webhooks (attempt_id) WHERE attempt_id IS NOT NULL;
CREATE INDEX webhooks_of_nobody ON webhooks (received_at) WHERE attempt_id IS NULL;
CREATE INDEX webhooks_to_sweep ON webhooks (received_at) WHERE next_at IS NULL;

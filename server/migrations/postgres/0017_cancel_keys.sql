-- Since when the key of a cancel is in use: a gateway forgets one, and then a repeat would be a second cancel. NULL is a key
-- from before this was noted; a refund's first key is as old as the refund.
ALTER TABLE attempts ADD COLUMN cancel_key_at BIGINT;
ALTER TABLE refunds ADD COLUMN key_at BIGINT;

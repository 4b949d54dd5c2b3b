-- When the resend of an attempt began: its last send, from which the gateway's settling time counts.
ALTER TABLE attempts ADD COLUMN resent_at INTEGER;

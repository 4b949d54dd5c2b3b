-- The bank account that a deposit goes back to. It is held only until its refund has an end; what stays is a masked mark, by
-- which a repeat of the same wish is known and people see where the money went.
ALTER TABLE refunds ADD COLUMN account_bank TEXT;
ALTER TABLE refunds ADD COLUMN account_number TEXT;
ALTER TABLE refunds ADD COLUMN account_holder TEXT;
ALTER TABLE refunds ADD COLUMN account_mark TEXT;

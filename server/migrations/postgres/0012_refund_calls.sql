-- Until when the call of a refund may be in flight: nobody else makes one meanwhile, on whichever node. NULL is nobody's.
ALTER TABLE refunds ADD COLUMN called_until BIGINT;

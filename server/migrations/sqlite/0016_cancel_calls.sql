-- Until when the call of a cancel that the shop owes may be in flight: nobody else makes one meanwhile, on whichever node.
-- NULL is nobody's.
ALTER TABLE attempts ADD COLUMN cancel_called_until INTEGER;

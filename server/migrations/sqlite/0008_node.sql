-- Which process claimed the attempt: what a dead one left approving is unknown.
ALTER TABLE attempts ADD COLUMN node TEXT;

-- Which nodes are alive, by this database's clock, and how many of each gateway's slots each of them may use now. The sum
-- never exceeds the cap: a node takes more only in a transaction that sees what the others still hold.
CREATE TABLE nodes (
    id           TEXT PRIMARY KEY,
    lease_until  BIGINT NOT NULL
);

CREATE TABLE node_slots (
    node     TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    gateway  TEXT NOT NULL,
    slots    BIGINT NOT NULL CHECK (slots >= 0),
    PRIMARY KEY (node, gateway)
);

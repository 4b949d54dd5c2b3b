-- The change feed: which orders changed, in the order of the commits. Written by triggers, so that no statement can forget
-- it; read by every node several times a second, swept after two minutes.
CREATE TABLE order_changes (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    order_id  TEXT NOT NULL,
    at        INTEGER NOT NULL
) STRICT;
CREATE INDEX order_changes_to_sweep ON order_changes (at);

CREATE TRIGGER attempt_made AFTER INSERT ON attempts BEGIN
    INSERT INTO order_changes (order_id, at) VALUES (new.order_id, CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;
CREATE TRIGGER attempt_changed AFTER UPDATE OF status, reach, reason, canceled_won, charged_won, void ON attempts BEGIN
    INSERT INTO order_changes (order_id, at) VALUES (new.order_id, CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;
CREATE TRIGGER order_changed AFTER UPDATE OF status, lapsed_at ON orders BEGIN
    INSERT INTO order_changes (order_id, at) VALUES (new.id, CAST(unixepoch('subsec') * 1000 AS INTEGER));
END;

-- The change feed: which orders changed. Written by triggers, so that no statement can forget it; read by every node
-- several times a second, swept after two minutes. Transactions are not committed in the order of their numbers, so a
-- reader keeps a snapshot and asks for what that snapshot could not see: a change that commits late is never skipped.
CREATE TABLE order_changes (
    xid       XID8 NOT NULL DEFAULT pg_current_xact_id(),
    order_id  TEXT NOT NULL,
    at        BIGINT NOT NULL DEFAULT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
);
CREATE INDEX order_changes_to_read ON order_changes (xid);
CREATE INDEX order_changes_to_sweep ON order_changes (at);

CREATE FUNCTION note_attempt() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO order_changes (order_id) VALUES (new.order_id);
    RETURN NULL;
END $$;
CREATE FUNCTION note_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO order_changes (order_id) VALUES (new.id);
    RETURN NULL;
END $$;

CREATE TRIGGER attempt_made AFTER INSERT ON attempts FOR EACH ROW EXECUTE FUNCTION note_attempt();
CREATE TRIGGER attempt_changed AFTER UPDATE OF status, reach, reason, canceled_won, charged_won, void ON attempts
    FOR EACH ROW EXECUTE FUNCTION note_attempt();
CREATE TRIGGER order_changed AFTER UPDATE OF status, lapsed_at ON orders FOR EACH ROW EXECUTE FUNCTION note_order();

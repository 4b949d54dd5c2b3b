-- Operators who are signed in to the console. Of a token only its hash is kept: who reads the database cannot use it.
CREATE TABLE operator_sessions (
    token_hash  TEXT PRIMARY KEY,
    operator    TEXT NOT NULL,
    opened_at   BIGINT NOT NULL,
    seen_at     BIGINT NOT NULL
);

-- What operators did in the console: written before it is done, with what it came to afterwards. Never deleted.
CREATE TABLE operator_actions (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          BIGINT NOT NULL,
    operator    TEXT NOT NULL,
    action      TEXT NOT NULL CHECK (action IN ('sign_in', 'sign_out', 'ask', 'resolve', 'refund')),
    order_id    TEXT REFERENCES orders (id),
    attempt_id  BIGINT REFERENCES attempts (id),
    detail      TEXT NOT NULL,
    result      TEXT
);

CREATE INDEX operator_actions_of_order ON operator_actions (order_id, id) WHERE order_id IS NOT NULL;

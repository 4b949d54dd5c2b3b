-- Each gateway's looks are taken by themselves, so that one which does not answer keeps no other one's waiting.
DROP INDEX attempts_to_ask;
CREATE INDEX attempts_to_ask ON attempts (gateway, ask_at) WHERE ask_at IS NOT NULL;

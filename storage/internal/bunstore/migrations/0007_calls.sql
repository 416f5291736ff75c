-- Oldest version: 1
-- The idempotent call that created the response: the hash of its key, as formsvc_idempotency.id, and that of its request. Both are NULL
-- for none, and once the response has changed: what the call returned is in formsvc_idempotency then. Releases up to 6 don't find it here.
ALTER TABLE formsvc_responses ADD COLUMN call BYTEA;
ALTER TABLE formsvc_responses ADD COLUMN request BYTEA;
CREATE UNIQUE INDEX formsvc_responses_call ON formsvc_responses (call) WHERE call IS NOT NULL;

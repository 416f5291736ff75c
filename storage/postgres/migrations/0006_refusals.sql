-- Stored refusals may name a person in the text of an error, so an erasure looks through
-- those of an account. A reply to a change is in no index more.
CREATE INDEX formsvc_idempotency_refused ON formsvc_idempotency (account_id, id) WHERE status >= 400;

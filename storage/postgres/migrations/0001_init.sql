-- Times are microseconds since 1970, UTC, so that both databases agree.

CREATE TABLE formsvc_accounts (
  id         uuid PRIMARY KEY,
  name       text NOT NULL UNIQUE,
  contact    text NOT NULL,
  campaigns  bigint NOT NULL DEFAULT 0,
  file_bytes bigint NOT NULL DEFAULT 0,
  deleted    boolean NOT NULL DEFAULT false, -- true while its rows are being removed
  created_at bigint NOT NULL
);

CREATE TABLE formsvc_keys (
  id          uuid PRIMARY KEY,
  account_id  uuid NOT NULL REFERENCES formsvc_accounts (id),
  name        text NOT NULL,
  prefix      text NOT NULL,
  hash        bytea NOT NULL UNIQUE,
  permissions text NOT NULL,
  created_at  bigint NOT NULL,
  expires_at  bigint NOT NULL,
  revoked_at  bigint NOT NULL,
  used_at     bigint NOT NULL
);
CREATE INDEX formsvc_keys_account ON formsvc_keys (account_id, id);

CREATE TABLE formsvc_campaigns (
  id          uuid PRIMARY KEY,
  account_id  uuid NOT NULL REFERENCES formsvc_accounts (id),
  title       text NOT NULL,
  description text NOT NULL,
  status      text NOT NULL,
  opens_at    bigint NOT NULL,
  closes_at   bigint NOT NULL,
  modules     text NOT NULL,
  metadata    text NOT NULL,
  version     bigint NOT NULL,
  created_at  bigint NOT NULL,
  updated_at  bigint NOT NULL,
  email_optional boolean NOT NULL DEFAULT false,
  form        text NOT NULL,
  form_token  text -- unless its form was never enabled
);
CREATE INDEX formsvc_campaigns_account ON formsvc_campaigns (account_id, id);
CREATE UNIQUE INDEX formsvc_campaigns_form ON formsvc_campaigns (form_token) WHERE form_token IS NOT NULL;

-- Responses per campaign, in several rows each so that nodes, and transactions
-- of an embedding program, do not wait for each other to count. The foreign key
-- fails a response that is created while its campaign is deleted.
CREATE TABLE formsvc_counters (
  campaign_id uuid NOT NULL REFERENCES formsvc_campaigns (id),
  shard       integer NOT NULL,
  responses   bigint NOT NULL,
  PRIMARY KEY (campaign_id, shard)
) WITH (fillfactor = 50);

-- The campaign is checked by the statement that inserts, so there is no foreign
-- key here, nor on the tables below: they are written with every response. events
-- has the identifiers of the events that were made with the response, 16 bytes each. person
-- is a hash of the campaign and the email address in lower case.
CREATE TABLE formsvc_responses (
  id           uuid NOT NULL,
  account_id   uuid NOT NULL,
  campaign_id  uuid NOT NULL,
  reference    text NOT NULL,
  status       text NOT NULL,
  email        text NOT NULL,
  first_name   text NOT NULL,
  last_name    text NOT NULL,
  answers      text NOT NULL,
  version      bigint NOT NULL,
  created_at   bigint NOT NULL,
  updated_at   bigint NOT NULL,
  completed_at bigint NOT NULL,
  events       bytea NOT NULL,
  person       bigint,
  held         text NOT NULL DEFAULT '',
  metadata     text NOT NULL DEFAULT '{}',
  PRIMARY KEY (campaign_id, id)
);
CREATE UNIQUE INDEX formsvc_responses_reference ON formsvc_responses (account_id, reference);

-- A row with nothing but an identifier bars it: no file may have it. Whether a
-- file or a bar was first is decided by the one index on both. What lists leave
-- out comes last.
CREATE TABLE formsvc_files (
  id           uuid PRIMARY KEY,
  account_id   uuid,
  campaign_id  uuid,
  response_id  uuid,
  name         text,
  content_type text,
  module       text,
  size         bigint,
  sha256       bytea,
  created_at   bigint,
  blocks       bytea
);
CREATE INDEX formsvc_files_response ON formsvc_files (campaign_id, response_id, id) WHERE response_id IS NOT NULL;

-- The feed is read in the order of xact, the number of the transaction plus the
-- offset of formsvc_feed, and of seq within one. Transactions commit in another
-- order than that of their numbers, so readers stop before the oldest that is
-- still running. type is a bit per event type, and 65536 for a test. about is the
-- response again, except in an event that was made with it, which the response
-- names: so that a new response is in no index more.
-- The feed is in the order of commits: xact is the number of the transaction, or that of
-- the last one that had ended when the statement began, if that is higher, plus the
-- offset of formsvc_feed. A change that waited for another one may get the same xact as
-- that, and a higher seq: numbers are handed out in order, so no session keeps some.
CREATE TABLE formsvc_events (
  id          uuid PRIMARY KEY,
  account_id  uuid NOT NULL,
  campaign_id uuid NOT NULL,
  response_id uuid NOT NULL,
  xact        bigint NOT NULL,
  seq         bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
  type        bigint NOT NULL,
  created_at  bigint NOT NULL,
  about       uuid,
  payload     bytea NOT NULL,
  traceparent text -- the span that raised it, in the form of W3C Trace Context
);
CREATE INDEX formsvc_events_account ON formsvc_events (account_id, xact, seq);
CREATE INDEX formsvc_events_about ON formsvc_events (about) WHERE about IS NOT NULL;

-- One row: what is added to transaction numbers. It is 0 until the data moves to
-- a server whose transactions have lower numbers.
CREATE TABLE formsvc_feed (
  id       integer PRIMARY KEY CHECK (id = 1),
  "offset" bigint NOT NULL
);
INSERT INTO formsvc_feed VALUES (1, 0);

-- events is a set of bits, one per event type. secret, previous_secret and
-- headers are in the form of package keyring, or '' for none; headers is JSON.
CREATE TABLE formsvc_webhooks (
  id              uuid PRIMARY KEY,
  account_id      uuid NOT NULL REFERENCES formsvc_accounts (id),
  url             text NOT NULL,
  events          bigint NOT NULL,
  campaign_id     uuid,
  secret          text NOT NULL,
  previous_secret text NOT NULL,
  previous_until  bigint NOT NULL,
  headers         text NOT NULL,
  disabled        boolean NOT NULL,
  version         bigint NOT NULL,
  created_at      bigint NOT NULL,
  updated_at      bigint NOT NULL
);
CREATE INDEX formsvc_webhooks_account ON formsvc_webhooks (account_id, id);

-- kind: 0 first attempt, 1 retry, 2 replay. state: 0 pending, 1 delivered,
-- 2 failed. A claim sets due_at to the end of its lease and makes lease, the
-- fencing token, the next odd number; finishing makes it even. size is that of
-- the payload in bytes, event_type the event's type. The table changes all the
-- time, so it is vacuumed early.
CREATE TABLE formsvc_deliveries (
  webhook_id uuid NOT NULL,
  id         uuid NOT NULL,
  event_id   uuid NOT NULL,
  event_type bigint NOT NULL,
  due_at     bigint NOT NULL,
  lease      bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL,
  size       integer NOT NULL,
  kind       integer NOT NULL,
  state      integer NOT NULL,
  attempts   integer NOT NULL,
  PRIMARY KEY (webhook_id, id)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX formsvc_deliveries_due ON formsvc_deliveries (webhook_id, kind, due_at) WHERE state = 0;
CREATE INDEX formsvc_deliveries_failed ON formsvc_deliveries (webhook_id, updated_at) WHERE state = 2;
CREATE INDEX formsvc_deliveries_failures ON formsvc_deliveries (webhook_id, id) WHERE state = 2;

CREATE TABLE formsvc_attempts (
  delivery_id uuid NOT NULL,
  number      integer NOT NULL,
  started_at  bigint NOT NULL,
  duration    bigint NOT NULL, -- microseconds
  status      integer NOT NULL, -- of the answer; 0: there was none
  error       text NOT NULL,
  answer      bytea NOT NULL,
  PRIMARY KEY (delivery_id, number)
);

-- Final failures. due_at is when a notice that nobody noted may be given: at
-- once, then when the lease of whoever took it ends.
CREATE TABLE formsvc_notices (
  delivery_id uuid PRIMARY KEY,
  account_id  uuid NOT NULL,
  webhook_id  uuid NOT NULL,
  event_id    uuid NOT NULL,
  event_type  bigint NOT NULL,
  attempts    integer NOT NULL,
  status      integer NOT NULL,
  error       text NOT NULL,
  at          bigint NOT NULL,
  due_at      bigint NOT NULL,
  noted       boolean NOT NULL
);
CREATE INDEX formsvc_notices_account ON formsvc_notices (account_id, delivery_id);
CREATE INDEX formsvc_notices_open ON formsvc_notices (at, delivery_id, due_at) WHERE NOT noted;

-- The failures of a webhook that no digest told of. since is when the first one
-- failed after the last claim of a digest; told_at is when the last digest was
-- sent, until when the lease of the one in preparation ends.
CREATE TABLE formsvc_failing (
  webhook_id uuid PRIMARY KEY,
  account_id uuid NOT NULL,
  failures   bigint NOT NULL,
  first_at   bigint NOT NULL,
  since      bigint NOT NULL,
  last_at    bigint NOT NULL,
  status     integer NOT NULL,
  error      text NOT NULL,
  told_at    bigint NOT NULL,
  until      bigint NOT NULL,
  lease      bigint NOT NULL
);
CREATE INDEX formsvc_failing_untold ON formsvc_failing (first_at) WHERE failures > 0;

-- The identifier of the delivery of an event to a webhook: the event's time,
-- then bytes of SHA-256(event ‖ webhook), with the bits of a version 7 UUID.
-- The program makes the same one. One expression can be inlined by the server;
-- naming the hash once in a subquery made it three times slower.
CREATE FUNCTION formsvc_delivery_id(event uuid, webhook uuid) RETURNS uuid
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT encode(set_byte(set_byte(
    substring(uuid_send(event) FROM 1 FOR 6) || substring(sha256(uuid_send(event) || uuid_send(webhook)) FROM 7 FOR 10),
    6, (get_byte(sha256(uuid_send(event) || uuid_send(webhook)), 6) & 15) | 112),
    8, (get_byte(sha256(uuid_send(event) || uuid_send(webhook)), 8) & 63) | 128), 'hex')::uuid
$$;

-- Outcomes of calls that may be repeated, by a hash of account and key. If a call created a
-- response, campaign_id is its campaign, and the result is NULL until the response changes:
-- then it gets what the response was.
CREATE TABLE formsvc_idempotency (
  id          bytea PRIMARY KEY,
  account_id  uuid NOT NULL,
  request     bytea NOT NULL,
  refused     boolean NOT NULL,
  response_id uuid,
  campaign_id uuid,
  created_at  bigint NOT NULL,
  result      bytea
);
CREATE INDEX formsvc_idempotency_created ON formsvc_idempotency (created_at);
CREATE INDEX formsvc_idempotency_response ON formsvc_idempotency (response_id) WHERE response_id IS NOT NULL;

-- Requests counted by key or account, and window.
CREATE TABLE formsvc_quota (
  subject uuid NOT NULL,
  start   bigint NOT NULL,
  used    bigint NOT NULL,
  PRIMARY KEY (subject, start)
);

CREATE TABLE formsvc_comments (
  id          uuid PRIMARY KEY,
  account_id  uuid NOT NULL,
  campaign_id uuid NOT NULL,
  response_id uuid NOT NULL,
  body        text NOT NULL,
  author      text NOT NULL,
  created_at  bigint NOT NULL
);
CREATE INDEX formsvc_comments_response ON formsvc_comments (campaign_id, response_id, id);

-- folded is the signer's address as formsvc.FoldEmail has it.
CREATE TABLE formsvc_signatures (
  id          uuid PRIMARY KEY,
  account_id  uuid NOT NULL,
  campaign_id uuid NOT NULL,
  response_id uuid NOT NULL,
  email       text NOT NULL,
  folded      text NOT NULL,
  first_name  text NOT NULL,
  last_name   text NOT NULL,
  file_id     uuid,
  provider    text NOT NULL,
  sha256      bytea NOT NULL,
  signed_at   bigint NOT NULL,
  created_at  bigint NOT NULL
);
CREATE INDEX formsvc_signatures_response ON formsvc_signatures (campaign_id, response_id, id);
CREATE INDEX formsvc_signatures_signer ON formsvc_signatures (account_id, folded, id);

-- Links that sign somebody in, once, and who is signed in. hash is the SHA-256 of the
-- token of a link, or of the value of a session.
CREATE TABLE formsvc_links (
  id         uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES formsvc_accounts (id),
  hash       bytea NOT NULL UNIQUE,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX formsvc_links_account ON formsvc_links (account_id);
CREATE INDEX formsvc_links_expires ON formsvc_links (expires_at);

CREATE TABLE formsvc_sessions (
  id         uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES formsvc_accounts (id),
  hash       bytea NOT NULL UNIQUE,
  created_at bigint NOT NULL,
  expires_at bigint NOT NULL
);
CREATE INDEX formsvc_sessions_account ON formsvc_sessions (account_id);
CREATE INDEX formsvc_sessions_expires ON formsvc_sessions (expires_at);

-- Who did what. Entries are only added, and removed only with their account.
CREATE TABLE formsvc_audit (
  id         uuid PRIMARY KEY,
  account_id uuid NOT NULL REFERENCES formsvc_accounts (id),
  actor      text NOT NULL,
  action     text NOT NULL,
  target     text NOT NULL,
  details    text NOT NULL,
  created_at bigint NOT NULL
);
CREATE INDEX formsvc_audit_account ON formsvc_audit (account_id, id);
CREATE FUNCTION formsvc_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND EXISTS (SELECT FROM formsvc_accounts AS a WHERE a.id = OLD.account_id AND a.deleted) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME;
END $$;
CREATE TRIGGER formsvc_audit_append_only BEFORE UPDATE OR DELETE ON formsvc_audit
FOR EACH ROW EXECUTE FUNCTION formsvc_append_only();

-- How many responses of a campaign have a status; the others are pending. Triggers
-- count, so that a new response, which is pending, costs nothing. There are several
-- rows each, one for each server process more or less, so that transactions do not wait
-- for each other.
CREATE TABLE formsvc_statuses (
  campaign_id uuid NOT NULL,
  status      text NOT NULL,
  shard       integer NOT NULL,
  responses   bigint NOT NULL,
  PRIMARY KEY (campaign_id, status, shard)
) WITH (fillfactor = 50);

CREATE FUNCTION formsvc_count_status() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO formsvc_statuses AS n (campaign_id, status, shard, responses)
  SELECT x.campaign_id, x.status, pg_backend_pid() & 31, x.responses
  FROM (VALUES (OLD.campaign_id, OLD.status, -1), (NEW.campaign_id, NEW.status, 1)) AS x(campaign_id, status, responses)
  WHERE x.status <> 'pending' ORDER BY x.status
  ON CONFLICT (campaign_id, status, shard) DO UPDATE SET responses = n.responses + excluded.responses;
  RETURN NULL;
END $$;
CREATE TRIGGER formsvc_responses_made AFTER INSERT ON formsvc_responses
FOR EACH ROW WHEN (NEW.status <> 'pending') EXECUTE FUNCTION formsvc_count_status();
CREATE TRIGGER formsvc_responses_moved AFTER UPDATE ON formsvc_responses
FOR EACH ROW WHEN (OLD.status <> NEW.status) EXECUTE FUNCTION formsvc_count_status();
CREATE TRIGGER formsvc_responses_gone AFTER DELETE ON formsvc_responses
FOR EACH ROW WHEN (OLD.status <> 'pending') EXECUTE FUNCTION formsvc_count_status();

-- In the order of lists. Only a response that has changed is in the second one: a new
-- one is found by its identifier, which has its time.
CREATE INDEX formsvc_responses_status ON formsvc_responses (campaign_id, status, id);
CREATE INDEX formsvc_responses_person ON formsvc_responses (person) WHERE person IS NOT NULL;
CREATE INDEX formsvc_responses_changed ON formsvc_responses (campaign_id, updated_at, id) WHERE updated_at <> created_at;

-- One row: which data this is. identity goes with the data when it is copied to another
-- database. state: 'active'; 'moved', when peer has it all and this database must not be
-- used.
CREATE TABLE formsvc_identity (
  id       integer PRIMARY KEY CHECK (id = 1),
  identity uuid NOT NULL,
  state    text NOT NULL,
  peer     text NOT NULL,
  since    bigint NOT NULL
);

-- Stored refusals may name a person in the text of an error, so an erasure looks through
-- those of an account. A result is in no index more.
CREATE INDEX formsvc_idempotency_refused ON formsvc_idempotency (account_id, id) WHERE refused;

-- The promised views, the same as on SQLite. The index finds a campaign by its identifier as text; its responses are
-- found by their primary key.
CREATE UNIQUE INDEX formsvc_campaigns_text ON formsvc_campaigns ((id::text));

CREATE VIEW formsvc_v1_campaigns AS SELECT
  c.id::text AS campaign_id,
  c.account_id::text AS account_id,
  c.title,
  c.status,
  timestamptz 'epoch' + c.created_at * interval '1 microsecond' AS created_at,
  timestamptz 'epoch' + c.updated_at * interval '1 microsecond' AS updated_at,
  (SELECT coalesce(sum(n.responses), 0) FROM formsvc_counters AS n WHERE n.campaign_id = c.id)::bigint AS response_count,
  c.metadata::jsonb AS metadata
FROM formsvc_campaigns AS c;
COMMENT ON VIEW formsvc_v1_campaigns IS 'Campaigns. Identifiers are text in canonical form.';
COMMENT ON COLUMN formsvc_v1_campaigns.status IS 'open or closed, as set';
COMMENT ON COLUMN formsvc_v1_campaigns.response_count IS 'Responses with any status';
COMMENT ON COLUMN formsvc_v1_campaigns.metadata IS 'An object of texts';

CREATE VIEW formsvc_v1_responses AS SELECT
  r.id::text AS response_id,
  c.id::text AS campaign_id,
  c.account_id::text AS account_id,
  r.reference,
  r.status,
  r.email,
  r.first_name,
  r.last_name,
  r.answers::jsonb AS answers,
  r.metadata::jsonb AS metadata,
  timestamptz 'epoch' + r.created_at * interval '1 microsecond' AS created_at,
  timestamptz 'epoch' + r.updated_at * interval '1 microsecond' AS updated_at,
  timestamptz 'epoch' + nullif(r.completed_at, -62135596800000000) * interval '1 microsecond' AS completed_at,
  r.id AS response_key
FROM formsvc_campaigns AS c JOIN formsvc_responses AS r ON r.campaign_id = c.id;
COMMENT ON VIEW formsvc_v1_responses IS 'Responses with any status, spam too';
COMMENT ON COLUMN formsvc_v1_responses.email IS 'Empty if not given, as are the names';
COMMENT ON COLUMN formsvc_v1_responses.answers IS 'As in the API: name: an object whose value is the list of values';
COMMENT ON COLUMN formsvc_v1_responses.metadata IS 'An object of texts';
COMMENT ON COLUMN formsvc_v1_responses.completed_at IS 'NULL: not completed';
COMMENT ON COLUMN formsvc_v1_responses.response_key IS 'response_id as stored, for quick look-ups';

CREATE VIEW formsvc_v1_answers AS SELECT
  r.id::text AS response_id,
  c.id::text AS campaign_id,
  c.account_id::text AS account_id,
  a.module,
  (v.ordinality - 1)::integer AS position,
  v.value,
  r.id AS response_key
FROM formsvc_campaigns AS c JOIN formsvc_responses AS r ON r.campaign_id = c.id
CROSS JOIN LATERAL json_each(r.answers::json) AS a(module, answer)
CROSS JOIN LATERAL json_array_elements_text(a.answer -> 'value') WITH ORDINALITY AS v(value, ordinality);
COMMENT ON VIEW formsvc_v1_answers IS 'One row for each value of an answer. An answer without values has none.';
COMMENT ON COLUMN formsvc_v1_answers.module IS 'The name of the module';
COMMENT ON COLUMN formsvc_v1_answers.position IS 'From 0';
COMMENT ON COLUMN formsvc_v1_answers.response_key IS 'As in formsvc_v1_responses';

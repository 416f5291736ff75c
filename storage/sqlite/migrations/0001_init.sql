-- Times are microseconds since 1970, UTC. Identifiers are the 16 bytes of a UUID.

CREATE TABLE formsvc_accounts (
  id         BLOB PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  contact    TEXT NOT NULL,
  campaigns  INTEGER NOT NULL DEFAULT 0,
  file_bytes INTEGER NOT NULL DEFAULT 0,
  deleted    INTEGER NOT NULL DEFAULT 0, -- 1 while its rows are being removed
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE formsvc_keys (
  id          BLOB PRIMARY KEY,
  account_id  BLOB NOT NULL REFERENCES formsvc_accounts (id),
  name        TEXT NOT NULL,
  prefix      TEXT NOT NULL,
  hash        BLOB NOT NULL UNIQUE,
  permissions TEXT NOT NULL,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL,
  revoked_at  INTEGER NOT NULL,
  used_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX formsvc_keys_account ON formsvc_keys (account_id, id);

CREATE TABLE formsvc_campaigns (
  id          BLOB PRIMARY KEY,
  account_id  BLOB NOT NULL REFERENCES formsvc_accounts (id),
  title       TEXT NOT NULL,
  description TEXT NOT NULL,
  status      TEXT NOT NULL,
  opens_at    INTEGER NOT NULL,
  closes_at   INTEGER NOT NULL,
  modules     TEXT NOT NULL,
  metadata    TEXT NOT NULL,
  version     INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  email_optional INTEGER NOT NULL DEFAULT 0,
  form        TEXT NOT NULL,
  form_token  TEXT -- unless its form was never enabled
) STRICT;
CREATE INDEX formsvc_campaigns_account ON formsvc_campaigns (account_id, id);
CREATE UNIQUE INDEX formsvc_campaigns_form ON formsvc_campaigns (form_token) WHERE form_token IS NOT NULL;

-- Responses per campaign, apart from the campaign so that counting one does not
-- rewrite the campaign's row.
CREATE TABLE formsvc_counters (
  campaign_id BLOB NOT NULL,
  shard       INTEGER NOT NULL,
  responses   INTEGER NOT NULL,
  PRIMARY KEY (campaign_id, shard)
) STRICT, WITHOUT ROWID;

-- The campaign is checked by the statement that inserts, so there is no foreign
-- key here, nor on the tables below: they are written with every response. events
-- has the identifiers of the events that were made with the response, one after another.
-- person is a hash of the campaign and the email address as formsvc.FoldEmail has it.
-- held is why its events wait for another status; '' if they don't.
CREATE TABLE formsvc_responses (
  seq          INTEGER PRIMARY KEY,
  id           BLOB NOT NULL,
  account_id   BLOB NOT NULL,
  campaign_id  BLOB NOT NULL,
  reference    TEXT NOT NULL,
  status       TEXT NOT NULL,
  email        TEXT NOT NULL,
  first_name   TEXT NOT NULL,
  last_name    TEXT NOT NULL,
  answers      TEXT NOT NULL,
  version      INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  completed_at INTEGER NOT NULL,
  events       BLOB NOT NULL,
  person       INTEGER,
  held         TEXT NOT NULL DEFAULT '',
  metadata     TEXT NOT NULL DEFAULT '{}'
) STRICT;
-- The statement that inserts checks that the identifier is new. The status is in the index for lists of pending responses.
CREATE INDEX formsvc_responses_campaign ON formsvc_responses (campaign_id, id, status);
CREATE UNIQUE INDEX formsvc_responses_reference ON formsvc_responses (account_id, reference);

-- A row with nothing but an identifier bars it: no file may have it. Whether a
-- file or a bar was first is decided by the one index on both. What lists leave
-- out comes last.
CREATE TABLE formsvc_files (
  id           BLOB PRIMARY KEY,
  account_id   BLOB,
  campaign_id  BLOB,
  response_id  BLOB,
  name         TEXT,
  content_type TEXT,
  module       TEXT,
  size         INTEGER,
  sha256       BLOB,
  created_at   INTEGER,
  blocks       BLOB
) STRICT;
CREATE INDEX formsvc_files_response ON formsvc_files (campaign_id, response_id, id) WHERE response_id IS NOT NULL;

-- seq is the order of the feed: there is one writer, so events commit in it.
-- A new event has the number after the last one. So that the numbers of deleted events are not given again, a test of no
-- account takes the place of a last event that is deleted; it has the highest identifier, so that it stays. AUTOINCREMENT
-- would write one page more for each event.
-- type is a bit per event type, and 65536 for a test. about is the response again,
-- except in an event that was made with it, which the response names: so that a new
-- response is in no index more. The payload comes last, so
-- that the columns before it can be read without it.
CREATE TABLE formsvc_events (
  seq         INTEGER PRIMARY KEY,
  id          BLOB NOT NULL UNIQUE,
  account_id  BLOB NOT NULL,
  campaign_id BLOB NOT NULL,
  response_id BLOB NOT NULL,
  type        INTEGER NOT NULL,
  created_at  INTEGER NOT NULL,
  about       BLOB,
  payload     BLOB NOT NULL,
  traceparent TEXT -- the span that raised it, in the form of W3C Trace Context
) STRICT;
CREATE INDEX formsvc_events_account ON formsvc_events (account_id);
CREATE INDEX formsvc_events_about ON formsvc_events (about) WHERE about IS NOT NULL;

CREATE TRIGGER formsvc_events_gone AFTER DELETE ON formsvc_events WHEN NOT EXISTS (SELECT 1 FROM formsvc_events WHERE seq > OLD.seq)
BEGIN
  INSERT OR REPLACE INTO formsvc_events (seq, id, account_id, campaign_id, response_id, type, created_at, payload)
  VALUES (OLD.seq, X'ffffffffffffffffffffffffffffffff', zeroblob(16), zeroblob(16), zeroblob(16), 65536, 0, X'');
END;

-- events is a set of bits, one per event type. secret, previous_secret and
-- headers are in the form of package keyring, or '' for none; headers is JSON.
CREATE TABLE formsvc_webhooks (
  id              BLOB PRIMARY KEY,
  account_id      BLOB NOT NULL REFERENCES formsvc_accounts (id),
  url             TEXT NOT NULL,
  events          INTEGER NOT NULL,
  campaign_id     BLOB,
  secret          TEXT NOT NULL,
  previous_secret TEXT NOT NULL,
  previous_until  INTEGER NOT NULL,
  headers         TEXT NOT NULL,
  disabled        INTEGER NOT NULL,
  version         INTEGER NOT NULL,
  created_at      INTEGER NOT NULL,
  updated_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX formsvc_webhooks_account ON formsvc_webhooks (account_id, id);

-- kind: 0 first attempt, 1 retry, 2 replay. state: 0 pending, 1 delivered,
-- 2 failed. A claim sets due_at to the end of its lease and makes lease, the
-- fencing token, the next odd number; finishing makes it even. size is that of
-- the payload in bytes, event_type the event's type.
CREATE TABLE formsvc_deliveries (
  webhook_id BLOB NOT NULL,
  id         BLOB NOT NULL,
  event_id   BLOB NOT NULL,
  event_type INTEGER NOT NULL,
  size       INTEGER NOT NULL,
  kind       INTEGER NOT NULL,
  state      INTEGER NOT NULL,
  attempts   INTEGER NOT NULL,
  lease      INTEGER NOT NULL,
  due_at     INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (webhook_id, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX formsvc_deliveries_due ON formsvc_deliveries (webhook_id, kind, due_at) WHERE state = 0;
CREATE INDEX formsvc_deliveries_failed ON formsvc_deliveries (webhook_id, updated_at) WHERE state = 2;
CREATE INDEX formsvc_deliveries_failures ON formsvc_deliveries (webhook_id, id) WHERE state = 2;

CREATE TABLE formsvc_attempts (
  delivery_id BLOB NOT NULL,
  number      INTEGER NOT NULL,
  started_at  INTEGER NOT NULL,
  duration    INTEGER NOT NULL, -- microseconds
  status      INTEGER NOT NULL, -- of the answer; 0: there was none
  error       TEXT NOT NULL,
  answer      BLOB NOT NULL,
  PRIMARY KEY (delivery_id, number)
) STRICT, WITHOUT ROWID;

-- Final failures. due_at is when a notice that nobody noted may be given: at
-- once, then when the lease of whoever took it ends.
CREATE TABLE formsvc_notices (
  delivery_id BLOB PRIMARY KEY,
  account_id  BLOB NOT NULL,
  webhook_id  BLOB NOT NULL,
  event_id    BLOB NOT NULL,
  event_type  INTEGER NOT NULL,
  attempts    INTEGER NOT NULL,
  status      INTEGER NOT NULL,
  error       TEXT NOT NULL,
  at          INTEGER NOT NULL,
  due_at      INTEGER NOT NULL,
  noted       INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX formsvc_notices_account ON formsvc_notices (account_id, delivery_id);
CREATE INDEX formsvc_notices_open ON formsvc_notices (at, delivery_id, due_at) WHERE NOT noted;

-- The failures of a webhook that no digest told of. since is when the first one
-- failed after the last claim of a digest; told_at is when the last digest was
-- sent, until when the lease of the one in preparation ends.
CREATE TABLE formsvc_failing (
  webhook_id BLOB PRIMARY KEY,
  account_id BLOB NOT NULL,
  failures   INTEGER NOT NULL,
  first_at   INTEGER NOT NULL,
  since      INTEGER NOT NULL,
  last_at    INTEGER NOT NULL,
  status     INTEGER NOT NULL,
  error      TEXT NOT NULL,
  told_at    INTEGER NOT NULL,
  until      INTEGER NOT NULL,
  lease      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX formsvc_failing_untold ON formsvc_failing (first_at) WHERE failures > 0;

-- Outcomes of calls that may be repeated, by a hash of account and key. If a call created a
-- response, campaign_id is its campaign, and the result is NULL until the response changes:
-- then it gets what the response was.
CREATE TABLE formsvc_idempotency (
  id          BLOB NOT NULL PRIMARY KEY,
  account_id  BLOB NOT NULL,
  request     BLOB NOT NULL,
  refused     INTEGER NOT NULL,
  response_id BLOB,
  campaign_id BLOB,
  created_at  INTEGER NOT NULL,
  result      BLOB
) STRICT;
CREATE INDEX formsvc_idempotency_created ON formsvc_idempotency (created_at);
CREATE INDEX formsvc_idempotency_response ON formsvc_idempotency (response_id) WHERE response_id IS NOT NULL;

-- Requests counted by key or account, and window.
CREATE TABLE formsvc_quota (
  subject BLOB NOT NULL,
  start   INTEGER NOT NULL,
  used    INTEGER NOT NULL,
  PRIMARY KEY (subject, start)
) STRICT, WITHOUT ROWID;

CREATE TABLE formsvc_comments (
  id          BLOB PRIMARY KEY,
  account_id  BLOB NOT NULL,
  campaign_id BLOB NOT NULL,
  response_id BLOB NOT NULL,
  body        TEXT NOT NULL,
  author      TEXT NOT NULL,
  created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX formsvc_comments_response ON formsvc_comments (campaign_id, response_id, id);

-- folded is the signer's address as formsvc.FoldEmail has it.
CREATE TABLE formsvc_signatures (
  id          BLOB PRIMARY KEY,
  account_id  BLOB NOT NULL,
  campaign_id BLOB NOT NULL,
  response_id BLOB NOT NULL,
  email       TEXT NOT NULL,
  folded      TEXT NOT NULL,
  first_name  TEXT NOT NULL,
  last_name   TEXT NOT NULL,
  file_id     BLOB,
  provider    TEXT NOT NULL,
  sha256      BLOB NOT NULL,
  signed_at   INTEGER NOT NULL,
  created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX formsvc_signatures_response ON formsvc_signatures (campaign_id, response_id, id);
CREATE INDEX formsvc_signatures_signer ON formsvc_signatures (account_id, folded, id);

-- Links that sign somebody in, once, and who is signed in. hash is the SHA-256 of the
-- token of a link, or of the value of a session.
CREATE TABLE formsvc_links (
  id         BLOB PRIMARY KEY,
  account_id BLOB NOT NULL REFERENCES formsvc_accounts (id),
  hash       BLOB NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX formsvc_links_account ON formsvc_links (account_id);
CREATE INDEX formsvc_links_expires ON formsvc_links (expires_at);

CREATE TABLE formsvc_sessions (
  id         BLOB PRIMARY KEY,
  account_id BLOB NOT NULL REFERENCES formsvc_accounts (id),
  hash       BLOB NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX formsvc_sessions_account ON formsvc_sessions (account_id);
CREATE INDEX formsvc_sessions_expires ON formsvc_sessions (expires_at);

-- Who did what. Entries are only added, and removed only with their account.
CREATE TABLE formsvc_audit (
  id         BLOB PRIMARY KEY,
  account_id BLOB NOT NULL REFERENCES formsvc_accounts (id),
  actor      TEXT NOT NULL,
  action     TEXT NOT NULL,
  target     TEXT NOT NULL,
  details    TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX formsvc_audit_account ON formsvc_audit (account_id, id);
CREATE TRIGGER formsvc_audit_update BEFORE UPDATE ON formsvc_audit
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
CREATE TRIGGER formsvc_audit_delete BEFORE DELETE ON formsvc_audit
WHEN NOT EXISTS (SELECT 1 FROM formsvc_accounts AS a WHERE a.id = OLD.account_id AND a.deleted)
BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;

-- How many responses of a campaign have a status; the others are pending. So a new
-- response, which is pending, costs nothing. Triggers count what changes. There is none
-- for what is new: every new response would pay for being asked whether it is pending,
-- which the program knows.
CREATE TABLE formsvc_statuses (
  campaign_id BLOB NOT NULL,
  status      TEXT NOT NULL,
  responses   INTEGER NOT NULL,
  PRIMARY KEY (campaign_id, status)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER formsvc_responses_moved AFTER UPDATE OF status ON formsvc_responses WHEN OLD.status <> NEW.status BEGIN
  UPDATE formsvc_statuses SET responses = responses - 1 WHERE campaign_id = OLD.campaign_id AND status = OLD.status;
  INSERT INTO formsvc_statuses SELECT NEW.campaign_id, NEW.status, 1 WHERE NEW.status <> 'pending'
  ON CONFLICT (campaign_id, status) DO UPDATE SET responses = responses + 1;
END;
CREATE TRIGGER formsvc_responses_gone AFTER DELETE ON formsvc_responses WHEN OLD.status <> 'pending' BEGIN
  UPDATE formsvc_statuses SET responses = responses - 1 WHERE campaign_id = OLD.campaign_id AND status = OLD.status;
END;

-- In the order of lists. A new response is in neither: it is pending, and found by its identifier, which has its time.
CREATE INDEX formsvc_responses_status ON formsvc_responses (campaign_id, status, id) WHERE status <> 'pending';
CREATE INDEX formsvc_responses_changed ON formsvc_responses (campaign_id, updated_at, id) WHERE updated_at <> created_at;

-- Addresses are in no order, so each new response would change another page of an index by
-- address, which costs a third of all the rest. So the index has parts of 4,096 responses:
-- new ones change few pages, and a query looks into each part.
CREATE INDEX formsvc_responses_person ON formsvc_responses (seq >> 12, person) WHERE person IS NOT NULL;

-- One row: which data this is. identity goes with the data when it is copied to another
-- database. state: 'active'; 'moved', when peer has it all and this database must not be
-- used.
CREATE TABLE formsvc_identity (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  identity TEXT NOT NULL,
  state    TEXT NOT NULL,
  peer     TEXT NOT NULL,
  since    INTEGER NOT NULL
) STRICT;

-- Stored refusals may name a person in the text of an error, so an erasure looks through
-- those of an account. A result is in no index more.
CREATE INDEX formsvc_idempotency_refused ON formsvc_idempotency (account_id, id) WHERE refused;

-- The promised views, the same as on Postgres. CROSS JOIN makes SQLite find the campaign first, by the index of its
-- identifier as text, and then its responses by theirs. SQLite before 3.38 couldn't open a schema with format in place
-- of printf.
CREATE UNIQUE INDEX formsvc_campaigns_text ON formsvc_campaigns (lower(printf('%s-%s-%s-%s-%s', substr(hex(id), 1, 8), substr(hex(id), 9, 4), substr(hex(id), 13, 4), substr(hex(id), 17, 4), substr(hex(id), 21))));

CREATE VIEW formsvc_v1_campaigns AS
-- Campaigns. Identifiers are text, times are ISO 8601 in UTC with milliseconds.
SELECT
  lower(printf('%s-%s-%s-%s-%s', substr(hex(c.id), 1, 8), substr(hex(c.id), 9, 4), substr(hex(c.id), 13, 4), substr(hex(c.id), 17, 4), substr(hex(c.id), 21))) AS campaign_id,
  lower(printf('%s-%s-%s-%s-%s', substr(hex(c.account_id), 1, 8), substr(hex(c.account_id), 9, 4), substr(hex(c.account_id), 13, 4), substr(hex(c.account_id), 17, 4), substr(hex(c.account_id), 21))) AS account_id,
  c.title,
  c.status, -- open or closed, as set
  strftime('%Y-%m-%dT%H:%M:%fZ', c.created_at / 1e6, 'unixepoch') AS created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', c.updated_at / 1e6, 'unixepoch') AS updated_at,
  (SELECT coalesce(sum(n.responses), 0) FROM formsvc_counters AS n WHERE n.campaign_id = c.id) AS response_count, -- with any status
  c.metadata -- a JSON object of texts
FROM formsvc_campaigns AS c;

CREATE VIEW formsvc_v1_responses AS
-- Responses with any status, spam too.
SELECT
  lower(printf('%s-%s-%s-%s-%s', substr(hex(r.id), 1, 8), substr(hex(r.id), 9, 4), substr(hex(r.id), 13, 4), substr(hex(r.id), 17, 4), substr(hex(r.id), 21))) AS response_id,
  lower(printf('%s-%s-%s-%s-%s', substr(hex(c.id), 1, 8), substr(hex(c.id), 9, 4), substr(hex(c.id), 13, 4), substr(hex(c.id), 17, 4), substr(hex(c.id), 21))) AS campaign_id,
  lower(printf('%s-%s-%s-%s-%s', substr(hex(c.account_id), 1, 8), substr(hex(c.account_id), 9, 4), substr(hex(c.account_id), 13, 4), substr(hex(c.account_id), 17, 4), substr(hex(c.account_id), 21))) AS account_id,
  r.reference,
  r.status,
  r.email, -- empty if not given, as are the names
  r.first_name,
  r.last_name,
  r.answers, -- JSON as in the API: name: an object whose value is the list of values
  r.metadata, -- a JSON object of texts
  strftime('%Y-%m-%dT%H:%M:%fZ', r.created_at / 1e6, 'unixepoch') AS created_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', r.updated_at / 1e6, 'unixepoch') AS updated_at,
  strftime('%Y-%m-%dT%H:%M:%fZ', nullif(r.completed_at, -62135596800000000) / 1e6, 'unixepoch') AS completed_at, -- NULL: not completed
  r.id AS response_key -- response_id as stored, for quick look-ups: unhex(text, '-')
FROM formsvc_campaigns AS c CROSS JOIN formsvc_responses AS r
WHERE r.campaign_id = c.id;

CREATE VIEW formsvc_v1_answers AS
-- One row for each value of an answer. An answer without values has none.
SELECT
  lower(printf('%s-%s-%s-%s-%s', substr(hex(r.id), 1, 8), substr(hex(r.id), 9, 4), substr(hex(r.id), 13, 4), substr(hex(r.id), 17, 4), substr(hex(r.id), 21))) AS response_id,
  lower(printf('%s-%s-%s-%s-%s', substr(hex(c.id), 1, 8), substr(hex(c.id), 9, 4), substr(hex(c.id), 13, 4), substr(hex(c.id), 17, 4), substr(hex(c.id), 21))) AS campaign_id,
  lower(printf('%s-%s-%s-%s-%s', substr(hex(c.account_id), 1, 8), substr(hex(c.account_id), 9, 4), substr(hex(c.account_id), 13, 4), substr(hex(c.account_id), 17, 4), substr(hex(c.account_id), 21))) AS account_id,
  a.key AS module, -- the name of the module
  v.key AS position, -- from 0
  v.value,
  r.id AS response_key -- as in formsvc_v1_responses
FROM formsvc_campaigns AS c CROSS JOIN formsvc_responses AS r CROSS JOIN json_each(r.answers) AS a CROSS JOIN json_each(a.value, '$.value') AS v
WHERE r.campaign_id = c.id;

-- Times are microseconds since 1970, UTC, so that both databases agree.

CREATE TABLE formsvc_accounts (
  id         uuid PRIMARY KEY,
  name       text NOT NULL UNIQUE,
  campaigns  bigint NOT NULL DEFAULT 0,
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
  revoked_at  bigint NOT NULL
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
  updated_at  bigint NOT NULL
);
CREATE INDEX formsvc_campaigns_account ON formsvc_campaigns (account_id, id);

-- Responses per campaign, in several rows each so that nodes, and transactions
-- of an embedding program, do not wait for each other to count.
CREATE TABLE formsvc_counters (
  campaign_id uuid NOT NULL,
  shard       integer NOT NULL,
  responses   bigint NOT NULL,
  PRIMARY KEY (campaign_id, shard)
) WITH (fillfactor = 50);

-- The campaign is checked by the statement that inserts, so there is no foreign
-- key here, nor on the tables below: they are written with every response.
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
  PRIMARY KEY (campaign_id, id)
);
CREATE UNIQUE INDEX formsvc_responses_reference ON formsvc_responses (account_id, reference);

CREATE TABLE formsvc_events (
  id          uuid PRIMARY KEY,
  account_id  uuid NOT NULL,
  campaign_id uuid NOT NULL,
  response_id uuid NOT NULL,
  type        bigint NOT NULL,
  payload     bytea NOT NULL,
  created_at  bigint NOT NULL
);

-- events is a set of bits, one per event type.
CREATE TABLE formsvc_webhooks (
  id          uuid PRIMARY KEY,
  account_id  uuid NOT NULL REFERENCES formsvc_accounts (id),
  url         text NOT NULL,
  events      bigint NOT NULL,
  campaign_id uuid,
  secret      text NOT NULL,
  disabled    boolean NOT NULL,
  created_at  bigint NOT NULL,
  updated_at  bigint NOT NULL
);
CREATE INDEX formsvc_webhooks_account ON formsvc_webhooks (account_id, id);

-- state: 0 pending, 1 delivered, 2 failed. A claim sets due_at to the end of
-- its lease and adds one to lease, the fencing token. The table changes all the
-- time, so it is vacuumed early.
CREATE TABLE formsvc_deliveries (
  id         uuid PRIMARY KEY,
  account_id uuid NOT NULL,
  webhook_id uuid NOT NULL,
  event_id   uuid NOT NULL,
  event_type bigint NOT NULL,
  state      integer NOT NULL,
  attempts   integer NOT NULL,
  lease      bigint NOT NULL,
  due_at     bigint NOT NULL,
  created_at bigint NOT NULL,
  updated_at bigint NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.1);
CREATE INDEX formsvc_deliveries_due ON formsvc_deliveries (webhook_id, due_at) WHERE state = 0;
CREATE INDEX formsvc_deliveries_webhook ON formsvc_deliveries (webhook_id, id);

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

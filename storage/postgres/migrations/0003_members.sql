-- Oldest version: 1
-- People who sign in to the console of an account. folded is the address as formsvc.FoldEmail has it.
CREATE TABLE formsvc_members (
  id            uuid PRIMARY KEY,
  account_id    uuid NOT NULL REFERENCES formsvc_accounts (id),
  email         text NOT NULL,
  folded        text NOT NULL,
  name          text NOT NULL,
  role          text NOT NULL,
  password      text NOT NULL,
  issuer        text NOT NULL,
  subject       text NOT NULL,
  epoch         bigint NOT NULL,
  invited_until bigint NOT NULL,
  joined_at     bigint NOT NULL,
  signed_in_at  bigint NOT NULL,
  removed_at    bigint NOT NULL,
  version       bigint NOT NULL,
  created_at    bigint NOT NULL,
  updated_at    bigint NOT NULL
);
CREATE INDEX formsvc_members_account ON formsvc_members (account_id, id);
CREATE INDEX formsvc_members_folded ON formsvc_members (folded);
CREATE INDEX formsvc_members_subject ON formsvc_members (subject) WHERE subject <> '';

ALTER TABLE formsvc_links ADD COLUMN member_id uuid;
ALTER TABLE formsvc_links ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
ALTER TABLE formsvc_links ADD COLUMN code bytea;
CREATE UNIQUE INDEX formsvc_links_code ON formsvc_links (code) WHERE code IS NOT NULL;

ALTER TABLE formsvc_sessions ADD COLUMN member_id uuid;
ALTER TABLE formsvc_sessions ADD COLUMN epoch bigint NOT NULL DEFAULT 0;
ALTER TABLE formsvc_sessions ADD COLUMN way text NOT NULL DEFAULT '';
ALTER TABLE formsvc_sessions ADD COLUMN device text NOT NULL DEFAULT '';
ALTER TABLE formsvc_sessions ADD COLUMN used_at bigint NOT NULL DEFAULT -62135596800000000;

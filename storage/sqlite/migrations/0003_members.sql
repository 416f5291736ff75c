-- Oldest version: 1
-- People who sign in to the console of an account. folded is the address as formsvc.FoldEmail has it.
CREATE TABLE formsvc_members (
  id            BLOB PRIMARY KEY,
  account_id    BLOB NOT NULL REFERENCES formsvc_accounts (id),
  email         TEXT NOT NULL,
  folded        TEXT NOT NULL,
  name          TEXT NOT NULL,
  role          TEXT NOT NULL,
  password      TEXT NOT NULL,
  issuer        TEXT NOT NULL,
  subject       TEXT NOT NULL,
  epoch         INTEGER NOT NULL,
  invited_until INTEGER NOT NULL,
  joined_at     INTEGER NOT NULL,
  signed_in_at  INTEGER NOT NULL,
  removed_at    INTEGER NOT NULL,
  version       INTEGER NOT NULL,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX formsvc_members_account ON formsvc_members (account_id, id);
CREATE INDEX formsvc_members_folded ON formsvc_members (folded);
CREATE INDEX formsvc_members_subject ON formsvc_members (subject) WHERE subject <> '';

ALTER TABLE formsvc_links ADD COLUMN member_id BLOB;
ALTER TABLE formsvc_links ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE formsvc_links ADD COLUMN code BLOB;
CREATE UNIQUE INDEX formsvc_links_code ON formsvc_links (code) WHERE code IS NOT NULL;

ALTER TABLE formsvc_sessions ADD COLUMN member_id BLOB;
ALTER TABLE formsvc_sessions ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE formsvc_sessions ADD COLUMN way TEXT NOT NULL DEFAULT '';
ALTER TABLE formsvc_sessions ADD COLUMN device TEXT NOT NULL DEFAULT '';
ALTER TABLE formsvc_sessions ADD COLUMN used_at INTEGER NOT NULL DEFAULT -62135596800000000;

-- Oldest version: 1
ALTER TABLE formsvc_campaigns ADD COLUMN require_name BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE formsvc_campaigns ADD COLUMN views TEXT NOT NULL DEFAULT '[]';

-- Oldest version: 1
ALTER TABLE formsvc_campaigns ADD COLUMN workflow TEXT NOT NULL DEFAULT '';

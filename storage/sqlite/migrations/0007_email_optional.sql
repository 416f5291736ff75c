ALTER TABLE formsvc_campaigns ADD COLUMN email_optional INTEGER NOT NULL DEFAULT 0;

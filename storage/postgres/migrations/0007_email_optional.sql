ALTER TABLE formsvc_campaigns ADD COLUMN email_optional boolean NOT NULL DEFAULT false;

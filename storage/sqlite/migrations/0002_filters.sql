-- How many responses of a campaign have a status; the others are pending. So a new
-- response, which is pending, costs nothing. Triggers count what changes. There is none
-- for what is new: every new response would pay for being asked whether it is pending,
-- which the program knows.
CREATE TABLE formsvc_statuses (
  campaign_id TEXT NOT NULL,
  status      TEXT NOT NULL,
  responses   INTEGER NOT NULL,
  PRIMARY KEY (campaign_id, status)
) STRICT, WITHOUT ROWID;

INSERT INTO formsvc_statuses (campaign_id, status, responses)
SELECT campaign_id, status, count(*) FROM formsvc_responses WHERE status <> 'pending' GROUP BY campaign_id, status;

CREATE TRIGGER formsvc_responses_moved AFTER UPDATE OF status ON formsvc_responses WHEN OLD.status <> NEW.status BEGIN
  UPDATE formsvc_statuses SET responses = responses - 1 WHERE campaign_id = OLD.campaign_id AND status = OLD.status;
  INSERT INTO formsvc_statuses SELECT NEW.campaign_id, NEW.status, 1 WHERE NEW.status <> 'pending'
  ON CONFLICT (campaign_id, status) DO UPDATE SET responses = responses + 1;
END;
CREATE TRIGGER formsvc_responses_gone AFTER DELETE ON formsvc_responses WHEN OLD.status <> 'pending' BEGIN
  UPDATE formsvc_statuses SET responses = responses - 1 WHERE campaign_id = OLD.campaign_id AND status = OLD.status;
END;

-- In the order of lists. Only a response that has changed is in the second one: a new
-- one is found by its identifier, which has its time.
CREATE INDEX formsvc_responses_status ON formsvc_responses (campaign_id, status, id);
CREATE INDEX formsvc_responses_changed ON formsvc_responses (campaign_id, updated_at, id) WHERE updated_at <> created_at;

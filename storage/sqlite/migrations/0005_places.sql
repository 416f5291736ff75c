-- Oldest version: 1
-- The places that responses take, other than those of all responses: place is formsvc.Place.Key.
CREATE TABLE formsvc_places (
  campaign_id BLOB NOT NULL,
  place       TEXT NOT NULL,
  response_id BLOB NOT NULL,
  PRIMARY KEY (campaign_id, place, response_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX formsvc_places_response ON formsvc_places (campaign_id, response_id);

ALTER TABLE formsvc_campaigns ADD COLUMN time_zone TEXT NOT NULL DEFAULT '';

-- Oldest version: 1
-- The places that responses take, other than those of all responses: place is formsvc.Place.Key.
CREATE TABLE formsvc_places (
  campaign_id uuid NOT NULL,
  place       text NOT NULL,
  response_id uuid NOT NULL,
  PRIMARY KEY (campaign_id, place, response_id),
  FOREIGN KEY (campaign_id, response_id) REFERENCES formsvc_responses (campaign_id, id) ON DELETE CASCADE
);
CREATE INDEX formsvc_places_response ON formsvc_places (campaign_id, response_id);

ALTER TABLE formsvc_campaigns ADD COLUMN time_zone text NOT NULL DEFAULT '';

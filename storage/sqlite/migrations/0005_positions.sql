-- Where events that were copied from another database had been in its feed, so that
-- whoever read the feed there goes on at the same place here. Only a copy writes it.
CREATE TABLE formsvc_positions (
  seq  INTEGER PRIMARY KEY,
  xact INTEGER NOT NULL,
  row  INTEGER NOT NULL,
  UNIQUE (xact, row)
) STRICT;

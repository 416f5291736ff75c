-- The feed is in the order of commits: xact is the number of the transaction, or that of
-- the last one that had ended when the statement began, if that is higher, plus the
-- offset of formsvc_feed. A change that waited for another one may get the same xact as
-- that, and a higher seq: numbers are handed out in order, so no session keeps some.
ALTER TABLE formsvc_events ALTER COLUMN seq SET CACHE 1;

-- The span that raised an event, as the header traceparent of W3C Trace Context has it;
-- NULL when nobody traced it.
ALTER TABLE formsvc_events ADD COLUMN traceparent TEXT;

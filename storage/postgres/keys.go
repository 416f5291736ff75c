package postgres

// useKeys locks the keys in the order of their identifiers, so that nodes that write
// what they noted at the same time don't wait for each other in a circle.
const useKeys = `
WITH u AS MATERIALIZED (
  SELECT (j.use ->> 0)::uuid AS account_id, (j.use ->> 1)::uuid AS id, (j.use ->> 2)::bigint AS used_at
  FROM json_array_elements($1::text::json) AS j(use)
), held AS MATERIALIZED (
  SELECT k.id, u.used_at FROM u JOIN formsvc_keys AS k ON k.id = u.id AND k.account_id = u.account_id
  WHERE k.used_at < u.used_at ORDER BY k.id FOR NO KEY UPDATE OF k
)
UPDATE formsvc_keys AS k SET used_at = held.used_at FROM held WHERE k.id = held.id AND k.used_at < held.used_at`

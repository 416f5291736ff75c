package postgres

import "github.com/formsvc/toolkit/storage/internal/bunstore"

// clockNow is the time of the server's clock now, not when the transaction began, in
// microseconds.
const clockNow = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// takeQuota goes by the clock of the server, which is one for all nodes. It may
// have waited for another node that took of the same window, so that it looks at
// the clock again for how long the window lasts.
func takeQuota() string {
	next := bunstore.Granted("$", "q.used")
	return `
WITH w AS MATERIALIZED (SELECT c.now - c.now % $2::bigint AS start, ` + bunstore.Granted("$", "0") + ` AS n
  FROM (SELECT ` + clockNow + ` AS now) AS c WHERE $6::bigint IS NOT NULL)
INSERT INTO formsvc_quota AS q (subject, start, used, granted)
SELECT $1::text::uuid, w.start, w.n, w.n FROM w
ON CONFLICT (subject, start) DO UPDATE SET used = q.used + ` + next + `, granted = ` + next + `
RETURNING q.used, q.granted, q.start, q.start + $2::bigint - ` + clockNow
}

package sqlite

import "github.com/formsvc/toolkit/storage/internal/bunstore"

// takeQuota uses the caller's clock: all processes that share the file are on one
// machine.
func takeQuota() string {
	first, next := bunstore.Granted("?", "0"), bunstore.Granted("?", "q.used")
	return `
INSERT INTO formsvc_quota AS q (subject, start, used, granted)
VALUES (?1, ?6 - (?6 % ?2 + ?2) % ?2, ` + first + `, ` + first + `)
ON CONFLICT (subject, start) DO UPDATE SET used = q.used + ` + next + `, granted = ` + next + `
RETURNING used, granted, start, start + ?2 - ?6`
}

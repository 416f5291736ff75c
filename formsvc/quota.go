package formsvc

import "time"

// The quota of the specification: 1000 requests an hour.
const (
	DefaultQuota       = 1000
	DefaultQuotaWindow = time.Hour
)

// QuotaQuery asks a store for requests of a quota.
type QuotaQuery struct {
	Subject ID // the key, or the account, whose requests are counted
	Limit   int
	Window  time.Duration // whole milliseconds
	Need    int           // requests that wait
	Spare   int           // requests to come
	Now     time.Time
}

// QuotaGrant is what a store granted.
type QuotaGrant struct {
	Granted int           // of Need and Spare together
	Left    int           // what the window has left for others
	Start   time.Time     // when the window began
	Ends    time.Duration // until the end of the window, when the store answered
}

// QuotaReturn gives granted requests of a window back.
type QuotaReturn struct {
	Subject ID
	Start   time.Time
	N       int
}

// QuotaUse is how many requests a window has counted. What nodes were granted and
// have not used yet is counted, too.
type QuotaUse struct {
	Start time.Time
	Used  int
}

// QuotaState is how much of a quota is left.
type QuotaState struct {
	Limit  int           // 0: there is no quota
	Left   int           // as far as this node knows: others may have taken of it
	Window time.Duration // how long a window is
	Reset  time.Duration // until the window ends
}

// Quotas counts requests. It is safe for concurrent use.
type Quotas struct{ s *core }

// quotaLedger is what this node was granted and has not used.
type quotaLedger struct{}

func newQuotaLedger(*Options) (*quotaLedger, error) { return &quotaLedger{}, nil }

package formsvc

import (
	"context"
	"fmt"
	"time"
)

// The specification's quota: 1000 requests an hour.
const (
	DefaultQuota       = 1000
	DefaultQuotaWindow = time.Hour
)

// QuotaQuery asks a store for requests of a quota.
type QuotaQuery struct {
	Subject ID // whose requests are counted: a key, an account, or the hash of a user
	Limit   int
	Window  time.Duration // whole milliseconds
	Need    int           // waiting requests
	Spare   int           // requests in advance
	Now     time.Time
}

// QuotaGrant is what a store granted.
type QuotaGrant struct {
	Granted int           // for Need and Spare together
	Left    int           // what the window has left
	Start   time.Time     // when the window began
	Ends    time.Duration // time to the end of the window at the store's reply; not positive if it had ended
}

// QuotaReturn returns granted requests to their window.
type QuotaReturn struct {
	Subject ID
	Start   time.Time
	N       int
}

// QuotaUse is how many requests a window has counted, including those that nodes were granted and
// have not used yet.
type QuotaUse struct {
	Start time.Time
	Used  int
}

// QuotaStart returns the start of the window that contains a time.
func QuotaStart(at time.Time, window time.Duration) time.Time {
	now, length := at.UnixMicro(), window.Microseconds()
	return time.UnixMicro(now - ((now%length)+length)%length).UTC()
}

// QuotaState is how much of a quota is left.
type QuotaState struct {
	Limit  int           // 0: there is no quota
	Left   int           // as far as this node knows: other nodes may have used some
	Window time.Duration // how long a window is
	Reset  time.Duration // until the window ends

	start time.Time // when the window began, by the store's clock
}

// Quotas counts requests in windows of time, over all nodes of a store: those of each key and each
// user of a host application ([Principal.Subject]), or those of each account
// ([Options.QuotaPerAccount]). Package httpx calls it; programs that call the services themselves
// needn't. It is safe for concurrent use.
//
// A node takes requests from the store in blocks. The store counts a block when it grants it, so a
// window never exceeds [Options.Quota], whatever nodes do, and most requests need no call of the
// store. [Service.Run] returns a node's unused requests when the key is idle for [QuotaIdle], and
// all of them when it ends. Blocks get smaller towards the end of the quota: a block is at most a
// sixteenth of what is left, and the last fifteen requests are granted one by one. So exactly the
// quota is allowed if every node continues until it is refused. If a node stops earlier, the others
// get its unused requests within about 3 seconds. A killed node loses its unused requests until the
// window ends: at most [QuotaBlock] of each key.
//
// A block expires at the end of its window by the store's clock, measured from when it was
// requested. So the clock of a node doesn't matter if the store uses its own.
type Quotas struct{ s *core }

// Policy returns the quota's limit and window. A limit of 0 means that there is no quota.
func (q Quotas) Policy() (limit int, window time.Duration) {
	return q.s.quota.limit, q.s.quota.window
}

// PerAccount reports whether all requests of an account are counted together.
func (q Quotas) PerAccount() bool { return q.s.quota.perAccount }

// Take counts one request of a principal, unless it has NoQuota. If the window has no requests
// left, it counts nothing and fails with a *[QuotaError]. On a Service that is bound to a
// transaction ([Service.With]), it counts at once, whether or not the transaction commits.
//
// While the store is unavailable, requests beyond what the node was granted fail with the store's
// error.
func (q Quotas) Take(ctx context.Context, who *Principal) (QuotaState, error) {
	l := q.s.quota
	if l.limit == 0 || who.NoQuota {
		return QuotaState{}, nil
	}
	state, err := l.take(ctx, l.subject(who))
	if err != nil {
		return state, fmt.Errorf("formsvc: take quota: %w", err)
	}
	return state, nil
}

// Give uncounts a request, given the state that Take returned, and returns the new state. A request
// of a window that has ended stays counted.
func (q Quotas) Give(who *Principal, taken QuotaState) QuotaState {
	l := q.s.quota
	if l.limit == 0 || taken.Limit == 0 {
		return taken
	}
	return l.give(l.subject(who), taken)
}

// Use returns the windows of a subject ([Principal.Subject], or the account with
// [Options.QuotaPerAccount]) that began at since or later and have requests, oldest first. Windows
// are kept for at least 48 hours.
func (q Quotas) Use(ctx context.Context, subject ID, since time.Time) ([]QuotaUse, error) {
	list, err := q.s.quota.store.QuotaUse(ctx, subject, since)
	if err != nil {
		return nil, fmt.Errorf("formsvc: quota use: %w", err)
	}
	return list, nil
}

// Release returns this node's unused requests to the store, so that other nodes can use them.
// [Service.Run] does so when it ends.
func (q Quotas) Release(ctx context.Context) error {
	if err := q.s.quota.release(ctx, 0); err != nil {
		return fmt.Errorf("formsvc: release quota: %w", err)
	}
	return nil
}

package formsvc

import (
	"context"
	"fmt"
	"time"
)

// The quota of the specification: 1000 requests an hour.
const (
	DefaultQuota       = 1000
	DefaultQuotaWindow = time.Hour
)

// QuotaQuery asks a store for requests of a quota.
type QuotaQuery struct {
	Subject ID // whose requests are counted: a key, an account, or a user by his hash
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
	Ends    time.Duration // until the end of the window, when the store answered; not positive: it had ended
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

// QuotaStart returns when the window began that is at a time.
func QuotaStart(at time.Time, window time.Duration) time.Time {
	now, length := at.UnixMicro(), window.Microseconds()
	return time.UnixMicro(now - ((now%length)+length)%length).UTC()
}

// QuotaState is how much of a quota is left.
type QuotaState struct {
	Limit  int           // 0: there is no quota
	Left   int           // as far as this node knows: others may have taken of it
	Window time.Duration // how long a window is
	Reset  time.Duration // until the window ends

	start time.Time // when the window began, by the store's clock
}

// Quotas counts the requests of each key and of each user of an embedding program
// ([Principal.Subject]), or those of accounts ([Options.QuotaPerAccount]), in windows of time, over all nodes of a store. Package httpx asks it; programs that
// call the services themselves need not. It is safe for concurrent use.
//
// A node asks the store for requests in blocks, which the store counts when it
// grants them, so that never more than [Options.Quota] are allowed in a window,
// whatever nodes do or suffer. Most requests are counted without asking. What a
// node was granted and has not used is no use to others: [Service.Run] returns it
// when the key rests for [QuotaIdle], and all of it when it ends; and blocks get
// smaller towards the end of the quota: of what is left none is larger than a
// sixteenth, and the last fifteen requests are granted one by one. So exactly the quota is
// allowed when every node goes on until it is refused; where one rests before
// that, the others get what it had left once it is returned, within some 3
// seconds. A node that is killed takes what it held along, at most [QuotaBlock]
// requests of each key, until the window ends.
//
// Blocks are good until the window ends by the store's clock, measured from when
// they were asked for, so that on a store with a clock of its own it does not
// matter how a node's is set.
type Quotas struct{ s *core }

// Policy returns the number of requests that a window may have, and how long it
// is. 0 requests mean that there is no quota.
func (q Quotas) Policy() (limit int, window time.Duration) {
	return q.s.quota.limit, q.s.quota.window
}

// PerAccount reports whether all requests for an account are counted together.
func (q Quotas) PerAccount() bool { return q.s.quota.perAccount }

// Take counts one request of who, unless he has no quota. It fails with a *[QuotaError] when the window has
// no more, and then counts nothing. On a Service that is bound to a transaction
// ([Service.With]) it counts at once, whatever becomes of the transaction.
//
// While the store can't answer, requests beyond what the node was granted fail
// with its error.
func (q Quotas) Take(ctx context.Context, who *Principal) (_ QuotaState, err error) {
	defer q.s.span(&ctx, "Quotas.Take").end(&err)
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

// Give uncounts a request that Take counted, with the state that it returned. It
// returns the state after that. A request of a window that has ended stays counted.
func (q Quotas) Give(who *Principal, taken QuotaState) QuotaState {
	l := q.s.quota
	if l.limit == 0 || taken.Limit == 0 {
		return taken
	}
	return l.give(l.subject(who), taken)
}

// Use returns the windows of a subject ([Principal.Subject]), or of an account where those
// are counted, that began at since or later and have a request, oldest first. It shows what was
// counted in the last 48 hours at least.
func (q Quotas) Use(ctx context.Context, subject ID, since time.Time) (_ []QuotaUse, err error) {
	defer q.s.span(&ctx, "Quotas.Use").end(&err)
	list, err := q.s.quota.store.QuotaUse(ctx, subject, since)
	if err != nil {
		return nil, fmt.Errorf("formsvc: quota use: %w", err)
	}
	return list, nil
}

// Release returns to the store what this node was granted and has not used, so that
// other nodes can use it. [Service.Run] does so when it ends.
func (q Quotas) Release(ctx context.Context) (err error) {
	defer q.s.span(&ctx, "Quotas.Release").end(&err)
	if err := q.s.quota.release(ctx, 0); err != nil {
		return fmt.Errorf("formsvc: release quota: %w", err)
	}
	return nil
}

package formsvc

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// Defaults of [Options]: a key may make 1000 requests an hour.
const (
	DefaultQuota       = 1000
	DefaultQuotaWindow = time.Hour
)

const (
	quotaIdle    = time.Minute // after which a subject is read from the store again
	quotaLongest = 100 * 365 * 24 * time.Hour
)

// A QuotaCount is a number of requests in a window of a subject.
type QuotaCount struct {
	Subject ID // whose requests are counted: a key, an account, or the hash of a user
	Start   time.Time
	N       int // negative if more requests were uncounted than counted
}

// countIn counts something once in a window of time.
func (c *core) countIn(window time.Duration, name string) QuotaCount {
	return QuotaCount{Subject: hashID(name + window.String()), Start: c.now().Truncate(window), N: 1}
}

// QuotaUse is how many requests a window has counted.
type QuotaUse struct {
	Start time.Time
	Used  int
}

// A QuotaPolicy says how many requests are allowed.
type QuotaPolicy struct {
	Limit      int           // requests in a window; negative: no limit
	Window     time.Duration // the length of a window
	PerAccount bool          // whether all requests of an account are counted together
}

// Start returns the start of the window that contains a time.
func (p *QuotaPolicy) Start(at time.Time) time.Time {
	now, length := at.UnixMicro(), p.Window.Microseconds()
	return time.UnixMicro(now - ((now%length)+length)%length).UTC()
}

// QuotaState is how much of a quota is left.
type QuotaState struct {
	Limit  int           // 0 if the request isn't counted
	Left   int           // as far as this node knows: other nodes may have used some within the last second
	Window time.Duration // how long a window is
	Reset  time.Duration // until the window ends

	PerAccount bool // whether all requests of the account are counted together

	key windowKey
}

// Quotas counts requests in windows of time, over all nodes of a store: those of each key and each user of a host
// application ([Principal.Subject]), or those of each account ([Options.QuotaPerAccount]). Package httpx calls it;
// programs that call the services themselves needn't. It is safe for concurrent use.
//
// A node counts in memory, and [Service.Run] writes the counts to the store each second. With one node the quota is
// exact. With several, a window may exceed it by what the other nodes counted within one second. A killed node loses
// the counts of its last second. Windows begin by the clock of the node. A Service that is bound to a transaction
// ([Service.With]) counts whether or not the transaction commits.
type Quotas struct{ c *quotaCounter }

// A quotaCounter counts the requests of this node.
type quotaCounter struct {
	QuotaPolicy

	limits func(context.Context, ID) (Limits, error)
	store  Store
	now    func() time.Time

	flushing sync.Mutex // held while the store is written
	mu       sync.Mutex
	counts   map[windowKey]*windowCount // ended windows, too, until they are written
}

type windowKey struct {
	subject ID
	start   time.Time
}

// A windowCount is what one window has counted.
type windowCount struct {
	counted int // by all nodes, as the store said
	pending int // by this node, not written yet
	used    time.Time
}

func newQuotaCounter(store Store, o *Options) (*quotaCounter, error) {
	c := &quotaCounter{
		limits:      o.limits,
		QuotaPolicy: QuotaPolicy{cmp.Or(o.Quota, -1), cmp.Or(o.QuotaWindow, DefaultQuotaWindow), o.QuotaPerAccount},
		store:       store, now: o.Now, counts: make(map[windowKey]*windowCount),
	}
	if c.Window < time.Second || c.Window > quotaLongest || c.Window%time.Second != 0 {
		return nil, errors.New("QuotaWindow must be whole seconds, at least one, and at most 100 years")
	}
	return c, nil
}

// Policy returns the quota of an account, its keys and users.
func (q Quotas) Policy(ctx context.Context, account ID) (QuotaPolicy, error) {
	limits, err := q.c.limits(ctx, account)
	policy := q.c.QuotaPolicy
	policy.Limit = cmp.Or(limits.Quota, -1)
	return policy, err
}

// Take counts one request of a principal, unless it has NoQuota. If the window has no requests
// left, it counts nothing and fails with [ErrQuota]; the state says when there are more.
//
// The first request of a subject in a window asks the store, and fails with its error if the store is unavailable.
func (q Quotas) Take(ctx context.Context, who *Principal) (_ QuotaState, err error) {
	defer wrap(&err, "take quota")
	c, now := q.c, q.c.now()
	if who.NoQuota {
		return QuotaState{}, nil
	}
	policy, err := q.Policy(ctx, who.AccountID)
	if err != nil || policy.Limit < 0 {
		return QuotaState{}, err
	}
	key := windowKey{who.Subject(), c.Start(now)}
	if c.PerAccount {
		key.subject = who.AccountID
	}
	c.mu.Lock()
	w := c.counts[key]
	c.mu.Unlock()
	if w == nil {
		list, err := c.store.QuotaUse(ctx, key.subject, key.start)
		if err != nil {
			return QuotaState{}, err
		}
		w = new(windowCount)
		for _, u := range list {
			if u.Start.Equal(key.start) {
				w.counted = u.Used
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known := c.counts[key]; known != nil { // perhaps another request began the window meanwhile
		w = known
	}
	c.counts[key] = w
	w.used = now
	if c.state(policy.Limit, w, key, now).Left == 0 {
		return c.state(policy.Limit, w, key, now), ErrQuota
	}
	w.pending++
	return c.state(policy.Limit, w, key, now), nil
}

func (c *quotaCounter) state(limit int, w *windowCount, key windowKey, now time.Time) QuotaState {
	return QuotaState{
		Limit: limit, Left: max(limit-w.counted-w.pending, 0), Window: c.Window, Reset: max(key.start.Add(c.Window).Sub(now), 0), PerAccount: c.PerAccount, key: key,
	}
}

// Give uncounts a request, given the state that Take returned, and returns the new state. A request
// of a window that has ended and was written stays counted.
func (q Quotas) Give(taken QuotaState) QuotaState {
	q.c.mu.Lock()
	defer q.c.mu.Unlock()
	w := q.c.counts[taken.key]
	if w == nil {
		return taken
	}
	w.pending--
	return q.c.state(taken.Limit, w, taken.key, q.c.now())
}

// Use returns the windows of a subject ([Principal.Subject], or the account with
// [Options.QuotaPerAccount]) that began at since or later and have requests, oldest first. Windows
// are kept for at least 48 hours. The last second of a node may be missing.
func (q Quotas) Use(ctx context.Context, subject ID, since time.Time) (_ []QuotaUse, err error) {
	defer wrap(&err, "quota use")
	return q.c.store.QuotaUse(ctx, subject, since)
}

// Flush writes what this node has counted to the store, and learns what other nodes have counted. [Service.Run] does so
// each second and when it ends. Counts that can't be written are kept for the next call.
func (q Quotas) Flush(ctx context.Context) (err error) {
	defer wrap(&err, "flush quota")
	c := q.c
	c.flushing.Lock()
	defer c.flushing.Unlock()
	list := c.collect()
	if len(list) == 0 {
		return nil
	}
	totals, err := c.store.AddQuota(ctx, list)
	if err != nil && !errors.Is(err, ErrUnknownOutcome) {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, pending := range list {
		w := c.counts[windowKey{pending.Subject, pending.Start}]
		w.pending -= pending.N
		if err == nil {
			w.counted = totals[i]
		} else { // perhaps not written, but no request is counted twice
			w.counted += pending.N
		}
	}
	return err
}

// collect returns what is pending, and drops windows that have ended or are idle.
func (c *quotaCounter) collect() (list []QuotaCount) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	start := c.Start(now)
	for key, w := range c.counts {
		switch {
		case w.pending != 0:
			list = append(list, QuotaCount{Subject: key.subject, Start: key.start, N: w.pending})
		case !key.start.Equal(start) || now.Sub(w.used) > quotaIdle:
			delete(c.counts, key)
		}
	}
	return list
}

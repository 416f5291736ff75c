package formsvc

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// The specification's quota: 1000 requests an hour.
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

// QuotaUse is how many requests a window has counted.
type QuotaUse struct {
	Start time.Time
	Used  int
}

// A QuotaPolicy says how many requests are allowed.
type QuotaPolicy struct {
	Limit      int           // requests in a window; 0: there is no quota
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
	Limit  int           // 0: there is no quota
	Left   int           // as far as this node knows: other nodes may have used some within the last second
	Window time.Duration // how long a window is
	Reset  time.Duration // until the window ends

	start time.Time // when the window began
}

// Quotas counts requests in windows of time, over all nodes of a store: those of each key and each
// user of a host application ([Principal.Subject]), or those of each account
// ([Options.QuotaPerAccount]). Package httpx calls it; programs that call the services themselves
// needn't. It is safe for concurrent use.
//
// A node counts in memory, and [Service.Run] writes the counts to the store each second. With one
// node the quota is exact. With several, a window may exceed it by what the other nodes counted
// within one second. A killed node loses the counts of its last second. Windows begin by the clock
// of the node.
type Quotas struct{ s *core }

// Policy returns the quota of the service.
func (q Quotas) Policy() QuotaPolicy { return q.s.quota.QuotaPolicy }

// Take counts one request of a principal, unless it has NoQuota. If the window has no requests
// left, it counts nothing and fails with a *[QuotaError]. On a Service that is bound to a
// transaction ([Service.With]), it counts whether or not the transaction commits.
//
// The first request of a subject in a window asks the store, and fails with its error if the store
// is unavailable.
func (q Quotas) Take(ctx context.Context, who *Principal) (_ QuotaState, err error) {
	defer wrap(&err, "take quota")
	l := q.s.quota
	if l.Limit == 0 || who.NoQuota {
		return QuotaState{}, nil
	}
	return l.take(ctx, l.subject(who))
}

// Give uncounts a request, given the state that Take returned, and returns the new state. A request
// of a window that has ended and was written stays counted.
func (q Quotas) Give(who *Principal, taken QuotaState) QuotaState {
	l := q.s.quota
	if l.Limit == 0 || taken.Limit == 0 {
		return taken
	}
	return l.give(l.subject(who), taken)
}

// Use returns the windows of a subject ([Principal.Subject], or the account with
// [Options.QuotaPerAccount]) that began at since or later and have requests, oldest first. Windows
// are kept for at least 48 hours. The last second of a node may be missing.
func (q Quotas) Use(ctx context.Context, subject ID, since time.Time) (_ []QuotaUse, err error) {
	defer wrap(&err, "quota use")
	return q.s.quota.store.QuotaUse(ctx, subject, since)
}

// Flush writes what this node has counted to the store. [Service.Run] does so each second and when
// it ends. Counts that can't be written are kept for the next call.
func (q Quotas) Flush(ctx context.Context) (err error) {
	defer wrap(&err, "flush quota")
	return q.s.quota.flush(ctx)
}

// A quotaCounter counts the requests of this node.
type quotaCounter struct {
	QuotaPolicy

	store QuotaStore
	now   func() time.Time

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

func newQuotaCounter(store QuotaStore, o *Options) (*quotaCounter, error) {
	l := &quotaCounter{
		QuotaPolicy: QuotaPolicy{o.Quota, cmp.Or(o.QuotaWindow, DefaultQuotaWindow), o.QuotaPerAccount},
		store:       store, now: o.Now, counts: make(map[windowKey]*windowCount),
	}
	if l.Window < time.Second || l.Window > quotaLongest || l.Window%time.Second != 0 {
		return nil, errors.New("QuotaWindow must be whole seconds, at least one, and at most 100 years")
	}
	return l, nil
}

// subject returns whose requests are counted.
func (l *quotaCounter) subject(who *Principal) ID {
	if l.PerAccount {
		return who.AccountID
	}
	return who.Subject()
}

// take counts a request, or returns an error.
func (l *quotaCounter) take(ctx context.Context, subject ID) (QuotaState, error) {
	now := l.now()
	key := windowKey{subject, l.Start(now)}
	l.mu.Lock()
	w := l.counts[key]
	l.mu.Unlock()
	if w == nil {
		list, err := l.store.QuotaUse(ctx, subject, key.start)
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.counts[key]; known != nil { // perhaps another request began the window meanwhile
		w = known
	}
	l.counts[key] = w
	w.used = now
	state := l.state(w, key.start, now)
	if state.Left == 0 {
		return state, &QuotaError{state}
	}
	w.pending++
	state.Left--
	return state, nil
}

func (l *quotaCounter) state(w *windowCount, start, now time.Time) QuotaState {
	return QuotaState{
		Limit: l.Limit, Left: max(l.Limit-w.counted-w.pending, 0), Window: l.Window, Reset: max(start.Add(l.Window).Sub(now), 0), start: start,
	}
}

// give uncounts a request.
func (l *quotaCounter) give(subject ID, taken QuotaState) QuotaState {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.counts[windowKey{subject, taken.start}]
	if w == nil {
		return taken
	}
	w.pending--
	return l.state(w, taken.start, l.now())
}

// flush writes what is pending, and learns what other nodes have counted.
func (l *quotaCounter) flush(ctx context.Context) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	list := l.collect()
	if len(list) == 0 {
		return nil
	}
	totals, err := l.store.AddQuota(ctx, list)
	if err != nil && !errors.Is(err, ErrUnknownOutcome) {
		return err // what is pending is written by the next call
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range list {
		w := l.counts[windowKey{c.Subject, c.Start}]
		w.pending -= c.N
		if err == nil {
			w.counted = totals[i]
		} else { // perhaps not written, but no request is counted twice
			w.counted += c.N
		}
	}
	return err
}

// collect returns what is pending, and drops windows that have ended or are idle.
func (l *quotaCounter) collect() (list []QuotaCount) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	start := l.Start(now)
	for key, w := range l.counts {
		switch {
		case w.pending != 0:
			list = append(list, QuotaCount{Subject: key.subject, Start: key.start, N: w.pending})
		case !key.start.Equal(start) || now.Sub(w.used) > quotaIdle:
			delete(l.counts, key)
		}
	}
	return list
}

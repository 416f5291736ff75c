package formsvc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// The specification's quota: 1000 requests an hour.
const (
	DefaultQuota       = 1000
	DefaultQuotaWindow = time.Hour
)

const (
	quotaTick    = time.Second      // how often counts are written
	quotaTimeout = 10 * time.Second // of one call of the store
	quotaIdle    = time.Minute      // after which a subject is read from the store again
	quotaKept    = 48 * time.Hour   // windows are kept for at least this long
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

// QuotaStart returns the start of the window that contains a time.
func QuotaStart(at time.Time, window time.Duration) time.Time {
	now, length := at.UnixMicro(), window.Microseconds()
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

// Policy returns the quota's limit and window. A limit of 0 means that there is no quota.
func (q Quotas) Policy() (limit int, window time.Duration) {
	return q.s.quota.limit, q.s.quota.window
}

// PerAccount reports whether all requests of an account are counted together.
func (q Quotas) PerAccount() bool { return q.s.quota.perAccount }

// Take counts one request of a principal, unless it has NoQuota. If the window has no requests
// left, it counts nothing and fails with a *[QuotaError]. On a Service that is bound to a
// transaction ([Service.With]), it counts whether or not the transaction commits.
//
// The first request of a subject in a window asks the store, and fails with its error if the store
// is unavailable.
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
// are kept for at least 48 hours. The last second of a node may be missing.
func (q Quotas) Use(ctx context.Context, subject ID, since time.Time) ([]QuotaUse, error) {
	list, err := q.s.quota.store.QuotaUse(ctx, subject, since)
	if err != nil {
		return nil, fmt.Errorf("formsvc: quota use: %w", err)
	}
	return list, nil
}

// Flush writes what this node has counted to the store. [Service.Run] does so each second and when
// it ends. Counts that can't be written are kept for the next call.
func (q Quotas) Flush(ctx context.Context) error {
	if err := q.s.quota.flush(ctx); err != nil {
		return fmt.Errorf("formsvc: flush quota: %w", err)
	}
	return nil
}

// A quotaCounter counts the requests of this node.
type quotaCounter struct {
	store      QuotaStore
	limit      int // 0: there is no quota
	window     time.Duration
	perAccount bool
	now        func() time.Time

	flushing sync.Mutex // held while the store is written
	mu       sync.Mutex
	counts   map[ID]*quotaWindow
	ended    map[endedWindow]int // requests of windows that have ended, to be written
}

type endedWindow struct {
	subject ID
	start   time.Time
}

// A quotaWindow is the window of one subject.
type quotaWindow struct {
	start   time.Time
	counted int // by all nodes, as the store said, with what this node has written
	pending int // counted by this node and not written yet
	used    time.Time
}

func newQuotaCounter(store QuotaStore, o *Options) (*quotaCounter, error) {
	l := &quotaCounter{
		store: store, limit: valueOf(o.Quota, DefaultQuota), window: o.QuotaWindow, perAccount: o.QuotaPerAccount, now: o.Now,
		counts: make(map[ID]*quotaWindow), ended: make(map[endedWindow]int),
	}
	if l.limit < 0 {
		return nil, errors.New("the Quota must not be negative")
	}
	if l.window == 0 {
		l.window = DefaultQuotaWindow
	}
	if l.window < time.Second || l.window > quotaLongest || l.window%time.Second != 0 {
		return nil, errors.New("QuotaWindow must be whole seconds, at least one, and at most 100 years")
	}
	return l, nil
}

// subject returns whose requests are counted.
func (l *quotaCounter) subject(who *Principal) ID {
	if l.perAccount {
		return who.AccountID
	}
	return who.Subject()
}

// take counts a request, or returns an error.
func (l *quotaCounter) take(ctx context.Context, subject ID) (QuotaState, error) {
	now := l.now()
	start := QuotaStart(now, l.window)
	if state, known, err := l.count(subject, start, now, nil); known {
		return state, err
	}
	list, err := l.store.QuotaUse(ctx, subject, start)
	if err != nil {
		return QuotaState{}, err
	}
	stored := 0
	for _, u := range list {
		if u.Start.Equal(start) {
			stored = u.Used
		}
	}
	state, _, err := l.count(subject, start, now, &stored)
	return state, err
}

// count counts a request in a window that is known, or begins one for which the store has counted
// that many.
func (l *quotaCounter) count(subject ID, start, now time.Time, stored *int) (_ QuotaState, known bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.counts[subject]
	if w == nil || !w.start.Equal(start) {
		if stored == nil {
			return QuotaState{}, false, nil
		}
		if w != nil && w.pending != 0 {
			l.ended[endedWindow{subject, w.start}] += w.pending
		}
		w = &quotaWindow{start: start, counted: *stored}
		l.counts[subject] = w
	}
	w.used = now
	state := l.state(w, now)
	if state.Left == 0 {
		return state, true, &QuotaError{state}
	}
	w.pending++
	state.Left--
	return state, true, nil
}

func (l *quotaCounter) state(w *quotaWindow, now time.Time) QuotaState {
	return QuotaState{
		Limit: l.limit, Left: max(l.limit-w.counted-w.pending, 0), Window: l.window, Reset: max(w.start.Add(l.window).Sub(now), 0), start: w.start,
	}
}

// give uncounts a request.
func (l *quotaCounter) give(subject ID, taken QuotaState) QuotaState {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.counts[subject]
	if w == nil || !w.start.Equal(taken.start) {
		return taken
	}
	w.pending--
	return l.state(w, l.now())
}

// flush writes what is pending, and learns what other nodes have counted.
func (l *quotaCounter) flush(ctx context.Context) error {
	l.flushing.Lock()
	defer l.flushing.Unlock()
	list := l.collect()
	if len(list) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, quotaTimeout)
	defer cancel()
	totals, err := l.store.AddQuota(ctx, list)
	l.settle(list, totals, err)
	return err
}

// collect takes what is pending, and drops windows that have ended or whose subject is idle.
func (l *quotaCounter) collect() (list []QuotaCount) {
	now := l.now()
	start := QuotaStart(now, l.window)
	l.mu.Lock()
	defer l.mu.Unlock()
	for subject, w := range l.counts {
		switch {
		case w.pending != 0:
			l.ended[endedWindow{subject, w.start}] += w.pending
			w.counted, w.pending = w.counted+w.pending, 0
		case !w.start.Equal(start) || now.Sub(w.used) > quotaIdle:
			delete(l.counts, subject)
		}
	}
	for w, n := range l.ended {
		list = append(list, QuotaCount{Subject: w.subject, Start: w.start, N: n})
	}
	clear(l.ended)
	return list
}

// settle takes over the store's totals, or takes back what wasn't written. If that is unknown, it is
// as good as written: no request is counted twice.
func (l *quotaCounter) settle(list []QuotaCount, totals []int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, c := range list {
		w := l.counts[c.Subject]
		current := w != nil && w.start.Equal(c.Start)
		switch {
		case err == nil && current:
			w.counted = totals[i]
		case err == nil || errors.Is(err, ErrUnknownOutcome):
		case current:
			w.counted, w.pending = w.counted-c.N, w.pending+c.N
		default:
			l.ended[endedWindow{c.Subject, c.Start}] += c.N
		}
	}
}

// run writes the counts each second until ctx ends, and then once more.
func (l *quotaCounter) run(ctx context.Context, logger *slog.Logger) {
	if l.limit == 0 {
		return
	}
	for more := true; more; {
		more = pause(ctx, quotaTick)
		if err := l.flush(context.WithoutCancel(ctx)); err != nil {
			logger.LogAttrs(ctx, slog.LevelError, "writing the quota's counts failed", slog.Any("error", err))
		}
	}
}

// pruneQuota deletes windows that are older than quotaKept, and older than two windows.
func (s *Service) pruneQuota(ctx context.Context) error {
	l := s.core.quota
	before := l.now().Add(-max(quotaKept, 2*l.window))
	_, err := inUnits(ctx, func() (int, error) { return s.core.store.Prune(ctx, PruneQuota, before, pruneBatch) })
	return err
}

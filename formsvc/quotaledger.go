package formsvc

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	quotaFirstBlock = 8                // first block of a node
	quotaFast       = time.Second      // if a block lasts shorter, the next one is larger
	quotaSlow       = 10 * time.Second // if it lasts longer, the next one is smaller
	quotaAgain      = time.Second      // pause after a refusal before asking the store again
	quotaTimeout    = 10 * time.Second // of one call of the store
	quotaLongest    = 100 * 365 * 24 * time.Hour
	quotaBalances   = 10_000 // smallest value of quotaLedger.crowd
)

// A quotaLedger keeps what this node was granted and has not used.
type quotaLedger struct {
	store      QuotaStore
	limit      int // 0: there is no quota
	window     time.Duration
	perAccount bool
	now        func() time.Time // may have a monotonic part

	mu       sync.Mutex
	balances map[ID]*quotaBalance
	crowd    int // number of balances from which those that hold nothing are dropped
}

// A quotaBalance is the balance of one subject, in the window of the store's last reply.
type quotaBalance struct {
	subject ID
	start   time.Time // of the window
	ends    time.Time // of the window, by this node's clock
	asked   time.Time // last call of the store
	used    time.Time // last counted or refused request
	own     int       // granted and not used
	most    int       // own after the last reply, without the waiting requests
	left    int       // what the store had left at the last reply
	empty   bool      // the store had less than the waiting requests needed
	block   int       // requests in advance to ask for
	asking  bool      // a request asks the store, or is about to
	waiting []*quotaWaiter
}

// A quotaWaiter is a request that waits for the store's reply.
type quotaWaiter struct {
	signal chan struct{} // holds a token if the request is done, or must ask
	done   bool
	state  QuotaState
	err    error
}

func newQuotaLedger(store QuotaStore, o *Options) (*quotaLedger, error) {
	l := &quotaLedger{
		store: store, limit: valueOf(o.Quota, DefaultQuota), window: o.QuotaWindow, perAccount: o.QuotaPerAccount, now: o.Now,
		balances: make(map[ID]*quotaBalance), crowd: quotaBalances,
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
func (l *quotaLedger) subject(who *Principal) ID {
	if l.perAccount {
		return who.AccountID
	}
	return who.Subject()
}

// take counts a request, or returns an error.
func (l *quotaLedger) take(ctx context.Context, subject ID) (QuotaState, error) {
	l.mu.Lock()
	b := l.balance(subject)
	now := l.now()
	b.used = now
	if b.good(now) {
		if b.own > 0 {
			b.own--
			state, ahead := l.state(b, now), b.low(now)
			b.asking = b.asking || ahead
			l.mu.Unlock()
			if ahead { // so that other requests continue meanwhile
				l.ask(ctx, b)
			}
			return state, nil
		}
		if b.empty && now.Sub(b.asked) < quotaAgain {
			defer l.mu.Unlock()
			return l.refusal(b, now)
		}
	}
	w := &quotaWaiter{signal: make(chan struct{}, 1)}
	b.waiting = append(b.waiting, w)
	if !b.asking {
		b.asking = true
		w.signal <- struct{}{}
	}
	l.mu.Unlock()
	return l.wait(ctx, b, w)
}

// wait returns the outcome of a request. One of the waiting requests asks the store for all. The
// end of its context doesn't stop that call, since others depend on it.
func (l *quotaLedger) wait(ctx context.Context, b *quotaBalance, w *quotaWaiter) (QuotaState, error) {
	for {
		select {
		case <-w.signal:
		case <-ctx.Done():
			if l.withdraw(b, w) {
				return QuotaState{}, ctx.Err()
			}
			<-w.signal
		}
		l.mu.Lock()
		done, state, err := w.done, w.state, w.err
		l.mu.Unlock()
		if done {
			return state, err
		}
		if err := ctx.Err(); err != nil && l.withdraw(b, w) {
			return QuotaState{}, err
		}
		l.ask(ctx, b)
	}
}

// withdraw removes a request from the waiting ones, unless it is done.
func (l *quotaLedger) withdraw(b *quotaBalance, w *quotaWaiter) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.done {
		return false
	}
	first := b.waiting[0] == w
	b.waiting = slices.DeleteFunc(b.waiting, func(other *quotaWaiter) bool { return other == w })
	// The first waiting request asks the store, or is about to. This one isn't asking now, because
	// then it would be inside ask.
	if first {
		b.promote()
	}
	return true
}

// promote makes the first waiting request ask the store.
func (b *quotaBalance) promote() {
	b.asking = len(b.waiting) > 0
	if b.asking {
		select {
		case b.waiting[0].signal <- struct{}{}:
		default: // it knows already
		}
	}
}

// ask asks the store for all waiting requests.
func (l *quotaLedger) ask(ctx context.Context, b *quotaBalance) {
	l.mu.Lock()
	before := l.now()
	q := QuotaQuery{
		Subject: b.subject, Limit: l.limit, Window: l.window, Need: len(b.waiting), Spare: max(b.resize(before)-b.own, 0),
		Now: before.UTC(),
	}
	l.mu.Unlock()
	grant, err := QuotaGrant{}, error(ErrUnavailable) // for the waiting requests, if the store panics
	defer func() { l.settle(b, before, q.Need, grant, err) }()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), quotaTimeout)
	defer cancel()
	grant, err = l.store.TakeQuota(ctx, q)
}

// settle distributes the store's reply to a call for need requests, which began at before.
func (l *quotaLedger) settle(b *quotaBalance, before time.Time, need int, grant QuotaGrant, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil {
		for len(b.waiting) > 0 {
			b.finish(QuotaState{}, err)
		}
		b.asking = false
		return
	}
	if !b.start.Equal(grant.Start) {
		b.start, b.own = grant.Start, 0
	}
	b.own += grant.Granted
	b.most = b.own - need
	b.left, b.empty = grant.Left, grant.Granted < need
	b.asked, b.ends = before, before.Add(grant.Ends)
	// Waiting requests are served even if the window has ended meanwhile: they were counted there.
	now := l.now()
	for len(b.waiting) > 0 && b.own > 0 {
		b.own--
		b.finish(l.state(b, now), nil)
	}
	for b.empty && b.good(now) && len(b.waiting) > 0 {
		b.finish(l.refusal(b, now))
	}
	b.promote()
}

// finish passes the outcome to the first waiting request.
func (b *quotaBalance) finish(state QuotaState, err error) {
	w := b.waiting[0]
	b.waiting[0] = nil
	b.waiting = b.waiting[1:]
	w.done, w.state, w.err = true, state, err
	select {
	case w.signal <- struct{}{}:
	default: // it was about to ask
	}
}

// low reports whether to ask for the next block early: if half of the block was used within a
// second.
func (b *quotaBalance) low(now time.Time) bool {
	return !b.asking && b.most > 2*quotaFirstBlock && b.own < b.most/2 && now.Sub(b.asked) < quotaFast
}

// good reports whether the window lasts. After a clock without a monotonic part was set back, the
// end of the window is unknown.
func (b *quotaBalance) good(now time.Time) bool { return now.Before(b.ends) && !now.Before(b.asked) }

// resize returns the size of the next block: twice the last one if that was used up fast, half of
// it if it lasted long.
func (b *quotaBalance) resize(now time.Time) int {
	switch lasted := now.Sub(b.asked); {
	case b.asked.IsZero():
		b.block = quotaFirstBlock
	case lasted < quotaFast:
		b.block = min(max(2*b.block, 1), QuotaBlock)
	case lasted > quotaSlow:
		b.block /= 2
	}
	return b.block
}

func (l *quotaLedger) state(b *quotaBalance, now time.Time) QuotaState {
	return QuotaState{
		Limit: l.limit, Left: b.own + b.left, Window: l.window, Reset: max(b.ends.Sub(now), 0), start: b.start,
	}
}

func (l *quotaLedger) refusal(b *quotaBalance, now time.Time) (QuotaState, error) {
	state := l.state(b, now)
	state.Left = 0
	return state, &QuotaError{state}
}

// give uncounts a request.
func (l *quotaLedger) give(subject ID, taken QuotaState) QuotaState {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.balances[subject]
	if b == nil || !b.start.Equal(taken.start) {
		return taken
	}
	b.own++
	return l.state(b, l.now())
}

// balance returns the balance of a subject.
func (l *quotaLedger) balance(subject ID) *quotaBalance {
	b := l.balances[subject]
	if b == nil {
		if len(l.balances) >= l.crowd {
			l.thin()
		}
		b = &quotaBalance{subject: subject}
		l.balances[subject] = b
	}
	return b
}

// thin drops the balances that hold nothing. It runs again when their number has doubled, so that
// its cost for each new one is small.
func (l *quotaLedger) thin() {
	now := l.now()
	for subject, b := range l.balances {
		if !b.asking && (b.own == 0 || !b.good(now)) {
			delete(l.balances, subject)
		}
	}
	l.crowd = max(quotaBalances, 2*len(l.balances))
}

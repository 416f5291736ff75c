package formsvc_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
)

func (s *watchedStore) TakeQuota(ctx context.Context, q formsvc.QuotaQuery) (formsvc.QuotaGrant, error) {
	if err := s.enter("TakeQuota"); err != nil {
		return formsvc.QuotaGrant{}, err
	}
	return s.Store.TakeQuota(ctx, q)
}

func (s *watchedStore) ReturnQuota(ctx context.Context, list []formsvc.QuotaReturn) error {
	if err := s.enter("ReturnQuota"); err != nil {
		return err
	}
	return s.Store.ReturnQuota(ctx, list)
}

func quota(n int) func(*formsvc.Options) { return func(o *formsvc.Options) { o.Quota = &n } }

// caller returns a principal with a new key.
func (w *world) caller() *formsvc.Principal {
	w.tb.Helper()
	key, _, err := w.svc.Keys.Create(w.ctx, w.account, formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()})
	if err != nil {
		w.tb.Fatal(err)
	}
	return &formsvc.Principal{AccountID: w.account, KeyID: key.ID}
}

// took makes n requests and returns how many were allowed.
func took(tb testing.TB, svc *formsvc.Service, who *formsvc.Principal, n int) (allowed int) {
	tb.Helper()
	for range n {
		_, err := svc.Quotas.Take(context.Background(), who)
		if err == nil {
			allowed++
		} else if !errors.Is(err, formsvc.ErrQuota) {
			tb.Fatal(err)
		}
	}
	return allowed
}

func wantTook(tb testing.TB, svc *formsvc.Service, who *formsvc.Principal, n, want int) {
	tb.Helper()
	if got := took(tb, svc, who, n); got != want {
		tb.Errorf("%d of %d requests are allowed, want %d", got, n, want)
	}
}

// counted returns what the store has counted in each window.
func (w *world) counted(subject formsvc.ID) []int {
	w.tb.Helper()
	list, err := w.svc.Quotas.Use(w.ctx, subject, time.Time{})
	if err != nil {
		w.tb.Fatal(err)
	}
	var used []int
	for _, u := range list {
		used = append(used, u.Used)
	}
	return used
}

func (w *world) wantCounted(subject formsvc.ID, want ...int) {
	w.tb.Helper()
	if got := w.counted(subject); fmt.Sprint(got) != fmt.Sprint(want) {
		w.tb.Errorf("the store has counted %v, want %v", got, want)
	}
}

func TestQuotaOptions(t *testing.T) {
	t.Parallel()
	for _, window := range []time.Duration{-time.Hour, time.Millisecond, 1500 * time.Millisecond, 101 * 365 * 24 * time.Hour} {
		if _, err := formsvc.New(&watchedStore{}, &formsvc.Options{QuotaWindow: window}); err == nil {
			t.Errorf("a window of %v is accepted", window)
		}
	}
	if _, err := formsvc.New(&watchedStore{}, &formsvc.Options{Quota: new(-1)}); err == nil {
		t.Error("a negative quota is accepted")
	}
	for _, c := range []struct {
		option *int
		want   int
	}{{nil, formsvc.DefaultQuota}, {new(0), 0}, {new(7), 7}} {
		w := newWorld(t, func(o *formsvc.Options) { o.Quota = c.option })
		if limit, window := w.svc.Quotas.Policy(); limit != c.want || window != time.Hour {
			t.Errorf("%d requests in %v, want %d in an hour", limit, window, c.want)
		}
	}
}

// With one node the state that Take returns is exact.
func TestQuotaState(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(40))
	who := w.caller()
	for left := 39; left >= 0; left-- {
		state, err := w.svc.Quotas.Take(w.ctx, who)
		if err != nil || state.Limit != 40 || state.Left != left || state.Window != time.Hour {
			t.Fatalf("got %+v, %v, want %d left", state, err, left)
		}
		if want := time.Hour - 30*time.Minute - 123*time.Millisecond; state.Reset != want {
			t.Errorf("the window ends in %v, want %v", state.Reset, want)
		}
	}
	state, err := w.svc.Quotas.Take(w.ctx, who)
	over, ok := errors.AsType[*formsvc.QuotaError](err)
	if !ok || over.QuotaState != state || state.Left != 0 || state.Limit != 40 {
		t.Errorf("got %+v, %v, want a QuotaError with nothing left", state, err)
	}
	w.wantCounted(who.KeyID, 40)
}

func TestNoQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(0))
	who := w.caller()
	wantTook(t, w.svc, who, 2000, 2000)
	if n := w.store.count("TakeQuota"); n != 0 {
		t.Errorf("the store is asked %d times", n)
	}
}

func TestQuotaSubjects(t *testing.T) {
	t.Parallel()
	keys := newWorld(t, quota(10))
	first, second := keys.caller(), keys.caller()
	wantTook(t, keys.svc, first, 20, 10)
	wantTook(t, keys.svc, second, 20, 10)
	own := &formsvc.Principal{AccountID: keys.account} // has no key
	wantTook(t, keys.svc, own, 20, 10)

	// Users whom a host application has signed in.
	ada := &formsvc.Principal{AccountID: keys.account, KeyName: "Ada"}
	wantTook(t, keys.svc, ada, 20, 10)
	wantTook(t, keys.svc, &formsvc.Principal{AccountID: keys.account, KeyName: "Bob"}, 20, 10)
	wantTook(t, keys.svc, &formsvc.Principal{AccountID: keys.account, KeyName: "Ada", UserID: "2"}, 20, 10)
	wantTook(t, keys.svc, &formsvc.Principal{AccountID: keys.account, KeyName: "Ada Lovelace", UserID: "2"}, 20, 0)
	other, err := keys.svc.Accounts.Create(keys.ctx, "other")
	if err != nil {
		t.Fatal(err)
	}
	wantTook(t, keys.svc, &formsvc.Principal{AccountID: other.ID, KeyName: "Ada"}, 20, 10)
	wantTook(t, keys.svc, &formsvc.Principal{AccountID: keys.account, KeyName: "Ada", NoQuota: true}, 20, 20)
	keys.wantCounted(ada.Subject(), 10)
	if id, ok := formsvc.ParseID(string(ada.Subject())); !ok || id == keys.account {
		t.Errorf("subject %s", ada.Subject())
	}

	accounts := newWorld(t, quota(10), func(o *formsvc.Options) { o.QuotaPerAccount = true })
	first, second = accounts.caller(), accounts.caller()
	wantTook(t, accounts.svc, first, 6, 6)
	wantTook(t, accounts.svc, second, 6, 4)
	wantTook(t, accounts.svc, &formsvc.Principal{AccountID: accounts.account, UserID: "1"}, 6, 0)
	accounts.wantCounted(accounts.account, 10)
}

// A busy key rarely asks the store, and a refused key once a second.
func TestQuotaAsksTheStoreRarely(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(20_000))
	who := w.caller()
	wantTook(t, w.svc, who, 10_000, 10_000)
	if n := w.store.count("TakeQuota"); n > 40 {
		t.Errorf("10,000 requests ask the store %d times", n)
	}
	wantTook(t, w.svc, who, 10_001, 10_000)
	w.store.disturb(nil)
	for i := range 3 {
		wantTook(t, w.svc, who, 500, 0)
		if n := w.store.count("TakeQuota"); n != i {
			t.Errorf("requests that are refused asked the store %d times in %d s", n, i)
		}
		w.clock.add(time.Second)
	}

	large := newWorld(t, quota(100_000_000))
	who = large.caller()
	for range 10 {
		wantTook(t, large.svc, who, 1000, 1000)
		if _, held := large.svc.Quotas.Held(); held > formsvc.QuotaBlock {
			t.Errorf("%d requests are granted and not used", held)
		}
	}
}

// A busy key asks for more before it runs out: one request waits for the reply, the others
// continue.
func TestQuotaAsksBeforeItRunsOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(100_000))
	who := w.caller()
	wantTook(t, w.svc, who, 2_000, 2_000)
	asked, answer := make(chan struct{}), make(chan struct{})
	w.store.disturb(func(method string, _ int) error {
		if method == "TakeQuota" {
			close(asked)
			<-answer
		}
		return nil
	})
	first := make(chan error, 1)
	go func() {
		for {
			select {
			case <-asked:
				first <- nil
				return
			default:
			}
			if _, err := w.svc.Quotas.Take(w.ctx, who); err != nil {
				first <- err
				return
			}
		}
	}()
	<-asked
	wantTook(t, w.svc, who, 50, 50)
	close(answer)
	if err := <-first; err != nil {
		t.Error(err)
	}
}

// Waiting requests of a key share one call of the store, and other keys don't wait.
func TestWaitingRequestsShareOneCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(150))
	who, other := w.caller(), w.caller()
	asked, answer := make(chan struct{}), make(chan struct{})
	w.store.disturb(func(method string, call int) error {
		if method == "TakeQuota" && call == 1 {
			close(asked)
			<-answer
		}
		return nil
	})
	var (
		all     sync.WaitGroup
		allowed atomic.Int64
	)
	take := func() {
		if _, err := w.svc.Quotas.Take(w.ctx, who); err == nil {
			allowed.Add(1)
		}
	}
	all.Go(take)
	<-asked
	for range 100 {
		all.Go(take)
	}
	for w.svc.Quotas.Waiting() < 101 {
		runtime.Gosched()
	}
	wantTook(t, w.svc, other, 1, 1)
	close(answer)
	all.Wait()
	if allowed.Load() != 101 {
		t.Errorf("%d of 101 requests are allowed", allowed.Load())
	}
	if n := w.store.count("TakeQuota"); n != 3 { // the first call, the other key's, and one for the rest
		t.Errorf("the store was asked %d times, want 3", n)
	}
}

// Nodes that continue until they are refused allow exactly the quota together.
func TestNodesAllowExactlyTheQuota(t *testing.T) {
	t.Parallel()
	for round := range 50 {
		w := newWorld(t, quota(100))
		who := w.caller()
		var (
			all     sync.WaitGroup
			allowed atomic.Int64
		)
		for _, svc := range []*formsvc.Service{w.svc, w.node(quota(100)), w.node(quota(100))} {
			for range 10 {
				all.Go(func() { allowed.Add(int64(took(t, svc, who, 11))) })
			}
		}
		all.Wait()
		if allowed.Load() != 100 {
			t.Fatalf("round %d: %d requests are allowed, want 100", round, allowed.Load())
		}
	}
}

// node returns a second service over the same store and clock.
func (w *world) node(edits ...func(*formsvc.Options)) *formsvc.Service {
	w.tb.Helper()
	o := formsvc.Options{Now: w.clock.Now}
	for _, edit := range edits {
		edit(&o)
	}
	svc, err := formsvc.New(w.store, &o)
	if err != nil {
		w.tb.Fatal(err)
	}
	return svc
}

func TestGiveUncountsARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(5))
	who := w.caller()
	state, err := w.svc.Quotas.Take(w.ctx, who)
	if err != nil {
		t.Fatal(err)
	}
	if back := w.svc.Quotas.Give(who, state); back.Left != 5 {
		t.Errorf("%d left after the only request was given back, want 5", back.Left)
	}
	wantTook(t, w.svc, who, 10, 5)
	w.svc.Quotas.Give(who, state)
	wantTook(t, w.svc, who, 10, 1)
	w.clock.add(time.Hour)
	wantTook(t, w.svc, who, 10, 5)
	w.svc.Quotas.Give(who, state) // from the previous window
	wantTook(t, w.svc, who, 10, 0)
	w.wantCounted(who.KeyID, 5, 5)
}

func TestReleaseQuota(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(1000))
	who, other := w.caller(), w.node(quota(1000))
	wantTook(t, w.svc, who, 11, 11)
	_, held := w.svc.Quotas.Held()
	if held == 0 {
		t.Fatal("the node holds nothing, so that there is nothing to return")
	}
	wantTook(t, other, who, 1000, 1000-11-held)
	w.wantCounted(who.KeyID, 1000)
	if err := w.svc.Quotas.Release(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.clock.add(time.Second) // the other node asks again
	wantTook(t, other, who, 1000, held)
	w.wantCounted(who.KeyID, 1000)
}

// If the store fails, requests fail, and nothing is counted twice or lost.
func TestQuotaStoreFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(100))
	who := w.caller()
	failing := func(err error) {
		w.store.disturb(func(method string, _ int) error {
			if method == "TakeQuota" || method == "ReturnQuota" {
				return err
			}
			return nil
		})
	}
	failing(formsvc.ErrUnavailable)
	_, err := w.svc.Quotas.Take(w.ctx, who)
	wantError(t, err, formsvc.ErrUnavailable)
	failing(nil)
	wantTook(t, w.svc, who, 1, 1)
	failing(formsvc.ErrUnavailable)
	wantError(t, w.svc.Quotas.Release(w.ctx), formsvc.ErrUnavailable)
	_, held := w.svc.Quotas.Held()
	wantTook(t, w.svc, who, held, held) // what could not be returned
	_, err = w.svc.Quotas.Take(w.ctx, who)
	wantError(t, err, formsvc.ErrUnavailable)
	failing(nil)
	wantTook(t, w.svc, who, 1000, 100-held-1)

	second := w.caller()
	wantTook(t, w.svc, second, 1, 1)
	failing(formsvc.ErrUnknownOutcome)
	wantError(t, w.svc.Quotas.Release(w.ctx), formsvc.ErrUnknownOutcome)
	if _, held := w.svc.Quotas.Held(); held != 0 {
		t.Errorf("%d requests are held that the store may have back", held)
	}
}

func TestQuotaStorePanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(100))
	who := w.caller()
	w.store.disturb(func(method string, _ int) error { panic(method) })
	func() {
		defer func() { _ = recover() }()
		_, _ = w.svc.Quotas.Take(w.ctx, who)
		t.Error("the panic is lost")
	}()
	w.store.disturb(nil)
	wantTook(t, w.svc, who, 200, 100)
}

// A request whose client disconnects while it waits isn't counted, and the call of the store
// continues for the others.
func TestQuotaClientDisconnects(t *testing.T) {
	t.Parallel()
	for _, first := range []bool{true, false} {
		w := newWorld(t, quota(100))
		who := w.caller()
		asked, answer := make(chan struct{}), make(chan struct{})
		w.store.disturb(func(method string, call int) error {
			if method == "TakeQuota" && call == 1 {
				close(asked)
				<-answer
			}
			return nil
		})
		leaving, leave := context.WithCancel(w.ctx)
		contexts := []context.Context{leaving, w.ctx}
		if !first {
			contexts = []context.Context{w.ctx, leaving}
		}
		errs := make([]error, 2)
		var all sync.WaitGroup
		all.Go(func() { _, errs[0] = w.svc.Quotas.Take(contexts[0], who) })
		<-asked
		all.Go(func() { _, errs[1] = w.svc.Quotas.Take(contexts[1], who) })
		for w.svc.Quotas.Waiting() < 2 {
			runtime.Gosched()
		}
		leave()
		if !first {
			for w.svc.Quotas.Waiting() > 1 {
				runtime.Gosched()
			}
		}
		close(answer)
		all.Wait()
		if stays := errs[1]; first && stays != nil || !first && (errs[0] != nil || !errors.Is(errs[1], context.Canceled)) {
			t.Errorf("the first one leaves: %v; got %v", first, errs)
		}
		if first {
			continue // it was under way: it may be counted or not
		}
		if err := w.svc.Quotas.Release(w.ctx); err != nil {
			t.Fatal(err)
		}
		w.wantCounted(who.KeyID, 1)
	}
}

// Whenever clients disconnect, no request waits forever, and the store's count agrees with the
// allowed requests.
func TestQuotaWithDisconnectingClients(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quota(20_000))
	who := w.caller()
	w.store.disturb(func(string, int) error {
		runtime.Gosched()
		return nil
	})
	var (
		all     sync.WaitGroup
		allowed atomic.Int64
	)
	for i := range 32 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(14, uint64(i)))
			for range 30 {
				ctx, cancel := context.WithCancel(w.ctx)
				time.AfterFunc(time.Duration(random.IntN(300))*time.Microsecond, cancel)
				switch _, err := w.svc.Quotas.Take(ctx, who); {
				case err == nil:
					allowed.Add(1)
				case !errors.Is(err, context.Canceled):
					t.Error(err)
				}
				cancel()
				if i == 0 { // so that there is always something to request
					_ = w.svc.Quotas.Release(w.ctx)
				}
			}
		})
	}
	all.Wait()
	if err := w.svc.Quotas.Release(w.ctx); err != nil {
		t.Fatal(err)
	}
	w.wantCounted(who.KeyID, int(allowed.Load()))
	wantTook(t, w.svc, who, 1, 1)
}

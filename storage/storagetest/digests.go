package storagetest

import (
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// every is the interval of a webhook's digests in a world.
const every = time.Hour

func (w *world) digests(now time.Time, limit int) []formsvc.Digest {
	w.Helper()
	list, err := w.store.ClaimDigests(w.ctx, now, every, lease, limit)
	w.must("ClaimDigests", err)
	if len(list) > limit {
		w.Errorf("ClaimDigests: %d digests, limit %d", len(list), limit)
	}
	return list
}

// wantDigests claims all digests and fails the test unless they have these numbers of failures.
func (w *world) wantDigests(now time.Time, want ...int64) []formsvc.Digest {
	w.Helper()
	list := w.digests(now, 100)
	var got []int64
	for _, d := range list {
		got = append(got, d.Failures)
	}
	w.same("failures of digests at "+now.Format(time.TimeOnly), got, want)
	return list
}

// failOnce makes a delivery fail permanently with an attempt that began at that time. It returns the expected notice.
func (w *world) failOnce(sc *scene, at time.Time, status int, class string) formsvc.Notice {
	w.Helper()
	w.addResponse(&sc.campaign)
	claim := w.takeOne(nextDay().Add(-time.Hour), &sc.hook)
	o := outcome(&claim, delivery.Failed, at)
	o.Attempt.Status, o.Attempt.Error = status, class
	if !w.finish(o) {
		w.Errorf("the failure was not accepted")
	}
	return failed(&claim, &sc.hook, &o.Attempt)
}

func testDigestLease(w *world) {
	sc := w.addScene()
	w.failOnce(sc, nextDay(), 500, "status")
	now := nextDay().Add(time.Minute)
	lost := w.wantDigests(now, 1)[0]
	w.wantDigests(now.Add(lease - time.Microsecond))
	held := w.wantDigests(now.Add(lease), 1)[0]
	w.wantError("FinishDigest of a lost lease", w.store.FinishDigest(w.ctx, lost, now.Add(lease)), formsvc.ErrStale)
	w.wantDigests(now.Add(2*lease - time.Microsecond))
	// A lease that has expired can still be used until another worker claims the digest.
	w.must("FinishDigest", w.store.FinishDigest(w.ctx, held, now.Add(5*lease)))
	w.wantError("FinishDigest, again", w.store.FinishDigest(w.ctx, held, now.Add(5*lease)), formsvc.ErrStale)
	w.wantDigests(now.Add(1000 * time.Hour))
}

func testDigestLimit(w *world) {
	want := map[formsvc.ID]bool{}
	for range 5 {
		sc := w.addScene()
		w.failOnce(sc, nextDay(), 500, "status")
		want[sc.hook.ID] = true
	}
	now := nextDay().Add(time.Minute)
	if list := w.digests(now, 0); len(list) != 0 {
		w.Errorf("%d digests without room", len(list))
	}
	got := map[formsvc.ID]bool{}
	for _, n := range []int{2, 2, 1, 0} {
		list := w.digests(now, 2)
		if len(list) != n {
			w.Errorf("%d digests, want %d", len(list), n)
		}
		for _, d := range list {
			got[d.WebhookID] = true
		}
	}
	w.same("webhooks that got a digest", got, want)
}

// testDigestRace claims digests concurrently while deliveries fail: each failure is reported once.
func testDigestRace(w *world) {
	c, hooks := w.endpoints(3)
	const events = 30
	for range events {
		w.addResponse(&c)
	}
	claims := w.take(nextDay(), w.everyShare()...)
	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		told    = map[formsvc.ID]int64{}
	)
	tell := func(now time.Time) {
		list, err := w.store.ClaimDigests(w.ctx, now, 0, lease, 2)
		w.check("ClaimDigests", err)
		for _, d := range list {
			w.check("FinishDigest", w.store.FinishDigest(w.ctx, d, nextDay()))
			mu.Lock()
			told[d.WebhookID] += d.Failures
			mu.Unlock()
		}
	}
	for i := range 4 {
		workers.Go(func() {
			for j := i; j < len(claims); j += 4 {
				_, err := w.store.Finish(w.ctx, []delivery.Outcome{outcome(&claims[j], delivery.Failed, nextDay())})
				w.check("Finish", err)
			}
		})
		workers.Go(func() {
			for range events {
				tell(nextDay().Add(time.Minute))
			}
		})
	}
	workers.Wait()
	for range len(hooks) { // workers skip digests that another worker is claiming
		tell(nextDay().Add(time.Minute))
	}
	for i := range hooks {
		if n := told[hooks[i].ID]; n != events {
			w.Errorf("%d failures of a webhook were told of, want %d", n, events)
		}
	}
}

package storagetest

import (
	"errors"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func digestTests() []test {
	return []test{
		{"digest has every field", testDigestContent},
		{"digests keep their interval", testDigestEvery},
		{"leased digest is not claimed", testDigestLease},
		{"failures during a lease are kept", testDigestMeanwhile},
		{"failures of a lost lease are kept", testDigestLost},
		{"every webhook gets its turn", testDigestLimit},
		{"deleted webhook gets none", testDigestDeleted},
		{"webhook of another account is refused", testDigestForeign},
		{"each failure is in one digest", testDigestRace},
	}
}

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

func testDigestContent(w *world) {
	now := nextDay().Add(time.Hour)
	sc := w.addScene()
	w.wantDigests(now)
	_, err := w.store.UpdateAccount(w.ctx, sc.account.ID, func(a *formsvc.Account) error {
		a.Contact = "ada@example.com"
		return nil
	})
	w.must("UpdateAccount", err)
	first := w.failOnce(sc, nextDay(), 500, "status")
	w.failOnce(sc, nextDay().Add(time.Minute), 404, "status")
	last := w.failOnce(sc, nextDay().Add(2*time.Minute), 0, "timeout")
	w.change(&sc.hook, func(hook *formsvc.Webhook) { hook.URL = "https://moved.example/token" })
	list := w.wantDigests(now, 3)
	w.same("digest", list[0], formsvc.Digest{
		AccountID: sc.account.ID, WebhookID: sc.hook.ID, Contact: "ada@example.com", URL: "https://moved.example/token",
		Failures: 3, FirstAt: first.At, LastAt: last.At, Status: 0, Error: "timeout", Lease: list[0].Lease,
	})
	w.must("FinishDigest", w.store.FinishDigest(w.ctx, list[0], now))

	// One batch in no particular order: the last failure is the one that ended last.
	var outcomes []delivery.Outcome
	for range 3 {
		w.addResponse(&sc.campaign)
	}
	for i, claim := range w.take(now, share(&sc.hook, 3)) {
		o := outcome(&claim, delivery.Failed, now.Add(time.Duration([]int{5, 9, 1}[i])*time.Minute))
		o.Attempt.Status = 500 + i
		outcomes = append(outcomes, o)
	}
	w.finishAll(outcomes...)
	list = w.wantDigests(now.Add(2*every), 3)
	if d := list[0]; d.FirstAt != now.Add(time.Minute+time.Second) || d.LastAt != now.Add(9*time.Minute+time.Second) || d.Status != 501 {
		w.Errorf("the digest of a batch is %+v", d)
	}
}

func testDigestEvery(w *world) {
	sc := w.addScene()
	w.failOnce(sc, nextDay(), 500, "status")
	now := nextDay().Add(time.Minute)
	d := w.wantDigests(now, 1)[0]
	sent := now.Add(30 * time.Second)
	w.must("FinishDigest", w.store.FinishDigest(w.ctx, d, sent))
	w.wantDigests(sent.Add(1000 * time.Hour)) // no failures left
	w.failOnce(sc, nextDay().Add(2*time.Minute), 500, "status")
	w.failOnce(sc, nextDay().Add(3*time.Minute), 500, "status")
	w.wantDigests(sent.Add(time.Minute))
	w.wantDigests(sent.Add(every - time.Microsecond))
	d = w.wantDigests(sent.Add(every+time.Microsecond), 2)[0]
	w.must("FinishDigest", w.store.FinishDigest(w.ctx, d, sent.Add(2*every)))
	w.failOnce(sc, nextDay().Add(4*time.Minute), 500, "status")
	w.wantDigests(sent.Add(3*every - time.Microsecond))
	w.wantDigests(sent.Add(3*every+time.Microsecond), 1)
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

func testDigestMeanwhile(w *world) {
	sc := w.addScene()
	w.failOnce(sc, nextDay(), 500, "status")
	now := nextDay().Add(time.Minute)
	d := w.wantDigests(now, 1)[0]
	first := w.failOnce(sc, now.Add(time.Second), 404, "status")
	last := w.failOnce(sc, now.Add(2*time.Second), 410, "status")
	w.must("FinishDigest", w.store.FinishDigest(w.ctx, d, now.Add(5*time.Second)))
	next := w.wantDigests(now.Add(2*every), 2)[0]
	if next.FirstAt != first.At || next.LastAt != last.At || next.Status != 410 || next.Lease == d.Lease {
		w.Errorf("the next digest is %+v, want the failures from %v to %v and another lease than %d", next, first.At, last.At, d.Lease)
	}
}

// testDigestLost claims a digest and never finishes it: the next digest has all failures.
func testDigestLost(w *world) {
	sc := w.addScene()
	first := w.failOnce(sc, nextDay(), 500, "status")
	w.failOnce(sc, nextDay().Add(time.Second), 500, "status")
	now := nextDay().Add(time.Minute)
	lost := w.wantDigests(now, 2)[0]
	last := w.failOnce(sc, now.Add(time.Second), 404, "status")
	held := w.wantDigests(now.Add(lease), 3)[0]
	if held.FirstAt != first.At || held.LastAt != last.At || held.Lease == lost.Lease {
		w.Errorf("the digest is %+v, want all failures and another lease than %d", held, lost.Lease)
	}
	w.must("FinishDigest", w.store.FinishDigest(w.ctx, held, now.Add(lease)))
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

func testDigestDeleted(w *world) {
	gone, claimed := w.addScene(), w.addScene()
	for _, sc := range []*scene{gone, claimed} {
		w.failOnce(sc, nextDay(), 500, "status")
	}
	now := nextDay().Add(time.Minute)
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&gone.hook), formsvc.Change{}))
	d := w.wantDigests(now, 1)[0]
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&claimed.hook), formsvc.Change{}))
	w.wantRefused("FinishDigest of a deleted webhook", w.store.FinishDigest(w.ctx, d, now))
	w.wantDigests(now.Add(1000 * time.Hour))
}

// wantRefused fails the test unless a digest was refused with an allowed error.
func (w *world) wantRefused(what string, err error) {
	w.Helper()
	if !errors.Is(err, formsvc.ErrStale) && !errors.Is(err, formsvc.ErrNotFound) {
		w.Errorf("%s: error %v, want %v or %v", what, err, formsvc.ErrStale, formsvc.ErrNotFound)
	}
}

func testDigestForeign(w *world) {
	sc, other := w.addScene(), w.addScene()
	w.failOnce(sc, nextDay(), 500, "status")
	now := nextDay().Add(time.Minute)
	d := w.wantDigests(now, 1)[0]
	for _, change := range []func(*formsvc.Digest){
		func(d *formsvc.Digest) { d.AccountID = other.account.ID },
		func(d *formsvc.Digest) { d.AccountID = w.nextID() },
		func(d *formsvc.Digest) { d.AccountID = "" },
		func(d *formsvc.Digest) { d.WebhookID = other.hook.ID },
		func(d *formsvc.Digest) { d.WebhookID = w.nextID() },
		func(d *formsvc.Digest) { d.WebhookID = "nope" },
		func(d *formsvc.Digest) { d.Lease++ },
		func(d *formsvc.Digest) { d.Lease-- },
	} {
		wrong := d
		change(&wrong)
		w.wantRefused("FinishDigest of another", w.store.FinishDigest(w.ctx, wrong, now))
	}
	w.wantDigests(now.Add(lease), 1) // nothing was finished
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

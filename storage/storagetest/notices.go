package storagetest

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func noticeTests() []test {
	return []test{
		{"notice has every field", testNoticeContent},
		{"notices of one webhook", testNoticesOfWebhook},
		{"several failures in one batch", testNoticeBatch},
		{"only permanent failures have notices", testNoNotice},
		{"notices of a deleted webhook are kept", testNoticesStay},
		{"leased oldest first", testFailureLease},
		{"failure shows only the host", testFailureHost},
		{"noted failures don't come again", testNoted},
		{"unknown failures can't be noted", testNotedUnknown},
		{"each notice is leased once", testFailureRace},
	}
}

// failures leases notices and returns them.
func (w *world) failures(now, until time.Time, limit int) []delivery.Failure {
	w.Helper()
	list, err := w.store.Failures(w.ctx, now, until, limit)
	w.must("Failures", err)
	return list
}

// wantFailures leases all notices for good, and fails the test unless there are want of them.
func (w *world) wantFailures(now time.Time, want int) {
	w.Helper()
	if list := w.failures(now, now.Add(10_000*time.Hour), 1_000); len(list) != want {
		w.Errorf("Failures at %v: %+v, want %d", now, list, want)
	}
}

// failed returns the notice of a claim that failed with an attempt.
func failed(c *delivery.Claim, hook *formsvc.Webhook, a *delivery.Attempt) formsvc.Notice {
	return formsvc.Notice{
		DeliveryID: formsvc.ID(c.ID), AccountID: hook.AccountID, WebhookID: hook.ID, EventID: formsvc.ID(c.EventID),
		Event: formsvc.EventType(c.Event), Attempts: c.Attempts + 1, Status: a.Status, Error: a.Error,
		At: a.StartedAt.Add(a.Duration),
	}
}

// failure returns the failure that the queue reports for a notice.
func failure(n *formsvc.Notice, host string) delivery.Failure {
	return delivery.Failure{
		Delivery: string(n.DeliveryID), EventID: string(n.EventID), Event: string(n.Event), Endpoint: string(n.WebhookID),
		Account: string(n.AccountID), Host: host, Attempts: n.Attempts, Status: n.Status, Error: n.Error, At: n.At,
	}
}

func testNoticeContent(w *world) {
	sc := w.addScene()
	w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Postponed)
	now := nextDay().Add(time.Hour)
	claim := w.takeOne(now, &sc.hook)
	o := outcome(&claim, delivery.Failed, now)
	o.Attempt.Status, o.Attempt.Error = 0, "timeout"
	w.same("notices before the last attempt", w.notices(sc.account.ID), []formsvc.Notice{})
	w.wantFailures(now, 0)
	w.finish(o)
	want := failed(&claim, &sc.hook, &o.Attempt)
	if want.Attempts != 2 {
		w.Errorf("claimed with %d attempts, want 1", claim.Attempts)
	}
	w.same("notices", w.notices(sc.account.ID), []formsvc.Notice{want})
	now = now.Add(time.Second)
	w.same("failures", w.failures(now, now.Add(lease), 10), []delivery.Failure{failure(&want, "example.com")})
	w.same("notices after one was leased", w.notices(sc.account.ID), []formsvc.Notice{want})
	w.must("Noted", w.store.Noted(w.ctx, []string{claim.ID}))
	w.same("notices after one was noted", w.notices(sc.account.ID), []formsvc.Notice{want})
}

func testNoticesOfWebhook(w *world) {
	c, hooks := w.endpoints(3)
	other := w.addScene()
	for range 2 {
		w.addResponse(&c)
		w.addResponse(&other.campaign)
	}
	for _, hook := range []*formsvc.Webhook{&hooks[0], &hooks[1], &other.hook} {
		w.attend(hook, nextDay(), delivery.Failed)
	}
	for _, x := range []struct {
		account, hook formsvc.ID
		want          int64
	}{
		{c.AccountID, hooks[0].ID, 2},
		{c.AccountID, hooks[2].ID, 0},
		{c.AccountID, "", 4},
		{c.AccountID, other.hook.ID, 0},
		{c.AccountID, w.nextID(), 0},
		{c.AccountID, "nope", 0},
		{other.account.ID, "", 2},
		{other.account.ID, hooks[0].ID, 0},
	} {
		page, err := w.store.Notices(w.ctx, formsvc.NoticeQuery{AccountID: x.account, WebhookID: x.hook})
		if err != nil || page.Total != x.want || int64(len(page.Items)) != x.want || page.More {
			w.Errorf("Notices of webhook %q: %+v, %v; want %d", x.hook, page, err, x.want)
		}
		bare, err := w.store.Notices(w.ctx, formsvc.NoticeQuery{AccountID: x.account, WebhookID: x.hook, NoTotal: true})
		w.must("Notices without a total", err)
		page.Total = 0
		w.same("notices without a total", bare, page)
		for _, n := range page.Items {
			if n.AccountID != x.account || x.hook != "" && n.WebhookID != x.hook {
				w.Errorf("Notices of webhook %q of account %s: %+v", x.hook, x.account, n)
			}
		}
	}
}

// testNoticeBatch has three failures of one webhook and one of another among other results, and one with a lost claim.
func testNoticeBatch(w *world) {
	c, hooks := w.endpoints(2)
	for range 6 {
		w.addResponse(&c)
	}
	claims := w.take(nextDay(), share(&hooks[0], 10))
	lost := claims[5]
	w.take(nextDay().Add(lease), share(&hooks[0], 10))
	claims = append(w.take(nextDay().Add(3*lease), share(&hooks[0], 10)), w.take(nextDay().Add(3*lease), share(&hooks[1], 1))...)
	outcomes := []delivery.Outcome{outcome(&lost, delivery.Failed, nextDay())}
	var want []formsvc.Notice
	for i, result := range []delivery.Result{
		delivery.Failed, delivery.Delivered, delivery.Failed, delivery.Postponed, delivery.Failed, delivery.Released, delivery.Failed,
	} {
		o := outcome(&claims[i], result, nextDay().Add(time.Duration(10-i)*time.Second))
		o.Attempt.Status += i
		outcomes = append(outcomes, o)
		if result == delivery.Failed {
			want = append(want, failed(&claims[i], &hooks[i/6], &o.Attempt))
		}
	}
	w.same("accepted", w.finishAll(outcomes...), []bool{false, true, true, true, true, true, true, true})
	slices.SortFunc(want, func(a, b formsvc.Notice) int { return cmp.Compare(a.DeliveryID, b.DeliveryID) })
	w.same("notices", w.notices(c.AccountID), want)
	digests := w.digests(nextDay().Add(time.Hour), 10)
	counts := map[formsvc.ID]int64{}
	for _, d := range digests {
		counts[d.WebhookID] = d.Failures
	}
	w.same("failures by webhook", counts, map[formsvc.ID]int64{hooks[0].ID: 3, hooks[1].ID: 1})
	slices.SortFunc(want, func(a, b formsvc.Notice) int { return a.At.Compare(b.At) })
	list := make([]delivery.Failure, len(want))
	for i := range want {
		list[i] = failure(&want[i], "example.com")
	}
	w.same("failures", w.failures(nextDay().Add(time.Hour), nextDay().Add(2*time.Hour), 10), list)
}

func testNoNotice(w *world) {
	for _, result := range []delivery.Result{delivery.Delivered, delivery.Postponed, delivery.Released} {
		sc := w.addScene()
		w.addResponse(&sc.campaign)
		w.attend(&sc.hook, nextDay(), result)
		w.same("notices", w.notices(sc.account.ID), []formsvc.Notice{})
		w.wantFailures(nextDay().Add(time.Hour), 0)
		w.wantDigests(nextDay().Add(time.Hour))
	}
}

// A notice is deleted with its event, not with its webhook.
func testNoticesStay(w *world) {
	sc := w.addScene()
	w.addResponse(&sc.campaign)
	w.attend(&sc.hook, nextDay(), delivery.Failed)
	before := w.notices(sc.account.ID)
	w.must("DeleteWebhook", w.store.DeleteWebhook(w.ctx, webhookKey(&sc.hook), formsvc.Change{}))
	w.same("notices after the webhook was deleted", w.notices(sc.account.ID), before)
	list := w.failures(nextDay().Add(time.Hour), nextDay().Add(2*time.Hour), 10)
	if len(list) != 1 || list[0].Delivery != string(before[0].DeliveryID) {
		w.Errorf("Failures after the webhook was deleted: %+v, want the one", list)
	}
}

// addFailures makes n deliveries fail, a second apart, and returns them in that order. Their events and accounts are in
// another order.
func (w *world) addFailures(n int) []string {
	w.Helper()
	scenes := []*scene{w.addScene(), w.addScene()}
	ids := make([]string, n)
	claims := map[int][]delivery.Claim{}
	for i := range n {
		w.addResponse(&scenes[i%2].campaign)
	}
	for i, sc := range scenes {
		claims[i] = w.take(nextDay(), share(&sc.hook, n))
	}
	for i := range n {
		c := claims[i%2][i/2]
		w.finish(outcome(&c, delivery.Failed, nextDay().Add(time.Duration(i)*time.Second)))
		ids[i] = c.ID
	}
	return ids
}

func deliveriesOf(list []delivery.Failure) []string {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].Delivery
	}
	return ids
}

func testFailureLease(w *world) {
	ids := w.addFailures(7)
	now := nextDay().Add(time.Hour)
	until := now.Add(lease)
	w.same("no room", deliveriesOf(w.failures(now, until, 0)), []string{})
	w.same("the first three", deliveriesOf(w.failures(now, until, 3)), ids[:3])
	w.same("the next three", deliveriesOf(w.failures(now, until, 3)), ids[3:6])
	w.same("the last", deliveriesOf(w.failures(now, until.Add(lease), 3)), ids[6:])
	w.same("all are leased", deliveriesOf(w.failures(until.Add(-time.Microsecond), until, 10)), []string{})
	w.same("six leases ended", deliveriesOf(w.failures(until, until.Add(lease), 10)), ids[:6])
	w.same("all leases ended", deliveriesOf(w.failures(until.Add(lease), until.Add(2*lease), 10)), ids)
}

func testFailureHost(w *world) {
	for url, host := range map[string]string{
		"https://example.com/a?token=canary#canary":      "example.com",
		"http://canary:canary@example.com:8080/canary":   "example.com:8080",
		"https://[2001:db8::1]:8443/canary":              "[2001:db8::1]:8443",
		"https://xn--bcher-kva.example":                  "xn--bcher-kva.example",
		"https://example.com:443?canary":                 "example.com:443",
		"https://" + strings.Repeat("a.", 100) + "test/": strings.Repeat("a.", 100) + "test",
	} {
		sc := w.addScene()
		w.change(&sc.hook, func(hook *formsvc.Webhook) { hook.URL = url })
		w.addResponse(&sc.campaign)
		w.attend(&sc.hook, nextDay(), delivery.Failed)
		list := w.failures(nextDay().Add(time.Hour), nextDay().Add(1000*time.Hour), 10)
		if len(list) != 1 || list[0].Host != host {
			w.Errorf("Failures for %s: %+v, want one with host %q", url, list, host)
		}
	}
}

func testNoted(w *world) {
	ids := w.addFailures(5)
	now := nextDay().Add(time.Hour)
	w.failures(now, now.Add(lease), 3)
	// Two leased notices, and one that nobody leased.
	w.must("Noted", w.store.Noted(w.ctx, []string{ids[1], ids[4], ids[0]}))
	w.same("while leased", deliveriesOf(w.failures(now, now.Add(lease), 10)), ids[3:4])
	now = now.Add(lease)
	w.same("after the leases", deliveriesOf(w.failures(now, now.Add(lease), 10)), ids[2:4])
	w.must("Noted", w.store.Noted(w.ctx, ids))
	w.must("Noted, again", w.store.Noted(w.ctx, ids))
	w.same("noted", deliveriesOf(w.failures(now.Add(1000*time.Hour), now.Add(2000*time.Hour), 10)), []string{})
}

func testNotedUnknown(w *world) {
	ids := w.addFailures(1)
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	waiting := string(formsvc.DeliveryID(e.ID, sc.hook.ID))
	now := nextDay().Add(time.Hour)
	w.must("Noted of none", w.store.Noted(w.ctx, nil))
	for _, id := range []string{"", "nope", string(w.nextID()), string(e.ID), waiting, strings.ToUpper(ids[0])} {
		w.must("Noted of "+id, w.store.Noted(w.ctx, []string{id}))
	}
	w.attend(&sc.hook, nextDay().Add(time.Minute), delivery.Failed)
	w.same("failures", deliveriesOf(w.failures(now, now.Add(lease), 10)), []string{ids[0], waiting})
	w.must("Noted of one among others", w.store.Noted(w.ctx, []string{"nope", ids[0], string(w.nextID())}))
	w.same("failures", deliveriesOf(w.failures(now.Add(lease), now.Add(2*lease), 10)), []string{waiting})
}

// testFailureRace leases notices concurrently until none is left.
func testFailureRace(w *world) {
	w.wantLeasedOnce([]Store{w.store}, w.addFailures(100))
}

func (w *world) wantLeasedOnce(stores []Store, want []string) {
	w.Helper()
	now := nextDay().Add(time.Hour)
	var (
		mu      sync.Mutex
		got     []string
		workers sync.WaitGroup
	)
	drain := func(store Store) {
		for {
			list, err := store.Failures(w.ctx, now, now.Add(lease), 7)
			w.check("Failures", err)
			mu.Lock()
			got = append(got, deliveriesOf(list)...)
			enough := len(got) > len(want)
			mu.Unlock()
			if len(list) == 0 || enough {
				return
			}
		}
	}
	for i := range 8 {
		workers.Go(func() { drain(stores[i%len(stores)]) })
	}
	workers.Wait()
	drain(stores[0])
	slices.Sort(got)
	want = slices.Sorted(slices.Values(want))
	w.same("notices leased by many at once", got, want)
}

package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// concurrencyTests also wait for work.
func concurrencyTests() []test {
	tests := []test{
		{"concurrent creates succeed or fail alone", testGroups},
		{"all calls at once", testEverythingAtOnce},
		{"workers that die, release and come late", testWorkers},
		{"the last attempts are kept", testKeptAttempts},
		{"nothing is left of erased responses", testEraseBeside},
		{"no session is left", testEndBesideRedeem},
		{"earlier work ends the wait", testWaitAfterCommit},
		{"concurrent work ends the wait", testWaitDuringCommit},
	}
	for _, r := range races() {
		tests = append(tests, test{r.name, func(w *world) { r.run(w, []Store{w.store}) }})
	}
	return tests
}

// testGroups creates and reads responses of several accounts concurrently, so that stores that group calls must tell them
// apart. Some creates must fail, each for its own reason. Each idempotency key is used twice.
func testGroups(w *world) {
	scenes, taken := make([]*scene, 3), make([]formsvc.Response, 3)
	var good [3]atomic.Int64
	for i := range scenes {
		scenes[i] = w.addScene()
		taken[i], _ = w.addResponse(&scenes[i].campaign)
		good[i].Add(1)
	}
	var keys, done atomic.Int64
	together(writers, func(writer int) {
		pair := writer / 2
		i := pair % len(scenes)
		for n := range writes {
			r, version, want := w.newResponse(&scenes[i].campaign), int64(1), error(nil)
			kind, key := (pair+n)%12, fmt.Sprint(pair, " ", n)
			switch kind {
			case 0:
				r.Reference, want = taken[i].Reference, formsvc.ErrConflict
			case 1:
				version, want = 2, formsvc.ErrStale
			case 2:
				r.CampaignID, want = w.nextID(), formsvc.ErrNotFound
			case 3:
				r.User.LastName, want = "\x00", formsvc.ErrInvalid
			case 4:
				r.AccountID, want = scenes[(i+1)%3].account.ID, formsvc.ErrNotFound
			}
			change := formsvc.Change{Events: []formsvc.Event{w.newEvent(&r)}}
			if kind < 8 {
				change.Idempotency = w.newReply(&r, key)
			}
			keyed := kind < 8 && want == nil
			if keyed {
				keys.Add(1)
			}
			err := w.store.CreateResponse(w.ctx, r, version, change)
			switch got, gone := w.store.Response(w.ctx, r.Key()); {
			case keyed && errors.Is(err, formsvc.ErrRepeated), want != nil && errors.Is(err, want):
				w.wantError("Response of a create that failed", gone, formsvc.ErrNotFound)
				w.noEvents("a create that failed", change.Events...)
			case want != nil || err != nil || gone != nil:
				w.Errorf("CreateResponse: error %v, want %v; then Response: %v", err, want, gone)
			default:
				w.same("response", got, r)
				good[i].Add(1)
				if keyed {
					done.Add(2)
				}
			}
			if _, err := w.store.Recall(w.ctx, scenes[i].account.ID, key, time.Time{}); (err == nil) != keyed {
				w.Errorf("Recall after CreateResponse that should return %v: %v", want, err)
			}
		}
	})
	if keys.Load() != done.Load() {
		w.Errorf("%d creates with %d keys succeeded", done.Load()/2, keys.Load()/2)
	}
	for i, sc := range scenes {
		w.wantCount(sc, int(good[i].Load()))
	}
}

// testEverythingAtOnce makes every call of the contract from many goroutines. None may fail or block another.
func testEverythingAtOnce(w *world) {
	var all sync.WaitGroup
	targets := []*target{w.addTarget(), w.addTarget()}
	for _, c := range calls() {
		switch c.name {
		case "Wait", "Claim", "UpdateCampaign", "CreateWebhook", "DeleteWebhook", "DeleteResponse", "RedeemLink", "EndSession", "EndAllSessions", "Erase", "DeleteAccount":
			continue // these fail, or let others fail
		}
		for _, at := range targets {
			all.Go(func() {
				for range 10 {
					w.check(c.name, errorOf(c.do(w.ctx, w, at)))
				}
			})
		}
	}
	all.Wait()
}

// testEraseBeside erases responses while they get files, comments, signatures and changes, and while their deliveries are
// sent: nothing of them must remain. Two calls erase the same responses, and each response is counted by one of them.
func testEraseBeside(w *world) {
	sc := w.addScene()
	before := w.snapshot()
	for round := range 6 {
		list := w.addResponses(&sc.campaign, 10)
		keys := mapped(list, (*formsvc.Response).Key)
		var erased atomic.Int64
		together(7, func(i int) {
			switch i {
			case 4:
				for range 5 {
					claims, err := w.store.Claim(w.ctx, delivery.ClaimRequest{Now: nextDay(), Lease: lease, Shares: []delivery.Share{share(&sc.hook, 20)}})
					w.check("Claim beside Erase", err)
					for _, c := range claims {
						w.finish(outcome(&c, results()[1+rand.IntN(3)], nextDay()))
					}
				}
			case 5, 6:
				time.Sleep(time.Duration(round) * time.Millisecond) // so that the other goroutines have begun
				mine := slices.Clone(keys)
				if i == 5 { // in another order, to provoke deadlocks
					slices.Reverse(mine)
				}
				out, err := w.store.Erase(w.ctx, formsvc.EraseQuery{AccountID: sc.account.ID, Responses: mine})
				w.check("Erase beside others", err)
				erased.Add(int64(out.Responses))
			default:
				for j := range list {
					r := &list[j]
					err := []func() error{
						func() error { return w.createFile(w.ctx, w.newFile(r), w.newEvent(r)) },
						func() error { return w.store.CreateComment(w.ctx, w.newComment(r), none) },
						func() error { return w.createSignature(w.ctx, w.newSignature(r), w.newEvent(r)) },
						func() error { return w.update(w.ctx, r.Key(), w.newEvent(r)) },
					}[i]()
					if err != nil {
						w.wantError("a call beside Erase", err, formsvc.ErrNotFound)
					}
				}
			}
		})
		if n := erased.Load(); n != int64(len(list)) {
			w.Errorf("%d of %d responses were erased", n, len(list))
		}
	}
	w.unchanged("Erase of all that was added", &before)
}

// testEndBesideRedeem redeems links while all sessions end. No session is left, whichever is first.
func testEndBesideRedeem(w *world) {
	a := w.addAccount()
	for range 20 {
		links, sessions := make([]formsvc.Link, 4), make([]formsvc.Session, 4)
		for i := range links {
			links[i], sessions[i] = w.newLink(a.ID), w.newSession(a.ID)
			w.must("CreateLink", w.store.CreateLink(w.ctx, links[i], none))
		}
		together(len(links)+1, func(i int) {
			if i == len(links) {
				w.check("EndAllSessions", w.store.EndAllSessions(w.ctx, a.ID, none))
			} else if err := w.redeem(w.store, &links[i], sessions[i]); err != nil {
				w.wantError("RedeemLink beside EndAllSessions", err, formsvc.ErrNotFound)
			}
		})
		for i := range links {
			w.wantError("SessionByHash after EndAllSessions", errorOf(w.store.SessionByHash(w.ctx, sessions[i].Hash)), formsvc.ErrNotFound)
			w.wantError("RedeemLink after EndAllSessions", w.redeem(w.store, &links[i], w.newSession(a.ID)), formsvc.ErrNotFound)
		}
	}
}

// wait waits for work for a long time. If the store loses a wake-up, the guard ends the wait and the test fails.
func (w *world) wait() error {
	guard, stop := context.WithTimeout(w.ctx, 30*time.Second)
	defer stop()
	return w.store.Wait(guard, time.Hour)
}

func testWaitAfterCommit(w *world) {
	sc := w.addScene()
	d := formsvc.DeliveryKey{AccountID: sc.account.ID}
	for range 5 {
		w.attend(&sc.hook, nextDay(), delivery.Failed)
		r := w.newResponse(&sc.campaign)
		for i, call := range []func(e formsvc.Event) error{
			func(e formsvc.Event) error {
				d.ID = formsvc.DeliveryID(e.ID, sc.hook.ID)
				return w.create(r, e)
			},
			func(e formsvc.Event) error { return w.update(w.ctx, r.Key(), e) },
			func(e formsvc.Event) error { return w.createFile(w.ctx, w.newFile(&r), e) },
			func(e formsvc.Event) error {
				return w.store.CreateComment(w.ctx, w.newComment(&r), formsvc.Change{Events: []formsvc.Event{e}})
			},
			func(e formsvc.Event) error { return w.createSignature(w.ctx, w.newSignature(&r), e) },
			func(formsvc.Event) error { return w.addTest(w.newTestEvent(webhookKey(&sc.hook))) },
			func(formsvc.Event) error {
				return errorOf(w.store.Redeliver(w.ctx, d, nextDay(), nil))
			},
			func(formsvc.Event) error {
				w.attend(&sc.hook, nextDay(), delivery.Failed)
				q := formsvc.RedeliverQuery{Key: webhookKey(&sc.hook), Until: nextDay().Add(time.Hour), At: nextDay(), Limit: 10}
				return errorOf(w.store.RedeliverFailed(w.ctx, q, nil))
			},
		} {
			w.must("a call", call(w.newEvent(&r)))
			w.must(fmt.Sprint("Wait after call ", i), w.wait())
		}
	}
}

func testWaitDuringCommit(w *world) {
	sc := w.addScene()
	result := make(chan error)
	for range 50 {
		go func() { result <- w.wait() }()
		w.addResponse(&sc.campaign)
		w.must("Wait during CreateResponse", <-result)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	go func() {
		var err error
		for err == nil { // a store may wake up without work
			err = w.store.Wait(ctx, time.Hour)
		}
		result <- err
	}()
	cancel()
	w.wantError("Wait", <-result, context.Canceled)
}

package storagetest

import (
	"bytes"
	"math/rand/v2"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func attemptTests() []test {
	return []test{
		{"attempt has every field", testAttemptContent},
		{"receiver replies are kept byte for byte", testAttemptAnswers},
		{"times are kept to the microsecond", testAttemptTimes},
		{"released and stale claims record no attempt", testAttemptsNotRecorded},
		{"attempts are listed oldest first", testManyAttempts},
		{"each delivery has its own attempts", testAttemptsApart},
		{"arguments and results are copied", testAttemptsCopied},
	}
}

// wantLog fails the test unless the delivery of the event, read alone and in its
// list, has these attempts.
func (w *world) wantLog(what string, e *formsvc.Event, hook *formsvc.Webhook, want []formsvc.Attempt) {
	w.Helper()
	d := w.delivery(e, hook)
	w.same(what+": log", d.Log, want)
	for _, listed := range w.deliveries(hook) {
		if listed.ID == d.ID {
			w.same(what+": delivery in the list", listed, d)
			return
		}
	}
	w.Errorf("%s: the delivery is not in the list", what)
}

// attemptAll makes these attempts at one delivery, one after the other.
func (w *world) attemptAll(sc *scene, attempts []delivery.Attempt) (formsvc.Event, formsvc.Delivery) {
	w.Helper()
	_, e := w.addResponse(&sc.campaign)
	for i := range attempts {
		claim := w.takeOne(nextDay(), &sc.hook)
		o := outcome(&claim, delivery.Postponed, nextDay())
		if i == len(attempts)-1 {
			o.Result = delivery.Delivered
		}
		o.Attempt = attempts[i]
		if !w.finish(o) {
			w.Errorf("attempt %d was not accepted", i+1)
		}
	}
	return e, w.delivery(&e, &sc.hook)
}

func testAttemptContent(w *world) {
	sc := w.addScene()
	in := []delivery.Attempt{
		{Number: 1, StartedAt: nextDay(), Duration: 30 * time.Second, Error: "timeout"},
		{Number: 2, StartedAt: nextDay().Add(time.Minute), Duration: time.Microsecond, Status: 599, Error: "status"},
		{Number: 3, StartedAt: nextDay().Add(time.Hour), Status: 302, Error: "redirect", Answer: []byte("moved")},
		{Number: 4, StartedAt: nextDay().Add(2 * time.Hour), Duration: time.Hour, Status: 204},
	}
	want := make([]formsvc.Attempt, len(in))
	for i := range in {
		want[i] = logged(in[i])
	}
	e, d := w.attemptAll(sc, in)
	w.wantLog("attempts", &e, &sc.hook, want)
	full := pending(&e, &sc.hook)
	full.State, full.Attempts, full.UpdatedAt, full.Log = formsvc.DeliveryDelivered, 4, nextDay().Add(3*time.Hour), want
	full.DueAt = d.DueAt // not specified for a finished delivery
	w.same("delivery", d, full)
}

func testAttemptAnswers(w *world) {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	long := make([]byte, 4<<10)
	_, _ = rand.NewChaCha8([32]byte{2}).Read(long)
	for _, answer := range [][]byte{
		nil, {}, {0}, every, long, bytes.Repeat([]byte{0xff}, 4<<10), []byte("\x00\x00a\x00"), []byte("\xc3"), []byte("\xed\xa0\x80"),
		[]byte(`\x00`), []byte(`\\x`), []byte("'; --"), []byte("?"), []byte(`{"a":"\u0000"}`), []byte(" \r\n\t"), []byte("é"),
	} {
		sc := w.addScene()
		a := attempt(1, nextDay())
		a.Answer = answer
		e, _ := w.attemptAll(sc, []delivery.Attempt{a})
		w.wantLog("answer "+show(string(answer)), &e, &sc.hook, []formsvc.Attempt{logged(a)})
	}
}

// Times are in UTC and truncated to microseconds.
func testAttemptTimes(w *world) {
	sc := w.addScene()
	a := delivery.Attempt{
		Number: 1, StartedAt: nextDay().Add(1_999 * time.Nanosecond).In(time.FixedZone("", 19_800)), Duration: time.Second, Status: 200,
	}
	b := delivery.Attempt{Number: 2, StartedAt: nextDay(), Duration: 2*time.Second + 1_999*time.Nanosecond, Status: 200}
	wantA, wantB := logged(a), logged(b)
	wantA.StartedAt, wantB.Duration = nextDay().Add(time.Microsecond), 2*time.Second+time.Microsecond
	e, d := w.attemptAll(sc, []delivery.Attempt{a, b})
	w.wantLog("cut times", &e, &sc.hook, []formsvc.Attempt{wantA, wantB})
	w.same("UpdatedAt", d.UpdatedAt, nextDay().Add(wantB.Duration))
}

func testAttemptsNotRecorded(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	released := w.takeOne(nextDay(), &sc.hook)
	w.finish(outcome(&released, delivery.Released, nextDay()))
	lost := w.takeOne(nextDay(), &sc.hook)
	now := nextDay().Add(lease)
	held := w.takeOne(now, &sc.hook)
	w.finish(outcome(&lost, delivery.Failed, nextDay()))
	w.wantLog("released and lost", &e, &sc.hook, nil)
	o := outcome(&held, delivery.Delivered, now)
	w.finish(o)
	w.finish(o)
	w.wantLog("finished twice", &e, &sc.hook, []formsvc.Attempt{logged(o.Attempt)})
}

// testManyAttempts sends one delivery again: its log continues.
func testManyAttempts(w *world) {
	sc := w.addScene()
	_, e := w.addResponse(&sc.campaign)
	var want []formsvc.Attempt
	for i := range 23 {
		if i > 0 {
			d := w.delivery(&e, &sc.hook)
			_, err := w.store.Redeliver(w.ctx, deliveryKey(&d), nextDay(), nil)
			w.must("Redeliver", err)
		}
		claim := w.takeOne(nextDay(), &sc.hook)
		o := outcome(&claim, delivery.Delivered, nextDay().Add(time.Duration(i)*time.Minute))
		w.finish(o)
		want = append(want, logged(o.Attempt))
	}
	w.wantLog("replays", &e, &sc.hook, want)
	if last := want[22]; last.Number != 23 {
		w.Errorf("the last attempt has number %d, want 23: claims say how many there were", last.Number)
	}
}

// testAttemptsApart sends one event to two webhooks, and a second event: each delivery has its own attempts.
func testAttemptsApart(w *world) {
	c, hooks := w.endpoints(2)
	events := []formsvc.Event{w.addDue(&c, start()), w.addDue(&c, start().Add(time.Second))}
	want := map[string][]formsvc.Attempt{}
	for round := range 4 {
		now := nextDay().Add(time.Duration(round) * time.Hour)
		for i, claim := range w.claim(now) {
			o := outcome(&claim, delivery.Postponed, now)
			o.Attempt.Answer = []byte(claim.ID)
			if (round+i)%4 == 3 {
				o.Result = delivery.Delivered
			}
			w.finish(o)
			want[claim.ID] = append(want[claim.ID], logged(o.Attempt))
		}
	}
	for i := range events {
		for j := range hooks {
			w.wantLog("one of four", &events[i], &hooks[j], want[string(formsvc.DeliveryID(events[i].ID, hooks[j].ID))])
		}
	}
}

func testAttemptsCopied(w *world) {
	sc := w.addScene()
	a := attempt(1, nextDay())
	a.Answer = []byte("answer")
	e, d := w.attemptAll(sc, []delivery.Attempt{a})
	a.Answer[0] = 'X'
	want := attempt(1, nextDay())
	want.Answer = []byte("answer")
	w.wantLog("the caller changed what it had passed", &e, &sc.hook, []formsvc.Attempt{logged(want)})
	d.Log[0].Answer[0], d.Log[0].Status = 'X', 1
	list := w.deliveries(&sc.hook)
	list[0].Log[0].Answer[0], list[0].Log[0].Status = 'X', 1
	w.wantLog("the caller changed what it had got", &e, &sc.hook, []formsvc.Attempt{logged(want)})
}

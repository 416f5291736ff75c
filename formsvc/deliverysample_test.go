package formsvc_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func (s *watchedStore) Deliveries(ctx context.Context, q formsvc.DeliveryQuery) (formsvc.Page[formsvc.Delivery], error) {
	if err := s.enter("Deliveries"); err != nil {
		return formsvc.Page[formsvc.Delivery]{}, err
	}
	if !q.NoTotal {
		if err := s.enter("Deliveries counted"); err != nil {
			return formsvc.Page[formsvc.Delivery]{}, err
		}
	}
	return s.Store.Deliveries(ctx, q)
}

func (w *world) sample(hook *formsvc.Webhook, from, to time.Time, parts, each int) []formsvc.DeliverySample {
	w.tb.Helper()
	samples, err := w.svc.Deliveries.Sample(w.ctx, hookKey(hook), from, to, parts, each)
	if err != nil {
		w.tb.Fatal(err)
	}
	return samples
}

// sampleOf computes the expected sample from the whole list.
func sampleOf(list []formsvc.Delivery, from, to time.Time, each int) formsvc.DeliverySample {
	s := formsvc.DeliverySample{From: from}
	var took []time.Duration
	n := 0
	for _, d := range list {
		if d.CreatedAt.Before(from) || !d.CreatedAt.Before(to) {
			continue
		}
		if n++; n > each {
			s.More = true
			break
		}
		switch d.State {
		case formsvc.DeliveryDelivered:
			s.Delivered++
		case formsvc.DeliveryFailed:
			s.Failed++
		default:
			s.Pending++
		}
		if len(d.Log) > 0 {
			took = append(took, d.Log[len(d.Log)-1].Duration)
		}
	}
	slices.Sort(took)
	for i, d := range took { // nearest rank
		if s.Median == 0 && (i+1)*2 >= len(took) {
			s.Median = d
		}
		if s.P95 == 0 && (i+1)*100 >= len(took)*95 {
			s.P95 = d
		}
	}
	return s
}

// A sample agrees with a computation from all deliveries, whatever its limits.
func TestDeliverySampleAgreesWithAllDeliveries(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	hook := w.hook(func(in *formsvc.WebhookInput) { in.Events = created() })
	random := rand.New(rand.NewPCG(20, 21))
	const span = 48 * time.Hour
	for w.clock.Now().Before(start().Add(span)) {
		for range random.IntN(12) { // some at the same time
			w.submitted(&c)
		}
		if result := random.IntN(4); result < 3 {
			w.attempt([]delivery.Result{delivery.Delivered, delivery.Failed, delivery.Postponed}[result],
				time.Duration(1+random.IntN(30_000))*time.Millisecond)
		}
		w.clock.add(time.Duration(random.IntN(int(30 * time.Minute))).Truncate(time.Millisecond))
		if random.IntN(10) == 0 {
			w.clock.add(3 * time.Hour)
		}
	}
	all, err := w.store.Deliveries(w.ctx, formsvc.DeliveryQuery{
		AccountID: w.account, WebhookID: hook.ID, Page: formsvc.PageQuery{Limit: formsvc.MaxLimit, Ascending: true},
	})
	if err != nil || all.More || len(all.Items) < 100 {
		t.Fatalf("%d deliveries, %v", len(all.Items), err)
	}
	for range 500 {
		from := start().Add(time.Duration(random.Int64N(int64(span))) - span/4)
		if random.IntN(2) == 0 { // at the time of a delivery
			from = all.Items[random.IntN(len(all.Items))].CreatedAt
		}
		length := time.Millisecond * time.Duration(1+random.Int64N(int64(span/time.Millisecond)>>random.IntN(24)))
		parts, each := 1+random.IntN(96), 1+random.IntN(50)
		samples := w.sample(&hook, from, from.Add(length), parts, each)
		if len(samples) != parts {
			t.Fatalf("%d parts, want %d", len(samples), parts)
		}
		for i, got := range samples {
			begin, end := partAt(from, length, i, parts), partAt(from, length, i+1, parts)
			if want := sampleOf(all.Items, begin, end, each); got != want {
				t.Fatalf("part %d of %d from %v, %v long, at most %d:\n%+v, want\n%+v", i, parts, from, length, each, got, want)
			}
		}
	}
}

// partAt returns the start of a part, in whole milliseconds.
func partAt(from time.Time, length time.Duration, i, parts int) time.Time {
	from = from.Truncate(time.Millisecond)
	return from.Add(length * time.Duration(i) / time.Duration(parts)).Truncate(time.Millisecond)
}

// Limits are clamped, and no query counts.
func TestDeliverySampleIsLimited(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	hook := w.hook(func(in *formsvc.WebhookInput) { in.Events = created() })
	for range formsvc.MaxSampleEach + 1 {
		w.submitted(&c)
	}
	samples := w.sample(&hook, start(), start().Add(24*time.Hour), 1_000, 1_000)
	if n := len(samples); n != formsvc.MaxSampleParts || w.store.count("Deliveries") != n || w.store.count("Deliveries counted") != 0 {
		t.Errorf("%d parts, %d queries", n, w.store.count("Deliveries"))
	}
	if samples[0].Pending != formsvc.MaxSampleEach || !samples[0].More {
		t.Errorf("the first part is %+v", samples[0])
	}
	samples = w.sample(&hook, start(), start().Add(24*time.Hour), 0, 0)
	if len(samples) != 1 || samples[0].Pending != 1 || !samples[0].More {
		t.Errorf("the least sample is %+v", samples)
	}
}

func TestDeliverySampleRefusesInvalidInput(t *testing.T) {
	w := newWorld(t)
	hook := w.hook()
	now := w.clock.Now()
	for _, to := range []time.Time{now, now.Add(-time.Hour), now.Add(time.Microsecond), {}} {
		_, err := w.svc.Deliveries.Sample(w.ctx, hookKey(&hook), now, to, 1, 1)
		wantFaults(t, err, "/to out_of_range")
	}
	for _, key := range []formsvc.WebhookKey{
		{AccountID: w.account, ID: someID}, {AccountID: w.second(), ID: hook.ID}, {},
	} {
		_, err := w.svc.Deliveries.Sample(w.ctx, key, now, now.Add(time.Hour), 1, 1)
		wantError(t, err, formsvc.ErrNotFound)
	}
	fault := errors.New("broken pipe")
	w.store.disturb(func(string, int) error { return fault })
	_, err := w.svc.Deliveries.Sample(w.ctx, hookKey(&hook), now, now.Add(time.Hour), 1, 1)
	wantError(t, err, fault)
	w.store.disturb(nil)
	// Three centuries are longer than a Duration.
	samples := w.sample(&hook, time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC), now, 96, 50)
	for i := range samples[1:] {
		if !samples[i+1].From.After(samples[i].From) {
			t.Errorf("part %d begins at %v, after %v", i+1, samples[i+1].From, samples[i].From)
		}
	}
}

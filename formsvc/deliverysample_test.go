package formsvc_test

import (
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook/delivery"
)

func (w *world) sample(hook *formsvc.Webhook, from, to time.Time, parts, each int) []formsvc.DeliverySample {
	return must(w.svc.Deliveries.Sample(w.ctx, formsvc.SampleQuery{Webhook: hookKey(hook), From: from, To: to, Parts: parts, Each: each}))
}

func TestDeliverySample(t *testing.T) {
	w := newWorld(t)
	c := w.campaign()
	hook := w.hook(func(in *formsvc.WebhookInput) { in.Events = created() })
	const ms = time.Millisecond
	for i := range 20 {
		w.submitted(&c)
		w.attempt(delivery.Delivered, time.Duration(i+1)*ms)
		w.clock.add(ms)
	}
	w.clock.set(start().Add(time.Hour))
	w.submitted(&c)
	w.attempt(delivery.Failed, 5*ms)
	w.submitted(&c)
	for _, x := range []struct {
		from, to    time.Duration
		parts, each int
		want        []formsvc.DeliverySample
	}{
		{0, 2 * time.Hour, 2, 50, []formsvc.DeliverySample{
			{From: start(), Delivered: 20, Median: 10 * ms, P95: 19 * ms},
			{From: start().Add(time.Hour), Failed: 1, Pending: 1, Median: 5 * ms, P95: 5 * ms},
		}},
		{0, time.Hour, 1, 20, []formsvc.DeliverySample{{From: start(), Delivered: 20, Median: 10 * ms, P95: 19 * ms}}},
		{0, time.Hour, 1, 5, []formsvc.DeliverySample{{From: start(), Delivered: 5, More: true, Median: 3 * ms, P95: 5 * ms}}},
		// The first millisecond of a part belongs to it, the first one of the next part doesn't.
		{19 * ms, 20 * ms, 1, 50, []formsvc.DeliverySample{{From: start().Add(19 * ms), Delivered: 1, Median: 20 * ms, P95: 20 * ms}}},
		{20 * ms, time.Hour, 1, 50, []formsvc.DeliverySample{{From: start().Add(20 * ms)}}},
		// Parts may be shorter than a millisecond.
		{0, 2 * ms, 4, 50, []formsvc.DeliverySample{
			{From: start()}, {From: start(), Delivered: 1, Median: ms, P95: ms},
			{From: start().Add(ms)}, {From: start().Add(ms), Delivered: 1, Median: 2 * ms, P95: 2 * ms},
		}},
	} {
		equalAll(t, w.sample(&hook, start().Add(x.from), start().Add(x.to), x.parts, x.each), x.want, "from %v to %v: %+v", x.from, x.to)
	}
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
	if n := len(samples); n != formsvc.MaxSampleParts || w.store.count("Deliveries") != n || w.store.count("Deliveries counted") != 0 ||
		samples[0].Pending != formsvc.MaxSampleEach || !samples[0].More {
		t.Errorf("%d parts, %d queries, the first part is %+v", n, w.store.count("Deliveries"), samples[0])
	}
	samples = w.sample(&hook, start(), start().Add(24*time.Hour), 0, 0)
	if len(samples) != 1 || samples[0].Pending != 1 || !samples[0].More {
		t.Errorf("the least sample is %+v", samples)
	}
	for _, to := range []time.Time{start(), start().Add(-time.Hour), start().Add(time.Microsecond), {}} {
		wantFaults(t, failure(w.svc.Deliveries.Sample(w.ctx, formsvc.SampleQuery{Webhook: hookKey(&hook), From: start(), To: to})), "/to out_of_range")
	}
	// Three centuries are longer than a Duration.
	samples = w.sample(&hook, time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC), start(), 96, 50)
	for i := range samples[1:] {
		if !samples[i+1].From.After(samples[i].From) {
			t.Errorf("part %d begins at %v, after %v", i+1, samples[i+1].From, samples[i].From)
		}
	}
}

package formsvc

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A DeliverySample is what is known of some deliveries of a webhook: the first ones of
// a part of time.
type DeliverySample struct {
	From                       time.Time // when the part begins; it ends with the next one
	Delivered, Failed, Pending int       // by [DeliveryState]
	More                       bool      // there were more, which are not counted
	// Median and P95 are of how long the last attempts took, of those deliveries that
	// have one: the shortest time that half of them, or 95 in a hundred, did not
	// exceed. 0 when there is none.
	Median, P95 time.Duration
}

// Sample shows how deliveries of a webhook went over time. It cuts the time from
// from, inclusive, to to, exclusive, both in whole milliseconds, into so many equal
// parts, at most [MaxSampleParts], and of each looks at the first deliveries made in
// it, at most each, itself at most [MaxSampleEach]; less than one is one. What it costs
// depends on these numbers, and not on how many deliveries there are. Deliveries are
// made when their events are, of which they carry the time in their identifiers, and
// are gone with them ([Options.Retention]).
//
// It fails with a *[ValidationError] when the time does not end after it begins, and
// with [ErrNotFound] when the account has no such webhook.
func (d Deliveries) Sample(
	ctx context.Context, key WebhookKey, from, to time.Time, parts, each int,
) (_ []DeliverySample, err error) {
	defer d.s.span(&ctx, "Deliveries.Sample").end(&err)
	from, to = milliseconds(from), milliseconds(to)
	if !to.After(from) {
		var v ValidationError
		v.add("/to", "out_of_range", "must be later than from")
		return nil, fmt.Errorf("formsvc: sample: %w", &v)
	}
	if _, err := d.s.store.Webhook(ctx, key); err != nil {
		return nil, fmt.Errorf("formsvc: sample: %w", err)
	}
	parts, each = min(max(parts, 1), MaxSampleParts), min(max(each, 1), MaxSampleEach)
	s := sampler{core: d.s, key: key, each: each}
	samples := make([]DeliverySample, parts)
	for i := range samples {
		// The length is divided by itself first: multiplied, that of a long time overflows.
		length, n, all := to.Sub(from), time.Duration(i), time.Duration(parts)
		samples[i].From = milliseconds(from.Add(length/all*n + length%all*n/all))
	}
	for i := range samples {
		end := to
		if i+1 < parts {
			end = samples[i+1].From
		}
		if err := s.fill(ctx, &samples[i], end); err != nil {
			return nil, fmt.Errorf("formsvc: sample: %w", err)
		}
	}
	return samples, nil
}

// sampler reads deliveries of a webhook part by part.
type sampler struct {
	*core

	key  WebhookKey
	each int
	next ID   // of the first delivery after the parts that were read, if it was seen
	done bool // there is none
}

// fill reads the part that ends with that time, unless it is known to be empty.
func (s *sampler) fill(ctx context.Context, sample *DeliverySample, end time.Time) error {
	after, stop := beforeID(sample.From), beforeID(end)
	if s.done || after == stop || s.next > stop {
		return nil
	}
	page, err := s.store.Deliveries(ctx, DeliveryQuery{
		AccountID: s.key.AccountID, WebhookID: s.key.ID, NoTotal: true,
		Page: PageQuery{Limit: s.each + 1, After: after, Ascending: true},
	})
	if err != nil {
		return err
	}
	s.next, s.done = "", !page.More
	items := page.Items
	if n := slices.IndexFunc(items, func(d Delivery) bool { return d.ID > stop }); n >= 0 {
		s.next, s.done, items = items[n].ID, false, items[:n]
	}
	if sample.More = len(items) > s.each; sample.More {
		items = items[:s.each]
	}
	sample.sum(items)
	return nil
}

// sum counts deliveries and measures their last attempts.
func (s *DeliverySample) sum(list []Delivery) {
	var took []time.Duration
	for i := range list {
		d := &list[i]
		switch d.State {
		case DeliveryDelivered:
			s.Delivered++
		case DeliveryFailed:
			s.Failed++
		case DeliveryPending:
			s.Pending++
		}
		if n := len(d.Log); n > 0 {
			took = append(took, d.Log[n-1].Duration)
		}
	}
	slices.Sort(took)
	s.Median, s.P95 = percentile(took, 50), percentile(took, 95)
}

// percentile returns the lowest of sorted durations that so many in a hundred do not
// exceed, or 0.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// beforeID returns what comes right before [FloorID]: after every ID of version 7 that
// was made before t, to the millisecond, and before every other. None is equal to it.
func beforeID(t time.Time) ID {
	const timeDigits = len("00000000-0000-")
	return FloorID(t)[:timeDigits] + "0000-0000-000000000000"
}

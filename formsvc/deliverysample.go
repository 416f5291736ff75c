package formsvc

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// A DeliverySample summarizes the first deliveries of a webhook in one part of a time range.
type DeliverySample struct {
	From                       time.Time // when the part begins; it ends with the next one
	Delivered, Failed, Pending int       // by [DeliveryState]
	More                       bool      // there were more deliveries, which are not counted
	// Median and P95 are the p50 and p95 of the durations of the deliveries' last attempts, or 0 if
	// there are none.
	Median, P95 time.Duration
}

// Sample summarizes the deliveries of a webhook over time. It divides the time from from
// (inclusive) to to (exclusive), both in whole milliseconds, into equal parts. In each part it
// reads up to each deliveries, oldest first. There are at most [MaxSampleParts] parts and
// [MaxSampleEach] deliveries in each; values below 1 count as 1. The cost depends on these two
// numbers only. A delivery belongs to the time of its event and is deleted with it
// ([Options.Retention]).
//
// It fails with a *[ValidationError] unless to is after from, and with [ErrNotFound] if the account
// has no such webhook.
func (d Deliveries) Sample(
	ctx context.Context, key WebhookKey, from, to time.Time, parts, each int,
) ([]DeliverySample, error) {
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
		// Division comes first: multiplying a long time would overflow.
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
	done bool // there are no more
}

// fill reads the part that ends at end, unless it is known to be empty.
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

// percentile returns the given percentile of sorted durations, or 0 if there are none.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)*percent+99)/100-1]
}

// beforeID returns a text right before [FloorID]: it sorts after every version 7 ID created before
// t, to the millisecond, and before all others. No ID is equal to it.
func beforeID(t time.Time) ID {
	const timeDigits = len("00000000-0000-")
	return FloorID(t)[:timeDigits] + "0000-0000-000000000000"
}

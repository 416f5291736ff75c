package formsvc

import (
	"context"
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
// (inclusive) to to (exclusive), both in whole milliseconds, into at most [MaxSampleParts] equal parts.
// In each part it reads up to each deliveries, oldest first, at most [MaxSampleEach]; the cost depends
// on these two numbers only. A delivery belongs to the time of its event. It fails with a
// *[ValidationError] unless to is after from, and with [ErrNotFound].
func (d Deliveries) Sample(
	ctx context.Context, key WebhookKey, from, to time.Time, parts, each int,
) (_ []DeliverySample, err error) {
	defer wrap(&err, "sample")
	from, to = milliseconds(from), milliseconds(to)
	if !to.After(from) {
		return nil, invalid("/to", "out_of_range", "must be later than from")
	}
	if _, err := d.s.store.Webhook(ctx, key); err != nil {
		return nil, err
	}
	parts, each = min(max(parts, 1), MaxSampleParts), min(max(each, 1), MaxSampleEach)
	samples := make([]DeliverySample, parts)
	begin := func(i int) time.Time {
		// Division comes first: multiplying a long time would overflow.
		length, n, all := to.Sub(from), time.Duration(i), time.Duration(parts)
		return milliseconds(from.Add(length/all*n + length%all*n/all))
	}
	for i := range samples {
		samples[i].From = begin(i)
		page, err := d.s.store.Deliveries(ctx, DeliveryQuery{
			AccountID: key.AccountID, WebhookID: key.ID, NoTotal: true,
			Page: PageQuery{Limit: each + 1, After: beforeID(samples[i].From), Ascending: true},
		})
		if err != nil {
			return nil, err
		}
		samples[i].sum(page.Items, each, beforeID(begin(i+1)))
	}
	return samples, nil
}

// sum counts up to each deliveries before end, and measures their last attempts.
func (s *DeliverySample) sum(list []Delivery, each int, end ID) {
	var took []time.Duration
	for i := range list {
		d := &list[i]
		if d.ID > end || i == each {
			s.More = d.ID <= end
			break
		}
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

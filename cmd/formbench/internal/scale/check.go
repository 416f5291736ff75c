package scale

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/formsvc"
)

// checkedRecords is the number of records that are read back, spread over all.
const checkedRecords = 200

// check reads directly stored records through the service.
func (in *installation) check(ctx context.Context) error {
	err := in.With(ctx, func(_ database.Store, svc *formsvc.Service) error {
		m, err := newMaker(&in.history)
		if err != nil {
			return err
		}
		for k := range min(checkedRecords, in.n) {
			r, err := m.record(ctx, in.n-1-k*in.n/min(checkedRecords, in.n))
			if err == nil {
				err = checkRecord(ctx, svc, &r)
			}
			if err != nil {
				return fmt.Errorf("response %s: %w", r.ID, err)
			}
		}
		return in.checkTotals(ctx, svc)
	})
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	return nil
}

// checkRecord compares a record with what the service returns for it.
func checkRecord(ctx context.Context, svc *formsvc.Service, r *record) error {
	key := formsvc.ResponseKey{AccountID: r.AccountID, CampaignID: r.CampaignID, ID: r.ID}
	got, err := svc.Responses.Get(ctx, key)
	if err != nil {
		return err
	}
	if got.Answers.JSON() != r.Answers.JSON() {
		return fmt.Errorf("answers %s, want %s", got.Answers.JSON(), r.Answers.JSON())
	}
	got.Answers = r.Answers // equal, but perhaps not decoded
	if !reflect.DeepEqual(got, r.Response) {
		return fmt.Errorf("%+v, want %+v", got, r.Response)
	}
	events, err := svc.Events.About(ctx, key, 2)
	if err != nil {
		return err
	}
	if len(events) != 1 || !reflect.DeepEqual(events[0], r.event) {
		return fmt.Errorf("events %+v, want %+v", events, r.event)
	}
	return errors.Join(checkDelivery(ctx, svc, r, r.delivered, formsvc.DeliveryDelivered),
		checkDelivery(ctx, svc, r, r.due, formsvc.DeliveryPending))
}

func checkDelivery(ctx context.Context, svc *formsvc.Service, r *record, hook formsvc.ID, state formsvc.DeliveryState) error {
	if hook == "" {
		return nil
	}
	want := formsvc.Delivery{
		ID: formsvc.DeliveryID(r.event.ID, hook), AccountID: r.AccountID, WebhookID: hook, EventID: r.event.ID,
		Event: r.event.Type, State: state, DueAt: r.event.CreatedAt, CreatedAt: r.event.CreatedAt,
	}
	if state == formsvc.DeliveryDelivered {
		at, took := r.attempted()
		want.Attempts, want.DueAt, want.UpdatedAt = 1, time.Time{}, at.Add(took)
		want.Log = []formsvc.Attempt{{Number: 1, StartedAt: at, Duration: took, Status: 200}}
	}
	got, err := svc.Deliveries.Get(ctx, formsvc.DeliveryKey{AccountID: r.AccountID, ID: want.ID})
	if err != nil {
		return fmt.Errorf("delivery %s: %w", want.ID, err)
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("delivery %+v, want %+v", got, want)
	}
	return nil
}

// checkTotals compares the totals of lists with the expected numbers of responses.
func (in *installation) checkTotals(ctx context.Context, svc *formsvc.Service) error {
	counted := in.count()
	for n := range in.campaigns {
		c := &in.campaigns[n]
		got, err := svc.Campaigns.Get(ctx, formsvc.CampaignKey{AccountID: c.AccountID, ID: c.ID})
		if err != nil {
			return err
		}
		if want := counted.campaigns[n]; got.ResponseCount != want {
			return fmt.Errorf("campaign %d has %d responses, want %d", n, got.ResponseCount, want)
		}
	}
	big := &in.campaigns[0]
	for status, want := range counted.statuses {
		page, err := svc.Responses.List(ctx, formsvc.ResponseQuery{
			AccountID: big.AccountID, CampaignID: big.ID, Filter: formsvc.ResponseFilter{Status: []string{status}},
		})
		if err != nil {
			return err
		}
		if page.Total != want {
			return fmt.Errorf("%d responses of the big campaign are %s, want %d", page.Total, status, want)
		}
	}
	stats, err := svc.Deliveries.Stats(ctx)
	if want := min(counted.due, formsvc.MaxCounted); err == nil && stats.Pending != want {
		err = fmt.Errorf("%d deliveries wait, want %d", stats.Pending, want)
	}
	return err
}

// counts are the numbers of responses of each kind.
type counts struct {
	campaigns [campaignCount]int64
	statuses  map[string]int64 // of the big campaign
	due       int64
}

func (s *history) count() *counts {
	c := &counts{statuses: make(map[string]int64)}
	for i := range s.n {
		n := campaignOf(i)
		c.campaigns[n]++
		if n == 0 {
			at := s.at(i)
			r := formsvc.Response{Status: formsvc.StatusPending, CreatedAt: at, UpdatedAt: at}
			s.fate(i, &r)
			c.statuses[r.Status]++
		}
		if i >= s.firstDue && n%accountCount >= quietAccounts {
			c.due++
		}
	}
	return c
}

package scale

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/fixture"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/webhook"
)

// A recordWriter stores records, several at once.
type recordWriter interface {
	write(ctx context.Context, records []record) error
	Close() error
}

const (
	batchSize   = 5_000 // records that are stored at once
	workerCount = 2     // goroutines that create and store records
)

// build creates an installation in an empty database.
func (in *installation) build(ctx context.Context) error {
	if err := in.found(ctx); err != nil {
		return err
	}
	if err := in.begin(ctx); err != nil {
		return err
	}
	if err := in.fill(ctx); err != nil {
		return fmt.Errorf("fill: %w", err)
	}
	return in.finish(ctx)
}

// found creates the accounts, campaigns and webhooks, as they were before the first response, and a key for each
// account.
func (in *installation) found(ctx context.Context) error {
	in.accounts, in.campaigns = make([]account, accountCount), make([]formsvc.Campaign, campaignCount)
	return in.With(ctx, func(s database.Store, today *formsvc.Service) error {
		svc, err := formsvc.New(s, &formsvc.Options{Now: beginTime})
		if err != nil {
			return err
		}
		for i := range in.accounts {
			a := &in.accounts[i]
			made, err := svc.Accounts.Create(ctx, fmt.Sprintf("account %02d", i))
			if err != nil {
				return err
			}
			a.id = made.ID
			if _, a.key, err = today.Keys.Create(ctx, a.id, formsvc.KeyInput{Name: "bench", Permissions: formsvc.AllPermissions()}); err != nil {
				return err
			}
		}
		for i := range in.campaigns {
			if in.campaigns[i], err = svc.Campaigns.Create(ctx, in.accounts[i%accountCount].id, database.CampaignInput()); err != nil {
				return err
			}
		}
		for i := range in.accounts {
			a := &in.accounts[i]
			a.hook, err = listen(ctx, svc, a.id, "https://hooks.example.com/forms", in.campaigns[i].ID)
			if err == nil && i >= quietAccounts {
				a.failing, err = listen(ctx, svc, a.id, "https://broken.example.com/", "")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func listen(ctx context.Context, svc *formsvc.Service, account formsvc.ID, url string, campaign formsvc.ID) (formsvc.ID, error) {
	hook, _, err := svc.Webhooks.Create(ctx, account, formsvc.WebhookInput{
		URL: url, Events: []formsvc.EventType{webhook.ResponseCreated}, CampaignID: campaign,
	})
	return hook.ID, err
}

// fill stores the responses.
func (in *installation) fill(ctx context.Context) error {
	writer, err := in.writer(ctx)
	if err != nil {
		return err
	}
	var next atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range workerCount {
		group.Go(func() error { return in.work(ctx, writer, &next) })
	}
	return errors.Join(group.Wait(), writer.Close())
}

// work creates and stores batches until there are none left.
func (in *installation) work(ctx context.Context, writer recordWriter, next *atomic.Int64) error {
	m, err := newMaker(&in.history)
	if err != nil {
		return err
	}
	records := make([]record, 0, batchSize)
	for ctx.Err() == nil {
		first := int(next.Add(batchSize)) - batchSize
		if first >= in.n {
			return nil
		}
		records = records[:0]
		for i := range min(batchSize, in.n-first) {
			r, err := m.record(ctx, first+i)
			if err != nil {
				return fmt.Errorf("response %d: %w", first+i, err)
			}
			records = append(records, r)
		}
		if err := writer.write(ctx, records); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// A maker lets the service create records: it is a store that keeps the last record and has only the methods that this
// takes.
type maker struct {
	formsvc.Store // nil

	history *history
	svc     *formsvc.Service
	number  int
	made    record
	ids     int // the number of identifiers that the response has got
}

func newMaker(s *history) (_ *maker, err error) {
	m := &maker{history: s}
	m.svc, err = formsvc.New(m, &formsvc.Options{
		Now: func() time.Time { return s.at(m.number) },
		NewID: func(time.Time) formsvc.ID {
			m.ids++
			return s.id(m.number, m.ids > 1)
		},
		NewReference: func() string { return s.reference(m.number) },
	})
	return m, err
}

// Campaign implements formsvc.Store for the campaign of the record.
func (m *maker) Campaign(context.Context, formsvc.CampaignKey) (formsvc.Campaign, error) {
	return m.history.campaigns[campaignOf(m.number)], nil
}

// CreateResponse implements formsvc.Store.
func (m *maker) CreateResponse(_ context.Context, r formsvc.Response, _ int64, change formsvc.Change) error {
	if len(change.Events) != 1 {
		return fmt.Errorf("a response came with %d events", len(change.Events))
	}
	m.made = record{Response: r, event: change.Events[0]}
	return nil
}

// record creates record i.
func (m *maker) record(ctx context.Context, i int) (record, error) {
	m.number, m.ids = i, 0
	n := campaignOf(i)
	campaign, account := &m.history.campaigns[n], &m.history.accounts[n%accountCount]
	_, answers := fixture.Submission(i)
	if _, err := m.svc.Responses.Create(ctx, campaign.Key(), formsvc.ResponseInput{
		User: m.history.person(i), Answers: answers,
	}); err != nil {
		return record{}, err
	}
	r := m.made
	m.history.fate(i, &r.Response)
	if n < accountCount {
		r.delivered = account.hook
	}
	if i >= m.history.firstDue {
		r.due = account.failing
	}
	return r, nil
}

// createdBit is the stored type of the event.
func createdBit() int { return 1 << slices.Index(webhook.EventTypes(), webhook.ResponseCreated) }

// The installations of the scale part: everything in them is a function of a response's number and of the number of
// responses.

const (
	accountCount  = 20
	campaignCount = 200
	bigShare      = 10 // campaign 0 has one of this many responses

	// A webhook of each account listens to the account's first campaign: to one response in five altogether. Each
	// account from this one on has another webhook. It listens to all campaigns and receives nothing for a while.
	quietAccounts = 5

	rareStatus = "disputed"
	rareCount  = 10 // responses of the big campaign with this status, whatever its size
)

// The time span of the responses.
func beginTime() time.Time { return time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC) }

const timeSpan = 730 * 24 * time.Hour

// A history describes an installation of n responses.
type history struct {
	n        int
	firstDue int // the first response for which the failing webhooks have deliveries

	accounts  []account
	campaigns []formsvc.Campaign // by number; the account is the remainder by accountCount
}

// An account is one of the accounts, with a key.
type account struct {
	id      formsvc.ID
	key     string
	hook    formsvc.ID // listens to one campaign
	failing formsvc.ID // listens to all campaigns; "" for none
}

// mixed spreads numbers over 64 bits so that every bit depends on all of i.
func mixed(i int) uint64 {
	x := fixture.Scatter(i + 1)
	x = (x ^ x>>30) * 0xbf58_476d_1ce4_e5b9
	x = (x ^ x>>27) * 0x94d0_49bb_1331_11eb
	return x ^ x>>31
}

// campaignOf returns the number of the campaign of response i.
func campaignOf(i int) int {
	if i%bigShare == 0 {
		return 0
	}
	return 1 + int(mixed(i)>>8%(campaignCount-1))
}

// outage returns the first response for which the failing webhooks have deliveries, so that they have about due of
// them, or as many as there are.
func (s *history) outage(due int) int {
	for i := s.n; i > 0; i-- {
		if due == 0 {
			return i
		}
		if campaignOf(i-1)%accountCount >= quietAccounts {
			due--
		}
	}
	return 0
}

// at returns the time of response i.
func (s *history) at(i int) time.Time {
	return beginTime().Add(time.Duration(timeSpan.Milliseconds()*int64(i)/int64(s.n)) * time.Millisecond)
}

// id returns the identifier of response i, or of its event, a UUID of version 7.
func (s *history) id(i int, ofEvent bool) formsvc.ID {
	seed := 2 * i
	if ofEvent {
		seed++
	}
	millis, random := fmt.Sprintf("%012x", s.at(i).UnixMilli()), mixed(seed)
	return formsvc.ID(fmt.Sprintf("%s-%s-7%03x-8%03x-%012x",
		millis[:8], millis[8:], random>>52, random>>40&0xfff, random&0xffff_ffff_ffff))
}

// reference returns a reference like the service's: half of it comes from the time, and the other half makes it unique.
func (s *history) reference(i int) string {
	const low = 1<<20 - 1
	number := i*0x9e37b + i>>20*0x1b873
	return fixture.StoredReference(int(s.at(i).UnixMilli()&low)<<20 | number&low)
}

// person returns the user who sent response i: most users send several.
func (s *history) person(i int) formsvc.User {
	user, _ := fixture.Submission(int(mixed(i) >> 20 % uint64(max(s.n/3, 1)))) //nolint:gosec // below n
	return user
}

// fate changes response i from its initial state to its final one: most are reviewed within two weeks, some never.
func (s *history) fate(i int, r *formsvc.Response) {
	const week = 7 * 24 * time.Hour
	random := mixed(i)
	after := time.Minute + time.Duration(random>>16%uint64((2*week).Milliseconds()))*time.Millisecond //nolint:gosec // two weeks
	changed := r.CreatedAt.Add(after)
	switch every := s.n / bigShare / rareCount; {
	case i%bigShare == 0 && every > 0 && i/bigShare%every == every/2:
		r.Status = rareStatus
	case random%1000 == 0 || changed.After(beginTime().Add(timeSpan)):
		return
	case random%10 < 7:
		r.Status, r.CompletedAt = formsvc.StatusCompleted, changed
	default:
		r.Status = formsvc.StatusValidated
	}
	r.Version, r.UpdatedAt = 2, changed
}

// A record is a response with its stored event and deliveries.
type record struct {
	formsvc.Response
	event     formsvc.Event
	delivered formsvc.ID // the webhook it was delivered to; "" for none
	due       formsvc.ID // the webhook of its pending delivery; "" for none
}

// attempted returns when the delivery of the record began, and its duration.
func (r *record) attempted() (time.Time, time.Duration) {
	return r.event.CreatedAt.Add(2 * time.Millisecond), 3 * time.Millisecond
}

// deliveries calls add for each delivery of the record.
func (r *record) deliveries(add func(d *deliveryRow)) {
	if r.delivered != "" {
		at, took := r.attempted()
		add(&deliveryRow{
			hook: r.delivered, lease: 2, state: 1, attempts: 1,
			due: time.Time{}.UnixMicro(), updated: at.Add(took).UnixMicro(),
		})
	}
	if r.due != "" {
		add(&deliveryRow{hook: r.due, due: r.event.CreatedAt.UnixMicro(), updated: time.Time{}.UnixMicro()})
	}
}

// A deliveryRow is a row of the table of deliveries.
type deliveryRow struct {
	hook                   formsvc.ID
	lease, state, attempts int
	due, updated           int64
}

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// A feed is a store with a campaign whose events are followed.
type feed struct {
	testing.TB
	store    handle
	db       *bun.DB
	svc      *formsvc.Service
	account  formsvc.ID
	campaign formsvc.ID
}

func newFeed(t testing.TB) *feed {
	t.Helper()
	dsn := postgrestest.DSN(t)
	f := &feed{TB: t, store: open(t, dsn, nil), db: raw(t, dsn)}
	svc, campaign := newService(t, f.store)
	f.svc, f.account, f.campaign = svc, campaign.AccountID, campaign.ID
	return f
}

// add creates a response, which raises one event, and returns the response's identifier.
func (f *feed) add(svc *formsvc.Service) formsvc.ID {
	f.Helper()
	r, err := svc.Responses.Create(f.Context(), formsvc.CampaignKey{AccountID: f.account, ID: f.campaign}, formsvc.ResponseInput{
		User: formsvc.User{Email: "a@example.com"},
	})
	if err != nil {
		f.Error(err)
	}
	return r.ID
}

// begin starts a transaction of a host and returns a service inside it.
func (f *feed) begin() (bun.Tx, *formsvc.Service) {
	f.Helper()
	tx := must(f.db.BeginTx(f.Context(), nil))
	bound := must(postgres.Bind(tx, nil))
	return tx, f.svc.With(bound)
}

// read returns the responses of the events after a position.
func (f *feed) read(after *formsvc.Cursor, limit int) (ids []formsvc.ID) {
	f.Helper()
	page := must(f.svc.Events.List(f.Context(), formsvc.EventQuery{AccountID: f.account, After: *after, Limit: limit}))
	for _, e := range page.Items {
		ids = append(ids, e.ResponseID)
	}
	*after = page.Next
	return ids
}

// readWhole returns the responses in the feed of all accounts.
func (f *feed) readWhole() (ids []formsvc.ID) {
	f.Helper()
	page := must(f.store.AllEvents(f.Context(), formsvc.EventQuery{}))
	for _, e := range page.Items {
		ids = append(ids, e.ResponseID)
	}
	return ids
}

// readAll polls until it has seen want events: transactions of other tests on the server
// can hold up the feed.
func (f *feed) readAll(after formsvc.Cursor, want int) (ids []formsvc.ID) {
	f.Helper()
	for guard := time.Now().Add(time.Minute); len(ids) < want; {
		if time.Now().After(guard) {
			f.Fatalf("saw %v, want %d events", ids, want)
		}
		ids = append(ids, f.read(&after, 3)...)
	}
	return ids
}

// TestFeedWaitsForOlderTransactions shows which events the feed holds back.
func TestFeedWaitsForOlderTransactions(t *testing.T) {
	t.Parallel()
	f := newFeed(t)
	first := f.add(f.svc)
	tx, svc := f.begin()
	second := f.add(svc)
	third := f.add(f.svc) // commits before the second
	var after formsvc.Cursor
	for len(f.read(&after, 1)) == 0 {
		continue
	}
	position := after
	for range 20 {
		if ids := f.read(&after, 10); len(ids) > 0 {
			t.Fatalf("saw %v while the transaction of an earlier event is open", ids)
		}
		if ids := f.readWhole(); !slices.Equal(ids, []formsvc.ID{first}) {
			t.Fatalf("saw %v of all accounts while the transaction of an earlier event is open", ids)
		}
	}
	noError(t, tx.Commit())
	if ids := f.readAll(position, 2); !slices.Equal(ids, []formsvc.ID{second, third}) {
		t.Errorf("saw %v, want %v and %v", ids, second, third)
	}
	if ids := f.readAll("", 3); ids[0] != first {
		t.Errorf("saw %v first, want %v", ids[0], first)
	}
}

// The events are from a server with a far higher transaction count than this one, as
// after restoring a dump.
func TestFeedContinuesAfterMoving(t *testing.T) {
	t.Parallel()
	f := newFeed(t)
	ids := []formsvc.ID{f.add(f.svc), f.add(f.svc), f.add(f.svc)}
	f.exec("UPDATE formsvc_events SET xact = xact + 1000000000000")
	var commit, row int64
	noError(t, f.db.NewSelect().Table("formsvc_events").Column("xact", "seq").Where("response_id = ?", string(ids[0])).
		Scan(t.Context(), &commit, &row))
	position := formsvc.Cursor(fmt.Sprintf("%d.%d", commit, row))
	tx, svc := f.begin() // begins before the move, writes after it
	noError(t, tx.QueryRowContext(t.Context(), "SELECT pg_current_xact_id()::text").Scan(new(string)))
	for range 20 { // other transactions begin later
		f.exec("SELECT pg_current_xact_id()")
	}
	for range 2 { // the second time, nothing changes
		noError(t, f.store.Migrate(t.Context()))
	}
	if got := f.readAll(position, 2); !slices.Equal(got, ids[1:]) {
		t.Errorf("after the first event: %v, want %v", got, ids[1:])
	}
	ids = append(ids, f.add(svc))
	noError(t, tx.Commit())
	ids = append(ids, f.add(f.svc), f.add(f.svc))
	if got := f.readAll(position, 5); !slices.Equal(got, ids[1:]) {
		t.Errorf("after the first event: %v, want %v", got, ids[1:])
	}
	if got := f.readAll("", 6); !slices.Equal(got, ids) {
		t.Errorf("from the start: %v, want %v", got, ids)
	}
	if offset := f.offset(); offset < 1e11 {
		t.Errorf("offset %d, want what makes up for the difference", offset)
	}
}

// A migration while others write doesn't change the offset.
func TestMigrateKeepsFeedOffset(t *testing.T) {
	t.Parallel()
	f := newFeed(t)
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for ctx.Err() == nil {
			f.add(f.svc)
		}
	})
	for range 20 {
		noError(t, f.store.Migrate(t.Context()))
	}
	stop()
	writer.Wait()
	if offset := f.offset(); offset != 0 {
		t.Errorf("offset %d, want none", offset)
	}
}

func (f *feed) exec(sql string) {
	f.Helper()
	must(f.db.ExecContext(f.Context(), sql))
}

func (f *feed) offset() (offset int64) {
	f.Helper()
	err := f.db.NewSelect().Table("formsvc_feed").Column("offset").Scan(f.Context(), &offset)
	if err != nil {
		f.Fatal(errors.Join(err, fmt.Errorf("the feed has no offset")))
	}
	return offset
}

package torture_test

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/api"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/check"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/inbox"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/ledger"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/load"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/world"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A clock can be set.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time { return time.Now().Round(0).Add(time.Duration(c.ahead.Load())) }

// The clock jumps by up to an hour in either direction, under load and with pending retries. Nothing is lost, no delivery
// fails early, and identifiers stay unique. The clock is set by an option, so this tests the library in one process.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"sqlite", "postgres"} {
		t.Run(name, func(t *testing.T) {
			dsn := sqliteDSN(t)
			if name == "postgres" {
				dsn = postgrestest.DSN(t)
			}
			c := new(clock)
			e := newEmbedded(t, dsn, c)
			began, r := time.Now(), newRounds(6)
			l := load.Start(load.Options{
				Client: e.client, Ledger: e.ledger, Campaign: e.campaign, Name: "1", Rate: 300,
				Targets: func() []string { return []string{e.url} },
			})
			for r.next() {
				time.Sleep(rand.N(400 * time.Millisecond))
				c.ahead.Store(int64(rand.N(2*time.Hour) - time.Hour))
			}
			wrote := l.Stop()
			v := check.Compare(e.ledger, e.stored(), e.inbox.Arrived())
			for i, progress := 0, time.Now(); v.Unlisted+v.Undelivered > 0 && time.Since(progress) < world.Quiet; i++ {
				before := v.Unlisted + v.Undelivered
				c.ahead.Store(int64(time.Duration(min(i, 40)+2) * 2 * time.Hour)) // a delivery that waits for the clock or another retry becomes due
				time.Sleep(200 * time.Millisecond)
				v = check.Compare(e.ledger, e.stored(), e.inbox.Arrived())
				if v.Unlisted+v.Undelivered != before {
					progress = time.Now()
				}
			}
			s := world.Summary{Acked: wrote.Acked, Failed: wrote.Failed, Why: wrote.Why, PerSecond: float64(wrote.Acked) / wrote.Took.Seconds(), Gap: wrote.Gap}
			s.Verdict = v
			s.Faults = append(s.Faults, e.inbox.Faults()...)
			s.Delivered, s.Again = e.inbox.Count()
			for _, fault := range s.Faults[:min(20, len(s.Faults))] {
				t.Error(fault)
			}
			if n := e.failed.Load(); n > 0 {
				t.Errorf("%d deliveries failed for good, to a receiver that refuses first attempts only", n)
			}
			report(t, r, "steps of the clock", began, &s)
		})
	}
}

// An embedded is the service in a host application.
type embedded struct {
	t             testing.TB
	url, campaign string
	client        *api.Client
	ledger        *ledger.Ledger
	inbox         *inbox.Inbox
	failed        atomic.Int64
}

// backend is the interface of both stores.
type backend interface {
	formsvc.Store
	delivery.Queue
	Close() error
}

func newEmbedded(t testing.TB, dsn string, c *clock) *embedded {
	t.Helper()
	e := &embedded{t: t, inbox: inbox.New(t)}
	e.inbox.Refuse = true
	ctx := context.Background()
	store := openStore(ctx, t, dsn)
	files, err := fileblob.Open(filepath.Join(t.TempDir(), "files"), nil)
	must(t, err)
	forms, err := formsvc.New(store, &formsvc.Options{Blobs: files, Now: c.now, Quota: new(int)})
	must(t, err)
	handler, err := httpx.New(forms, nil)
	must(t, err)
	engine, err := delivery.New(store, &delivery.Options{
		Now: c.now, Retries: []time.Duration{time.Second, time.Second, time.Second}, PollInterval: 100 * time.Millisecond,
		Logger:    slog.New(slog.DiscardHandler),
		Control:   func(string, string, syscall.RawConn) error { return nil }, // the receiver is on this machine
		OnFailure: func(context.Context, delivery.Failure) error { e.failed.Add(1); return nil },
	})
	must(t, err)
	account, key, err := forms.Accounts.CreateWithKey(ctx, "clock", formsvc.KeyInput{Name: "first", Permissions: formsvc.AllPermissions()})
	must(t, err)
	campaign, err := forms.Campaigns.Create(ctx, account.ID, formsvc.CampaignInput{Title: "Clock"})
	must(t, err)
	_, _, err = forms.Webhooks.Create(ctx, account.ID, formsvc.WebhookInput{URL: e.inbox.URL, Events: webhook.EventTypes(), Secret: inbox.Secret})
	must(t, err)
	server := httptest.NewServer(handler)
	working, stop := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() {
		if err := engine.Run(working); err != nil {
			t.Errorf("the engine ended: %v", err)
		}
	})
	t.Cleanup(func() {
		server.Close()
		stop()
		work.Wait()
		must(t, store.Close())
		must(t, files.Close())
	})
	e.url, e.campaign, e.client = server.URL, string(campaign.ID), api.New(key)
	e.ledger, err = ledger.New(filepath.Join(t.TempDir(), "ledger"))
	must(t, err)
	return e
}

func openStore(ctx context.Context, t testing.TB, dsn string) backend {
	t.Helper()
	if path, ok := strings.CutPrefix(dsn, "sqlite:"); ok {
		s, err := sqlite.Open(ctx, path, nil)
		must(t, err)
		return s
	}
	s, err := postgres.Open(ctx, dsn, nil)
	must(t, err)
	return s
}

func (e *embedded) stored() *check.Stored {
	e.t.Helper()
	s, err := check.Read(context.Background(), e.client, e.url, e.campaign, e.ledger)
	must(e.t, err)
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/webhook"
)

func openStore(t testing.TB, dsn string, opts *Options) *Store {
	t.Helper()
	s := must(Open(t.Context(), dsn, opts))
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// queue creates deliveries.
type queue struct {
	svc      *formsvc.Service
	campaign formsvc.Campaign
}

func newQueue(t testing.TB, s formsvc.Store) *queue {
	t.Helper()
	svc := must(formsvc.New(s, nil))
	account := must(svc.Accounts.Create(t.Context(), "a"))
	campaign := must(svc.Campaigns.Create(t.Context(), account.ID, formsvc.CampaignInput{Title: "c"}))
	if _, _, err := svc.Webhooks.Create(t.Context(), account.ID, formsvc.WebhookInput{
		URL: "https://example.com/", Events: webhook.EventTypes(),
	}); err != nil {
		t.Fatal(err)
	}
	return &queue{svc: svc, campaign: campaign}
}

func (q *queue) add(t testing.TB) {
	t.Helper()
	if _, err := q.svc.Responses.Create(t.Context(), q.campaign.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: "a@example.com"},
	}); err != nil {
		t.Error(err)
	}
}

// wait calls Wait without a practical limit and fails after a safety timeout.
func wait(t testing.TB, s *Store) {
	t.Helper()
	guard, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	if err := s.Wait(guard, time.Hour); err != nil {
		t.Errorf("Wait: %v", err)
	}
}

// openListening returns a store that listens, on the schema of dsn.
func openListening(t testing.TB, dsn string) *Store {
	t.Helper()
	s := openStore(t, dsn, nil)
	wait(t, s) // returns once it listens, in case something was queued before
	return s
}

// A delivery is queued in a transaction of the caller, and notified when the caller says
// that it committed.
func TestNotifyAfterTheCallersCommit(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.DSN(t)
	engine, s := openListening(t, dsn), openStore(t, dsn, nil)
	q := newQueue(t, s)
	tx := must(bun.NewDB(s.db, pgdialect.New()).BeginTx(t.Context(), nil))
	bound := must(Bind(tx, nil))
	(&queue{svc: q.svc.With(bound), campaign: q.campaign}).add(t)
	noError(t, tx.Commit())
	s.Notify()
	wait(t, engine)
}

// hear returns the number of notifications until none has arrived for d.
func (l *listener) hear(t testing.TB, d time.Duration) (times int) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		something := l.listen(ctx)
		cancel()
		if !something {
			return times
		}
		times++
	}
}

// Many calls are ended early; the connection survives, and receives later notifications.
func TestWaitKeepsItsConnection(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.DSN(t)
	engine := openListening(t, dsn)
	conn := engine.listener.conn
	for i := range 200 {
		switch i % 3 {
		case 0:
			engine.Notify()
			wait(t, engine)
		case 1:
			noError(t, engine.Wait(t.Context(), time.Duration(i)*time.Microsecond))
		case 2:
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Duration(i)*time.Microsecond, cancel)
			if err := engine.Wait(ctx, time.Hour); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			cancel()
		}
	}
	engine.listener.hear(t, 50*time.Millisecond)
	if engine.listener.conn != conn || conn.IsClosed() {
		t.Fatal("the connection was given up")
	}
	newQueue(t, openStore(t, dsn, nil)).add(t)
	wait(t, engine)
}

// The connection is cut: Wait works without it, and gets a new one later.
func TestWaitReconnects(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.DSN(t)
	engine := openListening(t, dsn)
	pid := engine.listener.conn.PgConn().PID()
	must(engine.db.ExecContext(t.Context(), "SELECT pg_terminate_backend($1)", pid))
	for engine.listener.conn != nil {
		noError(t, engine.Wait(t.Context(), 10*time.Millisecond))
	}
	engine.listener.retryAt = time.Now().Add(time.Hour)
	engine.Notify()
	wait(t, engine)
	noError(t, engine.Wait(t.Context(), 200*time.Millisecond))
	if engine.listener.conn != nil {
		t.Error("connected again too soon")
	}
	engine.listener.retryAt = time.Time{}
	wait(t, engine)
	newQueue(t, openStore(t, dsn, nil)).add(t)
	wait(t, engine)
}

func TestListeningFollowsOptions(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.DSN(t)
	for _, c := range []struct {
		dsn     string
		opts    *Options
		listens bool
	}{
		{dsn, nil, true},
		{dsn, &Options{NoListen: true}, false},
		{dsn, &Options{Unprepared: true}, true},
		{dsn + "&default_query_exec_mode=exec", nil, false},
	} {
		s := openStore(t, c.dsn, c.opts)
		if got := s.listener != nil; got != c.listens {
			t.Errorf("%+v: listens %t, want %t", c.opts, got, c.listens)
		}
		noError(t, s.Wait(t.Context(), 10*time.Millisecond))
	}
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// noError ends the test unless err is nil.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

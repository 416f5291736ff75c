package postgres

import (
	"context"
	"database/sql"
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
	s, err := Open(t.Context(), dsn, opts)
	if err != nil {
		t.Fatal(err)
	}
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
	svc, err := formsvc.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	account, err := svc.Accounts.Create(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	campaign, err := svc.Campaigns.Create(t.Context(), account.ID, formsvc.CampaignInput{Title: "c"})
	if err != nil {
		t.Fatal(err)
	}
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

// One store queues deliveries while another waits for them.
func TestWorkOfAnotherProcessEndsWait(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t testing.TB, dsn string) *Store{
		"opened":     func(t testing.TB, dsn string) *Store { return openStore(t, dsn, nil) },
		"unprepared": func(t testing.TB, dsn string) *Store { return openStore(t, dsn+"&default_query_exec_mode=exec", nil) },
		"the caller's database": func(t testing.TB, dsn string) *Store {
			db, err := sql.Open("pgx", dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			s := New(bun.NewDB(db, pgdialect.New()), nil)
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn := postgrestest.DSN(t)
			engine := openListening(t, dsn)
			q := newQueue(t, open(t, dsn))
			for range 3 { // before the call, and probably during it
				q.add(t)
				wait(t, engine)
				done := make(chan struct{})
				go func() {
					defer close(done)
					wait(t, engine)
				}()
				time.Sleep(10 * time.Millisecond)
				q.add(t)
				<-done
			}
		})
	}
}

// A delivery is queued in a transaction of the caller, and notified when the caller says
// that it committed.
func TestNotifyAfterTheCallersCommit(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.DSN(t)
	engine, s := openListening(t, dsn), openStore(t, dsn, nil)
	q := newQueue(t, s)
	tx, err := bun.NewDB(s.db, pgdialect.New()).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := Bind(tx, nil)
	if err != nil {
		t.Fatal(err)
	}
	(&queue{svc: q.svc.With(bound), campaign: q.campaign}).add(t)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	s.Notify()
	wait(t, engine)
}

// A store queues deliveries in another schema of the same database.
func TestWaitIgnoresOtherSchemas(t *testing.T) {
	t.Parallel()
	engine := openListening(t, postgrestest.DSN(t))
	other := postgrestest.DSN(t)
	theirs := openListening(t, other)
	newQueue(t, openStore(t, other, nil)).add(t)
	wait(t, theirs)
	if engine.listener.hear(t, 200*time.Millisecond) > 0 {
		t.Error("woken by deliveries in another schema")
	}
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

// Many deliveries are queued while no Wait is under way.
func TestQueuedNotificationsWakeOnce(t *testing.T) {
	t.Parallel()
	dsn := postgrestest.DSN(t)
	engine := openListening(t, dsn)
	s := openStore(t, dsn, nil)
	q := newQueue(t, s)
	const notifications = 40
	for range notifications {
		q.add(t)
		time.Sleep(notifyPause + time.Millisecond)
	}
	if err := s.Close(); err != nil { // sends everything
		t.Fatal(err)
	}
	wait(t, engine) // for the first, even if it is late
	// Under load some may still arrive.
	if n := 1 + engine.listener.hear(t, 200*time.Millisecond); n > notifications/2 {
		t.Errorf("woken %d times by %d notifications", n, notifications)
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
			if err := engine.Wait(t.Context(), time.Duration(i)*time.Microsecond); err != nil {
				t.Error(err)
			}
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
	if _, err := engine.db.ExecContext(t.Context(), "SELECT pg_terminate_backend($1)", pid); err != nil {
		t.Fatal(err)
	}
	for engine.listener.conn != nil {
		if err := engine.Wait(t.Context(), 10*time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
	engine.listener.retryAt = time.Now().Add(time.Hour)
	engine.Notify()
	wait(t, engine)
	if err := engine.Wait(t.Context(), 200*time.Millisecond); err != nil {
		t.Error(err)
	}
	if engine.listener.conn != nil {
		t.Error("connected again too soon")
	}
	engine.listener.retryAt = time.Time{}
	wait(t, engine)
	newQueue(t, openStore(t, dsn, nil)).add(t)
	wait(t, engine)
}

// Two calls wait at once: the second doesn't wait for the first.
func TestSecondWaitDoesNotBlock(t *testing.T) {
	t.Parallel()
	s := openListening(t, postgrestest.DSN(t))
	first := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { first <- s.Wait(ctx, time.Hour) }()
	for s.listener.turn.TryLock() {
		s.listener.turn.Unlock()
		time.Sleep(time.Millisecond)
	}
	if err := s.Wait(t.Context(), 10*time.Millisecond); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the first: %v, want context.Canceled", err)
	}
}

func TestCloseEndsWait(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*Options{"listening": nil, "not listening": {NoListen: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStore(t, postgrestest.DSN(t), opts)
			result := make(chan error, 1)
			go func() {
				var err error
				for err == nil { // the first call returns once it listens
					err = s.Wait(t.Context(), time.Hour)
				}
				result <- err
			}()
			time.Sleep(20 * time.Millisecond)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if err := <-result; !errors.Is(err, formsvc.ErrStoreClosed) {
				t.Errorf("Wait during Close: %v, want ErrStoreClosed", err)
			}
			if l := s.listener; l != nil && l.conn != nil {
				t.Error("the connection is still open")
			}
		})
	}
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
		if err := s.Wait(t.Context(), 10*time.Millisecond); err != nil {
			t.Error(err)
		}
	}
}

//go:build long

package postgres

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// One store queues deliveries while another waits for them.
func TestWorkOfAnotherProcessEndsWait(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t testing.TB, dsn string) *Store{
		"opened":     func(t testing.TB, dsn string) *Store { return openStore(t, dsn, nil) },
		"unprepared": func(t testing.TB, dsn string) *Store { return openStore(t, dsn+"&default_query_exec_mode=exec", nil) },
		"the caller's database": func(t testing.TB, dsn string) *Store {
			db := must(sql.Open("pgx", dsn))
			t.Cleanup(func() { _ = db.Close() })
			s := must(OpenDB(t.Context(), db, nil))
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
	noError(t, s.Wait(t.Context(), 10*time.Millisecond))
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
			noError(t, s.Close())
			if err := <-result; !errors.Is(err, formsvc.ErrStoreClosed) {
				t.Errorf("Wait during Close: %v, want ErrStoreClosed", err)
			}
			if l := s.listener; l != nil && l.conn != nil {
				t.Error("the connection is still open")
			}
		})
	}
}

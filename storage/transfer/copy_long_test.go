//go:build long

package transfer_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/transfer"
)

// TestRoundTrip copies rows with all kinds of values in all tables there and back.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	first, second, third := newSQLite(t), newPostgres(t), newSQLite(t)
	w := newWorld(t, first)
	scatter(t, first, 5000) // more than one batch
	w.follow(t, first)
	identity := first.open(t, true)
	id, err := identity.Identity(t.Context())
	must(t, errors.Join(err, identity.Close()))

	report, err := moved(t, first, second, nil)
	must(t, err)
	for _, table := range report.Tables {
		if table.Rows < 5000 && table.Table != "formsvc_secret_keys" {
			t.Errorf("%s: %d rows were copied", table.Table, table.Rows)
		}
	}
	compared(t, first, second)
	_, err = moved(t, second, third, nil)
	must(t, err)
	compared(t, second, third)
	compared(t, first, third)
	last := third.open(t, false)
	if got, err := last.Identity(t.Context()); got != id || err != nil {
		t.Errorf("the identity is %s (%v), want %s", got, err, id)
	}
	w.checkFeed(t, third, w.positions, w.events)
	if n := third.number(t, "SELECT count(*) FROM formsvc_links"); n != 0 {
		t.Errorf("%d links were copied", n)
	}
}

// A service keeps writing during a copy: everything it acknowledged is copied.
func TestFencedCopyHasEveryAcknowledgedWrite(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to database) {
		w := newWorld(t, from)
		running := from.open(t, false)
		svc, err := formsvc.New(running, nil)
		must(t, err)
		stop, acknowledged := make(chan struct{}), make(chan []formsvc.ID)
		begun := make(chan struct{}, 1)
		go func() {
			var ids []formsvc.ID
			defer func() { acknowledged <- ids }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				r, err := svc.Responses.Create(context.Background(), formsvc.CampaignKey{AccountID: w.account, ID: w.campaign}, formsvc.ResponseInput{
					User: formsvc.User{Email: "b@example.com"}, Answers: []formsvc.Answer{{Name: "q", Value: []string{"x"}}},
				})
				switch {
				case err == nil:
					ids = append(ids, r.ID)
				case !errors.Is(err, formsvc.ErrMoved) || !errors.Is(err, formsvc.ErrUnavailable):
					t.Errorf("a write beside a copy: %v", err)
					return
				}
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		}()
		<-begun
		_, err = moved(t, from, to, nil)
		must(t, err)
		close(stop)
		ids := <-acknowledged
		w.with(t, to, func(svc *formsvc.Service) {
			for _, id := range ids {
				if _, err := svc.Responses.Get(t.Context(), formsvc.ResponseKey{AccountID: w.account, CampaignID: w.campaign, ID: id}); err != nil {
					t.Errorf("%s was acknowledged: %v", id, err)
				}
			}
		})
		if err := running.Ping(t.Context()); !errors.Is(err, formsvc.ErrMoved) {
			t.Errorf("the old server is ready: %v", err)
		}
		if _, err := from.try(t.Context(), ring(t), false); !errors.Is(err, formsvc.ErrMoved) {
			t.Errorf("a server on the old database: %v", err)
		}
		fresh := to.open(t, false)
		must(t, fresh.Close())
		compared(t, from, to)
	})
}

// These copies must not begin, and leave the source in use.
func TestCopyRefuses(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to database) {
		newWorld(t, from)
		refuse := func(what string, want error, from, to database, k *keyring.Keyring) {
			t.Helper()
			a, err := from.try(t.Context(), k, true)
			must(t, err)
			defer func() { _ = a.Close() }()
			b, err := to.try(t.Context(), k, true)
			must(t, err)
			defer func() { _ = b.Close() }()
			if _, err := transfer.Copy(t.Context(), a, b, nil); !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		refuse("the same database", transfer.ErrSame, from, from, ring(t))
		refuse("no keys", keyring.ErrUnknownKey, from, to, nil)
		refuse("no schema", transfer.ErrSchema, newDatabase(t, from.kind), to, ring(t))
		full := newDatabase(t, to.kind)
		newWorld(t, full)
		refuse("a database that is not empty", transfer.ErrNotEmpty, from, full, ring(t))

		ahead := newDatabase(t, to.kind)
		must(t, ahead.open(t, false).Close())
		ahead.exec(t, "INSERT INTO formsvc_schema (version, applied_at) VALUES (99, 0)")
		refuse("to a newer schema", bunstore.ErrSchemaNewer, from, ahead, ring(t))
		refuse("from a newer schema", bunstore.ErrSchemaNewer, ahead, to, ring(t))
		ahead.exec(t, "DELETE FROM formsvc_schema WHERE version > 3")
		refuse("from an older schema", transfer.ErrSchema, ahead, to, ring(t))

		must(t, from.open(t, false).Close()) // still in use
		_, err := moved(t, from, to, nil)
		must(t, err)
		refuse("moved already", formsvc.ErrMoved, from, to, ring(t))
		refuse("moved elsewhere already", formsvc.ErrMoved, from, newDatabase(t, to.kind), ring(t))
	})
}

// The first start of these databases was killed between the schema and the identity.
func TestWithoutIdentity(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to database) {
		newWorld(t, from)
		must(t, to.open(t, false).Close())
		to.exec(t, "DELETE FROM formsvc_identity")
		a, err := to.try(t.Context(), ring(t), true)
		must(t, err)
		b, err := newDatabase(t, from.kind).try(t.Context(), ring(t), true)
		must(t, err)
		if _, err := transfer.Copy(t.Context(), a, b, nil); !errors.Is(err, transfer.ErrSchema) {
			t.Errorf("from one: %v", err)
		}
		must(t, errors.Join(a.Close(), b.Close()))
		_, err = moved(t, from, to, nil)
		must(t, err)
		compared(t, from, to)
	})
}

// A copy fails in the middle of its rows: the source is in use again, and the next copy
// starts over and includes later writes.
func TestFailedCopyReleasesTheSource(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to database) {
		w := newWorld(t, from)
		scatter(t, from, 4200)
		ctx, cancel := context.WithCancel(t.Context())
		a, b := from.open(t, true), to.open(t, true)
		_, err := transfer.Copy(ctx, a, b, &transfer.Options{Progress: func(p transfer.Progress) {
			if p.Done > 30_000 {
				cancel()
			}
		}})
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "is in use as before") {
			t.Fatalf("a copy that is stopped: %v", err)
		}
		must(t, errors.Join(a.Close(), b.Close()))
		w.respond(t, from, 3)
		if from.kind == "sqlite" {
			if n := from.number(t, "SELECT count(*) FROM sqlite_schema WHERE type = 'trigger' AND name LIKE '%fence%'"); n != 0 {
				t.Errorf("%d triggers are left of the fence", n)
			}
		} else if n := from.number(t, "SELECT count(*) FROM pg_trigger WHERE tgrelid = 'formsvc_keys'::regclass AND NOT tgisinternal"); n != 0 {
			t.Errorf("%d triggers are left of the fence", n)
		}
		_, err = moved(t, from, to, nil)
		must(t, err)
		compared(t, from, to)
	})
}

// TestFullDisk copies to a database that may not grow, which is a full disk to SQLite.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			from, to := newDatabase(t, kind), newSQLite(t)
			newWorld(t, from)
			scatter(t, from, 1000)
			db, err := sql.Open("sqlite", sqlite.DSN(to.dsn)+"&_pragma=max_page_count(300)")
			must(t, err)
			defer func() { _ = db.Close() }()
			b, err := sqlite.OpenDB(t.Context(), db, &sqlite.Options{SkipMigrations: true})
			must(t, err)
			_, err = transfer.Copy(t.Context(), from.open(t, true), b, nil)
			if !errors.Is(err, formsvc.ErrNoSpace) || !strings.Contains(err.Error(), "is in use as before") {
				t.Errorf("to a full disk: %v", err)
			}
			must(t, from.open(t, false).Close())
			_, err = moved(t, from, to, nil) // after there is room again
			must(t, err)
		})
	}
}

// Clients continue after a move with everything they had: keys, cursors, positions.
func TestClientsContinueAfterMove(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, from, to database) {
		w := newWorld(t, from)
		// Make positions larger than any that the other database would assign.
		if from.kind == "sqlite" {
			from.exec(t, "UPDATE sqlite_sequence SET seq = seq + 1000000000 WHERE name = 'formsvc_events'")
		} else {
			from.exec(t, `UPDATE formsvc_feed SET "offset" = "offset" + 1000000000`)
		}
		w.respond(t, from, 3)
		w.follow(t, from)
		positions, events := w.positions, w.events
		// Events that were read and are then deleted must not move anybody's position.
		gone := slices.Concat(events[3:4], events[len(events)-4:])
		for _, id := range gone {
			from.exec(t, fmt.Sprintf("DELETE FROM formsvc_events WHERE id = '%s'", id))
		}
		_, err := moved(t, from, to, nil)
		must(t, err)
		w.with(t, to, func(svc *formsvc.Service) {
			if _, err := svc.Keys.Authenticate(t.Context(), w.key); err != nil {
				t.Errorf("the key: %v", err)
			}
			for status, want := range map[string]int64{"": 15, "completed": 5, "pending": 10} {
				q := formsvc.ResponseQuery{AccountID: w.account, CampaignID: w.campaign}
				if status != "" {
					q.Filter.Status = []string{status}
				}
				page, err := svc.Responses.List(t.Context(), q)
				must(t, err)
				if int64(page.Total) != want || len(page.Items) != int(want) {
					t.Errorf("%d responses of %d are %q, want %d", len(page.Items), page.Total, status, want)
				}
			}
		})
		w.respond(t, to, 4)
		w.with(t, to, func(svc *formsvc.Service) {
			fresh := w.page(t, svc, positions[len(positions)-1], formsvc.MaxLimit)
			if len(fresh.Items) != 8 { // two of them completed, with two more events each
				t.Errorf("after all that was read are %d events, want 8", len(fresh.Items))
			}
			for i, at := range positions {
				var want []formsvc.ID
				for _, id := range events[i:] {
					if !slices.Contains(gone, id) {
						want = append(want, id)
					}
				}
				for _, e := range fresh.Items {
					want = append(want, e.ID)
				}
				var got []formsvc.ID
				for _, e := range w.page(t, svc, at, formsvc.MaxLimit).Items {
					got = append(got, e.ID)
				}
				if !slices.Equal(got, want) {
					t.Errorf("after position %d, %v:\n%v, want\n%v", i, at, got, want)
				}
			}
		})
		counted(t, to)
	})
}

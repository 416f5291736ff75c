package postgres_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/webhook"
)

// begun starts a transaction of a host that has a transaction number, and a snapshot if it
// is isolated, and returns a service inside it.
func (f *feed) begun(isolation sql.IsolationLevel) (*sql.Tx, *formsvc.Service) {
	f.Helper()
	tx := must(f.db.DB.BeginTx(f.Context(), &sql.TxOptions{Isolation: isolation}))
	noError(f, tx.QueryRowContext(f.Context(), "SELECT pg_current_xact_id()::text").Scan(new(string)))
	bound := must(postgres.Bind(tx, nil))
	return tx, f.svc.With(bound)
}

func (f *feed) withFiles() {
	f.Helper()
	svc := must(formsvc.New(f.store, &formsvc.Options{Blobs: memblob.New()}))
	f.svc = svc
}

func (f *feed) key(response formsvc.ID) formsvc.ResponseKey {
	return formsvc.ResponseKey{AccountID: f.account, CampaignID: f.campaign, ID: response}
}

// move sets the status of a response.
func (f *feed) move(svc *formsvc.Service, key formsvc.ResponseKey, status string) error {
	_, err := svc.Responses.Update(f.Context(), key, formsvc.ResponsePatch{Status: &status})
	return err
}

func (f *feed) upload(svc *formsvc.Service, key formsvc.ResponseKey) error {
	_, err := svc.Files.Upload(f.Context(), key, formsvc.FileInput{Name: "a.txt", Content: strings.NewReader("a")})
	return err
}

func (f *feed) sign(svc *formsvc.Service, key formsvc.ResponseKey) error {
	_, err := svc.Signatures.Create(f.Context(), key, formsvc.SignatureInput{Signer: formsvc.User{Email: "a@example.com"}})
	return err
}

// An envelope is the part of an event's payload that the tests check.
type envelope struct {
	Event string `json:"event"`
	Data  struct {
		PreviousStatus string `json:"previousStatus"`
		Response       struct {
			Status    string    `json:"status"`
			UpdatedAt time.Time `json:"updatedAt"`
		} `json:"response"`
	} `json:"data"`
}

// wantOneHistory fails the test unless each event continues from the state that the
// previous one left: its status, and an updated time that never decreases.
func (f *feed) wantOneHistory(events []formsvc.Event) {
	f.Helper()
	status, updated, wrong := "pending", time.Time{}, 0
	for i := range events {
		var e envelope
		noError(f, json.Unmarshal(events[i].Payload, &e))
		r := &e.Data.Response
		before := r.Status
		if e.Event == "response.status_changed" {
			before = e.Data.PreviousStatus
		}
		if before != status || r.UpdatedAt.Before(updated) {
			wrong++
		}
		status, updated = r.Status, r.UpdatedAt
	}
	if wrong > 0 {
		f.Errorf("%d of %d events are not in the order of the changes", wrong, len(events))
	}
}

// undoneByOthers reports whether the server rolled back an isolated transaction, which
// must be retried.
func undoneByOthers(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (e.Code == "40001" || e.Code == "40P01")
}

// 50 clients change one response, through the service and in transactions of hosts that
// have written before, at every isolation level. The feed has the changes in their order,
// and a reader meanwhile sees each of them once.
func TestFeedOrdersChangesOfOneResponse(t *testing.T) {
	t.Parallel()
	f := newFeed(t)
	f.withFiles()
	f.db.SetMaxOpenConns(12)
	key := f.key(f.add(f.svc))
	var clients sync.WaitGroup
	for i := range 50 {
		random := rand.New(rand.NewPCG(2, uint64(i)))
		isolation := []sql.IsolationLevel{0, 0, 0, sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable}[i%6]
		clients.Go(func() {
			for n := range 4 {
				change := func(svc *formsvc.Service) error { return f.move(svc, key, fmt.Sprintf("client-%d-%d", i, n)) }
				switch random.IntN(6) {
				case 0:
					change = func(svc *formsvc.Service) error { return f.upload(svc, key) }
				case 1:
					change = func(svc *formsvc.Service) error { return f.sign(svc, key) }
				}
				if isolation == 0 {
					if err := change(f.svc); err != nil {
						t.Error(err)
					}
					continue
				}
				f.host(isolation, change)
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		clients.Wait()
		close(ended)
	}()
	var seen []formsvc.Event
	q := formsvc.EventQuery{AccountID: f.account, Limit: 7}
	look := func() {
		page := must(f.svc.Events.List(t.Context(), q))
		seen, q.After = append(seen, page.Items...), page.Next
	}
	for changing := true; changing; {
		select {
		case <-ended:
			changing = false
		default:
		}
		look()
	}
	noError(t, f.move(f.svc, key, "last"))
	for len(seen) < 202 { // the feed waits for transactions of other tests
		look()
	}
	f.wantOneHistory(seen)
	about := must(f.svc.Events.About(t.Context(), key, 300))
	for name, list := range map[string][]formsvc.Event{"about the response": about, "of all accounts": f.whole()} {
		if !slices.EqualFunc(list, seen, func(a, b formsvc.Event) bool { return a.ID == b.ID }) {
			t.Errorf("%d events %s are not the %d of the feed in their order", len(list), name, len(seen))
		}
	}
	noError(t, f.svc.Responses.Delete(t.Context(), key, nil))
	whole := f.whole()
	for len(whole) < 203 { // the feed waits for transactions of other tests
		whole = f.whole()
	}
	if last := whole[202]; last.Type != webhook.ResponseDeleted {
		t.Errorf("the last event is %s", last.Type)
	}
	f.wantOneHistory(whole[:202])
}

// host makes a change in a transaction of a host, retrying it until the server accepts
// it.
func (f *feed) host(isolation sql.IsolationLevel, change func(*formsvc.Service) error) {
	f.Helper()
	for {
		tx, svc := f.begun(isolation)
		err := change(svc)
		if err == nil {
			err = tx.Commit()
		}
		if err == nil {
			return
		}
		_ = tx.Rollback()
		if !undoneByOthers(err) {
			f.Error(err)
			return
		}
	}
}

// whole returns the feed of all accounts.
func (f *feed) whole() (events []formsvc.Event) {
	f.Helper()
	for q := (formsvc.EventQuery{}); ; {
		page := must(f.store.AllEvents(f.Context(), q))
		events, q.After = append(events, page.Items...), page.Next
		if !page.More {
			return events
		}
	}
}

// A host's transaction changes a response to which another client added something after
// the transaction's snapshot. Its event would come first in the feed, so the server must
// roll it back.
func TestChangeFromOldSnapshotIsRolledBack(t *testing.T) {
	t.Parallel()
	f := newFeed(t)
	f.withFiles()
	for _, isolation := range []sql.IsolationLevel{sql.LevelRepeatableRead, sql.LevelSerializable} {
		for name, add := range map[string]func(*formsvc.Service, formsvc.ResponseKey) error{"a file": f.upload, "a signature": f.sign} {
			key := f.key(f.add(f.svc))
			tx, svc := f.begun(isolation)
			noError(t, add(f.svc, key))
			if err := f.move(svc, key, "late"); !undoneByOthers(err) || !errors.Is(err, formsvc.ErrUnavailable) {
				t.Errorf("%v beside %s: error %v, want that of a transaction to begin again", isolation, name, err)
			}
			noError(t, tx.Rollback())
		}
	}
}

package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// stocked is a store with a campaign that accepts responses.
type stocked struct {
	handle

	svc      *formsvc.Service
	account  formsvc.ID
	campaign formsvc.ID
}

func stock(t testing.TB, s handle, responses int) *stocked {
	t.Helper()
	svc, c := newService(t, s)
	f := &stocked{s, svc, c.AccountID, c.ID}
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for range responses / 32 {
				f.submit(t)
			}
		})
	}
	wg.Wait()
	return f
}

func (f *stocked) submit(t testing.TB) formsvc.ID {
	r, err := f.svc.Responses.Create(context.Background(), formsvc.CampaignKey{AccountID: f.account, ID: f.campaign}, formsvc.ResponseInput{
		User: formsvc.User{Email: "ada@example.com"}, Answers: []formsvc.Answer{{Name: "a", Value: []string{fmt.Sprintf("%0200d", 1)}}},
	})
	if err != nil {
		t.Error(err)
	}
	return r.ID
}

// A copy made while others write is sound and has everything that was acknowledged before
// it began, with no partial writes.
func TestBackupBesideWriters(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := stock(t, open(t, filepath.Join(dir, "forms ?#%.db"), nil), 3200)
	var (
		writers sync.WaitGroup
		stop    atomic.Bool
		mu      sync.Mutex
		before  []formsvc.ID // acknowledged
	)
	for range 8 {
		writers.Go(func() {
			for !stop.Load() {
				id := f.submit(t)
				mu.Lock()
				before = append(before, id)
				mu.Unlock()
			}
		})
	}
	defer func() {
		stop.Store(true)
		writers.Wait()
	}()
	for n := range 3 {
		mu.Lock()
		promised := append([]formsvc.ID(nil), before...)
		mu.Unlock()
		path := filepath.Join(dir, fmt.Sprintf("copy ?#%d.db", n))
		noError(t, f.Backup(t.Context(), path))
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the copy is %v, %v", info, err)
		}
		check(t, raw(t, (&url.URL{Path: path}).EscapedPath()), promised)
	}
	if err := f.Backup(t.Context(), filepath.Join(dir, "copy ?#0.db")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a second copy to the same file: %v", err)
	}
}

func check(t *testing.T, db *bun.DB, promised []formsvc.ID) {
	t.Helper()
	var verdict string
	if err := db.QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Fatalf("integrity_check: %s, %v", verdict, err)
	}
	var responses, events, counted int
	noError(t, db.QueryRowContext(t.Context(), "SELECT (SELECT count(*) FROM formsvc_responses), "+
		"(SELECT count(*) FROM formsvc_events), (SELECT sum(responses) FROM formsvc_counters)").Scan(&responses, &events, &counted))
	if responses != events || responses != counted || responses < 3200+len(promised) {
		t.Errorf("%d responses, %d events, a count of %d; %d were promised", responses, events, counted, 3200+len(promised))
	}
	rows, err := db.QueryContext(t.Context(), "SELECT id FROM formsvc_responses")
	noError(t, err)
	defer func() { _ = rows.Close() }()
	stored := make(map[formsvc.ID]bool, responses)
	for rows.Next() {
		var id bunstore.ID
		noError(t, rows.Scan(&id))
		stored[formsvc.ID(id)] = true
	}
	noError(t, rows.Err())
	for _, id := range promised {
		if !stored[id] {
			t.Fatalf("response %s is not in the copy", id)
		}
	}
}

// A cancelled backup, or one to a missing directory, leaves no file behind.
func TestFailedBackupLeavesNoFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := stock(t, open(t, filepath.Join(dir, "forms.db"), nil), 6400) // several steps
	ctx, cancel := context.WithCancel(t.Context())
	path := filepath.Join(dir, "copy.db")
	cancel()
	if err := f.Backup(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("a backup that was given up: %v", err)
	}
	if left, _ := filepath.Glob(path + "*"); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
	if err := f.Backup(t.Context(), filepath.Join(dir, "missing", "copy.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a backup to nowhere: %v", err)
	}
}

// A reader that had read more of the feed than was restored sees later events.
func TestRestoredFeed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := stock(t, open(t, filepath.Join(dir, "forms.db"), nil), 32)
	path := filepath.Join(dir, "copy.db")
	noError(t, f.Backup(t.Context(), path))
	f.submit(t) // lost, but already read
	page, err := f.svc.Events.List(t.Context(), formsvc.EventQuery{AccountID: f.account, Limit: formsvc.MaxLimit})
	if err != nil || len(page.Items) != 33 {
		t.Fatalf("%d events, %v", len(page.Items), err)
	}
	back := &stocked{handle: open(t, path, nil), account: f.account, campaign: f.campaign}
	back.svc = must(formsvc.New(back, nil))
	noError(t, back.Restored(t.Context()))
	id := back.submit(t)
	news, err := back.svc.Events.List(t.Context(), formsvc.EventQuery{AccountID: f.account, After: page.Next})
	if err != nil || len(news.Items) != 1 || news.Items[0].ResponseID != id {
		t.Errorf("after the restore the reader sees %d events, %v; want that of %s", len(news.Items), err, id)
	}
}

// A backup of a caller's database uses a connection of the caller's pool.
func TestBackupOfTheCallersDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := must(sql.Open("sqlite", sqlite.DSN(filepath.Join(dir, "callers.db"))))
	t.Cleanup(func() { _ = db.Close() })
	own := must(sqlite.OpenDB(t.Context(), db, nil))
	t.Cleanup(func() { _ = own.Close() })
	f := stock(t, handle{own, ""}, 3200)
	path := filepath.Join(dir, "copy.db")
	noError(t, f.Backup(t.Context(), path))
	check(t, raw(t, path), nil)
	f.submit(t) // the connection is back, and out of its transaction
}

// CheckIntegrity finds a damaged page.
func TestCheckIntegrity(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forms.db")
	f := stock(t, open(t, path, nil), 320)
	if err := f.CheckIntegrity(t.Context()); err != nil {
		t.Errorf("of a sound database: %v", err)
	}
	noError(t, f.Close())
	if err := f.CheckIntegrity(t.Context()); !errors.Is(err, formsvc.ErrStoreClosed) {
		t.Errorf("after Close: %v", err)
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	noError(t, err)
	_, err = file.WriteAt(make([]byte, 4096), 40*4096)
	noError(t, errors.Join(err, file.Close()))
	if err := open(t, path, nil).CheckIntegrity(t.Context()); !errors.Is(err, sqlite.ErrCorrupt) {
		t.Errorf("of a damaged one: %v", err)
	}
}

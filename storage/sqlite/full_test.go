package sqlite

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/uptrace/bun"

	"github.com/formsvc/toolkit/formsvc"
)

// The database may not grow, which is a full disk to SQLite. Writes that don't fit fail
// and leave nothing, and work again when there is room.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	s := must(Open(t.Context(), filepath.Join(t.TempDir(), "forms.db"), nil))
	t.Cleanup(func() { _ = s.Close() })
	svc := must(formsvc.New(s, nil))
	account := must(svc.Accounts.Create(t.Context(), "a"))
	c := must(svc.Campaigns.Create(t.Context(), account.ID, formsvc.CampaignInput{Title: "c"}))
	create := func() error {
		_, err := svc.Responses.Create(t.Context(), c.Key(), formsvc.ResponseInput{
			User:    formsvc.User{Email: "a@example.com"},
			Answers: []formsvc.Answer{{Name: "q", Value: []string{strings.Repeat("x", 100_000)}}},
		})
		return err
	}
	s.limitPages(t, "1") // at least its current size
	var all sync.WaitGroup
	for range 8 { // concurrently, and so in groups
		all.Go(func() {
			err := create()
			if !errors.Is(err, formsvc.ErrNoSpace) || errors.Is(err, formsvc.ErrUnavailable) || errors.Is(err, formsvc.ErrUnknownOutcome) {
				t.Errorf("a write without room: %v, want ErrNoSpace", err)
			}
		})
	}
	all.Wait()
	s.limitPages(t, "1000000")
	if err := create(); err != nil {
		t.Errorf("a write when there is room again: %v", err)
	}
	got, err := svc.Responses.List(t.Context(), formsvc.ResponseQuery{AccountID: account.ID, CampaignID: c.ID})
	if err != nil || got.Total != 1 || len(got.Items) != 1 {
		t.Errorf("%d responses, total %d (%v), want 1", len(got.Items), got.Total, err)
	}
}

// limitPages sets the maximum size of the database.
func (s *Store) limitPages(t *testing.T, pages string) {
	t.Helper()
	noError(t, s.tx.Run(t.Context(), func(_ context.Context, c bun.IConn) error {
		var most int
		return c.QueryRowContext(t.Context(), "PRAGMA max_page_count = "+pages).Scan(&most)
	}))
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

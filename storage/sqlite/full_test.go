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

// TestFull has a database that may not grow anymore, which is to SQLite what a
// full disk is: what does not fit fails and leaves nothing, and when there is
// room again all goes on.
func TestFull(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "forms.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	svc, err := formsvc.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	account, err := svc.Accounts.Create(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	c, err := svc.Campaigns.Create(t.Context(), account.ID, formsvc.CampaignInput{Title: "c"})
	if err != nil {
		t.Fatal(err)
	}
	create := func() error {
		_, err := svc.Responses.Create(t.Context(), c.Key(), formsvc.ResponseInput{
			User:    formsvc.User{Email: "a@example.com"},
			Answers: []formsvc.Answer{{Name: "q", Value: []string{strings.Repeat("x", 100_000)}}},
		})
		return err
	}
	s.limitPages(t, "1") // not less than it has
	var all sync.WaitGroup
	for range 8 { // together, and so in groups
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

// limitPages sets how large the database may become.
func (s *Store) limitPages(t *testing.T, pages string) {
	t.Helper()
	if err := s.tx.Run(t.Context(), func(_ context.Context, c bun.IConn) error {
		var most int
		return c.QueryRowContext(t.Context(), "PRAGMA max_page_count = "+pages).Scan(&most)
	}); err != nil {
		t.Fatal(err)
	}
}

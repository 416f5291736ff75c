package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// TestOneTaskForEachResponse stops the program repeatedly while responses come in.
func TestOneTaskForEachResponse(t *testing.T) {
	db := must(sql.Open("sqlite", sqlite.DSN(filepath.Join(t.TempDir(), "app.db"))))
	defer func() { _ = db.Close() }()
	store := must(sqlite.OpenDB(t.Context(), db, nil))
	forms := must(formsvc.New(store, nil))
	var campaigns []formsvc.Campaign
	for _, tenant := range []string{"a", "b"} {
		account := must(forms.Accounts.Ensure(t.Context(), tenant))
		c := must(forms.Campaigns.Create(t.Context(), account, formsvc.CampaignInput{Title: tenant}))
		campaigns = append(campaigns, c)
	}
	const rounds, each = 8, 5
	for round := range rounds {
		if err := setUp(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- follow(ctx, db, forms) }()
		for i := range each {
			c := campaigns[i%2]
			must(forms.Responses.Create(t.Context(), c.Key(), formsvc.ResponseInput{
				User: formsvc.User{Email: "ada@example.com"},
			}))
		}
		for guard := time.Now().Add(2 * time.Minute); round == rounds-1 && count(t, db, "tasks") < rounds*each && time.Now().Before(guard); {
			runtime.Gosched()
		}
		cancel() // in the middle of it, or before it has begun, except in the last round
		// A transaction whose context has ended fails with ErrTxDone if database/sql has rolled it back already.
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, sql.ErrTxDone) {
			t.Error(err)
		}
	}
	if all, distinct := count(t, db, "tasks"), count(t, db, "(SELECT DISTINCT response FROM tasks)"); all != rounds*each || distinct != all {
		t.Errorf("%d tasks for %d responses, want %d", all, distinct, rounds*each)
	}
	if n := count(t, db, "tasks WHERE title = 'answer ada@example.com'"); n != rounds*each {
		t.Errorf("%d tasks have the title, want all", n)
	}
}

func count(t *testing.T, db *sql.DB, from string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

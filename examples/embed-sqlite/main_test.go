package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

func TestServesUnderItsPrefix(t *testing.T) {
	dir := t.TempDir()
	key := firstKey(t, dir+"/forms.db")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx, l, dir) }()

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Addr().String()+"/forms/v1/campaigns",
		strings.NewReader(`{"title":"Hello"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err, <-done)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusCreated || !strings.HasPrefix(res.Header.Get("Location"), "/forms/v1/campaigns/") {
		t.Errorf("status %d, Location %q", res.StatusCode, res.Header.Get("Location"))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir + "/files"); err != nil {
		t.Error(err)
	}
}

// firstKey creates an account with a key, as "formsvc keys create" does.
func firstKey(t *testing.T, path string) string {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	forms, err := formsvc.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, key, err := forms.Accounts.CreateWithKey(t.Context(), "example", formsvc.KeyInput{
		Name: "first", Permissions: formsvc.AllPermissions(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return key.Value
}

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

func open(t testing.TB, path string) *metered {
	t.Helper()
	kept, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	return &metered{Store: kept}
}

func TestStatsShowStoredResponses(t *testing.T) {
	store := open(t, filepath.Join(t.TempDir(), "forms.db"))
	server, err := newServer(store)
	if err != nil {
		t.Fatal(err)
	}
	forms, err := formsvc.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	account, key, err := forms.Accounts.CreateWithKey(t.Context(), "a", formsvc.KeyInput{Name: "k", Permissions: formsvc.AllPermissions()})
	if err != nil {
		t.Fatal(err)
	}
	c, err := forms.Campaigns.Create(t.Context(), account.ID, formsvc.CampaignInput{Title: "c"})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/forms/v1/campaigns/"+string(c.ID)+"/responses",
			strings.NewReader(`{"user":{"email":"a@example.com"},"responses":{}}`))
		r.Header.Set("Authorization", "Bearer "+key.Value)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		if server.ServeHTTP(w, r); w.Code != http.StatusCreated {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/stats", nil))
	var stats map[string]int64
	if err := json.Unmarshal(w.Body.Bytes(), &stats); err != nil || stats["create calls"] != 3 || stats["create microseconds"] <= 0 {
		t.Errorf("GET /stats: %s (%v)", w.Body, err)
	}
}

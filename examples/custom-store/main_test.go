package main

import (
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

func open(t testing.TB) *metered {
	t.Helper()
	kept, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "forms.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	return &metered{Store: kept}
}

func TestStatsShowStoredResponses(t *testing.T) {
	store := open(t)
	server, err := newServer(store)
	if err != nil {
		t.Fatal(err)
	}
	forms, _ := formsvc.New(store, nil) // can't fail where newServer didn't
	account, err := forms.Accounts.Create(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	c, err := forms.Campaigns.Create(t.Context(), account.ID, formsvc.CampaignInput{Title: "c"})
	for range 3 {
		if err == nil {
			_, err = forms.Responses.Create(t.Context(), c.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}})
		}
	}
	w := httptest.NewRecorder()
	server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/stats", nil))
	var stats map[string]int64
	if json.Unmarshal(w.Body.Bytes(), &stats) != nil || err != nil || stats["calls"] != 3 || stats["microseconds"] <= 0 {
		t.Errorf("GET /stats: %s (%v)", w.Body, err)
	}
}

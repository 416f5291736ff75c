package peers

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/benchtest"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/pocketbase"
	"github.com/formsvc/toolkit/cmd/formbench/internal/result"
)

// TestPocketHoldsReportsLosses checks that a missing acknowledged record is noticed, and one that was never
// acknowledged.
func TestPocketHoldsReportsLosses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p := &runner{Bench: &bench.Bench{Log: io.Discard}}
	p.Dir, p.PeerProgram = t.TempDir(), benchtest.Peers(t)
	s, err := p.newPocket(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.fill(ctx, 30); err != nil {
		t.Fatal(err)
	}
	for answered, lost := range map[int]bool{29: true, 30: false, 31: true} {
		if err := s.holds(ctx, answered, pocketbase.Responses); (err != nil) != lost {
			t.Errorf("%d acknowledged of 30: %v", answered, err)
		}
	}
	files := &pocketFileScene{s}
	if err := files.Holds(ctx, 0); err != nil {
		t.Error(err)
	}
	if err := os.MkdirAll(filepath.Join(s.dir, "storage"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "storage", "stray"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := files.Holds(ctx, 0); err == nil {
		t.Error("a file without a record is not noticed")
	}
}

// TestPocketbase checks that the peer works in the compared settings.
func TestPocketbase(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	p := &runner{Bench: &bench.Bench{Log: os.Stderr}}
	p.Dir, p.PeerProgram = t.TempDir(), benchtest.Peers(t)
	s, err := p.newPocket(ctx)
	if err != nil {
		t.Fatal(err)
	}
	srv, err := p.startPocket(ctx, &result.Cell{Key: result.Key{System: bench.BatchSystem}}, s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		collection, token string
		status            int
	}{
		{pocketbase.Responses, "", http.StatusOK},
		{pocketbase.Private, srv.Token, http.StatusOK},
		{pocketbase.Private, "", http.StatusForbidden},
		{pocketbase.Private, srv.Token + "x", http.StatusForbidden},
	} {
		work, err := createPocket(ctx, c.collection, c.token)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := loadgen.Ask(ctx, srv.Addr, work.Requests[0], c.status); err != nil {
			t.Errorf("%s with the token %.10q: %v", c.collection, c.token, err)
		}
	}
	batch, err := batchPocket(ctx, "", "")
	if err != nil {
		t.Fatal(err)
	}
	body, err := loadgen.Ask(ctx, srv.Addr, batch.Requests[0], batch.Status)
	if err != nil {
		t.Fatal(err)
	}
	var parts []struct{ Status int }
	if err := json.Unmarshal(body, &parts); err != nil || len(parts) != 3 ||
		slices.ContainsFunc(parts, func(p struct{ Status int }) bool { return p.Status != http.StatusOK }) {
		t.Errorf("the batch is answered with %s", body)
	}
	if err := srv.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := s.holds(ctx, 1, pocketbase.Events, pocketbase.Deliveries, pocketbase.Private); err != nil {
		t.Error(err)
	}
	if err := s.holds(ctx, 2, pocketbase.Responses); err != nil {
		t.Error(err)
	}
}

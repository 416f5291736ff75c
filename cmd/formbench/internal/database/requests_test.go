package database

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
)

// TestKeyedCreatesHaveUniqueKeys checks that no two requests have the same idempotency key: a replay costs less than
// the measured create.
func TestKeyedCreatesHaveUniqueKeys(t *testing.T) {
	t.Parallel()
	w := InventedWorld()
	load, err := w.KeyedCreates()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	var buf []byte
	for i := range 500 {
		for conn := range 3 {
			buf = load.Fresh(buf, i%len(load.Requests), conn, i)
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(buf)))
			if err != nil {
				t.Fatal(err)
			}
			key := r.Header.Get("Idempotency-Key")
			if len(key) != len(loadgen.SampleKey) || seen[key] {
				t.Fatalf("key %q of request %d on connection %d", key, i, conn)
			}
			seen[key] = true
		}
	}
}

// TestHoldsReportsLostResponse checks that a missing acknowledged response is noticed.
func TestHoldsReportsLostResponse(t *testing.T) {
	t.Parallel()
	db, err := New(t.Context(), bench.SQLiteStore, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w, err := db.NewAccount(t.Context())
	if err == nil {
		w, err = db.WithWebhook(t.Context(), w)
	}
	if err != nil || db.Holds(t.Context(), w, 0, 1) != nil || db.Holds(t.Context(), w, 1, 1) == nil {
		t.Errorf("a loss is not noticed, or there is none, %v", err)
	}
}

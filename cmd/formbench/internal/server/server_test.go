package server_test

import (
	"bytes"
	"os"
	"regexp"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/database"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// TestCeilingMatchesAPI checks that the ceiling's responses have the same length and fields as the API's.
func TestCeilingMatchesAPI(t *testing.T) {
	t.Parallel()
	const n = 300
	ctx := t.Context()
	db, err := database.New(ctx, bench.SQLiteStore, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	mine, err := db.NewAccount(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if mine, err = db.WithResponses(ctx, mine, n); err != nil {
		t.Fatal(err)
	}
	theirs := database.InventedWorld()
	api := serveHere(t, server.Config{System: bench.APISystem, DSN: db.DSN})
	ceiling := serveHere(t, server.Config{System: bench.CeilingSystem, Responses: n})

	reads := []struct{ mine, theirs loadgen.Workload }{{mine.Gets(n), theirs.Gets(n)}, {mine.List(), theirs.List()}}
	for _, read := range reads {
		for i := range read.mine.Requests {
			got, want := answer(t, ceiling, read.theirs, i), answer(t, api, read.mine, i)
			if same := scrubbed(got) == scrubbed(want); !same || len(got) != len(want) {
				t.Fatalf("the ceiling answers\n%s\nthe API\n%s", got, want)
			}
		}
	}
	create, err := mine.Creates()
	if err != nil {
		t.Fatal(err)
	}
	if size := bytes.Index(create.Requests[0], []byte("\r\n\r\n")); len(create.Requests[0])-size-4 < 450 {
		t.Errorf("a body of %d bytes is too small to be realistic", len(create.Requests[0])-size-4)
	}
	for i := range create.Requests {
		got, want := answer(t, ceiling, create, i), answer(t, api, create, i)
		if scrubbed(got) != scrubbed(want) || len(got) != len(want) {
			t.Fatalf("the ceiling answers\n%s\nthe API\n%s", got, want)
		}
	}
}

func serveHere(t *testing.T, cfg server.Config) (addr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.Start(t.Context(), self, cfg, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Stop() })
	return srv.Addr
}

func answer(t *testing.T, addr string, w loadgen.Workload, i int) string {
	t.Helper()
	body, err := loadgen.Ask(t.Context(), addr, w.Requests[i], w.Status)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// scrubbed replaces values that differ in every run, and keeps their length.
func scrubbed(body string) string {
	for _, member := range []string{"uuid", "reference", "createdAt", "updatedAt", "campaignUuid", "nextCursor"} {
		body = regexp.MustCompile(`"`+member+`":"[^"]*"`).ReplaceAllString(body, `"`+member+`":""`)
	}
	return body
}

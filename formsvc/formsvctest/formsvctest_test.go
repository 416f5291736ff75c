package formsvctest_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/formsvctest"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook"
)

// A host's rule, its clock and its events, as a test of a host would check them.
func TestService(t *testing.T) {
	t.Parallel()
	svc := formsvctest.New(t, nil)
	c := svc.Campaign(formsvc.Module{Name: "cv", Type: formsvc.FileModule}, formsvc.Module{Name: "name", Required: true})
	r := svc.Response(c, formsvc.Answer{Name: "name", Value: []string{"Ada"}})
	if !r.CreatedAt.Equal(svc.Now()) || r.CreatedAt.Year() != 2026 || c.FormToken == "" {
		t.Errorf("created at %v in %+v", r.CreatedAt, c)
	}
	svc.Advance(time.Hour)
	if _, err := svc.Files.Upload(t.Context(), r.Key(), formsvc.FileInput{Content: strings.NewReader("a")}); err != nil {
		t.Error(err)
	}
	wantEvents(t, svc, "response.created of Ada after 0s", "file.uploaded of Ada after 1h0m0s")
	wantEvents(t, svc)
	if _, err := svc.Responses.Update(t.Context(), r.Key(), formsvc.ResponsePatch{FirstName: new("Eve")}); err != nil {
		t.Error(err)
	}
	wantEvents(t, svc, "response.updated of Eve after 1h0m0s")
	svc.Set(r.CreatedAt.AddDate(1, 0, 0))
	if p, err := svc.Keys.Authenticate(t.Context(), svc.Key()); err != nil || p.AccountID != svc.AccountID || !p.May(formsvc.FilesRead) {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := svc.Keys.Authenticate(t.Context(), svc.Key(formsvc.ResponsesRead)); err != nil || p.May(formsvc.FilesRead) {
		t.Errorf("%+v, %v", p, err)
	}
}

func wantEvents(t *testing.T, svc *formsvctest.Service, want ...string) {
	t.Helper()
	var got []string
	for _, e := range svc.Events() {
		got = append(got, fmt.Sprintf("%s of %s after %v", e.Type, e.Data.Response.User.FirstName, e.Timestamp.Sub(e.Data.Response.CreatedAt)))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("events %q, want %q", got, want)
	}
}

// Every event is returned once, also if there are more than a page has.
func TestEventsOfManyPages(t *testing.T) {
	t.Parallel()
	svc := formsvctest.New(t, nil)
	c, n := svc.Campaign(), 0
	for range formsvc.MaxLimit + 2 {
		svc.Response(c)
	}
	for _, e := range svc.Events() {
		if e.Type == webhook.ResponseCreated {
			n++
		}
	}
	if n != formsvc.MaxLimit+2 || len(svc.Events()) != 0 {
		t.Errorf("%d events", n)
	}
}

// A service on a store of the test's own, with a rule that is asked in the host's transaction.
func TestServiceInATransaction(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", sqlite.DSN(filepath.Join(t.TempDir(), "forms.db")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	store, err := sqlite.OpenDB(t.Context(), db, nil)
	if err != nil {
		t.Fatal(err)
	}
	start, asked := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC), 0
	svc := formsvctest.New(t, &formsvctest.Options{Store: store, Start: start, Service: formsvc.Options{
		CheckResponse: func(context.Context, *formsvc.Campaign, *formsvc.Response, *formsvc.Response) error {
			asked++
			return nil
		},
	}})
	c := svc.Campaign()
	if !c.CreatedAt.Equal(start) {
		t.Errorf("created at %v", c.CreatedAt)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := sqlite.Bind(tx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.With(bound).Responses.Create(t.Context(), c.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "ada@example.com"}}); err != nil {
		t.Error(err)
	}
	if err := tx.Commit(); err != nil || asked != 1 {
		t.Errorf("the rule was asked %d times, %v", asked, err)
	}
	wantEvents(t, svc, "response.created of  after 0s")
}

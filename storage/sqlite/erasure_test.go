package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook"
)

// filled fills a store and returns what to erase.
func filled(t *testing.T, s *sqlite.Store) formsvc.EraseQuery {
	t.Helper()
	ctx := t.Context()
	svc, c := newService(t, s)
	_, _, err := svc.Webhooks.Create(ctx, c.AccountID, formsvc.WebhookInput{URL: "https://example.com/", Events: webhook.EventTypes()})
	noError(t, err)
	e := formsvc.EraseQuery{AccountID: c.AccountID}
	for i := range 30 {
		user := formsvc.User{Email: "eve@example.com", LastName: "Unmistakable"}
		long := formsvc.Answer{Name: "q", Value: []string{strings.Repeat("Unmistakable ", 1000)}}
		r := must(svc.Responses.Create(ctx, c.Key(), formsvc.ResponseInput{User: user, Answers: []formsvc.Answer{long}}))
		key := formsvc.ResponseKey{AccountID: c.AccountID, CampaignID: c.ID, ID: r.ID}
		sig := must(svc.Signatures.Create(ctx, key, formsvc.SignatureInput{Signer: user}))
		switch i % 15 {
		case 0:
			e.Responses = append(e.Responses, key)
		case 1:
			e.Signatures, e.RepliesOf = append(e.Signatures, sig.ID), append(e.RepliesOf, r.ID)
		}
	}
	return e
}

// Erased text is in no file of the database afterwards. If a reader still needs the log,
// the erasure succeeds all the same.
func TestErasedTextIsOverwritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forms.db")
	s := open(t, path, nil)
	e := filled(t, s.Store)
	svc := must(formsvc.New(s, nil))
	found := func() (n int) {
		t.Helper()
		for _, file := range []string{path, path + "-wal"} {
			content := must(os.ReadFile(file))
			n += bytes.Count(content, []byte("Unmistakable"))
		}
		return n
	}
	reader := must(raw(t, path).BeginTx(t.Context(), nil))
	if err := s.Scrub(t.Context()); err == nil {
		t.Error("the log was emptied although somebody writes")
	}
	noError(t, reader.Rollback())
	if found() == 0 {
		t.Fatal("INVALID: what is to be erased is not in the files")
	}
	receipt, err := svc.Accounts.ErasePerson(t.Context(), e.AccountID, "eve@example.com")
	if err != nil || receipt.Responses != 30 {
		t.Fatalf("%+v, %v", receipt, err)
	}
	if n := found(); n != 0 {
		t.Errorf("the files have it %d times", n)
	}
	if err := s.Scrub(t.Context()); err != nil {
		t.Errorf("Scrub of an empty log: %v", err)
	}
	if s.Close() != nil {
		t.Error("Close")
	}
	if err := s.Scrub(t.Context()); err == nil {
		t.Error("Scrub after Close")
	}
}

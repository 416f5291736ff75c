package sqlite_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/sqlite"
)

// Look counts the records of a file of any release without changing it.
func TestLook(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forms.db")
	if _, err := sqlite.Look(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	s := open(t, path, nil)
	svc, err := formsvc.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantContents(t, path, sqlite.Contents{})
	account, err := svc.Accounts.Create(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	wantContents(t, path, sqlite.Contents{}) // as the first start leaves it
	for n := range int64(2) {
		c, err := svc.Campaigns.Create(t.Context(), account.ID, formsvc.CampaignInput{Title: "c"})
		if err != nil {
			t.Fatal(err)
		}
		for range n + 2 {
			in := formsvc.ResponseInput{User: formsvc.User{Email: "a@example.com"}}
			if _, err := svc.Responses.Create(t.Context(), c.Key(), in); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.BarFiles(t.Context(), []formsvc.ID{formsvc.NewID(account.CreatedAt)}); err != nil { // not a file
		t.Fatal(err)
	}
	want := sqlite.Contents{Campaigns: 2, Responses: 5}
	wantContents(t, path, want) // while it is open
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := statement("DROP TABLE formsvc_identity")(path); err != nil { // earlier releases don't have this table
		t.Fatal(err)
	}
	before := content(t, path)
	wantContents(t, path, want)
	if content(t, path) != before {
		t.Error("looking changed the file")
	}

	other := filepath.Join(t.TempDir(), "other.db")
	if err := statement("CREATE TABLE formsvc_campaigns (a TEXT)")(other); err != nil {
		t.Fatal(err)
	}
	wantContents(t, other, sqlite.Contents{})
	if err := os.WriteFile(other, []byte(strings.Repeat("no database ", 999)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Look(t.Context(), other); err == nil {
		t.Error("what is no database was no error")
	}
}

func wantContents(t *testing.T, path string, want sqlite.Contents) {
	t.Helper()
	if got, err := sqlite.Look(t.Context(), path); err != nil || got != want {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

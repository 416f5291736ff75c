package sqlite_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/sqlitedialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage"
	"github.com/formsvc/toolkit/storage/internal/sqltest"
	"github.com/formsvc/toolkit/storage/keyring"
	"github.com/formsvc/toolkit/storage/sqlite"
)

func TestSQL(t *testing.T) {
	t.Parallel()
	sqltest.Run(t, func(t testing.TB) sqltest.Database {
		path := filepath.Join(t.TempDir(), "forms.db")
		return sqltest.Database{
			DB: raw(t, path),
			Open: func(t testing.TB) sqltest.Store {
				return open(t, path, &sqlite.Options{SkipMigrations: true})
			},
			OpenWith: func(t testing.TB, ring *keyring.Keyring) (sqltest.Store, error) {
				s, err := sqlite.Open(t.Context(), path, &sqlite.Options{Keyring: ring})
				if err == nil {
					t.Cleanup(func() { _ = s.Close() })
				}
				return s, err
			},
			Bind: func(tx storage.Tx, ring *keyring.Keyring) (formsvc.Store, error) {
				return sqlite.Bind(tx, &sqlite.Options{Keyring: ring})
			},
			Poison: `CREATE TRIGGER poison BEFORE INSERT ON formsvc_responses WHEN NEW.reference = 'POISON'
				BEGIN SELECT RAISE(ABORT, 'poison'); END`,
		}
	})
}

func raw(t testing.TB, path string) *bun.DB {
	t.Helper()
	db := must(sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_txlock=immediate"))
	t.Cleanup(func() { _ = db.Close() })
	return bun.NewDB(db, sqlitedialect.New())
}

// Another process holds the write lock for longer than the store waits: a write fails as
// unavailable and leaves nothing. Reads work, also of a store that is opened meanwhile.
func TestBusy(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forms.db")
	s := open(t, path, &sqlite.Options{BusyTimeout: 50 * time.Millisecond})
	svc := must(formsvc.New(s, nil))
	other := must(raw(t, path).BeginTx(t.Context(), nil))
	if _, err := svc.Accounts.Create(t.Context(), "a"); !errors.Is(err, formsvc.ErrUnavailable) {
		t.Errorf("a write beside a writer: %v, want ErrUnavailable", err)
	}
	for _, s := range []handle{s, open(t, path, &sqlite.Options{BusyTimeout: 50 * time.Millisecond})} {
		if list, err := s.Accounts(t.Context()); err != nil || len(list) != 0 {
			t.Errorf("a read beside a writer: %v, %v", list, err)
		}
		if list, err := s.Migrations(t.Context()); err != nil || list[0].AppliedAt.IsZero() {
			t.Errorf("migrations beside a writer: %v, %v", list, err)
		}
	}
	noError(t, other.Rollback())
	if _, err := svc.Accounts.Create(t.Context(), "a"); err != nil {
		t.Errorf("a write after the other writer: %v", err)
	}
}

func TestFileIsReadableByOwnerOnly(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("no file modes")
	}
	path := filepath.Join(t.TempDir(), "forms.db")
	open(t, path, nil)
	for _, file := range []string{path, path + "-wal"} {
		info := must(os.Stat(file))
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o, want 600", filepath.Base(file), mode)
		}
	}
}

// The index of addresses has parts of 4,096 responses, and a search finds those of all parts.
func TestPartsOfAddresses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "forms.db")
	svc, c := newService(t, open(t, path, nil))
	db := raw(t, path)
	for _, seq := range []int{1, 4095, 4096, 9000} {
		r := must(svc.Responses.Create(t.Context(), c.Key(), formsvc.ResponseInput{User: formsvc.User{Email: "Zoë@example.com"}}))
		must(db.ExecContext(t.Context(), "UPDATE formsvc_responses SET seq = ? WHERE seq = (SELECT max(seq) FROM formsvc_responses)", seq))
		var id string
		if err := db.QueryRowContext(t.Context(), "SELECT response_id FROM formsvc_v1_responses ORDER BY response_id DESC").Scan(&id); err != nil || id != string(r.ID) {
			t.Errorf("the last response is %q as text, %v; want %s", id, err, r.ID)
		}
	}
	page, err := svc.Responses.List(t.Context(), formsvc.ResponseQuery{
		AccountID: c.AccountID, CampaignID: c.ID, Filter: formsvc.ResponseFilter{Email: "ZOË@example.com", AnyCase: true},
		Page: formsvc.PageQuery{Limit: 2, Offset: 2},
	})
	if err != nil || len(page.Items) != 2 || page.Total != 4 {
		t.Errorf("%d responses of %d, %v; want 2 of 4", len(page.Items), page.Total, err)
	}
}

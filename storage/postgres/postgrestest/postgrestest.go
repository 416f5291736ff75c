// Package postgrestest gives each test a Postgres schema of its own in a real server. It
// drops the schema when the test ends.
package postgrestest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // registers the driver "pgx" with database/sql
)

// Env is the environment variable with the URL of the test server. "make test" starts a
// server and sets it.
const Env = "FORMSVC_TEST_POSTGRES"

// DSN creates an empty schema and returns a data source name whose connections use it.
// Without [Env] the test is skipped; under CI=true it fails, so that an untested store
// doesn't look tested.
func DSN(t testing.TB) string {
	t.Helper()
	server := os.Getenv(Env)
	if server == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set, and in CI no database may be skipped: run the tests with \"make test\"", Env)
		}
		t.Skipf("SKIPPED: %s is not set; \"make test\" starts a Postgres and sets it", Env)
	}
	dsn, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s is not a URL", Env)
	}
	db, err := sql.Open("pgx", server)
	if err != nil {
		t.Fatalf("open %s: %v", Env, err)
	}
	schema := "test_" + strings.ToLower(rand.Text())
	if _, err := db.ExecContext(t.Context(), "CREATE SCHEMA "+schema); err != nil {
		t.Fatalf("create a schema: %v", err)
	}
	t.Cleanup(func() {
		if err := drop(db, schema); err != nil {
			t.Errorf("drop the schema: %v", err)
		}
		_ = db.Close()
	})
	q := dsn.Query()
	q.Set("search_path", schema)
	dsn.RawQuery = q.Encode()
	return dsn.String()
}

// drop removes a schema. It locks one table after another, and can deadlock with the last
// statements of a program that was killed; those end soon.
func drop(db *sql.DB, schema string) (err error) {
	for range 10 {
		_, err = db.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE")
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "40P01" { // deadlock_detected
			return err
		}
	}
	return err
}

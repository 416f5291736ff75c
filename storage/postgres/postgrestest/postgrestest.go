// Package postgrestest gives tests a Postgres of their own to work on: a fresh
// schema in a real server, dropped when the test ends.
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

// Env names the environment variable with the URL of the server to test on.
// "make test" starts one and sets it.
const Env = "FORMSVC_TEST_POSTGRES"

// DSN makes an empty schema and returns the data source name of connections
// that work in it. Without [Env] the test is skipped, except under CI=true,
// where it fails: a store that nobody tested must not look tested.
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

// drop removes a schema. It locks one table after the other, and may get into a deadlock
// with what a program that was killed still has under way, which is soon over.
func drop(db *sql.DB, schema string) (err error) {
	for range 10 {
		_, err = db.ExecContext(context.Background(), "DROP SCHEMA "+schema+" CASCADE")
		if e, ok := errors.AsType[*pgconn.PgError](err); !ok || e.Code != "40P01" { // deadlock_detected
			return err
		}
	}
	return err
}

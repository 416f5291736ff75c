package postgrestest_test

import (
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// testAccounts is a test with its own database, which is removed when the test ends. In
// your test file, call it TestAccounts.
func testAccounts(t *testing.T) {
	store, err := postgres.Open(t.Context(), postgrestest.DSN(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	svc, err := formsvc.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Accounts.Create(t.Context(), "Town hall"); err != nil {
		t.Error(err)
	}
}

func ExampleDSN() {
	var t *testing.T // from go test
	testAccounts(t)
}

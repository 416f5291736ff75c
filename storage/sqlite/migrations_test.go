package sqlite_test

import (
	"testing"

	"github.com/formsvc/toolkit/storage/internal/sqltest"
)

// A step that was released is in databases: another text under its number is refused there.
func TestReleasedMigrationsAreNotEdited(t *testing.T) {
	t.Parallel()
	sqltest.Released(t, "migrations")
}

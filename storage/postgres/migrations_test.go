package postgres_test

import (
	"testing"

	"github.com/formsvc/toolkit/storage/internal/sqltest"
)

// Databases have recorded the checksum of each released step, and refuse another text under
// its number.
func TestReleasedMigrationsAreUnchanged(t *testing.T) {
	t.Parallel()
	sqltest.Released(t, "migrations")
}

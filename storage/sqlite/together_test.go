package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/storage/sqlite"
)

// TestOpenTogether opens a file that doesn't exist yet many times at once, as processes
// do that are started together.
func TestOpenTogether(t *testing.T) {
	t.Parallel()
	for range 20 {
		path := filepath.Join(t.TempDir(), "forms.db")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				s, err := sqlite.Open(t.Context(), path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
	}
}

package sqlite_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/formsvc/toolkit/storage/sqlite"
)

// Many calls create and open the same file at once, like processes that start together.
func TestConcurrentOpensOfNewFile(t *testing.T) {
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

//go:build long

package fileblob_test

import (
	"bytes"
	"fmt"
	"io"
	"testing"
	"time"
)

// The time of a blob is when it became visible, even if its reader was slow to end after the last
// bytes.
func TestModTime(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for _, size := range []int{0, 4, 256 << 10} {
		key := fmt.Sprintf("ab/%d", size)
		var ended time.Time
		_, err := s.Put(t.Context(), key, io.MultiReader(bytes.NewReader(make([]byte, size)), funcReader(func() {
			time.Sleep(100 * time.Millisecond)
			ended = time.Now()
		})))
		must(t, err)
		info, err := s.Stat(t.Context(), key)
		must(t, err)
		// File systems truncate times, most of them to less than this.
		if info.ModTime.Before(ended.Add(-20 * time.Millisecond)) {
			t.Errorf("the blob is of %v, and its reader ended at %v", info.ModTime, ended)
		}
	}
}

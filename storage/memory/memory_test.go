package memory_test

import (
	"testing"

	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t testing.TB) storagetest.Store {
		s := memory.New()
		t.Cleanup(func() { _ = s.Close() })
		return s
	}, storagetest.Options{
		Except: map[storagetest.Category]string{
			storagetest.Durability: "it keeps everything in memory",
		},
		Reopen: func(_ testing.TB, s storagetest.Store) storagetest.Store { return s },
	})
}

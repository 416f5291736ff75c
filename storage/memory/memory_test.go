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
	}, storagetest.Options{})
}

//go:build long

package main

import (
	"path/filepath"
	"testing"

	"github.com/formsvc/toolkit/storage/storagetest"
)

func TestConformance(t *testing.T) {
	storagetest.Run(t, func(t testing.TB) storagetest.Store {
		return open(t, filepath.Join(t.TempDir(), "forms.db"))
	}, storagetest.Options{}) // without Reopen: the store inside is tested for that
}

//go:build long

package main

import (
	"testing"

	"github.com/formsvc/toolkit/storage/storagetest"
)

func TestConformance(t *testing.T) {
	// Without Reopen: the store inside is tested for that.
	storagetest.Run(t, func(t testing.TB) storagetest.Store { return open(t) }, storagetest.Options{})
}

//go:build long

package otelformsvc_test

import (
	"path/filepath"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/formsvc/otelformsvc"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/storage/storagetest"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// traced is a store with a span for each call, together with its queue.
type traced struct {
	formsvc.Store
	delivery.Queue

	inner storagetest.Store
	path  string
}

func (s traced) Close() error { return s.inner.Close() }

func trace(t testing.TB, inner storagetest.Store, path string) storagetest.Store {
	t.Cleanup(func() { _ = inner.Close() })
	tracing, _ := record(t)
	return traced{tracing.Store(inner, &otelformsvc.StoreOptions{System: "test", Roots: true}), inner, inner, path}
}

func TestConformanceOfMemory(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, func(t testing.TB) storagetest.Store { return trace(t, memory.New(), "") }, storagetest.Options{
		Except: map[storagetest.Category]string{storagetest.Durability: "it keeps everything in memory"},
		Reopen: func(_ testing.TB, s storagetest.Store) storagetest.Store { return s },
	})
}

func TestConformanceOfSQLite(t *testing.T) {
	t.Parallel()
	open := func(t testing.TB, path string) storagetest.Store {
		s, err := sqlite.Open(t.Context(), path, nil)
		if err != nil {
			t.Fatal(err)
		}
		return trace(t, s, path)
	}
	storagetest.Run(t,
		func(t testing.TB) storagetest.Store { return open(t, filepath.Join(t.TempDir(), "forms.db")) },
		storagetest.Options{
			Except: map[storagetest.Category]string{storagetest.Outcomes: "of the queue, which is not wrapped; thousands of commits"},
			Reopen: func(t testing.TB, s storagetest.Store) storagetest.Store {
				h, ok := s.(traced)
				if !ok {
					t.Fatalf("got a %T", s)
				}
				return open(t, h.path)
			},
		})
}

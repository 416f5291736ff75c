package main

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/memory"
)

// noBucket is a blob store that is down.
type noBucket struct{ blobstore.Store }

func (noBucket) Stat(context.Context, string) (blobstore.Info, error) {
	return blobstore.Info{}, blobstore.ErrUnavailable
}

// --ready decides which components make a node unready.
func TestReady(t *testing.T) {
	store := memory.New()
	build := func(b blobstore.Store) *formsvc.Service {
		return must(formsvc.New(store, &formsvc.Options{Blobs: b}))
	}
	up, down := build(memblob.New()), build(noBucket{memblob.New()})
	full := errors.New("12 MB are free")
	for _, c := range []struct {
		svc      *formsvc.Service
		full     error
		required string
		want     string // the degraded components; "-" if the node isn't ready
	}{
		{up, nil, "database,files,disk", ""},
		{down, nil, "database", "files"},
		{down, nil, "disk", "files"},
		{down, nil, "files", "-"},
		{up, full, "database", "disk"},
		{up, full, "files", "disk"},
		{up, full, "database,disk", "-"},
		{down, full, "database", "files,disk"},
		{down, full, "disk", "-"},
	} {
		n := &node{svc: c.svc, full: func() error { return c.full }, required: strings.Split(c.required, ",")}
		err := n.ready(t.Context())
		got := ""
		if degraded, ok := errors.AsType[*formsvc.DegradedError](err); ok {
			got = strings.Join(degraded.Components, ",")
		} else if err != nil {
			got = "-"
		}
		equal(t, got, c.want, "--ready %s with the components %v: got %q", c.required, err)
		if err != nil && c.full != nil && !strings.Contains(err.Error(), c.full.Error()) {
			t.Errorf("%v doesn't say that the disk is full", err)
		}
	}
	noError(t, store.Close())
	for _, required := range []string{"", "database", "files", "disk"} {
		n := &node{svc: up, required: strings.Split(required, ",")}
		err := n.ready(t.Context())
		if _, ok := errors.AsType[*formsvc.DegradedError](err); ok || err == nil {
			t.Errorf("--ready %q without a database: %v", required, err)
		}
	}
}

// The disks of SQLite and of files in a directory are watched.
func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	if _, err := freeOf(dir); err != nil {
		t.Skipf("SKIPPED: %v", err) // not Linux
	}
	const postgres, s3 = "postgres://h/db", "s3://bucket"
	file := func(name string) string { return filepath.Join(dir, name) }
	for _, c := range []struct {
		flags   global
		watched string
	}{
		{global{Data: dir}, dir},
		{global{DB: "sqlite:" + file("a.db"), Blobs: s3}, dir},
		{global{DB: postgres, Blobs: "file:" + dir}, dir},
		{global{DB: postgres, Blobs: s3}, ""},
	} {
		if err := c.flags.diskFull(0); err != nil {
			t.Errorf("%+v: %v", c.flags, err)
		}
		err := c.flags.diskFull(math.MaxInt64)
		if got := err != nil && strings.HasSuffix(err.Error(), " are free on the disk of "+c.watched); got != (c.watched != "") {
			t.Errorf("%+v: %v, want %s watched", c.flags, err, c.watched)
		}
	}
}

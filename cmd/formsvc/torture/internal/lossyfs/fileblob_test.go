//go:build linux

package lossyfs_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore/fileblob"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/lossyfs"
)

const (
	// blobRounds is the number of power losses.
	blobRounds = 50
	// blobSize is the maximum number of bytes in a blob, more than the store writes at once.
	blobSize = 600 << 10
	// putters is the number of concurrent writers.
	putters = 3
)

// blobKey returns a key in one of three directories of its round.
func blobKey(number uint64) string { return fmt.Sprintf("%x-%x/%d", number/1000, number%3, number) }

// putBlobs puts blobs, numbered from a start, until it is killed, and prints the number of each when it is stored.
func putBlobs(dir, from string) error {
	s, err := fileblob.Open(dir, nil)
	if err != nil {
		return err
	}
	first, err := strconv.ParseUint(from, 10, 64)
	if err != nil {
		return err
	}
	var next atomic.Uint64
	next.Store(first)
	failed := make(chan error)
	for range putters {
		go func() {
			for {
				n := next.Add(1) - 1
				if _, err := s.Put(context.Background(), blobKey(n), bytes.NewReader(content(n, blobSize))); err != nil {
					failed <- err
					return
				}
				fmt.Println(n)
			}
		}()
	}
	return <-failed
}

// A stored blob survives with its bytes, and no blob survives partially.
func TestFileblob(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 21)
	dir := durableDir(t, f.Dir, "blobs")
	var put []uint64
	partly := 0 // rounds in which something was lost
	for round := range blobRounds {
		was := f.Dropped()
		// Every round has its own numbers, since it isn't known which Puts were in flight.
		var said []string
		if first := fmt.Sprint(round * 1000); round%2 == 0 {
			said = killAfter(t, round%9, 30*time.Millisecond, "blobs", dir, first)
		} else {
			said = killAt(t, f.Cut(round), "blobs", dir, first)
		}
		for _, line := range said {
			n, err := strconv.ParseUint(line, 10, 64)
			must(t, err)
			put = append(put, n)
		}
		f.PowerLoss(t)
		if f.Dropped() != was {
			partly++
		}
		first := round * 1000
		if round == blobRounds-1 {
			first = 0
		}
		wantBlobs(t, dir, put, uint64(first))
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	t.Logf("%d blobs acknowledged in %d rounds, %d of which lost something: %+v", len(put), blobRounds, partly, f.Dropped())
	if len(put) < blobRounds || partly < blobRounds/2 {
		t.Fatal("INVALID: too little was put or lost to prove anything")
	}
}

// wantBlobs checks that the stored blobs exist, and that all blobs from a number on are complete.
func wantBlobs(t *testing.T, dir string, put []uint64, from uint64) {
	t.Helper()
	s, err := fileblob.Open(dir, nil)
	must(t, err)
	defer func() { _ = s.Close() }()
	there := make(map[string]bool)
	for info, err := range s.List(t.Context(), "") {
		must(t, err)
		there[info.Key] = true
		n, err := strconv.ParseUint(path.Base(info.Key), 10, 64)
		must(t, err)
		if n < from {
			continue
		}
		r, _, err := s.Open(t.Context(), info.Key, 0, -1)
		must(t, err)
		got, err := io.ReadAll(r)
		must(t, err)
		must(t, r.Close())
		if !bytes.Equal(got, content(n, blobSize)) {
			t.Errorf("%s has %d bytes, not those that were put", info.Key, len(got))
		}
	}
	for _, n := range put {
		if !there[blobKey(n)] {
			t.Errorf("%s was put and is not there", blobKey(n))
		}
	}
}

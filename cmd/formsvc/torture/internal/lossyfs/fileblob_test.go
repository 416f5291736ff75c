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
	// blobRounds is how often the power goes.
	blobRounds = 50
	// blobSize is the most bytes of a blob: more than the store writes at once.
	blobSize = 600 << 10
	// putters work at the same time.
	putters = 3
)

// blobKey returns a key in one of three directories of its round.
func blobKey(number uint64) string { return fmt.Sprintf("%x-%x/%d", number/1000, number%3, number) }

// putBlobs puts blobs from a number on until it is killed, and says the number of
// each when it is there.
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

// A blob that was put is there with its bytes, and no other is there in part.
func TestFileblob(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 21)
	dir := durableDir(t, f.Dir, "blobs")
	var put []uint64
	partly := 0 // in how many rounds something was lost
	for round := range blobRounds {
		was := f.Dropped()
		// Every round has numbers of its own, since which Puts were under way isn't known.
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

// wantBlobs checks that certain blobs are there, and that all that are there are
// whole, from a number on.
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

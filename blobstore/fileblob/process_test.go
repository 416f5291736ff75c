package fileblob_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore"
	"github.com/formsvc/toolkit/blobstore/fileblob"
)

// helperEnv makes the test binary do one thing instead of the tests: a Put that ends ("put") or
// doesn't ("hang"), several concurrent Puts of one key ("race"), or "list". The directory follows.
const helperEnv = "FILEBLOB_TEST_HELPER"

func TestMain(m *testing.M) {
	if work := os.Getenv(helperEnv); work != "" {
		kind, dir, _ := strings.Cut(work, " ")
		if err := help(kind, dir); err != nil {
			fmt.Println(err)
			os.Exit(helperFailed(err))
		}
		return
	}
	os.Exit(m.Run())
}

// The helper's exit codes.
const (
	otherError = 10 + iota
	unavailable
	noSpace
	taken
)

func helperFailed(err error) int {
	switch {
	case errors.Is(err, blobstore.ErrUnavailable):
		return unavailable
	case errors.Is(err, blobstore.ErrNoSpace):
		return noSpace
	case errors.Is(err, fs.ErrExist):
		return taken
	}
	return otherError
}

func help(kind, dir string) error {
	runtime.LockOSThread() // strace counts the calls of each thread
	s, err := fileblob.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }()
	content := bytes.NewReader(make([]byte, 6<<20))
	switch kind {
	case "put":
		_, err = s.Put(context.Background(), "ab/helped", content)
	case "hang":
		_, err = s.Put(context.Background(), "ab/helped", io.MultiReader(content, funcReader(func() {
			fmt.Println("half")
			select {}
		})))
	case "race":
		err = race(s)
	case "list":
		for _, err := range s.List(context.Background(), "") {
			if err != nil {
				return err
			}
		}
	}
	return err
}

// race repeatedly runs concurrent Puts and fails unless exactly one succeeds.
func race(s *fileblob.Store) error {
	for round := range 20 {
		var errs [8]error
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() {
				_, errs[i] = s.Put(context.Background(), fmt.Sprintf("ab/%d", round), strings.NewReader("content"))
			})
		}
		all.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else if !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		if won != 1 {
			return fmt.Errorf("%d of several Puts won", won)
		}
	}
	return nil
}

func helper(ctx context.Context, kind, dir string, command ...string) *exec.Cmd {
	command = append(command, os.Args[0])
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	// The race detector would make each process sleep a second before it ends.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", helperEnv+"="+kind+" "+dir)
	return cmd
}

// cutOff kills a process in the middle of a Put.
func cutOff(t testing.TB, dir string) {
	t.Helper()
	cmd := helper(t.Context(), "hang", dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed above
	if line != "half\n" {
		t.Fatalf("the helper says %q, error %v", line, err)
	}
}

func TestKilledPutLeavesNoBlob(t *testing.T) {
	t.Parallel()
	s, dir := newStore(t)
	cutOff(t, dir)
	wantAll(t, s, "ab/kept")
	wantTemp(t, dir, 1)
	put(t, s, "ab/helped", "again")
	if n, err := s.Clean(t.Context(), time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("Clean removes %d, error %v, want 1", n, err)
	}
	wantTemp(t, dir, 0)
	wantBlob(t, s, "ab/helped", "again")
	wantBlob(t, s, "ab/kept", "kept")
}

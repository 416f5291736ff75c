//go:build failpoints && long

package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// buildMortal builds the program with failpoints, the first time it is called.
var buildMortal = sync.OnceValues(func() (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "formsvc-failpoints")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-tags", "failpoints", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// mortal starts a server that dies at a commit, and waits until it serves or is dead.
func mortal(t *testing.T, dsn, point string) *server {
	t.Helper()
	path, err := buildMortal()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{dsn: dsn, done: make(chan struct{})}
	s.cmd = exec.Command(path, append([]string{"serve", "--addr", "127.0.0.1:0", "--log-format", "json"}, on(t, dsn, nil)...)...)
	s.cmd.Dir, s.cmd.Env = t.TempDir(), environment("FORMSVC_FAILPOINT="+point)
	s.cmd.Stdout, s.cmd.Stderr = &s.out, &s.log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait() // the state says how it ended
	}()
	t.Cleanup(s.kill)
	eventually(t, "formsvc serves or dies", func() bool { return s.serving() || s.ended() })
	return s
}

// A process dies before or after one of its first commits. Repeats of the calls on the next process, with the same
// Idempotency-Keys, create each response exactly once.
func TestFailpoint(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		first := start(t, dsn)
		key := first.firstKey(t)
		campaign := newClient(t, first.url, key).campaign(t, "Numbers")
		first.terminate(t)
		first.stopped(t)
		stored := 0
		for _, moment := range []string{"before", "after"} {
			for n := 1; n <= 4; n++ { // others commit, too: the start, the use of a key
				s := mortal(t, dsn, fmt.Sprintf("%s:%d", moment, n))
				once := fmt.Sprintf("%s-%d", moment, n)
				body, err := json.Marshal(submission(once))
				if err != nil {
					t.Fatal(err)
				}
				dead := s.ended()
				for i := 0; !dead && i < n; i++ {
					_, err := newClient(t, s.url, key).once(t.Context(), responsesPath(campaign), once+fmt.Sprint(i), body, nil)
					dead = err != nil
				}
				if !dead {
					t.Fatalf("%s: the process didn't die", once)
				}
				<-s.done
				next := start(t, dsn)
				c := newClient(t, next.url, key)
				for i := range n {
					a, err := c.once(t.Context(), responsesPath(campaign), once+fmt.Sprint(i), body, nil)
					if err != nil || a.status != http.StatusCreated {
						t.Fatalf("%s: repeated: %d, %v\n%s", once, a.status, err, a.body)
					}
				}
				if stored += n; len(c.list(t, campaign)) != stored {
					t.Fatalf("%s: %d responses after the repeats, want %d", once, len(c.list(t, campaign)), stored)
				}
				next.terminate(t)
				next.stopped(t)
			}
		}
	})
}

// The normal build contains no failpoints.
func TestFailpointsAreNotInTheNormalBuild(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(program(t))
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(content, []byte("FORMSVC_FAILPOINT")) {
		t.Error("FORMSVC_FAILPOINT is in the program")
	}
}

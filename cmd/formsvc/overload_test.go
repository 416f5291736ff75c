//go:build long

package main_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// slowClients is the number of attacking connections of each kind.
const slowClients = 600

// Hundreds of clients that send headers slowly, send bodies slowly or read slowly, the latter two with a key, don't block
// other clients and take little memory. Clients that send no header in time are disconnected, and nothing of them remains.
func TestSlowClientsDontBlockOthers(t *testing.T) {
	t.Parallel()
	path := lookFor(t, "slowhttptest")
	s := start(t, "sqlite:"+filepath.Join(t.TempDir(), "formsvc.db"))
	c := newClient(t, s.url, s.firstKey(t))
	campaign := c.campaign(t, "Besieged")
	for range 100 { // data for slow readers
		c.submit(t, campaign, strings.Repeat("x", 2_500))
	}
	list := s.url + responsesPath(campaign)
	idle, open := (&filing{server: s}).peak(t)>>10, s.descriptors(t)

	ctx, end := context.WithCancel(t.Context())
	defer end()
	credentials := "application/json\r\nAuthorization: Bearer " + c.key // slowhttptest has no flag for other headers
	bodies := attack(ctx, t, path, list, "-B", "-s", "400000", "-f", credentials)
	readers := attack(ctx, t, path, list+"?limit=100", "-X", "-k", "3", "-m", credentials)
	headers := attack(ctx, t, path, s.url, "-H")
	eventually(t, "slow clients are connected", func() bool { return s.descriptors(t) > open+2*slowClients })

	var served atomic.Int64
	var slowest atomic.Int64
	over := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 4 {
		clients.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-over:
					return
				default:
				}
				began := time.Now()
				a, err := c.do(t.Context(), http.MethodPost, responsesPath(campaign), submission(fmt.Sprintf("%d-%d", i, n)))
				if err != nil || a.status != http.StatusCreated {
					t.Errorf("a create meanwhile: status %d, %v\n%s", a.status, err, a.body)
					return
				}
				served.Add(1)
				slowest.Store(max(slowest.Load(), int64(time.Since(began))))
			}
		})
	}
	said := <-headers // ends when its last connection was closed
	eventually(t, "others are served", func() bool { return served.Load() > 100 || t.Failed() })
	close(over)
	clients.Wait()
	if !strings.Contains(said, "No open connections left") {
		t.Errorf("slow headers:\n%s", tail(said, 30))
	}
	for kind, ended := range map[string]<-chan string{"bodies": bodies, "readers": readers} {
		select {
		case said := <-ended:
			t.Errorf("slow %s ended early:\n%s", kind, tail(said, 30))
		default:
		}
	}
	peak := (&filing{server: s}).peak(t) >> 10
	t.Logf("%d creates, slowest %v; %d descriptors, %d before; VmHWM %d kB, %d before",
		served.Load(), time.Duration(slowest.Load()), s.descriptors(t), open, peak, idle)
	if peak > idle+300_000 && !raceDetector { // which needs more memory
		t.Errorf("VmHWM is %d kB, and was %d", peak, idle)
	}
	end()
	<-bodies
	<-readers
	eventually(t, "nothing is left of slow clients", func() bool { return s.descriptors(t) < open+50 })
}

// attack runs slowhttptest until ctx ends or its last connection is closed, then returns its output.
func attack(ctx context.Context, t *testing.T, path, url, mode string, more ...string) <-chan string {
	t.Helper()
	n := fmt.Sprint(slowClients)
	args := slices.Concat([]string{mode, "-u", url, "-c", n, "-r", n, "-i", "3", "-l", "900", "-p", "60"}, more)
	cmd := exec.CommandContext(ctx, path, args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan string, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // its output says how it ended
		ended <- out.String()
	}()
	t.Cleanup(func() { <-done })
	return ended
}

// descriptors returns the number of open file descriptors of the server.
func (s *server) descriptors(t testing.TB) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))
	if err != nil {
		missing(t, fmt.Sprintf("needs /proc: %v", err))
	}
	return len(list)
}

// connections returns the number of open sockets of the server.
func (s *server) connections(t testing.TB) (n int) {
	t.Helper()
	list, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.cmd.Process.Pid))
	if err != nil || len(list) == 0 {
		missing(t, "needs /proc to see the connections of a process")
	}
	for _, fd := range list {
		if target, _ := os.Readlink(fd); strings.HasPrefix(target, "socket:") { // it may be closed by now
			n++
		}
	}
	return n
}

// Beyond --max-connections, clients wait in the system's queue until another one disconnects.
func TestMaxConnections(t *testing.T) {
	t.Parallel()
	s := start(t, "sqlite:"+filepath.Join(t.TempDir(), "formsvc.db"), "--max-connections", "1")
	first := newClient(t, s.url, s.firstKey(t))
	campaign := first.campaign(t, "Crowded")
	open := s.connections(t)
	served := make(chan error, 1)
	go func() {
		a, err := newClient(t, s.url, first.key).do(t.Context(), http.MethodGet, responsesPath(campaign), nil)
		if err == nil && a.status != http.StatusOK {
			err = fmt.Errorf("status %d", a.status)
		}
		served <- err
	}()
	first.submit(t, campaign, "meanwhile")
	select {
	case err := <-served:
		t.Errorf("a second connection was served: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	if n := s.connections(t); n > open {
		t.Errorf("%d connections, %d before", n, open)
	}
	first.http.CloseIdleConnections()
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("nobody was served after the first had left")
	}
}

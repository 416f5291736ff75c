//go:build linux

package lossyfs

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// A cut is a disk that stops after some more fsyncs.
type cut struct {
	left    int
	reached bool
	stopped chan struct{}
}

// stops counts an fsync, and reports whether it exceeds the limit.
func (c *cut) stops() bool {
	switch {
	case c == nil:
		return false
	case c.left > 0:
		c.left--
		return false
	case !c.reached:
		c.reached = true
		close(c.stopped)
	}
	return true
}

// awaitKill waits until the calling thread is being killed, because the thread can't end before its call does. It
// ignores other signals, of which Go programs get many.
func awaitKill(ctx context.Context) {
	<-ctx.Done()
	caller, ok := fuse.FromContext(ctx)
	for ok && !killed(caller.Pid) {
		time.Sleep(time.Millisecond)
	}
}

// killed reports whether a thread has ended or is being killed.
func killed(thread uint32) bool {
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", thread))
	if err != nil {
		return true
	}
	defer func() { _ = status.Close() }()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		if mask, ok := strings.CutPrefix(lines.Text(), "SigPnd:"); ok {
			pending, err := strconv.ParseUint(strings.TrimSpace(mask), 16, 64)
			return err == nil && pending&(1<<(syscall.SIGKILL-1)) != 0
		}
	}
	return true
}

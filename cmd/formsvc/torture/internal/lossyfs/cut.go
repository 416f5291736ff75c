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

// stops reports whether an fsync is one too many, and counts it.
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

// awaitKill waits until the thread whose call this is is being killed. It cannot
// end before its call does. Other signals, of which a program in Go gets many,
// don't let it go on.
func awaitKill(ctx context.Context) {
	<-ctx.Done()
	caller, ok := fuse.FromContext(ctx)
	for ok && !killed(caller.Pid) {
		time.Sleep(time.Millisecond)
	}
}

// killed reports whether a thread is gone or has only to notice that it is.
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

//go:build failpoints

package bunstore

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
)

// reached counts the commits that came to the failpoint.
var reached atomic.Int64 //nolint:gochecknoglobals // counts for the process

// failpoint kills the process at a commit, as a power loss would. FORMSVC_FAILPOINT says at
// which: "before:3" is before the third commit, "after:3" after it and before any reply.
func failpoint(name string) {
	at, number, _ := strings.Cut(os.Getenv("FORMSVC_FAILPOINT"), ":")
	if at != name {
		return
	}
	if n, err := strconv.ParseInt(number, 10, 64); err != nil || reached.Add(1) != n {
		return
	}
	fmt.Fprintln(os.Stderr, "failpoint", name, number)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // this goroutine stops here, however long the signal takes
}

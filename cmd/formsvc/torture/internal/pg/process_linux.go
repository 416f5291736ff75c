package pg

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// An account runs the programs in place of root, as whom they refuse to run.
type account struct{ uid, gid uint32 }

// findAccount returns nil if the test does not run as root.
func findAccount(t testing.TB) *account {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		u, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &account{uint32(uid), uint32(gid)}
}

// own gives a file to the account.
func (a *account) own(file string) error {
	if a == nil {
		return nil
	}
	return os.Chown(file, int(a.uid), int(a.gid))
}

// attributes makes a process run as the account. The process gets a signal when the test
// binary ends for any reason; PostgreSQL takes it for an order to stop at once.
func (a *account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}

// detached keeps signals to our process group from a process.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// processesIn returns the processes whose working directory this is. Those of a
// PostgreSQL server work in its data directory.
func processesIn(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is right
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != dir {
			continue // works elsewhere, or has ended
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// removeSegment removes a shared memory segment. A killed server leaves it until the next
// start, and the kernel allows few.
func removeSegment(id int) { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) }

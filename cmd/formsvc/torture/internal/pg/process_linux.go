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

// An account is who runs the programs in place of root, as whom they refuse to.
type account struct{ uid, gid uint32 }

// findAccount returns nil where the test does not run as root.
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

// own makes a file that of the account.
func (a *account) own(file string) error {
	if a == nil {
		return nil
	}
	return os.Chown(file, int(a.uid), int(a.gid))
}

// attributes makes a process that of the account. It ends when we do, however
// we end: PostgreSQL takes the signal for an order to stop at once.
func (a *account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}

// detached keeps signals to our process group away from a process.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// processesIn returns the processes that work in a directory, which each of a
// PostgreSQL server does in that of its data.
func processesIn(dir string) (pids []int) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd") // the pattern is right
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != dir {
			continue // another, or it has ended
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(link))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// removeSegment removes a piece of shared memory, which a server that was killed
// leaves until it is started again; the kernel has room for few.
func removeSegment(id int) { _, _ = unix.SysvShmCtl(id, unix.IPC_RMID, nil) }

//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package keyring

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// flock waits until no other open file has the lock, and acquires it.
func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// keepOwner gives f the owner of old, so that a key added by root does not lock
// the server out.
func keepOwner(f *os.File, old fs.FileInfo) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	have, ok1 := info.Sys().(*syscall.Stat_t)
	want, ok2 := old.Sys().(*syscall.Stat_t)
	if !ok1 || !ok2 || have.Uid == want.Uid && have.Gid == want.Gid {
		return nil
	}
	return f.Chown(int(want.Uid), int(want.Gid))
}

//go:build unix

package keyring

import (
	"os"
	"syscall"
)

// keepOwner gives a file the owner of another, so that a key added by root doesn't lock the server out.
func keepOwner(path, other string) error {
	info, err := os.Stat(other)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return os.Chown(path, int(owner.Uid), int(owner.Gid))
	}
	return nil
}

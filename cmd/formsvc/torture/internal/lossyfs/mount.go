//go:build linux

package lossyfs

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// busyLimit limits the time in which processes must close their files.
	busyLimit = 30 * time.Second
	// maxWrite is the maximum number of bytes in one request.
	maxWrite = 1 << 20
)

// mountPoint creates the directory to mount at. It skips the test where mounting isn't
// possible.
func mountPoint(t testing.TB) string {
	t.Helper()
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("/dev/fuse: %v, and in CI no loss of power may be skipped", err)
		}
		t.Skipf("SKIPPED: no power is lost without FUSE; /dev/fuse: %v", err)
	}
	_ = syscall.Close(fd)
	dir := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// mount starts a server for the current content of f.root.
func (f *FS) mount(t testing.TB) {
	t.Helper()
	// Every change goes through the kernel, so its cache is never wrong.
	forever := time.Hour
	asRoot := os.Geteuid() == 0
	server, err := fs.Mount(f.Dir, &node{fs: f, in: f.root}, &fs.Options{
		EntryTimeout: &forever, AttrTimeout: &forever, NegativeTimeout: &forever,
		NullPermissions: true,
		RootStableAttr:  &fs.StableAttr{Ino: f.root.number},
		MountOptions: fuse.MountOptions{
			FsName: "lossyfs", Name: "lossyfs",
			Options:    []string{"default_permissions"},
			AllowOther: asRoot, DirectMountStrict: asRoot, // other users mount with a program that may forbid the first
			MaxWrite:      maxWrite,
			DisableXAttrs: true,
			// Without it the kernel drops a file's pages when its time has changed, also mapped ones.
			ExplicitDataCacheControl: true,
		},
	})
	if err != nil {
		t.Fatalf("mount: %v", err)
	}
	f.server = server
}

// unmount ends the server when no process uses a file any more.
func (f *FS) unmount(t testing.TB) {
	t.Helper()
	var err error
	for deadline := time.Now().Add(busyLimit); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if err = f.server.Unmount(); err == nil {
			return
		}
	}
	t.Fatalf("unmount %s, which a process still uses: %v", f.Dir, err)
}

// unmountAtEnd unmounts even if a process still uses files: its calls fail. Otherwise this process might wait for itself
// when it ends.
func (f *FS) unmountAtEnd(t testing.TB) {
	t.Helper()
	defer func() {
		if t.Failed() { // nothing is mounted, or everything else failed
			_ = syscall.Unmount(f.Dir, syscall.MNT_FORCE)
			_ = syscall.Unmount(f.Dir, syscall.MNT_DETACH)
		}
	}()
	f.unmount(t)
}

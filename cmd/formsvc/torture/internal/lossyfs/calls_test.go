//go:build linux

package lossyfs_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/lossyfs"
)

func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// The file system supports the calls that programs expect besides reading and writing.
func TestCalls(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 51)
	must(t, os.MkdirAll(filepath.Join(f.Dir, "a/b/c"), 0o750))
	path := filepath.Join(f.Dir, "a/b/file")
	must(t, os.WriteFile(path, []byte("one"), 0o640))

	file, err := os.OpenFile(path, os.O_APPEND|os.O_RDWR, 0)
	must(t, err)
	_, err = file.WriteString(" two")
	must(t, err)
	must(t, os.Link(path, path+".link"))
	must(t, os.Remove(path))
	info, err := file.Stat()
	must(t, err)
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Nlink != 1 || info.Mode() != 0o640 || info.Size() != 7 {
		t.Errorf("a file with one name of two is %+v", info)
	}
	must(t, os.Remove(path+".link"))
	b := make([]byte, 10)
	if n, err := file.ReadAt(b, 0); err != io.EOF || string(b[:n]) != "one two" {
		t.Errorf("a file without a name has %q, error %v", b[:n], err)
	}
	must(t, file.Close())

	wantError(t, "rmdir", syscall.Rmdir(filepath.Join(f.Dir, "a")), syscall.ENOTEMPTY)
	_, err = os.OpenFile(filepath.Join(f.Dir, "a"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	wantError(t, "create", err, fs.ErrExist)
	must(t, os.WriteFile(path, bytes.Repeat([]byte("x"), 3<<20), 0o600))
	must(t, os.WriteFile(path+"2", nil, 0o600))
	wantError(t, "rename", unix.Renameat2(0, path, 0, path+"2", unix.RENAME_NOREPLACE), fs.ErrExist)
	wantError(t, "rename of a directory", os.Rename(filepath.Join(f.Dir, "a/b/c"), path), syscall.ENOTDIR)
	must(t, os.MkdirAll(filepath.Join(f.Dir, "full/d"), 0o700))
	wantError(t, "rename over a directory", syscall.Rename(filepath.Join(f.Dir, "a/b/c"), filepath.Join(f.Dir, "full")), syscall.ENOTEMPTY)
	_, err = unix.Getxattr(path, "user.none", nil)
	wantError(t, "getxattr", err, syscall.ENOTSUP)
	wantError(t, "setxattr", unix.Setxattr(path, "user.one", []byte("1"), 0), syscall.ENOTSUP)

	then := time.Unix(1_000_000_000, 5)
	must(t, os.Chtimes(path, then, then))
	must(t, os.Chmod(path, 0o604))
	must(t, os.Chown(path, 7, 8))
	info, err = os.Stat(path)
	must(t, err)
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != 7 || stat.Gid != 8 || info.Mode() != 0o604 || !info.ModTime().Equal(then) {
		t.Errorf("a file is %+v", info)
	}
	var disk syscall.Statfs_t
	must(t, syscall.Statfs(f.Dir, &disk))
	if disk.Bavail*uint64(disk.Bsize) != 1<<40 {
		t.Errorf("statfs: %+v", disk)
	}
	copyFile(t, path, path+".copy")
	wantLinks(t, f)
}

// wantLinks checks that the link counts of files match their names, also after a loss.
func wantLinks(t testing.TB, f *lossyfs.FS) {
	t.Helper()
	path := filepath.Join(f.Dir, "linked")
	durableFile(t, path, nil)
	must(t, os.Link(path, path+"2"))
	fsync(t, f.Dir)
	must(t, os.Mkdir(filepath.Join(f.Dir, "lost"), 0o700))
	f.PowerLoss(t)
	var stat syscall.Stat_t
	must(t, syscall.Stat(path, &stat))
	if stat.Nlink != 2 {
		t.Errorf("a file with two names says %d", stat.Nlink)
	}
}

// copyFile lets the kernel copy a file.
func copyFile(t testing.TB, from, to string) {
	t.Helper()
	r, err := os.Open(from)
	must(t, err)
	defer func() { _ = r.Close() }()
	w, err := os.Create(to)
	must(t, err)
	n, err := io.Copy(w, r)
	must(t, err)
	must(t, w.Close())
	want, err := os.ReadFile(from)
	must(t, err)
	if got, err := os.ReadFile(to); err != nil || !bytes.Equal(got, want) {
		t.Errorf("a copy has %d bytes, error %v, and %d were copied, want %d", len(got), err, n, len(want))
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(lossyfs.Mount(t, 52).Dir, "file")
	a, err := os.Create(path)
	must(t, err)
	defer func() { _ = a.Close() }()
	b, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer func() { _ = b.Close() }()
	must(t, syscall.Flock(int(a.Fd()), syscall.LOCK_EX|syscall.LOCK_NB))
	wantError(t, "flock", syscall.Flock(int(b.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Len: 1}
	must(t, syscall.FcntlFlock(a.Fd(), unix.F_OFD_SETLK, &lock))
	wantError(t, "fcntl", syscall.FcntlFlock(b.Fd(), unix.F_OFD_SETLK, &lock), syscall.EAGAIN)
}

// mapCounts is the number of increments of each process.
const mapCounts = 2000

// mapShared increments a number in mapped memory, under a lock.
func mapShared(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	b, err := syscall.Mmap(int(file.Fd()), 0, pageSize, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	if err != nil {
		return err
	}
	for range mapCounts {
		lock := syscall.Flock_t{Type: syscall.F_WRLCK, Len: 1}
		if err := syscall.FcntlFlock(file.Fd(), syscall.F_SETLKW, &lock); err != nil {
			return err
		}
		count := binary.LittleEndian.Uint64(b)
		runtime.Gosched()
		binary.LittleEndian.PutUint64(b, count+1)
		lock.Type = syscall.F_UNLCK
		if err := syscall.FcntlFlock(file.Fd(), syscall.F_SETLK, &lock); err != nil {
			return err
		}
	}
	return nil
}

// Processes share mapped memory, and locks exclude each other.
func TestProcessesShareMappedMemory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(lossyfs.Mount(t, 53).Dir, "file")
	must(t, os.WriteFile(path, make([]byte, pageSize), 0o600))
	children := []func() error{}
	for range 3 {
		cmd := child(t, "map", path)
		must(t, cmd.Start())
		children = append(children, cmd.Wait)
	}
	for _, wait := range children {
		must(t, wait())
	}
	b, err := os.ReadFile(path)
	must(t, err)
	if n := binary.LittleEndian.Uint64(b); n != 3*mapCounts {
		t.Errorf("3 processes counted to %d, want %d", n, 3*mapCounts)
	}
}

// The same seed loses the same data, another seed other data. SQLite's shared memory is lost but not counted.
func TestSeedDecidesLoss(t *testing.T) {
	t.Parallel()
	type outcome struct {
		state string
		lost  lossyfs.Loss
	}
	var all []outcome
	for _, seed := range []uint64{1, 1, 2} {
		f := lossyfs.Mount(t, seed)
		shared := filepath.Join(f.Dir, "rows.db-shm")
		durableFile(t, shared, fill('a', 50))
		edit(t, shared, func(file *os.File) { writeAt(t, file, fill('b', 50), 0) })
		f.PowerLoss(t)
		if lost := f.Dropped(); lost != (lossyfs.Loss{}) {
			t.Errorf("lost: %+v, want nothing that counts", lost)
		}
		if b, err := os.ReadFile(shared); err != nil || !bytes.Contains(b, []byte("a")) {
			t.Errorf("nothing of the shared memory is lost, error %v", err)
		}
		for i := range 20 {
			must(t, os.WriteFile(filepath.Join(f.Dir, fmt.Sprint(i)), fill('a', 4), 0o600))
		}
		f.PowerLoss(t)
		all = append(all, outcome{state(t, f.Dir), f.Dropped()})
	}
	if all[0] != all[1] || all[0] == all[2] {
		t.Errorf("with the seeds 1, 1 and 2 is lost: %+v, %+v and %+v", all[0].lost, all[1].lost, all[2].lost)
	}
}

// syncTwice prints how its fsyncs end while signals interrupt them.
func syncTwice(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	thread := syscall.Gettid()
	go func() {
		for {
			_ = unix.Tgkill(os.Getpid(), thread, syscall.SIGURG)
			time.Sleep(time.Millisecond)
		}
	}()
	fmt.Println(file.Sync())
	if _, err := file.WriteString("new"); err != nil {
		return err
	}
	fmt.Println(syscall.Fsync(int(file.Fd())))
	return nil
}

// After a cut, an fsync never returns and has no effect.
func TestCutStopsFsync(t *testing.T) {
	t.Parallel()
	f := lossyfs.Mount(t, 54)
	lost := false
	for round := range nameRounds {
		path := filepath.Join(durableDir(t, f.Dir, fmt.Sprint(round)), "file")
		durableFile(t, path, []byte("old"))
		stopped, now := f.Cut(1), make(chan struct{})
		go func() {
			<-stopped
			time.Sleep(10 * time.Millisecond) // it may be interrupted meanwhile
			close(now)
		}()
		if said := killAt(t, now, "sync", path); !slices.Equal(said, []string{"<nil>"}) {
			t.Fatalf("the fsyncs end with %q, want the first to succeed and the other not to end", said)
		}
		f.PowerLoss(t)
		b, err := os.ReadFile(path)
		must(t, err)
		lost = lost || string(b) != "new"
		fsync(t, path)
	}
	if !lost {
		t.Error("nothing that was to be synced is lost")
	}
}

package main

import (
	"os"
	"syscall"
)

// freeOf returns how many bytes this user can still write to the file system of a path.
func freeOf(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:gosec // bytes of a disk
}

// writerOf returns the process that writes to a SQLite database, or 0: the one that has the lock for it in the index of the
// log. This process must have closed the database, since closing the index again ends all its locks.
func writerOf(path string) int {
	f, err := os.Open(path + "-shm") //nolint:gosec // the operator names the database
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	const writeLock = 120 // https://sqlite.org/walformat.html#wal_locks
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: writeLock, Len: 1}
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_GETLK, &lock); err != nil || lock.Type == syscall.F_UNLCK {
		return 0
	}
	return int(lock.Pid)
}

package main

import "syscall"

// freeOf returns how many bytes this user can still write to the file system of a path.
func freeOf(path string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:gosec // bytes of a disk
}

package fileblob

import (
	"os"
	"syscall"
)

// startWriting makes the system begin to write a part of a file to the disk. Errors are reported by
// fsync.
func startWriting(f *os.File, offset, length int64) {
	const write = 2 // SYNC_FILE_RANGE_WRITE
	if c, err := f.SyscallConn(); err == nil {
		_ = c.Control(func(fd uintptr) {
			_ = syscall.SyncFileRange(int(fd), offset, length, write)
		})
	}
}

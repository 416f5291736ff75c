package files

import "syscall"

// settleDisk waits until everything that was written is on the disk.
func settleDisk() { syscall.Sync() }

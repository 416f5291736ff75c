package main

import "syscall"

// endWithUs makes a process end with ours, however that ends.
func endWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// settleDisk waits until everything that was written is on the disk.
func settleDisk() { syscall.Sync() }

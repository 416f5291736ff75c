package s3server

import "syscall"

// endWithUs makes a process end with ours, however that ends.
func endWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

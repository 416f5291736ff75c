//go:build !linux

package s3server

import "syscall"

// endWithUs does nothing: formbench runs on Linux only, but is built everywhere.
func endWithUs() *syscall.SysProcAttr { return nil }

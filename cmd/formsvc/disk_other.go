//go:build !linux

package main

import "errors"

// freeOf is supported on Linux only.
func freeOf(string) (int64, error) { return 0, errors.ErrUnsupported }

// writerOf returns 0: how to find the process that writes to a SQLite database depends on the system.
func writerOf(string) int { return 0 }

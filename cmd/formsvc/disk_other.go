//go:build !linux

package main

import "errors"

// freeOf is supported on Linux only.
func freeOf(string) (int64, error) { return 0, errors.ErrUnsupported }

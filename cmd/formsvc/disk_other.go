//go:build !linux

package main

import "errors"

// diskOf is supported on Linux only.
func diskOf(string) (disk, error) { return disk{}, errors.ErrUnsupported }

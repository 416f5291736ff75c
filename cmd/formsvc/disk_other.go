//go:build !linux

package main

import "errors"

// diskOf is known on Linux only.
func diskOf(string) (disk, error) { return disk{}, errors.ErrUnsupported }

//go:build !linux

package files

// settleDisk does nothing: formbench runs on Linux only, but is built everywhere.
func settleDisk() {}

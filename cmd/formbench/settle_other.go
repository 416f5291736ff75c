//go:build !linux

package main

// settleDisk does nothing: formbench runs on Linux only, but is built everywhere.
func settleDisk() {}

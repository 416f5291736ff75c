package main

// A diskKind says what to expect of a file system.
type diskKind int

const (
	diskLocal diskKind = iota
	diskNetwork
	diskMemory
	diskLayer // of a container
)

// A disk is the file system that a path is on.
type disk struct {
	name string
	kind diskKind
	free int64 // bytes that this user may still write
}

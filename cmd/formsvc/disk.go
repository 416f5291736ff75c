package main

// A diskKind classifies a file system by its suitability.
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
	free int64 // bytes that this user can still write
}

//go:build !failpoints

package bunstore

// failpoint does nothing. With the build tag "failpoints" it kills the process.
func failpoint(string) {}

package blobtest_test

import "testing"

// The example needs the T of a test: a test runs it.
func TestExample(t *testing.T) {
	t.Parallel()
	testCounting(t)
}

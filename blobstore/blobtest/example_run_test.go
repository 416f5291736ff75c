package blobtest_test

import "testing"

// The example needs a testing.T, so a test runs it.
func TestExample(t *testing.T) {
	t.Parallel()
	testCounting(t)
}

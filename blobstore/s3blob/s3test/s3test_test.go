package s3test_test

import "testing"

// The example can't start a server by itself, so a test runs it.
func TestExample(t *testing.T) { testUpload(t) }

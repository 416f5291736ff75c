package postgrestest_test

import "testing"

// The example needs a server: a test runs it, where there is one.
func TestExample(t *testing.T) { testAccounts(t) }

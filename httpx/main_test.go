//go:build long

package httpx_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain fails if all tests pass but haven't covered the whole OpenAPI document.
func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 && wholePackage() {
		code = reportCoverage()
	}
	os.Exit(code)
}

func reportCoverage() (code int) {
	c, err := loadContract()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if !coverage.report(os.Stderr, c, testing.Verbose()) {
		return 1
	}
	return 0
}

// wholePackage reports whether all tests ran, so that gaps in the coverage count.
func wholePackage() bool {
	for _, name := range []string{"run", "skip", "list", "fuzz", "bench"} {
		if f := flag.Lookup("test." + name); f != nil && f.Value.String() != "" {
			return false
		}
	}
	return true
}

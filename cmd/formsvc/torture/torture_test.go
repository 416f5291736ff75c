// Package torture_test injects faults into the real binary under load. Then it compares what clients were told, what the
// API, the event feed and the files have, and what a webhook receiver got. RELIABILITY.md lists the promises.
//
// Each test injects one kind of fault, in rounds: a few, as many as -rounds says, or for a share of -for.
package torture_test

import (
	"flag"
	"iter"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

var (
	roundsFlag = flag.Int("rounds", 0, "how many rounds each fault has; 0 for a few")
	forFlag    = flag.Duration("for", 0, "how long to go on, over all faults together; 0 for a number of rounds")
)

const (
	// kinds is the number of tests that share the time of -for.
	kinds = 10
	// patience limits every wait for something that should happen soon. Only a failing test takes as long.
	patience = 2 * time.Minute
)

// program is the path of the binary, built from this checkout.
var program string

func TestMain(m *testing.M) {
	if name := os.Getenv(attackVariable); name != "" {
		attackUntilEOF(name)
		return
	}
	flag.Parse()
	zerolog.SetGlobalLevel(zerolog.Disabled) // toxiproxy logs every step
	dir := must(os.MkdirTemp("", "formsvc-torture-"))
	program = filepath.Join(dir, "formsvc")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./cmd/formsvc")
	cmd.Dir = filepath.Join("..", "..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		log.Fatalf("go build: %v\n%s", err, out)
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// rounds counts the rounds of a test, which are few unless a flag sets more.
func rounds(few int) iter.Seq[int] {
	const settling = 10 * time.Second // about how long the end of each test takes
	end := time.Now().Add(max(*forFlag/kinds-settling, settling/2))
	if *roundsFlag > 0 {
		few = *roundsFlag
	}
	return func(yield func(int) bool) {
		for n := 0; n == 0 || *forFlag > 0 && time.Now().Before(end) || *forFlag == 0 && n < few; n++ {
			if !yield(n) {
				return
			}
		}
	}
}

// sqliteDSN returns the data source name of a new database in a directory of the test.
func sqliteDSN(t testing.TB) string {
	return "sqlite:" + filepath.Join(t.TempDir(), "formsvc.db")
}

// waitFor polls done until it returns true.
func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// missing skips a test that lacks a requirement. In CI it fails the test.
func missing(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf(format+", and in CI no fault may be skipped", args...)
	}
	t.Skipf("SKIPPED: "+format, args...)
}

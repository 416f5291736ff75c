// The tests of this directory run the real program. They build it once, start it on a free port and use it over HTTP, by
// its commands and by signals. Each test runs on every database of databases.
//
// FORMSVC_TEST_POSTGRES names the Postgres server to test on; ".ci/with-postgres COMMAND" starts one and sets the variable.
// Tests that kill the program or break its environment are in torture, a separate module.
package main_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
)

// patience limits every wait for something that should happen soon, even on a busy machine. Only a failing test takes as
// long.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	// Most of these tests spend most of their time waiting.
	flag.Parse()
	if parallel := flag.Lookup("test.parallel"); parallel.Value.String() == parallel.DefValue {
		_ = parallel.Value.Set(strconv.Itoa(2 * runtime.GOMAXPROCS(0)))
	}
	code := m.Run()
	if dir, err := buildDir(); err == nil {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// buildDir returns the directory in which the program is built.
var buildDir = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "formsvc-test-") })

// build builds the program, the first time it is called.
var build = sync.OnceValues(func() (string, error) {
	dir, err := buildDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "formsvc")
	args := []string{"build", "-buildvcs=false", "-o", path} // git may not trust the checkout
	if raceDetector {
		args = append(args, "-race")
	}
	if out, err := exec.Command("go", append(args, ".")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// program returns the path of the built program.
func program(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A database is one kind of database that the program works on.
type database struct {
	name string
	dsn  func(t testing.TB) string // creates an empty database for one test
}

// databases returns all kinds of databases. Tests run on each.
func databases() []database {
	return []database{
		{"sqlite", func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "formsvc.db") }},
		{"postgres", postgrestest.DSN},
	}
}

// onEachDatabase runs a test on an empty database of each kind, in parallel with other tests.
func onEachDatabase(t *testing.T, test func(t *testing.T, dsn string)) {
	t.Helper()
	t.Parallel()
	for _, db := range databases() {
		t.Run(db.name, func(t *testing.T) {
			t.Parallel()
			test(t, db.dsn(t))
		})
	}
}

// environment returns the environment of the program: the tests' environment without FORMSVC_ flags, plus the given
// variables, as NAME=VALUE.
func environment(variables ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FORMSVC_") {
			env = append(env, v)
		}
	}
	return append(env, variables...)
}

// eventually polls done until it returns true, and fails the test on timeout. It returns how long that took.
func eventually(t testing.TB, what string, done func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		if time.Since(start) > patience {
			t.Fatalf("%s: not within %v", what, patience)
		}
		<-tick.C
	}
	return time.Since(start)
}

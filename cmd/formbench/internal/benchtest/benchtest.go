// Package benchtest is shared by the tests of formbench's packages. It finds the programs that they need, and lets a
// test binary be the server and the workers that a measurement starts.
package benchtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
	"github.com/formsvc/toolkit/cmd/formbench/internal/process"
)

// Main is for TestMain: it lets the test binary be the processes that a measurement starts. It doesn't return.
func Main(m *testing.M) {
	command := Command()
	if command == "" {
		QuickExit()
		os.Exit(m.Run())
	}
	known, err := process.Main(context.Background(), command, os.Stdin, os.Stdout, os.Stderr)
	if !known { // otherwise the process would run the tests and start processes without end
		err = errors.New("there is no command " + command)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Command returns the command with which a measurement has started the test binary, or "" to run the tests.
func Command() string {
	if len(os.Args) == 2 && !strings.HasPrefix(os.Args[1], "-") {
		return os.Args[1]
	}
	return ""
}

// QuickExit keeps programs that are started later from waiting for a second before they end, as the race detector makes
// them.
func QuickExit() {
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		panic(err)
	}
}

// peersEnv names the environment variable with the program of the module peers,
// which "make test" builds.
const peersEnv = "FORMSVC_TEST_PEERS"

// Peers returns the program of the module peers. Without it, it skips the test, or fails it in CI.
func Peers(t testing.TB) string {
	t.Helper()
	program := os.Getenv(peersEnv)
	if program == "" && os.Getenv("CI") == "true" {
		t.Fatal(peersEnv + " is not set, and in CI nothing may be skipped: run the tests with \"make test\"")
	}
	if program == "" {
		t.Skip("SKIPPED: " + peersEnv + " does not name the program: go -C cmd/formbench/peers build -o /some/where/peers .")
	}
	if _, err := exec.LookPath(program); err != nil {
		t.Fatal(err)
	}
	return program
}

// NeedS3 skips the test without an S3 server, or fails it in CI.
func NeedS3(t testing.TB) {
	t.Helper()
	if os.Getenv(bench.S3Env) != "" {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not set, and in CI nothing may be skipped: run the tests with \"make test\"", bench.S3Env)
	}
	t.Skipf("SKIPPED: %s is not set; \"make test\" builds the server and sets it", bench.S3Env)
}

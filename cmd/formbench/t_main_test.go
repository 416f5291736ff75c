package main

import (
	"context"
	"os"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/process"
	"github.com/formsvc/toolkit/cmd/formbench/internal/server"
)

// TestMain lets the test binary be the server that a bench starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && (os.Args[1] == server.Command || os.Args[1] == process.Command) {
		os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
	}
	// With the race detector every program waits a second before it ends.
	if err := os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE")); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

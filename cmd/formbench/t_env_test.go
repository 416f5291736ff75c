package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/formsvc/toolkit/cmd/formbench/internal/bench"
)

// peersEnv names the environment variable with the program of the module peers,
// which "make test" builds.
const peersEnv = "FORMSVC_TEST_PEERS"

func peerProgram(t *testing.T) string {
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

// needS3 skips the test where there is no S3 server, except in CI.
func needS3(t *testing.T) {
	t.Helper()
	if os.Getenv(bench.S3Env) != "" {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is not set, and in CI nothing may be skipped: run the tests with \"make test\"", bench.S3Env)
	}
	t.Skipf("SKIPPED: %s is not set; \"make test\" builds the server and sets it", bench.S3Env)
}

// Package s3test runs an S3 server for a test: versitygw, a real server that keeps every object as
// a plain file. A test can inspect and damage stored data, and stop the server.
package s3test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Env names the environment variable with the path of the versitygw program.
// "make test" builds it and sets the variable.
const Env = "FORMSVC_TEST_VERSITYGW"

// A Server is a running S3 server with one empty bucket. Call its methods from the test's
// goroutine; they end the test if they fail.
type Server struct {
	Endpoint  string // such as "http://127.0.0.1:20123"
	Bucket    string
	Region    string
	AccessKey string
	SecretKey string
	Dir       string // directory of the bucket; the object a/b is the file a/b in it

	t       testing.TB
	program string
	port    string
	sidecar string // directory for attributes, if the file system doesn't support them
	process *exec.Cmd
	ended   chan struct{} // closed when the process has ended
	output  *bytes.Buffer // of the process; read it only after the process has ended
}

// startTimeout limits how long a server may take to start.
const startTimeout = time.Minute

// Start starts a server, which is removed with its data when the test ends. Without [Env] the test
// is skipped; with CI=true it fails, so that an untested store doesn't look tested.
func Start(t testing.TB) *Server {
	t.Helper()
	program := os.Getenv(Env)
	if program == "" {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%s is not set, and in CI no store may be skipped: run the tests with \"make test\"", Env)
		}
		t.Skipf("SKIPPED: %s is not set; \"make test\" builds the server and sets it", Env)
	}
	s := &Server{
		Bucket: "blobs", Region: "us-east-1", AccessKey: "test-access", SecretKey: "test-secret-of-the-root-user",
		t: t, program: program,
	}
	s.Dir = filepath.Join(t.TempDir(), s.Bucket)
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	for try := range 10 {
		// Below the range of ephemeral ports: so no other program takes the port while the server
		// is stopped, and no client connects to itself.
		s.port = strconv.Itoa(15000 + rand.IntN(17000)) //nolint:gosec // nobody gains by guessing it
		s.Endpoint = "http://" + net.JoinHostPort("127.0.0.1", s.port)
		err := s.start()
		if err == nil {
			return s
		}
		t.Logf("start %d of the S3 server: %v", try+1, err)
		if try == 4 {
			s.sidecar = t.TempDir() // the file system may not support extended attributes
		}
	}
	t.Fatal("the S3 server did not start")
	return nil
}

// URL returns the bucket's URL for s3blob.ParseURL, without credentials.
func (s *Server) URL() string {
	q := url.Values{"endpoint": {s.Endpoint}, "region": {s.Region}}
	return "s3://" + s.Bucket + "?" + q.Encode()
}

// Stop kills the server, as a crash would. Its data stays.
func (s *Server) Stop() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill() // it may have ended already
	<-s.ended
	s.process = nil
}

// Restart stops the server if it runs and starts it again with the same port and data.
func (s *Server) Restart() {
	s.t.Helper()
	s.Stop()
	if err := s.start(); err != nil {
		s.t.Fatalf("restart the S3 server: %v", err)
	}
}

// Suspend makes the server hang: it keeps its connections but doesn't respond. On systems other
// than Linux the test is skipped.
func (s *Server) Suspend() {
	s.t.Helper()
	suspend(s.t, s.process.Process)
}

// Resume continues a suspended server.
func (s *Server) Resume() {
	s.t.Helper()
	resume(s.t, s.process.Process)
}

// start starts the process and waits until it responds.
func (s *Server) start() error {
	args := []string{"--quiet", "--keep-alive", "--port", net.JoinHostPort("127.0.0.1", s.port), "--region", s.Region, "posix"}
	if s.sidecar != "" {
		args = append(args, "--sidecar", s.sidecar)
	}
	s.output = new(bytes.Buffer)
	s.process = exec.Command(s.program, append(args, filepath.Dir(s.Dir))...) //nolint:gosec,noctx // the tester chose it; Stop ends it
	s.process.Env = []string{"ROOT_ACCESS_KEY=" + s.AccessKey, "ROOT_SECRET_KEY=" + s.SecretKey, "PATH=" + os.Getenv("PATH")}
	s.process.Stdout, s.process.Stderr = s.output, s.output
	s.process.SysProcAttr = attributes()
	if err := s.process.Start(); err != nil {
		s.process = nil
		return err
	}
	s.ended = make(chan struct{})
	go func(process *exec.Cmd, ended chan struct{}) {
		_ = process.Wait() // its error always says that it was killed
		close(ended)
	}(s.process, s.ended)
	if s.answers() {
		return nil
	}
	s.Stop()
	return fmt.Errorf("no answer on port %s: %s", s.port, bytes.TrimSpace(s.output.Bytes()))
}

// answers waits until our process responds, and reports whether it does.
func (s *Server) answers() bool {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); {
		resp, err := client.Get(s.Endpoint) //nolint:noctx // it has a time limit
		if err == nil {
			_ = resp.Body.Close()
		}
		select {
		case <-s.ended: // if another program has the port, our process ends
			return false
		case <-time.After(20 * time.Millisecond):
		}
		if err == nil {
			return true
		}
	}
	return false
}

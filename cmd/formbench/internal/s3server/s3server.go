// Package s3server runs versitygw, an S3 server that keeps every object as a plain file.
package s3server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/formsvc/toolkit/blobstore/s3blob"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
)

// The settings that the S3 server and its clients share.
const (
	Bucket = "files"
	Region = "us-east-1"
	Key    = "formbench" // and its secret: the server is soon gone
)

// A Server is a process of versitygw.
type Server struct {
	Endpoint string
	PID      int
	cmd      *exec.Cmd
	output   bytes.Buffer // to be read when the process has ended
	ended    chan struct{}
}

// Start starts a server with an empty bucket and its data below a directory.
func Start(ctx context.Context, program, dir string) (s *Server, err error) {
	for range 3 { // another process may take the port
		if s, err = attempt(ctx, program, dir); err == nil {
			break
		}
	}
	return s, err
}

func attempt(ctx context.Context, program, dir string) (*Server, error) {
	data := filepath.Join(dir, "s3")
	if err := os.MkdirAll(filepath.Join(data, Bucket), 0o700); err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String() // of a port that is free now
	if err := listener.Close(); err != nil {
		return nil, err
	}
	s := &Server{Endpoint: "http://" + address, ended: make(chan struct{})}
	s.cmd = exec.CommandContext(ctx, program, "--quiet", "--port", address, "--region", Region, "posix", data) //nolint:gosec // the user names the program
	s.cmd.Env = []string{"ROOT_ACCESS_KEY=" + Key, "ROOT_SECRET_KEY=" + Key, "PATH=" + os.Getenv("PATH")}
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it ends with us, however we end
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start an S3 server: %w", err)
	}
	s.PID = s.cmd.Process.Pid
	go func() {
		_ = s.cmd.Wait() // always says that it was killed
		close(s.ended)
	}()
	if err := s.wait(ctx); err != nil {
		s.Stop()
		return nil, fmt.Errorf("start an S3 server: %w: %s", err, bytes.TrimSpace(s.output.Bytes()))
	}
	return s, nil
}

// Stop kills the server: nobody needs its data any more.
func (s *Server) Stop() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.ended
}

// wait returns when the server replies.
func (s *Server) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadgen.AnswerTimeout)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Endpoint, nil)
		if err != nil {
			return err
		}
		resp, err := transport.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		select {
		case <-s.ended: // another server replied
			return errors.New("the process ended")
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if err == nil {
			return nil
		}
	}
}

// OpenBucket returns the API's file storage on an S3 server.
func OpenBucket(endpoint string) (*s3blob.Store, error) {
	bucket := s3blob.Bucket{Name: Bucket, Region: Region, Endpoint: endpoint}
	return s3blob.New(bucket, s3blob.StaticCredentials(Key, Key, ""), nil)
}

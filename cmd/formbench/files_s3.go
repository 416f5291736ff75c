package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/formsvc/toolkit/blobstore/s3blob"
	"github.com/formsvc/toolkit/cmd/formbench/internal/loadgen"
)

// What the S3 server and its clients agree on.
const (
	s3Bucket = "files"
	s3Region = "us-east-1"
	s3Key    = "formbench" // and its secret: the server is soon gone
)

// An s3Server is a process of versitygw.
type s3Server struct {
	endpoint string
	pid      int
	cmd      *exec.Cmd
	output   bytes.Buffer // to be read when the process has ended
	ended    chan struct{}
}

// s3Starts is how often to try: the port may be somebody else's.
const s3Starts = 10

// startS3 starts a server with an empty bucket and its data below a directory.
func startS3(ctx context.Context, program, dir string) (*s3Server, error) {
	data, sidecar := filepath.Join(dir, "s3"), filepath.Join(dir, "s3-attributes")
	if err := errors.Join(os.MkdirAll(filepath.Join(data, s3Bucket), 0o700), os.Mkdir(sidecar, 0o700)); err != nil {
		return nil, err
	}
	var errs error
	for try := range s3Starts {
		args := []string{data}
		if try >= s3Starts/2 { // perhaps the file system has no extended attributes
			args = []string{"--sidecar", sidecar, data}
		}
		s, err := tryS3(ctx, program, args)
		if err == nil {
			return s, nil
		}
		errs = errors.Join(errs, err)
	}
	return nil, fmt.Errorf("start an S3 server: %w", errs)
}

func tryS3(ctx context.Context, program string, args []string) (*s3Server, error) {
	// Below the range from which outgoing connections take theirs.
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(15000+rand.IntN(17000))) //nolint:gosec // no secret
	s := &s3Server{endpoint: "http://" + address, ended: make(chan struct{})}
	args = append([]string{"--quiet", "--port", address, "--region", s3Region, "posix"}, args...)
	s.cmd = exec.CommandContext(ctx, program, args...) //nolint:gosec // the user names the program
	s.cmd.Env = []string{"ROOT_ACCESS_KEY=" + s3Key, "ROOT_SECRET_KEY=" + s3Key, "PATH=" + os.Getenv("PATH")}
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	s.cmd.SysProcAttr = endWithUs()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.pid = s.cmd.Process.Pid
	go func() {
		_ = s.cmd.Wait() // always says that it was killed
		close(s.ended)
	}()
	if err := s.wait(ctx); err != nil {
		s.stop()
		return nil, fmt.Errorf("%w: %s", err, bytes.TrimSpace(s.output.Bytes()))
	}
	return s, nil
}

// stop ends the server at once: nobody needs its data any more.
func (s *s3Server) stop() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.ended
}

// wait returns when the server answers.
func (s *s3Server) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadgen.AnswerTimeout)
	defer cancel()
	transport := &http.Transport{DisableKeepAlives: true}
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.endpoint, nil)
		if err != nil {
			return err
		}
		resp, err := transport.RoundTrip(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		select {
		case <-s.ended: // whoever answered, it wasn't ours
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

// openBucket returns the blobs of the API on an S3 server.
func openBucket(endpoint string) (*s3blob.Store, error) {
	bucket := s3blob.Bucket{Name: s3Bucket, Region: s3Region, Endpoint: endpoint}
	return s3blob.New(bucket, s3blob.StaticCredentials(s3Key, s3Key, ""), nil)
}

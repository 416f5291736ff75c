//go:build long

package main

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestFirstHour runs the program as it is, twice in the same directory.
func TestFirstHour(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "embed")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	key := ""
	for start := range 2 {
		address := freeAddress(t)
		ctx, stop := context.WithCancel(t.Context())
		cmd := exec.CommandContext(ctx, program)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "ADDR="+address)
		log, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said, ended := bufio.NewReader(log), make(chan struct{})
		if start == 0 {
			line, err := said.ReadString('\n')
			if key = regexp.MustCompile(`formsvc_\w+`).FindString(line); key == "" {
				t.Fatalf("no key in %q (%v)", line, err)
			}
		}
		go func() {
			defer close(ended)
			_, _ = io.Copy(os.Stderr, said)
			_ = cmd.Wait() // its error doesn't matter
		}()
		status, body := post(ctx, t, "http://"+address+"/forms/v1/campaigns", key, ended)
		if status != http.StatusCreated {
			t.Errorf("start %d: status %d: %s", start, status, body)
		}
		stop()
		<-ended
	}
}

// freeAddress returns an unused address. Its port is below the ephemeral ports and those of other packages' tests.
func freeAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(10000+rand.IntN(5000)))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// post creates a campaign as soon as the server is up, unless it ends.
func post(ctx context.Context, t *testing.T, url, key string, ended <-chan struct{}) (status int, body string) {
	t.Helper()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"title":"Hello"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			select {
			case <-ended:
				t.Fatalf("the program ended: %v", err)
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		text, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
}

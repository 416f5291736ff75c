package main

import (
	"bytes"
	"context"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestServesUnderItsPrefix(t *testing.T) {
	var out bytes.Buffer
	log.SetOutput(&out)
	defer log.SetOutput(os.Stderr)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		done <- run(ctx, &signalling{Listener: l, accepting: ready}, filepath.Join(t.TempDir(), "forms.db"))
	}()
	select {
	case <-ready:
	case err := <-done:
		t.Fatal(err)
	}
	key := regexp.MustCompile(`formsvc_\w+`).FindString(out.String())

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Addr().String()+"/forms/v1/campaigns",
		strings.NewReader(`{"title":"Hello"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusCreated || !strings.HasPrefix(res.Header.Get("Location"), "/forms/v1/campaigns/") {
		t.Errorf("status %d, Location %q", res.StatusCode, res.Header.Get("Location"))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// signalling tells when the server accepts connections.
type signalling struct {
	net.Listener
	accepting chan struct{}
	told      bool
}

func (s *signalling) Accept() (net.Conn, error) {
	if !s.told {
		s.told = true
		close(s.accepting)
	}
	return s.Listener.Accept()
}

package delivery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

func TestNewRefuses(t *testing.T) {
	if _, err := delivery.New(nil, nil); err == nil {
		t.Error("no queue")
	}
	for name, o := range map[string]delivery.Options{
		"Timeout":         {Timeout: -1},
		"Lease":           {Lease: -1},
		"Lease (30s)":     {Lease: 30 * time.Second},
		"Lease (34.999s)": {Lease: 34999 * time.Millisecond},
		"PollInterval":    {PollInterval: -1},
		"Concurrency":     {Concurrency: -1},
		"PerEndpoint":     {PerEndpoint: -1},
		"MaxBytes":        {MaxBytes: -1},
		"Retries":         {Retries: []time.Duration{time.Second, -1}},
		"Control":         {Control: local, Transport: http.DefaultTransport},
	} {
		if _, err := delivery.New(newQueue(), &o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewAccepts(t *testing.T) {
	for _, o := range []*delivery.Options{
		nil,
		{},
		{Timeout: 5 * time.Minute}, // the default lease grows with it
		{Lease: 35 * time.Second},
		{Concurrency: 1},
		{DrainTimeout: -1},
	} {
		if _, err := delivery.New(newQueue(), o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestNowIsTheClockOfTheQueue(t *testing.T) {
	now := time.Now().Add(1000 * time.Hour)
	q := newQueue()
	q.add("d1", endpoint("a"), "body")
	q.update("d1", func(r *row) { r.due = now })
	engine := newEngine(t, q, delivery.Options{
		Now:       func() time.Time { return now },
		Transport: roundTrip(func(*http.Request) (*http.Response, error) { return answer(500) }),
	})
	if n, err := engine.RunOnce(t.Context()); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	r := q.get("d1")
	if !r.due.Equal(now.Add(time.Minute)) || !r.attempts[0].StartedAt.Equal(now) {
		t.Errorf("%+v", r)
	}
}

func TestClassesOfErrors(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, tt := range []struct {
		err   error
		class string
	}{
		{dial(&net.DNSError{Err: "no such host", Name: "a.example", IsNotFound: true}), "dns"},
		{dial(&net.DNSError{Err: "timeout", Name: "a.example", IsTimeout: true}), "dns"},
		{dial(syscall.ECONNREFUSED), "connect"},
		{dial(syscall.EHOSTUNREACH), "connect"},
		{dial(syscall.ETIMEDOUT), "timeout"},
		{dial(fmt.Errorf("checked elsewhere: %w", delivery.ErrAddressRefused)), "refused_address"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}, "tls"},
		{errors.New("tls: server selected unsupported protocol version 301"), "tls"},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, "reset"},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, "reset"},
		{errors.New("net/http: something"), "transport"},
		// Not the attempt's own context.
		{context.Canceled, "transport"},
		{context.DeadlineExceeded, "timeout"},
	} {
		a := deliver(t, "http://a.example/", delivery.Options{
			Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, tt.err }),
		})
		if a.Error != tt.class || a.Status != 0 || a.Answer != nil {
			t.Errorf("%v: %+v, want %s", tt.err, a, tt.class)
		}
	}
}

func TestUnusableURLs(t *testing.T) {
	for _, url := range []string{
		"", "/hook", "a.example/hook", "//a.example/hook", "http://", "http:///hook", "http://:80/", "file:///etc/passwd",
		"http://user:password@a.example/", "http://user@a.example/", "http://a.example/%zz", "http://[::1/", "http://a\n.example/",
	} {
		a := deliver(t, url, delivery.Options{Transport: roundTrip(ok)})
		equal(t, a.Error, delivery.ClassURL, "%q: %s", url)
	}
}

// Whatever fails, the log has no secrets, payloads or URLs.
func TestLogContainsNothingSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		q := newQueue()
		start := time.Now()
		outage := func() error {
			if time.Since(start) < 3*time.Minute {
				return errOutage
			}
			return nil
		}
		q.onFinish = func([]delivery.Outcome) error { return outage() }
		engine := newEngine(t, q, delivery.Options{
			Logger:    slog.New(slog.NewTextHandler(&out, nil)),
			Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, errors.New("secret-a hidden private") }),
		})
		q.add("d1", endpoint("a"), "private")
		_, err := engine.RunOnce(t.Context())
		q.onClaim = func(delivery.ClaimRequest) error { return errOutage }
		_, err2 := engine.RunOnce(t.Context())
		text := out.String() + fmt.Sprint(err, err2)
		for _, word := range []string{"secret-a", "hidden", "private", "example", "/hook"} {
			if strings.Contains(text, word) {
				t.Errorf("%q in %s", word, text)
			}
		}
		for _, word := range []string{"outage", "delivery=d1", "endpoint=a", "given up", "2 outcomes were not recorded"} {
			if !strings.Contains(text, word) {
				t.Errorf("no %q in %s", word, text)
			}
		}
	})
}

package httpx_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
)

// A receiver is a real server that checks each delivery against the OpenAPI document and keeps it.
type receiver struct {
	*httptest.Server

	mu      sync.Mutex
	headers []http.Header
	bodies  []string
}

func newReceiver(tb testing.TB) *receiver {
	r := new(receiver)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			tb.Error(err)
		}
		checkDelivery(tb, req.Header, body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.headers, r.bodies = append(r.headers, req.Header), append(r.bodies, string(body))
		w.WriteHeader(http.StatusNoContent)
	}))
	tb.Cleanup(r.Close)
	return r
}

// engine returns an engine that uses the world's clock and may send to this machine, where receivers run.
func (w *world) engine() *delivery.Engine {
	w.tb.Helper()
	engine, err := delivery.New(w.queue(), &delivery.Options{
		Now: func() time.Time { return w.now }, Logger: slog.New(slog.NewTextHandler(w.log, nil)),
		Control: func(string, string, syscall.RawConn) error { return nil },
	})
	if err != nil {
		w.tb.Fatal(err)
	}
	return engine
}

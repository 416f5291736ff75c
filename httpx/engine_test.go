package httpx_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A receiver is a real server that replies with the statuses in turn. It checks each delivery against the OpenAPI
// document and keeps it.
type receiver struct {
	*httptest.Server
	statuses []int

	mu      sync.Mutex
	headers []http.Header
	bodies  []string
}

func newReceiver(tb testing.TB, statuses ...int) *receiver {
	r := &receiver{statuses: statuses}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			tb.Error(err)
		}
		checkDelivery(tb, req.Header, body)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.headers, r.bodies = append(r.headers, req.Header), append(r.bodies, string(body))
		w.WriteHeader(r.statuses[len(r.bodies)-1])
		_, _ = fmt.Fprintf(w, "answer %d", len(r.bodies))
	}))
	tb.Cleanup(r.Close)
	return r
}

// run sends all due deliveries once.
func (w *world) run(engine *delivery.Engine, want int) {
	w.tb.Helper()
	if n, err := engine.RunOnce(w.tb.Context()); err != nil || n != want {
		w.tb.Fatalf("%d attempts, %v, want %d", n, err, want)
	}
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

// The whole life of a delivery: subscription, event, failed attempts, redelivery, and what the API shows of them.
func TestDeliveryFromEventToRedelivery(t *testing.T) {
	w := newWorld(t, nil)
	engine := w.engine()
	r := newReceiver(t, 500, 302, 404, 503, 200, 200, 200)
	hook := w.do("POST", "/v1/webhooks", hookTo(r.URL+"/in?token=x", `"headers":{"X-Token":"for the receiver"}`)).is(201, "")
	path := hook.header.Get("Location")
	w.response(w.campaign(plainCampaign))
	list := path + "/deliveries?state="
	for i, wait := range []time.Duration{0, time.Minute, 5 * time.Minute, 30 * time.Minute} {
		w.now = w.now.Add(wait)
		w.run(engine, 1)
		if n := w.total(list + "pending"); (n == 1) != (i < 3) {
			t.Fatalf("after attempt %d %d deliveries are pending", i+1, n)
		}
	}
	ids, _ := w.page(list + "failed")
	if len(ids) != 1 {
		t.Fatalf("%d failed deliveries", len(ids))
	}
	made := w.do("GET", "/v1/deliveries/"+ids[0], "").is(200, "").has(`4`, "attemptCount").has(`"failed"`, "state")
	attempts, _ := made.at("attempts").([]any)
	for i, want := range []struct {
		status float64
		class  string
	}{{500, "status"}, {302, "redirect"}, {404, "status"}, {503, "status"}} {
		m, _ := attempts[i].(map[string]any)
		if _, isNumber := m["durationMs"].(float64); m["number"] != float64(i+1) || m["status"] != want.status ||
			m["error"] != want.class || m["answer"] != fmt.Sprintf("answer %d", i+1) || !isNumber {
			t.Errorf("attempt %d: %v", i+1, m)
		}
	}
	w.do("POST", path+"/redeliver", `{"since":"2026-11-21T08:30:00Z"}`).is(200, "").has(`1`, "redelivered")
	w.run(engine, 1)
	w.do("GET", "/v1/deliveries/"+ids[0], "").is(200, "").has(`"delivered"`, "state").has(`5`, "attemptCount")
	w.do("POST", "/v1/deliveries/"+ids[0]+"/redeliver", "").is(200, "")
	w.run(engine, 1)
	w.do("GET", "/v1/deliveries/"+ids[0], "").is(200, "").has(`"delivered"`, "state").has(`6`, "attemptCount")

	test := w.do("POST", path+"/test", "").is(201, "")
	w.run(engine, 1)
	w.do("GET", test.header.Get("Location"), "").is(200, "").has(`"delivered"`, "state").has(`true`, "test")
	r.check(t, hook.text("secret"))
	shown, _ := w.follow("", "")
	if !slices.Equal(shown, r.bodies[:1]) || len(slices.Compact(slices.Clone(r.bodies))) != 2 {
		t.Errorf("shown %q, received %q", shown, r.bodies)
	}
	if strings.Contains(w.log.String(), "for the receiver") || strings.Contains(w.log.String(), hook.text("secret")) {
		t.Errorf("log: %s", w.log)
	}
}

// check checks that each delivery is signed with the secret that the API showed, and has the webhook's custom header.
func (r *receiver) check(t *testing.T, secret string) {
	t.Helper()
	verifier, err := webhook.NewVerifier([]string{secret}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, header := range r.headers {
		if _, err := verifier.Verify([]byte(r.bodies[i]), header); err != nil || header.Get("X-Token") != "for the receiver" {
			t.Errorf("request %d: %v, %v", i+1, err, header)
		}
	}
}

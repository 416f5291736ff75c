package main

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// The first start of the program on an empty database creates an account and prints its key once.
func TestFirstStartPrintsAccountAndKeyOnce(t *testing.T) {
	t.Parallel()
	for name, sh := range map[string]*shell{"sqlite": newShell(t), "postgres": onPostgres(t)} {
		early := sh.execute(t, "", "keys", "list")
		if <-early.ctx.Done(); early.status != 1 {
			t.Errorf("%s: a command ended with status %d: %s", name, early.status, &early.log)
		}
		s := sh.spawn(t)
		contains(t, name, s.out.String(), `account "default"`, s.url+"/v1/campaigns", s.url+"/docs")
		s.call(t, http.StatusOK, http.MethodGet, "/v1/me", nil)
		equal(t, s.stop(), 0, "%s: status %d after SIGTERM", name)
		lacks(t, "the log", s.log.String(), s.key)

		again := sh.spawn(t)
		equal(t, again.out.String(), "", "%s: the second start prints:\n%s", name)
		again.key = s.key
		again.call(t, http.StatusOK, http.MethodGet, "/v1/me", nil)
		again.key = ""
		again.call(t, http.StatusOK, http.MethodGet, "/docs", nil)
		root := again.call(t, http.StatusOK, http.MethodGet, "/", nil)
		for _, path := range []string{"/docs", "/openapi.json", "/console"} {
			contains(t, "/", root, `"href":"`+again.url+path+`"`)
		}
		contains(t, "/openapi.json", again.call(t, http.StatusOK, http.MethodGet, "/openapi.json", nil), `"url": "`+again.url+`"`)
	}
}

// A new user's first hour: a campaign, a webhook, a response, a status. Deliveries have the fields and the signature of the
// specification, and the API's response.
func TestResponseAndStatusArriveAtWebhook(t *testing.T) {
	t.Parallel()
	s := newShell(t).spawn(t)
	r := receive(t)
	s.hook(t, r.URL()+"/hooks/forms?tenant=7", "all")
	campaign := s.campaign(t)
	created := objects(t, s.call(t, http.StatusCreated, http.MethodPost, responses(campaign), submission("ada@example.com", "yes")))[0]
	arrived(t, r, 1)
	path := responses(campaign) + "/" + created["uuid"].(string)
	updated := objects(t, s.call(t, http.StatusOK, http.MethodPatch, path, map[string]string{"status": "completed"}))[0]
	key := s.list(t, "keys", "list")[0]["uuid"]
	want := map[any]map[string]any{"response.created": created, "response.status_changed": updated, "response.completed": updated}
	for _, got := range arrived(t, r, 3) {
		payload := objects(t, string(got.Delivery.Body))[0]
		name := payload["event"]
		data := map[string]any{"campaign": map[string]any{"uuid": campaign, "title": "Survey"}, "response": want[name],
			"actor": map[string]any{"type": "key", "id": key, "name": "first key"}}
		if delete(want, name); name != "response.created" {
			data["previousStatus"] = "pending"
		}
		if _, err := time.Parse("2006-01-02T15:04:05.000Z", payload["timestamp"].(string)); err != nil ||
			len(payload) != 4 || payload["id"] != got.Header.Get("webhook-id") || !reflect.DeepEqual(payload["data"], data) {
			t.Errorf("%v is\n%v, want\n%v", name, payload, data)
		}
		mac := hmac.New(sha256.New, []byte(testSecret)) // shares no code with the program
		mac.Write(got.Delivery.Body)
		if h := got.Header; h.Get("x-service-signature") != hex.EncodeToString(mac.Sum(nil)) || h.Get("Content-Type") != "application/json" ||
			h.Get("X-Service-Event") != name || h.Get("X-Service-Attempt") != "1" || got.Path != "/hooks/forms" {
			t.Errorf("%v came to %s with %v", name, got.Path, h)
		}
	}
	if got := objects(t, s.call(t, http.StatusOK, http.MethodGet, path, nil))[0]; !reflect.DeepEqual(got, updated) {
		t.Errorf("read: %v, want %v", got, updated)
	}
}

// A request that was accepted before SIGTERM gets its response even if its body comes later, while new connections are
// already refused.
func TestTerminationWaitsForSlowRequest(t *testing.T) {
	t.Parallel()
	sh := newShell(t)
	s := sh.spawn(t)
	campaign := s.campaign(t)
	body := must(json.Marshal(submission("slow@example.com", "yes")))
	host := strings.TrimPrefix(s.url, "http://")
	conn := must(net.Dial("tcp", host))
	defer func() { _ = conn.Close() }()
	write := func(text string) {
		must(io.WriteString(conn, text))
	}
	write("POST " + responses(campaign) + " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + s.key +
		"\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n")
	answers := bufio.NewReader(conn)
	// This response comes when the handler starts to read the body.
	if resp, err := http.ReadResponse(answers, nil); err != nil || resp.StatusCode != http.StatusContinue {
		t.Fatalf("the server does not ask for the body: %v, %v", resp, err)
	}
	write(string(body[:len(body)/2]))
	s.cancel()
	until(t, "new connections are refused", func() bool {
		other, err := net.Dial("tcp", host)
		if err == nil {
			_ = other.Close()
		}
		return err != nil
	})
	write(string(body[len(body)/2:]))
	resp, err := http.ReadResponse(answers, nil)
	if err != nil {
		t.Fatalf("the request was cut off: %v", err)
	}
	defer resp.Body.Close()
	var made struct{ UUID string }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatalf("the request was answered with %s (%v)", resp.Status, err)
	}
	equal(t, s.stop(), 0, "status %d")
	again := sh.serve(t)
	again.key = s.key
	contains(t, "stored", again.call(t, http.StatusOK, http.MethodGet, responses(campaign)+"/"+made.UUID, nil), "slow@example.com")
}

// A hanging receiver delays the shutdown by at most the drain time. The interrupted delivery is sent again right after the
// restart, and doesn't count as an attempt.
func TestTerminationReturnsHangingDeliveryToQueue(t *testing.T) {
	t.Parallel()
	sh, lease := onPostgres(t), []string{"--webhook-lease", "24h"}
	s := sh.spawn(t, lease...)
	r := receive(t)
	r.AnswerAlways(webhooktest.Reply{Hang: true})
	s.hook(t, r.URL(), "all")
	s.submit(t, s.campaign(t))
	first := arrived(t, r, 1)[0]
	equal(t, s.stop(), 0, "status %d")
	r.AnswerAlways(webhooktest.Reply{})
	sh.spawn(t, lease...)
	if again := arrived(t, r, 2)[1]; string(again.Delivery.Body) != string(first.Delivery.Body) || again.Header.Get("X-Service-Attempt") != "1" {
		t.Errorf("it came again with %v:\n%s\n%s", again.Header, first.Delivery.Body, again.Delivery.Body)
	}
}

// After SIGTERM a node serves for its drain delay: /readyz returns 503, and each response closes its connection, even a new
// one. A second signal ends it at once.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	s := newShell(t).spawn(t, "--drain-delay", "1h")
	campaign := s.campaign(t)
	s.call(t, http.StatusOK, http.MethodGet, "/readyz", nil)
	s.cancel()
	until(t, "the node is not ready", func() bool {
		a := s.get(t, "/readyz")
		return a.status == http.StatusServiceUnavailable && strings.Contains(a.body, `"not_ready"`)
	})
	for range 3 {
		reused := true
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
		a, err := s.ask(ctx, http.MethodPost, responses(campaign), submission("late@example.com", "yes"))
		if err != nil || a.status != http.StatusCreated || reused {
			t.Errorf("a request while the node leaves: %v, %d %s; over a connection that stayed open: %t", err, a.status, a.body, reused)
		}
		s.call(t, http.StatusOK, http.MethodGet, "/healthz", nil)
	}
	if s.ctx.Err() != nil {
		t.Error("the node ended within its drain delay")
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	<-s.ctx.Done()
}

// --log-requests logs a line for each request, without secrets and personal data.
func TestRequestsAreLogged(t *testing.T) {
	t.Parallel()
	s := newShell(t).serve(t, "--log-requests", "--trusted-proxy", "127.0.0.0/8,10.0.0.0/8")
	campaign := s.campaign(t)
	response := s.submit(t, campaign)
	link := strings.TrimSpace(s.do(t, "console-link"))
	for _, path := range []string{"/v1/me?key=secret-query", "/secret-path", strings.TrimPrefix(link, s.url), "/v1/campaigns/" + campaign} {
		s.get(t, path, "X-Forwarded-For: 192.0.2.66, 203.0.113.9, 10.1.2.3", "X-Request-Id: find-me")
	}
	s.stop()
	type logged struct {
		Method, Route, Client, RequestID string
		Status                           int
	}
	want := []logged{
		{"POST", "/v1/campaigns", "127.0.0.1", "", 201},
		{"POST", "/v1/campaigns/{uuid}/responses", "127.0.0.1", "", 201},
		{"GET", "/v1/me", "203.0.113.9", "find-me", 400},
		{"GET", "other", "203.0.113.9", "find-me", 404},
		{"GET", "/console/", "203.0.113.9", "", 200},
		{"GET", "/v1/campaigns/{uuid}", "203.0.113.9", "find-me", 200},
	}
	for line := range strings.Lines(s.log.String()) {
		var l struct {
			logged
			Level, Msg, Protocol string
			Bytes                int64
			DurationMs           float64
		}
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if l.Msg != "request" {
			continue
		}
		if len(want) == 0 || l.DurationMs <= 0 || l.Bytes <= 0 || l.Protocol != "HTTP/1.1" || l.Level != "INFO" {
			t.Fatalf("%s", line)
		}
		if want[0].RequestID == "" {
			l.RequestID = "" // a generated one
		}
		equal(t, l.logged, want[0], "got %+v")
		want = want[1:]
	}
	if len(want) > 0 {
		t.Errorf("not logged: %v", want)
	}
	lacks(t, "the log", s.log.String(), s.key, "secret-", filepath.Base(link), response, campaign, "ada@example.com", "192.0.2.66")
}

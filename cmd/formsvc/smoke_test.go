package main_test

import (
	"bufio"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook/webhooktest"
)

// The first start on an empty database creates an account and prints its key once.
func TestFirstStartPrintsAccountAndKeyOnce(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		key := s.firstKey(t)
		if strings.Contains(s.log.String(), key) {
			t.Errorf("the key is in the log")
		}
		for _, want := range []string{`account "default"`, s.url + "/v1/campaigns", s.url + "/docs"} {
			if !strings.Contains(s.out.String(), want) {
				t.Errorf("the first start does not print %q:\n%s", want, s.out.String())
			}
		}
		newClient(t, s.url, key).want(t, http.StatusOK, http.MethodGet, "/v1/me", nil, nil)
		nobody := newClient(t, s.url, "")
		nobody.want(t, http.StatusOK, http.MethodGet, "/docs", nil, nil)
		root := string(nobody.want(t, http.StatusOK, http.MethodGet, "/", nil, nil).body)
		for _, want := range []string{s.url + "/docs", s.url + "/openapi.json", s.url + "/settings"} {
			if !strings.Contains(root, `"href":"`+want+`"`) {
				t.Errorf("/ does not lead to %s: %s", want, root)
			}
		}
		description := nobody.want(t, http.StatusOK, http.MethodGet, "/openapi.json", nil, nil)
		if want := `"url": "` + s.url + `"`; !strings.Contains(string(description.body), want) {
			t.Errorf("/openapi.json does not name the server: no %s", want)
		}
		s.terminate(t)
		s.stopped(t)

		again := start(t, dsn)
		newClient(t, again.url, key).want(t, http.StatusOK, http.MethodGet, "/v1/me", nil, nil)
		again.terminate(t)
		again.stopped(t)
		if got := again.out.String(); got != "" {
			t.Errorf("the second start prints:\n%s", got)
		}
	})
}

// A new user's first hour: a campaign, a webhook, a response, a status.
func TestResponseAndStatusArriveAtWebhook(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		c := newClient(t, s.url, s.firstKey(t))
		campaign := c.campaign(t, "Bicycle survey – Übermut")
		r := receiver(t)
		hook(t, dsn, r.URL()+"/hooks/forms?tenant=7", "all")

		created := c.want(t, http.StatusCreated, http.MethodPost, responsesPath(campaign), submission("first"), nil)
		got := arrivals(t, r, 1)
		answered := object(t, created.body)
		path := responsePath(campaign, answered["uuid"].(string))
		if want := s.url + path; created.header.Get("Location") != want {
			t.Errorf("Location is %q, want %q", created.header.Get("Location"), want)
		}
		checkPayload(t, &got[0], "response.created", campaign, answered, nil)

		updated := c.want(t, http.StatusOK, http.MethodPatch, path, map[string]string{"status": "completed"}, nil)
		got = arrivals(t, r, 3)
		answered = object(t, updated.body)
		if answered["status"] != "completed" || answered["completedAt"] == nil {
			t.Errorf("the status update is answered with %s", updated.body)
		}
		slices.SortFunc(got[1:], func(a, b webhooktest.Received) int {
			return strings.Compare(string(b.Delivery.Event), string(a.Delivery.Event))
		})
		extra := map[string]any{"previousStatus": "pending"}
		checkPayload(t, &got[1], "response.status_changed", campaign, answered, extra)
		checkPayload(t, &got[2], "response.completed", campaign, answered, extra)

		read := c.want(t, http.StatusOK, http.MethodGet, path, nil, nil)
		if !reflect.DeepEqual(object(t, read.body), answered) {
			t.Errorf("read: %s\nwant: %s", read.body, updated.body)
		}
	})
}

var (
	timestampPattern = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)
	uuidPattern      = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
)

// checkPayload checks a delivery: the fields of the specification with their types, and that there are no others except
// the contract's additions.
func checkPayload(
	t testing.TB, got *webhooktest.Received, name, campaign string, response, extra map[string]any,
) {
	t.Helper()
	payload := object(t, got.Delivery.Body)
	data, _ := payload["data"].(map[string]any)
	checkResponse(t, data["response"])
	if payload["event"] != name {
		t.Errorf("event is %v, want %s", payload["event"], name)
	}
	if s, _ := payload["timestamp"].(string); !timestampPattern.MatchString(s) {
		t.Errorf("%s: timestamp is %v, want ISO 8601 in UTC", name, payload["timestamp"])
	}

	wantData := map[string]any{
		"campaign": map[string]any{"uuid": campaign, "title": "Bicycle survey – Übermut"},
		"response": response,
	}
	maps.Copy(wantData, extra)
	want := map[string]any{
		"id": payload["id"], "event": name, "timestamp": payload["timestamp"], "data": wantData,
	}
	if !reflect.DeepEqual(payload, want) {
		t.Errorf("%s is\n%v, want\n%v", name, payload, want)
	}
	if s, _ := payload["id"].(string); !uuidPattern.MatchString(s) {
		t.Errorf("%s: id is %v, want a UUID of version 7", name, payload["id"])
	}
	for header, want := range map[string]string{
		"Content-Type": "application/json", "X-Service-Event": name, "X-Service-Attempt": "1",
	} {
		if v := got.Header.Get(header); v != want {
			t.Errorf("%s: %s is %q, want %q", name, header, v, want)
		}
	}
	if got.Path != "/hooks/forms" {
		t.Errorf("%s: sent to %s", name, got.Path)
	}
}

// checkResponse checks the fields of a response that the specification lists.
func checkResponse(t testing.TB, v any) {
	t.Helper()
	r, _ := v.(map[string]any)
	for _, member := range []string{"uuid", "reference", "status", "createdAt"} {
		if s, _ := r[member].(string); s == "" {
			t.Errorf("response: %s is %v, want text", member, r[member])
		}
	}
	want := submission("first")
	user := map[string]any{"email": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace"}
	answers := map[string]any{"marker": map[string]any{"value": []any{"first"}}}
	if !reflect.DeepEqual(r["user"], user) || !reflect.DeepEqual(r["responses"], answers) {
		t.Errorf("response: user and responses are %v and %v, want those of %v", r["user"], r["responses"], want)
	}
	if s, _ := r["createdAt"].(string); !timestampPattern.MatchString(s) {
		t.Errorf("response: createdAt is %v, want ISO 8601 in UTC", r["createdAt"])
	}
}

// longLease sets leases that never end during a test: deliveries that arrive after a restart were returned to the queue.
var longLease = []string{"--webhook-lease", "24h"}

// A request that was accepted before SIGTERM gets its response even if its body comes later, while new connections are
// already refused.
func TestTerminationWaitsForSlowRequest(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn)
		key := s.firstKey(t)
		campaign := newClient(t, s.url, key).campaign(t, "Slow")
		body, err := json.Marshal(submission("slow"))
		if err != nil {
			t.Fatal(err)
		}
		host := strings.TrimPrefix(s.url, "http://")
		conn, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		write := func(text string) {
			if _, err := io.WriteString(conn, text); err != nil {
				t.Fatal(err)
			}
		}
		write("POST " + responsesPath(campaign) + " HTTP/1.1\r\nHost: " + host + "\r\nAuthorization: Bearer " + key +
			"\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n")
		answers := bufio.NewReader(conn)
		// This response comes when the handler starts to read the body.
		if resp, err := http.ReadResponse(answers, nil); err != nil || resp.StatusCode != http.StatusContinue {
			t.Fatalf("the server does not ask for the body: %v, %v", resp, err)
		}
		write(string(body[:len(body)/2]))

		s.terminate(t)
		eventually(t, "new connections are refused", func() bool {
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
		var r response
		if err := json.NewDecoder(resp.Body).Decode(&r); err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("the request was answered with %s (%v)", resp.Status, err)
		}
		s.stopped(t)

		s = start(t, dsn)
		var stored response
		newClient(t, s.url, key).want(t, http.StatusOK, http.MethodGet, responsePath(campaign, r.UUID), nil, &stored)
		if stored.Reference != r.Reference {
			t.Errorf("answered %+v, stored %+v", r, stored)
		}
	})
}

// A hanging receiver delays the shutdown by at most the drain time. The interrupted delivery is sent again right after the
// restart, and doesn't count as an attempt.
func TestTerminationReturnsHangingDeliveryToQueue(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, dsn string) {
		s := start(t, dsn, longLease...)
		c := newClient(t, s.url, s.firstKey(t))
		r := receiver(t)
		r.AnswerAlways(webhooktest.Reply{Hang: true})
		hook(t, dsn, r.URL(), "all")
		c.submit(t, c.campaign(t, "Hang"), "x")
		first := arrivals(t, r, 1)[0]
		s.terminate(t)
		t.Logf("ended %v after SIGTERM", s.stopped(t).Round(time.Millisecond))

		r.AnswerAlways(webhooktest.Reply{})
		start(t, dsn, longLease...)
		got := arrivals(t, r, 2)
		if string(got[1].Delivery.Body) != string(first.Delivery.Body) {
			t.Errorf("the delivery came again with other bytes:\n%s\n%s", first.Delivery.Body, got[1].Delivery.Body)
		}
		if n := got[1].Header.Get("X-Service-Attempt"); n != "1" {
			t.Errorf("the delivery came again as attempt %s; the one that was cut off does not count", n)
		}
	})
}

// --log-requests logs a line for each request, without secrets and personal data.
func TestRequestsAreLogged(t *testing.T) {
	t.Parallel()
	s := start(t, databases()[0].dsn(t), "--log-requests", "--trusted-proxy", "127.0.0.0/8,10.0.0.0/8")
	c := newClient(t, s.url, s.firstKey(t))
	campaign := c.campaign(t, "Logged")
	r := c.submit(t, campaign, "secret-answer")
	link := strings.TrimSpace(manage(t, s.dsn, "settings-link", "--base-url", s.url))
	for _, path := range []string{"/v1/me?key=secret-query", "/secret-path", strings.TrimPrefix(link, s.url), "/v1/campaigns/" + campaign} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.key)
		req.Header.Set("X-Forwarded-For", "192.0.2.66, 203.0.113.9, 10.1.2.3")
		req.Header.Set("X-Request-Id", "find-me")
		if _, err := c.answered(req); err != nil {
			t.Fatal(err)
		}
	}
	var got []logged
	eventually(t, "all requests are logged", func() bool { got = s.requests(t); return len(got) == 6 })
	for i, want := range []logged{
		{Method: "POST", Route: "/v1/campaigns", Status: 201, Client: "127.0.0.1"},
		{Method: "POST", Route: "/v1/campaigns/{uuid}/responses", Status: 201, Client: "127.0.0.1"},
		{Method: "GET", Route: "/v1/me", Status: 400, Client: "203.0.113.9", RequestID: "find-me"},
		{Method: "GET", Route: "other", Status: 404, Client: "203.0.113.9", RequestID: "find-me"},
		{Method: "GET", Route: "/settings/", Status: 200, Client: "203.0.113.9"},
		{Method: "GET", Route: "/v1/campaigns/{uuid}", Status: 200, Client: "203.0.113.9", RequestID: "find-me"},
	} {
		l := got[i]
		if l.DurationMs <= 0 || l.Bytes <= 0 || l.Protocol != "HTTP/1.1" || l.Level != "INFO" || want.RequestID != "" && l.RequestID != want.RequestID {
			t.Errorf("%+v", l)
		}
		l = logged{Method: l.Method, Route: l.Route, Status: l.Status, Client: l.Client, RequestID: want.RequestID}
		if l != want {
			t.Errorf("got %+v, want %+v", l, want)
		}
	}
	for _, text := range []string{c.key, "secret-", filepath.Base(link), r.UUID, campaign, "192.0.2.66"} {
		if strings.Contains(s.log.String(), text) {
			t.Errorf("the log has %q in it", text)
		}
	}
}

// After SIGTERM a node serves for its drain delay: /readyz returns 503, and each response closes its connection, even a new
// one.
func TestDrainDelay(t *testing.T) {
	t.Parallel()
	s := start(t, databases()[0].dsn(t), "--drain-delay", "1h")
	c := newClient(t, s.url, s.firstKey(t))
	campaign := c.campaign(t, "Drain")
	status := func() int {
		a, err := c.do(t.Context(), http.MethodGet, "/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		if a.status != http.StatusOK && !strings.Contains(string(a.body), `"not_ready"`) {
			t.Fatalf("/readyz answers %s", a.body)
		}
		return a.status
	}
	if got := status(); got != http.StatusOK {
		t.Fatalf("/readyz answers %d before SIGTERM", got)
	}
	s.terminate(t)
	eventually(t, "the node is not ready", func() bool { return status() == http.StatusServiceUnavailable })
	for range 3 {
		reused := true
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused },
		})
		a, err := c.do(ctx, http.MethodPost, responsesPath(campaign), submission("late"))
		if err != nil || a.status != http.StatusCreated || reused {
			t.Errorf("a request while the node leaves: %v, %d %s; over a connection that stayed open: %t", err, a.status, a.body, reused)
		}
		c.want(t, http.StatusOK, http.MethodGet, "/healthz", nil, nil)
	}
	if s.ended() {
		t.Error("the node ended within its drain delay")
	}
	s.terminate(t)
	eventually(t, "the second signal ends it", s.ended)
}

//go:build long

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// All nodes agree on revoked keys, sessions and idempotency keys, and HAProxy works in front of them.
func TestNodesShareRevocationsAndSessions(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "s3", "--drain-delay", "0s", "--ready", "database,files")
	b := c.balance(t)
	t.Run("revoked keys", func(t *testing.T) { c.revokes(t) })
	t.Run("sessions", func(t *testing.T) { c.signsInAndOut(t, b) })
	t.Run("idempotency keys", func(t *testing.T) {
		campaign := c.client(t, 0).campaign(t, "Once")
		body, err := json.Marshal(submission("once"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.nodes {
			if a, err := c.client(t, i).once(t.Context(), responsesPath(campaign), "key", body, nil); err != nil || a.status != http.StatusCreated {
				t.Errorf("node %d: %d, %v", i, a.status, err)
			}
		}
		if n := len(c.client(t, 2).list(t, campaign)); n != 1 {
			t.Errorf("%d responses, want 1", n)
		}
	})
	t.Run("no node is ready", func(t *testing.T) { c.losesItsBucket(t, b) })
	t.Run("a node hangs up", func(t *testing.T) { c.hangsUp(t, b) })
}

// revokes creates a key that all nodes have cached, and revokes it.
func (c *cluster) revokes(t *testing.T) {
	made := object(t, []byte(c.manage(t, "keys", "create", "--name", "short-lived", "--permissions", "campaigns:read", "--json")))
	key, _ := made["key"].(string)
	uuid, _ := made["uuid"].(string)
	clients := make([]*client, clusterNodes)
	for i, node := range c.nodes {
		clients[i] = newClient(t, node.url, key)
		clients[i].want(t, http.StatusOK, http.MethodGet, "/v1/me", nil, nil)
	}
	c.manage(t, "keys", "revoke", uuid)
	began := time.Now()
	for i, client := range clients {
		eventually(t, "the revoked key is refused", func() bool {
			a, err := client.do(t.Context(), http.MethodGet, "/v1/me", nil)
			return err == nil && a.status == http.StatusUnauthorized
		})
		t.Logf("node %d refused the revoked key after %v (the contract says 2s)", i, time.Since(began).Round(time.Millisecond))
	}
	for _, client := range slices.Repeat(clients, 3) { // no cache lets it in again
		client.want(t, http.StatusUnauthorized, http.MethodGet, "/v1/me", nil, nil)
	}
}

// signsInAndOut begins a session on one node and ends it through HAProxy.
func (c *cluster) signsInAndOut(t *testing.T, b *balancer) {
	v := newVisitor(t, c.nodes[0].url)
	if status := v.signIn(c.manage(t, "settings-link", "--base-url", c.nodes[0].url)); status != http.StatusOK {
		t.Fatalf("signing in: %d %s", status, v.body)
	}
	page, err := url.Parse(v.site + "/settings/keys")
	if err != nil {
		t.Fatal(err)
	}
	// An attacker who keeps the cookie, which a browser drops on signing out.
	other := newVisitor(t, "")
	other.client.Jar.SetCookies(page, v.client.Jar.Cookies(page))
	known := func(want int) {
		for _, other.site = range []string{b.url, b.url, b.url, c.nodes[0].url, c.nodes[1].url, c.nodes[2].url} {
			if status := other.get("/keys"); status != want {
				t.Errorf("%s: %d, want %d", other.site, status, want)
			}
		}
	}
	known(http.StatusOK)
	v.site = b.url
	v.get("/keys")
	if status := v.post("/sign-out", url.Values{}); status != http.StatusOK {
		t.Fatalf("signing out: %d %s", status, v.body)
	}
	known(http.StatusUnauthorized)
}

// losesItsBucket stops the bucket of all nodes, which --ready makes count: requests without files keep working.
func (c *cluster) losesItsBucket(t *testing.T, b *balancer) {
	client := newClient(t, b.url, c.key)
	campaign := client.campaign(t, "No bucket")
	c.server.Stop()
	for i := range c.nodes {
		eventually(t, "haproxy sees that no node is ready", func() bool {
			return strings.HasPrefix(b.status(t, "ready", i), "DOWN") && b.status(t, "alive", i) == "UP"
		})
	}
	r := client.submit(t, campaign, "x")
	w := &filing{client: client, response: responsePath(campaign, r.UUID)}
	a, err := w.send(t.Context(), "a", strings.NewReader("a"), 1)
	if err != nil || a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("an upload without a bucket: %v, %d %s", err, a.status, a.body)
	}
	c.server.Restart()
	for i := range c.nodes {
		b.up(t, i)
	}
	w.upload(t, "a", []byte("a"))
}

// hangsUp kills nodes. Reads, and POSTs with an Idempotency-Key, succeed whenever that happens. Without any node, HAProxy
// returns 503.
func (c *cluster) hangsUp(t *testing.T, b *balancer) {
	clients := make([]*client, 12)
	for i := range clients {
		clients[i] = newClient(t, b.url, c.key)
	}
	campaign := clients[0].campaign(t, "Hang up")
	ctx, end := context.WithCancel(t.Context())
	var all sync.WaitGroup
	var served atomic.Int64
	for i, client := range clients {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				body := fmt.Appendf(nil, `{"user":{"email":"ada@example.com"},"responses":{"n":{"value":["%d-%d"]}}}`, i, n)
				a, err := client.once(t.Context(), responsesPath(campaign), fmt.Sprintf("%d-%d", i, n), body, nil)
				if err != nil || a.status != http.StatusCreated {
					t.Errorf("a POST with an Idempotency-Key: %v, %d %s", err, a.status, a.body)
				}
				a, err = client.do(t.Context(), http.MethodGet, "/v1/campaigns/"+campaign, nil)
				if err != nil || a.status != http.StatusOK {
					t.Errorf("a GET: %v, %d %s", err, a.status, a.body)
				}
				served.Add(1)
			}
		})
	}
	for i := range clusterNodes - 1 {
		before := served.Load()
		eventually(t, "there is load", func() bool { return served.Load() > before+100 || t.Failed() })
		c.nodes[i].kill()
		eventually(t, "haproxy sees that a node died", func() bool { return strings.HasPrefix(b.status(t, "ready", i), "DOWN") })
	}
	before := served.Load()
	eventually(t, "the last node serves", func() bool { return served.Load() > before+100 || t.Failed() })
	end()
	all.Wait()
	if n := len(c.client(t, clusterNodes-1).list(t, campaign)); int64(n) != served.Load() {
		t.Errorf("%d responses, want %d", n, served.Load())
	}
	c.nodes[clusterNodes-1].kill()
	a, err := newClient(t, b.url, c.key).do(t.Context(), http.MethodGet, "/v1/me", nil)
	if err != nil || a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") != "1" ||
		a.header.Get("Content-Type") != "application/problem+json" || object(t, a.body)["requestId"] != a.header.Get("X-Request-Id") {
		t.Errorf("without nodes: %v, %d %v %s", err, a.status, a.header, a.body)
	}
}

// HAProxy repeats only requests that are safe to repeat, passes on the client's address, and doesn't change responses.
func TestProxyRepeatsOnlySafeRequests(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	arrived := make(map[string][]http.Header) // by path
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" || r.URL.Path == "/healthz" {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		mu.Lock()
		arrived[r.URL.Path] = append(arrived[r.URL.Path], r.Header)
		mu.Unlock()
		if r.Header.Get("X-Answer") == "" {
			panic(http.ErrAbortHandler) // the node dies
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	c := &cluster{public: freeAddrs(t, 1)[0]}
	for range clusterNodes {
		node := httptest.NewServer(handler)
		t.Cleanup(node.Close)
		c.addrs = append(c.addrs, strings.TrimPrefix(node.URL, "http://"))
	}
	b := c.balance(t)
	for i, x := range []struct {
		method, key, answer string
		size                int
		repeated            bool
		status              int
	}{
		{http.MethodGet, "", "", 0, true, http.StatusBadGateway},
		{http.MethodPost, "k", "", 1000, true, http.StatusBadGateway},
		{http.MethodPost, "", "", 1000, false, http.StatusBadGateway},
		{http.MethodPost, "", "", 0, false, http.StatusBadGateway},
		{http.MethodPut, "k", "", 1000, false, http.StatusBadGateway},
		{http.MethodPatch, "k", "", 1000, false, http.StatusBadGateway},
		{http.MethodDelete, "k", "", 0, false, http.StatusBadGateway},
		{http.MethodGet, "", "503", 0, false, http.StatusServiceUnavailable},
		{http.MethodPost, "k", "503", 1000, false, http.StatusServiceUnavailable},
	} {
		path := fmt.Sprint("/", i)
		req, err := http.NewRequestWithContext(t.Context(), x.method, b.url+path, strings.NewReader(strings.Repeat("x", x.size)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Forwarded-For", "192.0.2.1")
		req.Header.Set("Forwarded", "for=192.0.2.1")
		req.Header.Set("X-Answer", x.answer)
		if x.key != "" {
			req.Header.Set("Idempotency-Key", x.key)
		}
		a, err := newClient(t, b.url, "").answered(req)
		if err != nil || a.status != x.status || (x.answer == "" && object(t, a.body)["code"] != "outcome_unknown") {
			t.Errorf("%+v: %v, %d %s", x, err, a.status, a.body)
		}
		mu.Lock()
		if n := len(arrived[path]); n == 0 || (n > 1) != x.repeated {
			t.Errorf("%+v was sent to nodes %d times", x, n)
		}
		for _, header := range arrived[path] {
			if from := header["X-Forwarded-For"]; len(from) != 1 || from[0] != "127.0.0.1" || header["Forwarded"] != nil {
				t.Errorf("%+v came from %q and %q", x, from, header["Forwarded"])
			}
		}
		mu.Unlock()
	}
}

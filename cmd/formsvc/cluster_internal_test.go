//go:build long

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Without their bucket, which --ready makes count, no node is ready, but requests without files succeed. When nodes die, requests
// that are safe to repeat succeed. Without any node, HAProxy returns 503.
func TestNodesDieBehindProxy(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "--drain-delay", "0s", "--ready", "database,files")
	b := c.balance(t)
	campaign := b.campaign(t)
	c.bucket.Stop()
	for i := range c.nodes {
		until(t, "haproxy sees that no node is ready", func() bool {
			return strings.HasPrefix(b.status(t, "ready", i), "DOWN") && b.status(t, "alive", i) == "UP"
		})
	}
	files := responses(campaign) + "/" + b.submit(t, campaign) + "/files"
	a, err := b.ask(t.Context(), http.MethodPost, files, content(1, 10))
	if err != nil || a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Errorf("an upload without a bucket: %v, %v", a, err)
	}
	c.bucket.Restart()
	for i := range c.nodes {
		b.up(t, i)
	}
	b.made(t, files, content(1, 10))

	l := b.load(t, campaign, true)
	for i := range clusterNodes - 1 {
		l.more(t, 100)
		c.nodes[i].kill()
		until(t, "haproxy sees that a node died", func() bool { return strings.HasPrefix(b.status(t, "ready", i), "DOWN") })
	}
	l.more(t, 100)
	l.end(t, 1) // with the one from before
	c.nodes[clusterNodes-1].kill()
	a = b.get(t, "/v1/me")
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") != "1" ||
		a.header.Get("Content-Type") != "application/problem+json" || objects(t, a.body)[0]["requestId"] != a.header.Get("X-Request-Id") {
		t.Errorf("without nodes: %v", a)
	}
}

// Every node is restarted in turn behind the HAProxy of the examples, by SIGTERM alone. No request fails or has to be
// repeated, and every event arrives once.
func TestRollingRestartFailsNoRequest(t *testing.T) {
	t.Parallel()
	// The drain delay is much longer than the second and two checks after which haproxy.cfg notices.
	c := newCluster(t, "--webhook-lease", "24h", "--drain-delay", "5s")
	b := c.balance(t)
	r := receive(t)
	c.hook(t, r.URL(), "response.created")
	l := b.load(t, b.campaign(t), false)
	for range 2 {
		for i, node := range c.nodes {
			l.more(t, 200)
			equal(t, node.stop(), 0, "node %d: status %d", i)
			c.start(t, i)
			b.up(t, i)
		}
	}
	n := l.end(t, 0)
	events := make(map[string]bool)
	for _, got := range arrived(t, r, n) {
		events[got.Delivery.EventID] = true
	}
	if len(events) != n || len(r.Deliveries()) != n {
		t.Errorf("%d of %d events arrived, with %d deliveries", len(events), n, len(r.Deliveries()))
	}
	t.Logf("%d responses; of haproxy: %d connections retried, %d requests sent to another node", n, b.total(t, "wretr"), b.total(t, "wredis"))
}

// A load is a set of clients that create responses and read the campaign, as long as every request succeeds.
type load struct {
	*balancer

	campaign string
	made     atomic.Int64
	clients  sync.WaitGroup
	stopping atomic.Bool
}

// load starts clients. With keys, a proxy and net/http may repeat their requests.
func (b *balancer) load(t testing.TB, campaign string, keys bool) *load {
	l := &load{balancer: b, campaign: campaign}
	t.Cleanup(func() { l.stopping.Store(true); l.clients.Wait() })
	for i := range 8 {
		one := *b.service
		one.client = &http.Client{Transport: new(http.Transport)}
		l.clients.Go(func() {
			for n := 0; !l.stopping.Load(); n++ {
				var header []string
				if keys {
					header = []string{fmt.Sprintf("Idempotency-Key: %d-%d", i, n)}
				}
				a, err := one.ask(t.Context(), http.MethodPost, responses(campaign), submission("ada@example.com", "yes"), header...)
				if err == nil && a.status == http.StatusCreated {
					l.made.Add(1)
					a, err = one.ask(t.Context(), http.MethodGet, strings.TrimPrefix(a.header.Get("Location"), b.url), nil)
				}
				if err != nil || a.status != http.StatusOK {
					t.Errorf("client %d, request %d: %v, %v", i, n, a, err)
					return
				}
			}
		})
	}
	return l
}

// more waits until clients have created n more responses.
func (l *load) more(t testing.TB, n int64) {
	t.Helper()
	before := l.made.Load()
	until(t, "there is load", func() bool { return l.made.Load() >= before+n || t.Failed() })
}

// end stops the clients, checks that all they created is there, beside others, and returns their number.
func (l *load) end(t testing.TB, others int) int {
	t.Helper()
	l.stopping.Store(true)
	l.clients.Wait()
	n := int(l.made.Load())
	contains(t, "the campaign", l.call(t, http.StatusOK, http.MethodGet, "/v1/campaigns/"+l.campaign, nil), fmt.Sprintf(`"responseCount":%d,`, n+others))
	return n
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
	c := &cluster{shell: newShell(t), public: freeAddrs(t, 1)[0]}
	for range clusterNodes {
		node := httptest.NewServer(handler)
		t.Cleanup(node.Close)
		c.addrs = append(c.addrs, strings.TrimPrefix(node.URL, "http://"))
	}
	b := c.balance(t)
	b.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // which repeats nothing by itself
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
		path, header := fmt.Sprint("/", i), []string{"X-Forwarded-For: 192.0.2.1", "Forwarded: for=192.0.2.1", "X-Answer: " + x.answer}
		if x.key != "" {
			header = append(header, "Idempotency-Key: "+x.key)
		}
		a, err := b.ask(t.Context(), x.method, path, make([]byte, x.size), header...)
		if err != nil || a.status != x.status || x.answer == "" && !strings.Contains(a.body, "outcome_unknown") {
			t.Errorf("%+v: %v, %v", x, err, a)
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

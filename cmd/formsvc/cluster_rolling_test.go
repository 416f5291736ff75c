//go:build long

package main_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	// rollingRounds is the minimum number of restarts of every node.
	rollingRounds = 2
	// rollingClients is the number of clients that use the API meanwhile.
	rollingClients = 24
	// rollingDrain is the drain delay: much longer than the second and two checks after which haproxy.cfg notices.
	rollingDrain = 5 * time.Second
	// rollingLoad is the minimum number of requests during restarts: a slow machine needs more rounds.
	rollingLoad = 1200
)

// Every node is restarted in turn behind the HAProxy of the examples, by SIGTERM alone. No request fails or has to be
// repeated, and every event arrives.
func TestRollingRestartFailsNoRequest(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "s3", slices.Concat(longLease, []string{"--drain-delay", rollingDrain.String()})...)
	b := c.balance(t)
	box := newInbox(t, 20*time.Millisecond)
	c.hook(t, box.url, "all")
	l := newLoad(t, b.url, c.key)
	for i := range rollingClients {
		l.start(t, fmt.Sprint(i))
	}
	made := int64(0)
	for round := 0; round < rollingRounds || made < rollingLoad; round++ {
		for i, node := range c.nodes {
			before := l.requests.Load()
			node.terminate(t)
			took := node.stopped(t)
			c.start(t, i)
			b.up(t, i)
			n := l.requests.Load() - before
			t.Logf("node %d ended %v after SIGTERM; %d requests until it was back", i, took.Round(time.Millisecond), n)
			made += n
		}
		if t.Failed() || len(l.broken()) > 0 {
			break
		}
	}
	l.end()
	t.Logf("%d requests, the slowest took %v; of haproxy: %d connections retried, %d requests sent to another node",
		l.requests.Load(), l.slowest.Round(time.Millisecond), b.total(t, "wretr"), b.total(t, "wredis"))
	l.check(t, newClient(t, b.url, c.key), box)
}

// A load is a set of clients that use the API through one address as long as every request succeeds.
type load struct {
	*ledger

	url, key string
	requests atomic.Int64
	stopping chan struct{}
	clients  sync.WaitGroup

	slowest time.Duration // guarded by ledger.mu
}

func newLoad(t testing.TB, url, key string) *load {
	t.Helper()
	l := &load{url: url, key: key, stopping: make(chan struct{})}
	l.ledger = newLedger(newClient(t, url, key).campaign(t, "Load"))
	t.Cleanup(sync.OnceFunc(func() {
		select {
		case <-l.stopping:
		default:
			l.end()
		}
	}))
	return l
}

// end stops the clients after their current requests.
func (l *load) end() {
	close(l.stopping)
	l.clients.Wait()
}

// start starts a client with a unique name.
func (l *load) start(t testing.TB, name string) {
	t.Helper()
	c := newClient(t, l.url, l.key)
	c.http.Transport = &counted{c.http.Transport, l}
	l.clients.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-l.stopping:
				return
			case <-time.After(rand.N(10 * time.Millisecond)): // think time, with an idle connection
			}
			if !l.visit(t, c, name, i) {
				l.fault("client %s gave up in round %d", name, i)
				return
			}
		}
	})
}

// visit creates a response, reads it, and completes some. It reports whether everything succeeded.
func (l *load) visit(t testing.TB, c *client, name string, i int) bool {
	uuid, ok := l.create(t.Context(), c, name+"-"+strconv.Itoa(i))
	if !ok || (i%3 == 0 && !l.complete(t.Context(), c, uuid)) {
		return false
	}
	a, err := c.do(t.Context(), http.MethodGet, responsePath(l.campaign, uuid), nil)
	if err != nil || a.status != http.StatusOK || !bytes.Contains(a.body, []byte(uuid)) {
		l.fault("reading %s: %v, %d %.200s", uuid, err, a.status, a.body)
		return false
	}
	return true
}

// broken returns the faults.
func (l *load) broken() (list []string) {
	l.note(func() { list = append(slices.Clone(l.faults), l.cut...) })
	return list
}

// check checks that no request failed and that clients, service and receiver agree.
func (l *load) check(t *testing.T, c *client, box *inbox) {
	t.Helper()
	for _, fault := range l.broken() {
		t.Error(fault)
	}
	if l.unanswered > 0 {
		t.Errorf("%d requests got no answer", l.unanswered)
	}
	l.readEach(t, c)
	happened, markers := l.ledger.check(t, c)
	if len(markers) != len(l.acked) {
		t.Errorf("%d responses are stored, %d were acknowledged", len(markers), len(l.acked))
	}
	box.wait(t, happened)
	if repeated := box.check(t, happened, markers); repeated > 0 {
		t.Errorf("%d deliveries were repeated, although no node died", repeated)
	}
	t.Logf("%d responses, %d events", len(markers), len(happened))
}

// counted counts requests, and detects automatic retries by net/http, which other clients may not do.
type counted struct {
	http.RoundTripper

	load *load
}

func (c *counted) RoundTrip(r *http.Request) (*http.Response, error) {
	var connections atomic.Int64
	began := time.Now()
	resp, err := c.RoundTripper.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connections.Add(1) },
	})))
	c.load.requests.Add(1)
	c.load.note(func() { c.load.slowest = max(c.load.slowest, time.Since(began)) })
	if n := connections.Load(); n > 1 {
		c.load.fault("%s %s was sent %d times", r.Method, r.URL.Path, n)
	}
	return resp, err
}

package process

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/formsvc/toolkit/cmd/formbench/internal/worker"
	"github.com/formsvc/toolkit/webhook"
)

// A receiver answers 200 to every delivery, checks its signatures and notes when
// each delivery first came. Endpoint i is at the path "/i".
type receiver struct {
	server *http.Server

	mu       sync.Mutex
	arrived  map[string]worker.Arrival
	counts   map[int]int // by endpoint
	requests int
	bad      int
	waiting  *waiting // nil when nobody waits
}

// waiting is a call that waits for n deliveries.
type waiting struct {
	n, endpoints int
	done         chan struct{}
}

func newReceiver(ctx context.Context) (worker.Worker, worker.Reply, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, worker.Reply{}, fmt.Errorf("receiver: %w", err)
	}
	r := &receiver{}
	r.reset()
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(listener) }() // Close ends it
	return r, worker.Reply{Addr: "http://" + listener.Addr().String()}, nil
}

func (r *receiver) Close() error { return r.server.Close() }

// reset forgets what arrived and returns how much that was.
func (r *receiver) reset() worker.Reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := worker.Reply{N: len(r.arrived), Requests: r.requests, Bad: r.bad}
	r.arrived, r.counts = make(map[string]worker.Arrival), make(map[int]int)
	r.requests, r.bad, r.waiting = 0, 0, nil
	return was
}

// bodies are read into buffers of their length, up to this many bytes.
const maxBody = 2 << 20

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.ContentLength < 0 || req.ContentLength > maxBody {
		http.Error(w, "no length", http.StatusLengthRequired)
		return
	}
	body := make([]byte, req.ContentLength)
	_, err := io.ReadFull(req.Body, body)
	at := time.Now().UnixNano()
	number, ok := worker.Number(body)
	endpoint, pathErr := strconv.Atoi(strings.TrimPrefix(req.URL.Path, "/"))
	id := req.Header.Get(webhook.DeliveryHeader)
	ok = ok && err == nil && pathErr == nil && id != "" && isSigned(req.Header, body)
	r.note(id, worker.Arrival{At: at, Number: number, Endpoint: endpoint}, ok)
}

// isSigned checks the service's own signature and, when it is there, that of
// Standard Webhooks.
func isSigned(h http.Header, body []byte) bool {
	secret := []byte(worker.Secret)
	if !hmac.Equal([]byte(h.Get(webhook.SignatureHeader)), []byte(webhook.Sign(secret, body))) {
		return false
	}
	standard := h.Get(webhook.StandardSignatureHeader)
	if standard == "" {
		return true
	}
	seconds, err := strconv.ParseInt(h.Get(webhook.StandardTimestampHeader), 10, 64)
	want := webhook.SignStandard(secret, h.Get(webhook.StandardIDHeader), time.Unix(seconds, 0), body)
	return err == nil && hmac.Equal([]byte(standard), []byte(want))
}

func (r *receiver) note(id string, a worker.Arrival, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if !ok {
		r.bad++
		return
	}
	if _, again := r.arrived[id]; again {
		return
	}
	r.arrived[id] = a
	r.counts[a.Endpoint]++
	if r.waiting != nil && r.unique(r.waiting.endpoints) >= r.waiting.n {
		close(r.waiting.done)
		r.waiting = nil
	}
}

// unique returns how many deliveries the first endpoints had, or all when that
// is 0. The lock is held.
func (r *receiver) unique(endpoints int) (n int) {
	if endpoints == 0 {
		return len(r.arrived)
	}
	for i := range endpoints {
		n += r.counts[i]
	}
	return n
}

func (r *receiver) Do(ctx context.Context, c worker.Command) (worker.Reply, error) {
	switch c.Do {
	case worker.Reset:
		return r.reset(), nil
	case worker.Wait:
		return worker.Reply{}, r.wait(ctx, &c)
	case worker.Arrivals:
		r.mu.Lock()
		defer r.mu.Unlock()
		reply := worker.Reply{N: len(r.arrived), Requests: r.requests, Bad: r.bad}
		for _, a := range r.arrived {
			reply.Arrivals = append(reply.Arrivals, a)
		}
		return reply, nil
	}
	return worker.Reply{}, errors.New("a receiver can't do that")
}

func (r *receiver) wait(ctx context.Context, c *worker.Command) error {
	r.mu.Lock()
	if r.unique(c.Endpoints) >= c.N {
		r.mu.Unlock()
		return nil
	}
	w := &waiting{c.N, c.Endpoints, make(chan struct{})}
	r.waiting = w
	r.mu.Unlock()
	timer := time.NewTimer(c.Timeout)
	defer timer.Stop()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = nil
	if n := r.unique(c.Endpoints); n < c.N {
		return fmt.Errorf("%d of %d deliveries arrived in %v", n, c.N, c.Timeout)
	}
	return nil
}

package process

import (
	"bufio"
	"bytes"
	"compress/gzip"
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

// A receiver responds with 200 to every delivery, checks its signatures and notes when each delivery first arrived.
// Endpoint i has the path "/i".
type receiver struct {
	server *http.Server

	mu       sync.Mutex
	arrived  map[string]worker.Arrival
	counts   map[int]int // by endpoint
	requests int
	bad      int
	waiting  *waiting // nil when no call waits
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

// reset discards the recorded arrivals and returns their number.
func (r *receiver) reset() worker.Reply {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := worker.Reply{N: len(r.arrived), Requests: r.requests, Bad: r.bad}
	r.arrived, r.counts = make(map[string]worker.Arrival), make(map[int]int)
	r.requests, r.bad, r.waiting = 0, 0, nil
	return was
}

// maxBody limits the size of a request body in bytes.
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

// isSigned checks the service's own signature and, if present, that of Standard Webhooks.
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

// unique returns the number of deliveries of the first endpoints, or of all for 0. The caller holds the lock.
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

// hostile are receivers that do harm: one listener for each kind.
type hostile struct {
	stop      context.CancelFunc
	listeners []net.Listener
	work      sync.WaitGroup
}

// HangKind accepts the request and never responds.
const HangKind = "hang"

// HostileKinds are all kinds, in the order in which endpoints use them.
func HostileKinds() []string {
	return []string{HangKind, "trickle", "endless", "gzip bomb", "headers", "1xx storm", "reset"}
}

// A harm is the behavior of a connection after it has received the request's head: it writes the head, and then the
// block again and again. The pause keeps it from taking CPU time from the measured systems.
type harm struct {
	head, block string
	pause       time.Duration // 0: nothing follows the head
	reset       bool
}

func newHarm(kind string) harm {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
	switch kind {
	case "trickle":
		return harm{head: ok + "Content-Length: 1000000\r\n\r\n", block: ".", pause: time.Second}
	case "endless":
		return harm{head: ok + "\r\n", block: strings.Repeat("junk", 16<<10), pause: 5 * time.Millisecond}
	case "gzip bomb":
		bomb := zeros(256 << 20)
		return harm{head: fmt.Sprintf(ok+"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(bomb), bomb)}
	case "headers":
		return harm{head: ok + strings.Repeat("X-Long: "+strings.Repeat("h", 1014)+"\r\n", 100) + "Content-Length: 0\r\n\r\n"}
	case "1xx storm":
		return harm{block: strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n", 100), pause: time.Millisecond}
	}
	return harm{reset: kind == "reset", pause: time.Hour} // HangKind
}

// do ends when ctx does or the peer closes the connection.
func (h *harm) do(ctx context.Context, conn *net.TCPConn) {
	if h.reset {
		_ = conn.SetLinger(0) // the close sends a reset
		return
	}
	if _, err := io.WriteString(conn, h.head); err != nil || h.pause == 0 {
		return
	}
	ticker := time.NewTicker(h.pause)
	defer ticker.Stop()
	for ctx.Err() == nil {
		if _, err := io.WriteString(conn, h.block); err != nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// zeros returns n zero bytes, compressed.
func zeros(n int) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	block := make([]byte, 1<<20)
	for range n / len(block) {
		_, _ = w.Write(block) // a bytes.Buffer never fails
	}
	_ = w.Close()
	return b.Bytes()
}

func newHostile(ctx context.Context) (worker.Worker, worker.Reply, error) {
	ctx, cancel := context.WithCancel(ctx)
	h := &hostile{stop: cancel}
	ready := worker.Reply{Addrs: make(map[string]string)}
	for _, kind := range HostileKinds() {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, ready, errors.Join(fmt.Errorf("hostile receiver: %w", err), h.Close())
		}
		h.listeners = append(h.listeners, l)
		ready.Addrs[kind] = "http://" + l.Addr().String()
		harm := newHarm(kind)
		h.work.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				h.work.Go(func() { serveHarm(ctx, conn.(*net.TCPConn), harm.do) })
			}
		})
	}
	return h, ready, nil
}

// serveHarm reads the head of one request and ignores the rest.
func serveHarm(ctx context.Context, conn *net.TCPConn, do func(context.Context, *net.TCPConn)) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetWriteBuffer(32 << 10) // otherwise megabytes are in flight to a slow reader
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		if line == "\r\n" {
			break
		}
	}
	// A connection that only waits ends when the peer closes it.
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, r)
	}()
	do(ctx, conn)
}

func (h *hostile) Do(context.Context, worker.Command) (worker.Reply, error) {
	return worker.Reply{}, errors.New("a hostile receiver does nothing else")
}

// Close ends every connection.
func (h *hostile) Close() error {
	h.stop()
	var err error
	for _, l := range h.listeners {
		err = errors.Join(err, l.Close())
	}
	h.work.Wait()
	return err
}

package main

import (
	"context"
	"crypto/hmac"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/formsvc/toolkit/webhook"
)

// holdLimit is how long a delivery may wait while the receiver holds the backlog.
const holdLimit = 10 * time.Minute

// A receiver is the endpoint of the webhooks: it checks the signature of every delivery and notes when it first arrived.
// It can hold deliveries back.
type receiver struct {
	url    string
	server *fasthttp.Server
	served chan error

	mu      sync.Mutex
	held    chan struct{}     // closed when deliveries may go on; nil if they aren't held
	sent    map[int]time.Time // when the request for each delivery began
	arrived map[int]time.Time
	last    time.Time
	invalid int
}

func receive(ctx context.Context) (*receiver, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{url: "http://" + listener.Addr().String() + "/", served: make(chan error, 1)}
	r.reset()
	r.server = &fasthttp.Server{Handler: r.handle, Concurrency: 1 << 16, CloseOnShutdown: true}
	go func() { r.served <- r.server.Serve(listener) }()
	return r, nil
}

// reset forgets all deliveries.
func (r *receiver) reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent, r.arrived = make(map[int]time.Time), make(map[int]time.Time)
}

// note says that the request for a delivery begins.
func (r *receiver) note(number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[number] = time.Now()
}

// latencies returns the times from request to arrival, ascending.
func (r *receiver) latencies() (list []time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for number, at := range r.arrived {
		list = append(list, at.Sub(r.sent[number]))
	}
	slices.Sort(list)
	return list
}

// close stops the receiver. The senders must have ended.
func (r *receiver) close() error { return errors.Join(r.server.Shutdown(), <-r.served) }

func (r *receiver) handle(ctx *fasthttp.RequestCtx) {
	r.mu.Lock()
	held := r.held
	r.mu.Unlock()
	if held != nil {
		<-held
	}
	body := ctx.PostBody()
	now := time.Now()
	number, ok := numberOf(body)
	ok = ok && hmac.Equal(ctx.Request.Header.Peek(webhook.SignatureHeader), []byte(webhook.Sign(secret, body)))
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ok {
		r.invalid++
		ctx.SetStatusCode(fasthttp.StatusBadRequest)
	} else if _, again := r.arrived[number]; !again {
		r.arrived[number], r.last = now, now
	}
}

// hold makes deliveries wait until release is called.
func (r *receiver) hold() (release func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := make(chan struct{})
	r.held = held
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.held = nil
		close(held)
	})
}

// await waits until n different deliveries have arrived, and returns when the last one did.
func (r *receiver) await(ctx context.Context, n int) (time.Time, error) {
	for deadline := time.Now().Add(time.Minute + time.Duration(n)*10*time.Millisecond); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		got, last, invalid := len(r.arrived), r.last, r.invalid
		r.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return last, ctx.Err()
		case invalid > 0:
			return last, fmt.Errorf("%d deliveries have a wrong signature or content", invalid)
		case got == n:
			return last, nil
		case got > n || time.Now().After(deadline):
			return last, fmt.Errorf("%d of %d deliveries arrived", got, n)
		}
	}
}

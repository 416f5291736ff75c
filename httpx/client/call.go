package client

import (
	"bytes"
	"context"
	crand "crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// A CallOption changes one call.
type CallOption func(*call)

// IfMatch makes a change fail with [formsvc.ErrStale] unless the record still has this ETag. It is for methods that
// replace, update or delete.
func IfMatch(etag string) CallOption { return func(k *call) { k.header["If-Match"] = []string{etag} } }

// IdempotencyKey names a POST, for programs that repeat it after a restart: 1 to 255 visible ASCII characters, kept for
// 24 hours. Defaults to a random one for each call.
func IdempotencyKey(key string) CallOption {
	return func(k *call) { k.header["Idempotency-Key"] = []string{key} }
}

// Attempts limits the attempts of a call; 1 means that it isn't repeated. Defaults to [Options].Attempts.
func Attempts(n int) CallOption { return func(k *call) { k.attempts = n } }

// A call is one operation. It may take several attempts.
type call struct {
	method, path string
	query        url.Values
	header       http.Header
	open         func() (io.Reader, int64, error) // the body for an attempt, and its length or -1; nil: none
	stream       bool                             // whether the caller reads the body of the reply
	attempts     int
	err          error // why there can be no request
}

// newCall returns a call with a JSON body, or with none if body is nil.
func (c *Client) newCall(method, path string, body any, opts []CallOption) *call {
	k := &call{method: method, path: path, header: http.Header{}, attempts: c.opts.Attempts}
	if method == http.MethodPost {
		k.header["Idempotency-Key"] = []string{crand.Text()}
	}
	if body != nil {
		var text []byte
		text, k.err = json.Marshal(body)
		k.header["Content-Type"] = []string{"application/json"}
		k.open = func() (io.Reader, int64, error) { return bytes.NewReader(text), int64(len(text)), nil }
	}
	for _, opt := range opts {
		opt(k)
	}
	return k
}

// A reply is a success.
type reply struct {
	status int
	header http.Header
	text   []byte // the body, unless the call streams
	body   io.ReadCloser
}

// send makes a call and decodes the reply.
func send[T any](ctx context.Context, c *Client, k *call) (out T, err error) {
	got, err := c.do(ctx, k)
	if err != nil || len(got.text) == 0 {
		return out, err
	}
	if err = json.Unmarshal(got.text, &out); err != nil {
		return out, fmt.Errorf("formsvc client: %s %s: reply: %w", k.method, k.path, err)
	}
	if x, ok := any(&out).(interface{ setETag(etag string) }); ok {
		x.setETag(got.header.Get("Etag"))
	}
	return out, nil
}

// do makes attempts until one succeeds, or until another can't help.
func (c *Client) do(ctx context.Context, k *call) (*reply, error) {
	for name, values := range k.header {
		if strings.ContainsFunc(strings.Join(values, ""), unprintable) {
			k.err = fmt.Errorf("formsvc client: %s can't have this value", name)
		}
	}
	if k.err != nil {
		return nil, k.err
	}
	lost := false // whether an earlier attempt may have had its effect
	for n := 1; ; n++ {
		got, err := c.attempt(ctx, k)
		if err == nil {
			return got, nil
		}
		p, refused := errors.AsType[*Problem](err)
		if lost && refused && p.Status == http.StatusNotFound && k.method == http.MethodDelete {
			return new(reply), nil
		}
		if n == k.attempts || ctx.Err() != nil || !passing(err) {
			return nil, err
		}
		lost = lost || !refused || p.Status >= http.StatusInternalServerError
		if err = pause(ctx, n, err); err != nil {
			return nil, err
		}
	}
}

// errBody means that there is no request to send, or that its body can't be read.
var errBody = errors.New("formsvc client: request")

// passing reports whether another attempt may succeed.
func passing(err error) bool {
	if p, ok := errors.AsType[*Problem](err); ok {
		switch p.Status {
		case http.StatusConflict:
			return p.Code == "idempotency_in_flight" // an attempt whose connection broke
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return p.Code != "blob_corrupt"
		}
		return false
	}
	if name, ok := errors.AsType[*net.DNSError](err); ok && name.IsNotFound {
		return false
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return !untrusted && !errors.Is(err, errBody)
}

// Pauses between attempts.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second
)

// pause waits after the nth attempt, which failed with err: at least for the Retry-After of the service. It fails if the
// context ends before that.
func pause(ctx context.Context, n int, err error) error {
	wait := min(firstPause<<min(n-1, 10), lastPause)
	wait = wait/2 + rand.N(wait/2) //nolint:gosec // jitter
	if p, ok := errors.AsType[*Problem](err); ok {
		wait += p.RetryAfter
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
		return fmt.Errorf("%w: %w", err, context.DeadlineExceeded)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", err, ctx.Err())
	case <-timer.C:
		return nil
	}
}

// attempt sends the request once.
func (c *Client) attempt(ctx context.Context, k *call) (_ *reply, err error) {
	ctx, w := newWatch(ctx, c.opts.Timeout)
	defer func() {
		if err != nil || !k.stream {
			w.end()
		}
		if err != nil && errors.Is(context.Cause(ctx), errStalled) {
			err = errStalled
		}
	}()
	req, err := c.request(ctx, k, w)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errBody, err)
	}
	resp, err := c.opts.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	got := &reply{status: resp.StatusCode, header: resp.Header, body: &watched{ReadCloser: resp.Body, watch: w}}
	if k.stream && resp.StatusCode/100 == 2 {
		return got, nil
	}
	defer func() { _ = resp.Body.Close() }() // all of it has been read
	if resp.StatusCode/100 != 2 {
		return nil, problemOf(got)
	}
	got.text, err = io.ReadAll(got.body)
	return got, err
}

func (c *Client) request(ctx context.Context, k *call, w *watch) (*http.Request, error) {
	address := c.base + k.path
	if len(k.query) > 0 {
		address += "?" + k.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, k.method, address, nil)
	if err != nil {
		return nil, err
	}
	req.Header = k.header.Clone()
	req.Header["Authorization"] = []string{"Bearer " + c.key}
	if k.open == nil {
		return req, nil
	}
	body, size, err := k.open()
	if req.ContentLength = size; size != 0 {
		req.Body = &watched{ReadCloser: io.NopCloser(body), watch: w, sent: true}
	}
	return req, err
}

// A watch ends an attempt in which no byte moves.
type watch struct {
	timer  *time.Timer
	idle   time.Duration
	cancel context.CancelCauseFunc
}

// errStalled is the cause of that end. Another attempt may succeed.
var errStalled = errors.New("formsvc client: the connection stalled")

func newWatch(ctx context.Context, idle time.Duration) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watch{time.AfterFunc(idle, func() { cancel(errStalled) }), idle, cancel}
}

// end releases the watch.
func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// A watched is a body whose bytes the watch notices.
type watched struct {
	io.ReadCloser

	watch *watch
	sent  bool // whether it is the body of a request
}

func (b *watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.watch.timer.Reset(b.watch.idle)
	}
	if b.sent && err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", errBody, err)
	}
	return n, err
}

func (b *watched) Close() error {
	if !b.sent {
		b.watch.end()
	}
	return b.ReadCloser.Close()
}

// A stream is a reply that is read piece by piece, over several connections if one breaks.
type stream struct {
	*reply

	ctx    context.Context //nolint:containedctx // of the call
	c      *Client
	call   *call
	broken int // connections since the last progress
}

func (c *Client) newStream(ctx context.Context, k *call) (*stream, error) {
	k.stream = true
	k.header["Accept-Encoding"] = []string{"identity"}
	got, err := c.do(ctx, k)
	return &stream{reply: got, ctx: ctx, c: c, call: k}, err
}

// again makes the call again after its reply broke with err.
func (s *stream) again(err error) error {
	if s.broken++; s.ctx.Err() != nil || !passing(err) || s.broken == s.call.attempts {
		return err
	}
	if err = pause(s.ctx, s.broken, err); err != nil {
		return err
	}
	_ = s.Close()
	got, err := s.c.do(s.ctx, s.call)
	if err == nil {
		s.reply = got
	}
	return err
}

// Close ends the call.
func (s *stream) Close() error { return s.body.Close() }

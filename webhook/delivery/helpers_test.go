package delivery_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/formsvc/toolkit/webhook/delivery"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errOutage = errors.New("outage")

func hook[T any](f func(T) error, arg T) error {
	if f == nil {
		return nil
	}
	return f(arg)
}

// update changes a delivery without the engine's knowledge.
func (q *memQueue) update(id string, change func(*row)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change(q.rows[slices.IndexFunc(q.rows, func(r *row) bool { return r.claim.ID == id })])
}

// get returns a copy of the delivery.
func (q *memQueue) get(id string) (r row) {
	q.update(id, func(found *row) { r = *found })
	r.attempts = slices.Clone(r.attempts)
	return r
}

// move changes an endpoint without the engine's knowledge.
func (q *memQueue) move(id string, change func(*delivery.Endpoint)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.endpoints[id]
	change(&e)
	q.endpoints[id] = e
}

// count returns how many deliveries have that result.
func (q *memQueue) count(result delivery.Result) (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.rows {
		if r.result == result {
			n++
		}
	}
	return n
}

func (q *memQueue) claims() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.requests)
}

// looked returns the number of calls of Ready.
func (q *memQueue) looked() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.looks
}

// A roundTrip is a transport from a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int) (*http.Response, error) {
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("answer"))}, nil
}

// hang returns when the request is canceled.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A call is a request that a recorder saw.
type call struct {
	at       time.Time
	delivery string
	body     string
	header   http.Header
}

// A recorder is a transport that records requests and passes them on.
type recorder struct {
	next roundTrip

	mu    sync.Mutex
	calls []call
}

func (rec *recorder) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	rec.mu.Lock()
	rec.calls = append(rec.calls, call{time.Now(), r.Header.Get("x-service-delivery"), string(body), r.Header.Clone()})
	rec.mu.Unlock()
	return rec.next(r)
}

func (rec *recorder) seen() []call {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return slices.Clone(rec.calls)
}

// sign is independent of package webhook.
func sign(secret, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(body))
	return hex.EncodeToString(mac.Sum(nil))
}

// signStandard is independent of package webhook, too.
func signStandard(secret, id string, at time.Time, body string) string {
	mac := hmac.New(sha256.New, []byte(secret))
	_, _ = fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func endpoint(id string) delivery.Endpoint {
	return delivery.Endpoint{ID: id, Account: "account-" + id, URL: "http://" + id + ".example/hook?token=hidden", Secret: "secret-" + id}
}

// local allows every address, since the receivers of the tests are on this
// machine.
func local(string, string, syscall.RawConn) error { return nil }

// newEngine returns an engine that may also send to this machine.
func newEngine(tb testing.TB, q delivery.Queue, opts delivery.Options) *delivery.Engine {
	tb.Helper()
	if opts.Transport == nil && opts.Control == nil {
		opts.Control = local
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	engine, err := delivery.New(q, &opts)
	if err != nil {
		tb.Fatal(err)
	}
	return engine
}

// run runs an engine until stop is called, which waits for the end of Run.
func run(tb testing.TB, q delivery.Queue, opts delivery.Options) (stop func()) {
	tb.Helper()
	engine := newEngine(tb, q, opts)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- engine.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				tb.Errorf("Run: %v", err)
			}
		})
	}
	tb.Cleanup(stop)
	return stop
}

// unexpected is an OnFailure that must not be called.
func unexpected(t *testing.T) func(context.Context, delivery.Failure) error {
	return func(_ context.Context, f delivery.Failure) error {
		t.Errorf("OnFailure called: %+v", f)
		return nil
	}
}

// equal fails the test unless got is want. The format has a verb for each argument, and the last one for got.
func equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf(format+", want %v", append(slices.Clone(args), got, want)...)
	}
}

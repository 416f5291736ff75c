package torture_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	goclient "github.com/formsvc/toolkit/httpx/client"
)

// clients is the number of concurrent clients of a load.
const clients = 8

// A load is a set of clients that write, whatever happens to the service, and record everything in a ledger.
type load struct {
	client    *client
	ledger    *ledger
	responses string          // path of the campaign's responses
	targets   func() []string // addresses of nodes; each request goes to a random one, so that a retry may go to another
	files     bool            // adds a file to every other response, in place of one in 16, and makes one in 8 files large

	acked   atomic.Int64 // requests with a 2xx
	limit   *rate.Limiter
	stopped atomic.Bool
	workers sync.WaitGroup

	mu     sync.Mutex
	failed map[int]int // other requests, by status; 0 for no response
}

// start starts the clients, which together make so many writes per second until stop.
func (l *load) start(perSecond float64) {
	l.limit = rate.NewLimiter(rate.Limit(perSecond), clients)
	l.failed = make(map[int]int)
	for i := range clients {
		l.workers.Go(func() {
			for n := 0; !l.stopped.Load(); n++ {
				l.one(fmt.Sprintf("%d-%d", i, n))
			}
		})
	}
}

// stop lets every client finish its operation. Requests without a response stay unknown.
func (l *load) stop() {
	l.stopped.Store(true)
	l.workers.Wait()
}

// one creates a response with the marker, and sometimes something about it.
func (l *load) one(marker string) {
	body := fmt.Appendf(nil, `{"user":{"email":"ada@example.com"},"responses":{"marker":{"value":[%q]}}}`, marker)
	uuid, ok := l.write(&entry{kind: create, marker: marker, key: sometimes(marker)}, http.MethodPost, "", body, map[string]string{})
	if !ok {
		return
	}
	marker += "+"
	e := &entry{marker: marker, of: uuid, key: marker}
	switch n := rand.IntN(16); {
	case n < 4:
		e.kind, e.key = complete, ""
		l.write(e, http.MethodPatch, "/"+uuid, []byte(`{"status":"completed"}`), nil)
	case n < 6:
		e.kind = comment
		l.write(e, http.MethodPost, "/"+uuid+"/comments", fmt.Appendf(nil, `{"body":%q}`, marker), map[string]string{})
	case n == 15:
		e.kind = sign
		body := fmt.Appendf(nil, `{"signer":{"email":"ada@example.com","firstName":%q}}`, marker)
		l.write(e, http.MethodPost, "/"+uuid+"/signatures", body, map[string]string{})
	case n < 7, n < 14 && l.files:
		l.upload(marker, uuid)
	}
}

func (l *load) upload(marker, uuid string) {
	size := rand.IntN(32 << 10)
	if l.files && rand.IntN(8) == 0 {
		size = 1<<20 + rand.IntN(1<<20)
	}
	content := bytes.Repeat([]byte(marker+"\n"), size/len(marker))
	e := &entry{kind: upload, marker: marker, of: uuid, sha256: hash(content), key: sometimes(marker)}
	l.write(e, http.MethodPost, "/"+uuid+"/files", content, map[string]string{
		"Content-Type": "application/octet-stream", "Content-Disposition": `attachment; filename="` + marker + `"`,
	})
}

// sometimes returns a key for half of the entries, and "" for the others.
func sometimes(key string) string { return []string{"", key}[rand.IntN(2)] }

// write makes one request, or with a key as many as it takes until one is acknowledged. It returns the UUID of the record.
func (l *load) write(e *entry, method, path string, body []byte, header map[string]string) (uuid string, ok bool) {
	ctx := context.Background() // an operation in progress is finished
	_ = l.limit.Wait(ctx)
	if e.key != "" {
		header["Idempotency-Key"] = e.key
	}
	for {
		l.ledger.intend(e)
		a, err := l.client.do(ctx, method, l.target()+l.responses+path, body, header)
		// The response counts from its status line on, which already acknowledges the creation.
		l.ledger.answer(e, a.status, a.uuid)
		l.judge(e, &a, err)
		if a.status >= 200 && a.status < 300 {
			return a.uuid, true
		}
		time.Sleep(10 * time.Millisecond) // so that it does not spin while no node runs
		if e.key == "" || l.stopped.Load() || (a.status >= 400 && a.status < 500 && a.status != http.StatusConflict) {
			return "", false
		}
	}
}

// judge counts a response, and records a fault if it is wrong by itself.
func (l *load) judge(e *entry, a *answer, err error) {
	twin := a.status == http.StatusConflict && e.key != "" // an earlier request with the key is in progress
	switch {
	case a.status >= 400 && a.status <= 500 && a.status != http.StatusTooManyRequests && !twin:
		l.ledger.fault("%s %q was answered with %d: %.300s", e.kind, e.marker, a.status, a.body)
	case err == nil && a.status == http.StatusCreated && (a.uuid == "" || !bytes.Contains(a.body, []byte(a.uuid))):
		l.ledger.fault("%q was answered with %.300s for %s", e.marker, a.body, a.uuid)
	}
	if a.status >= 200 && a.status < 300 {
		l.acked.Add(1)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed[a.status]++
}

// target waits until a node runs and returns its address; if the load ends first, it returns an unused address.
func (l *load) target() string {
	for ; ; time.Sleep(time.Millisecond) {
		if list := l.targets(); len(list) > 0 {
			return list[rand.IntN(len(list))]
		}
		if l.stopped.Load() {
			return "http://127.0.0.1:1"
		}
	}
}

// hash returns a hash in the form that files have.
func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// A client calls the service over HTTP with one key. It shares no code with the service, and is safe for concurrent use.
type client struct {
	key     string
	http    *http.Client
	discard bool // keeps no response
}

func newClient(t testing.TB, key string) *client {
	// The timeout is longer than any fault that a request should survive, and short enough to continue after others.
	c := &client{key: key, http: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64, TLSClientConfig: anyCertificate()}}}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

// An answer is the response, as far as it arrived. One with a status and an error broke off.
type answer struct {
	status int
	uuid   string // of the created record, from Location or the body
	body   []byte
}

// do makes a request and reads the whole response. It never repeats one by itself: the ledger records every request.
func (c *client) do(ctx context.Context, method, address string, body []byte, header map[string]string) (a answer, err error) {
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	req.GetBody = nil // without it, net/http can't silently resend a body with an Idempotency-Key
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.http.Do(req)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close()
	if a.status = resp.StatusCode; c.discard {
		_, err = io.Copy(io.Discard, resp.Body)
		return a, err
	}
	if a.body, err = io.ReadAll(resp.Body); a.status == http.StatusCreated {
		var created struct {
			UUID string `json:"uuid"`
		}
		_ = json.Unmarshal(a.body, &created) // a body that broke off says nothing
		if a.uuid = created.UUID; resp.Header.Get("Location") != "" {
			a.uuid = path.Base(resp.Header.Get("Location"))
		}
	}
	return a, err
}

// api returns a Go client of the service at address, for what the ledger needn't see.
func (c *client) api(address string) *goclient.Client {
	return must(goclient.New(address, c.key, &goclient.Options{HTTP: c.http, Attempts: 1}))
}

// made creates something and returns its UUID.
func (c *client) made(t testing.TB, address, body string) string {
	t.Helper()
	a, err := c.do(t.Context(), http.MethodPost, address, []byte(body), nil)
	if err != nil || a.status != http.StatusCreated {
		t.Fatalf("POST %s: %v, %d %.200s", address, err, a.status, a.body)
	}
	return a.uuid
}

// list reads a list to its end, page by page.
func list[T any](ctx context.Context, c *client, address string) (all []T, err error) {
	for q := (url.Values{"limit": {"1000"}}); ; {
		var page struct {
			Items      []T    `json:"items"`
			Total      *int   `json:"total"`
			NextCursor string `json:"nextCursor"`
			More       *bool  `json:"more"` // of the events only
		}
		a, err := c.do(ctx, http.MethodGet, address+"?"+q.Encode(), nil, nil)
		if err = errors.Join(err, json.Unmarshal(a.body, &page)); err != nil || a.status != http.StatusOK {
			return nil, fmt.Errorf("GET %s: status %d (%v): %.200s", address, a.status, err, a.body) //nolint:errorlint // err may be nil
		}
		all = append(all, page.Items...)
		q.Set("cursor", page.NextCursor)
		switch {
		case page.More != nil && *page.More, page.More == nil && page.NextCursor != "":
		case page.Total != nil && *page.Total != len(all):
			return nil, fmt.Errorf("GET %s: the total is %d, the pages list %d", address, *page.Total, len(all))
		default:
			return all, nil
		}
	}
}

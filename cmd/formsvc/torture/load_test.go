package torture_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const (
	// clients is the number of concurrent clients of a load.
	clients = 8
	// pause is how long a client waits after a failed request, so that it doesn't spin while no node runs.
	pause = 10 * time.Millisecond
)

// A load is a set of clients that write, whatever happens to the service, and record everything in a ledger. Its methods
// are safe for concurrent use.
type load struct {
	client    *client
	ledger    *ledger
	responses string          // path of the campaign's responses
	targets   func() []string // addresses of nodes; each request goes to a random one, so that a retry may go to another
	files     bool            // adds a file to every other response, in place of one in 16, and makes one in 8 files large

	limit   *rate.Limiter
	stopped atomic.Bool
	workers sync.WaitGroup

	mu      sync.Mutex
	lastAck time.Time
	gap     time.Duration // the longest time without any 2xx
	acked   int           // requests with a 2xx
	failed  map[int]int   // others, by status; 0 for no response
}

// start starts the clients, which together make so many writes per second until stop.
func (l *load) start(perSecond float64) {
	l.limit = rate.NewLimiter(rate.Limit(perSecond), clients)
	l.lastAck, l.failed = time.Now(), make(map[int]int)
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
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gap = max(l.gap, time.Since(l.lastAck))
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acked
}

// one creates a response with the marker, and sometimes something about it.
func (l *load) one(marker string) {
	user := map[string]string{"email": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace"}
	uuid, ok := l.write(&entry{kind: create, marker: marker, key: sometimes(marker)}, http.MethodPost, "", marshal(map[string]any{
		"user": user, "responses": map[string]any{"marker": map[string]any{"value": []string{marker}}},
	}), map[string]string{})
	if !ok {
		return
	}
	post := func(kind kind, to string, body any) {
		m := marker + "-" + string(kind)
		l.write(&entry{kind: kind, marker: m, of: uuid, key: m}, http.MethodPost, "/"+uuid+"/"+to, marshal(body), map[string]string{})
	}
	switch n := rand.IntN(16); {
	case n < 4:
		e := &entry{kind: complete, marker: marker + "-complete", of: uuid}
		l.write(e, http.MethodPatch, "/"+uuid, []byte(`{"status":"completed"}`), nil)
	case n < 6:
		post(comment, "comments", map[string]string{"body": marker + "-comment"})
	case n == 15:
		user["firstName"] = marker + "-sign"
		post(sign, "signatures", map[string]any{"signer": user})
	case n < 7, n < 14 && l.files:
		l.upload(marker+"-upload", uuid)
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

// sometimes returns a key for half of the entries.
func sometimes(key string) string {
	if rand.IntN(2) == 0 {
		return ""
	}
	return key
}

// write makes the requests of an entry: one, or with a key as many as it takes until one is acknowledged. It returns the
// UUID of the created record.
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
		time.Sleep(pause)
		if e.key == "" || l.stopped.Load() || (a.status >= 400 && a.status < 500 && a.status != http.StatusConflict) {
			return "", false
		}
	}
}

// judge counts a response, and records a fault if it is wrong by itself.
func (l *load) judge(e *entry, a *answer, err error) {
	twin := a.status == http.StatusConflict && e.key != "" // an earlier request with the key is in progress
	switch {
	case a.status >= 400 && a.status < 500 && a.status != http.StatusTooManyRequests && !twin:
		l.ledger.fault("%s %q was answered with %d: %.300s", e.kind, e.marker, a.status, a.body)
	case a.status == http.StatusInternalServerError:
		l.ledger.fault("%s %q was answered with a bare 500: %.300s", e.kind, e.marker, a.body)
	case err == nil && a.status == http.StatusCreated && (a.uuid == "" || !bytes.Contains(a.body, []byte(a.uuid))):
		l.ledger.fault("%q was answered with %.300s for %s", e.marker, a.body, a.uuid)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.status < 200 || a.status > 299 {
		l.failed[a.status]++
		return
	}
	l.acked++
	now := time.Now()
	l.gap, l.lastAck = max(l.gap, now.Sub(l.lastAck)), now
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

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// hash returns a hash in the form that files have.
func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

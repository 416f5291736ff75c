// Package load runs clients that write to the service at a given rate, whatever happens to it, and record everything in a
// ledger.
package load

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/api"
	"github.com/formsvc/toolkit/cmd/formsvc/torture/internal/ledger"
)

// pause is how long a client waits after a failed request, so that it doesn't spin while no node runs.
const pause = 10 * time.Millisecond

// Options configures the clients.
type Options struct {
	Client   *api.Client
	Ledger   *ledger.Ledger
	Campaign string
	// Targets returns the current addresses of nodes. Each request goes to a random one, so that a retry may go to another.
	Targets func() []string
	// Name is the unique prefix of all markers.
	Name string
	// Clients is the number of concurrent clients. Defaults to 8.
	Clients int
	// Rate is the total number of writes per second. Defaults to 400.
	Rate float64
	// Large makes one file in eight one to two megabytes. Defaults to at most 32 KiB.
	Large bool
	// MoreFiles adds a file to every other response. Defaults to one in 16.
	MoreFiles bool
}

// A Load is a set of running clients. Its methods are safe for concurrent use.
type Load struct {
	o       Options
	limit   *rate.Limiter
	stop    atomic.Bool
	workers sync.WaitGroup
	began   time.Time

	mu      sync.Mutex
	lastAck time.Time
	gap     time.Duration
	acked   int
	failed  int
	why     map[string]int
}

// Start starts the clients, which run until Stop.
func Start(o Options) *Load {
	if o.Clients == 0 {
		o.Clients = 8
	}
	if o.Rate == 0 {
		o.Rate = 400
	}
	l := &Load{o: o, limit: rate.NewLimiter(rate.Limit(o.Rate), o.Clients), began: time.Now(), lastAck: time.Now(), why: make(map[string]int)}
	for i := range o.Clients {
		l.workers.Go(func() { l.work(fmt.Sprintf("%s-%d", o.Name, i)) })
	}
	return l
}

// A Result summarizes a load.
type Result struct {
	Took time.Duration
	// Acked and Failed count requests: those with a 2xx, and all others.
	Acked, Failed int
	// Gap is the longest time without any 2xx.
	Gap time.Duration
	// Why counts failures by the code of the problem, or without a response by the last words of the error.
	Why map[string]int
}

// Stop lets every client finish its operation and returns when all have. Requests without a response stay unknown.
func (l *Load) Stop() Result {
	l.stop.Store(true)
	l.workers.Wait()
	return l.Result()
}

// Result returns the result so far.
func (l *Load) Result() Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Result{
		Took: time.Since(l.began), Acked: l.acked, Failed: l.failed,
		Gap: max(l.gap, time.Since(l.lastAck)), Why: maps.Clone(l.why),
	}
}

// Acked returns the number of requests with a 2xx so far.
func (l *Load) Acked() int { return l.Result().Acked }

func (l *Load) work(name string) {
	random := rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) // no secret
	for i := 0; !l.stop.Load(); i++ {
		marker := fmt.Sprintf("%s-%d", name, i)
		uuid, ok := l.create(marker, random.IntN(2) == 0)
		if !ok {
			continue
		}
		switch n := random.IntN(16); {
		case n < 4:
			l.complete(marker, uuid)
		case n < 6:
			l.comment(marker, uuid)
		case n == 15:
			l.sign(marker, uuid)
		case n < 7, n < 14 && l.o.MoreFiles:
			l.upload(marker, uuid, random)
		}
	}
}

// create sends one response, and with a key repeats it until it is acknowledged.
func (l *Load) create(marker string, keyed bool) (uuid string, ok bool) {
	e := ledger.Entry{Kind: ledger.Create, Marker: marker}
	if keyed {
		e.Key = marker
	}
	return l.write(e, http.MethodPost, l.path(""), Submission(marker), nil)
}

// Submission is the body that creates a response with the marker in its answers.
func Submission(marker string) []byte {
	return marshal(map[string]any{
		"user":      map[string]string{"email": "ada@example.com", "firstName": "Ada", "lastName": "Lovelace"},
		"responses": map[string]any{"marker": map[string]any{"value": []string{marker}}},
	})
}

func (l *Load) complete(marker, uuid string) {
	l.write(ledger.Entry{Kind: ledger.Complete, Marker: marker + "-done", Of: uuid}, http.MethodPatch,
		l.path("/"+uuid), []byte(`{"status":"completed"}`), nil)
}

func (l *Load) comment(marker, uuid string) {
	marker += "-note"
	l.write(ledger.Entry{Kind: ledger.Comment, Marker: marker, Of: uuid, Key: marker}, http.MethodPost,
		l.path("/"+uuid+"/comments"), marshal(map[string]string{"body": marker}), nil)
}

// sign has the marker in the signer's name.
func (l *Load) sign(marker, uuid string) {
	marker += "-sign"
	l.write(ledger.Entry{Kind: ledger.Sign, Marker: marker, Of: uuid, Key: marker}, http.MethodPost, l.path("/"+uuid+"/signatures"),
		marshal(map[string]any{"signer": map[string]string{"email": "ada@example.com", "firstName": marker, "lastName": "Lovelace"}}), nil)
}

func (l *Load) upload(marker, uuid string, random *rand.Rand) {
	marker += "-file"
	size := random.IntN(32 << 10)
	if l.o.Large && random.IntN(8) == 0 {
		size = 1<<20 + random.IntN(1<<20)
	}
	content := Content(marker, size)
	sum := sha256.Sum256(content)
	e := ledger.Entry{Kind: ledger.Upload, Marker: marker, Of: uuid, SHA256: hex.EncodeToString(sum[:])}
	if random.IntN(2) == 0 {
		e.Key = marker
	}
	l.write(e, http.MethodPost, l.path("/"+uuid+"/files"), content, map[string]string{
		"Content-Type": "application/octet-stream", "Content-Disposition": `attachment; filename="` + marker + `"`,
	})
}

// Content returns the bytes of the file with the marker.
func Content(marker string, size int) []byte {
	b := make([]byte, 0, size+sha256.Size)
	for block := sha256.Sum256([]byte(marker)); len(b) < size; block = sha256.Sum256(block[:]) {
		b = append(b, block[:]...)
	}
	return b[:size]
}

func (l *Load) path(rest string) string {
	return "/v1/campaigns/" + l.o.Campaign + "/responses" + rest
}

// write makes the requests of an entry and returns the UUID of the created record.
func (l *Load) write(e ledger.Entry, method, path string, body []byte, header map[string]string) (uuid string, ok bool) {
	ctx := context.Background() // an operation in progress is finished
	_ = l.limit.Wait(ctx)
	if e.Key != "" {
		keyed := map[string]string{"Idempotency-Key": e.Key}
		for name, value := range header {
			keyed[name] = value
		}
		header = keyed
	}
	if err := l.o.Ledger.Intend(e); err != nil {
		l.o.Ledger.Fault("%v", err)
		return "", false
	}
	for {
		uuid, status := l.request(ctx, &e, api.Request{Method: method, URL: l.target() + path, Header: header, Body: body})
		if status >= 200 && status < 300 {
			return uuid, true
		}
		time.Sleep(pause)
		if e.Key == "" || l.stop.Load() || (status >= 400 && status < 500 && status != http.StatusConflict) {
			return "", false
		}
		if err := l.o.Ledger.Again(e.Marker); err != nil {
			l.o.Ledger.Fault("%v", err)
		}
	}
}

// request makes one request and records its result.
func (l *Load) request(ctx context.Context, e *ledger.Entry, r api.Request) (uuid string, status int) {
	a, err := l.o.Client.Do(ctx, r)
	// The response counts from its status line on, which already acknowledges the creation.
	if status = a.Status; status == http.StatusCreated {
		uuid = a.Created()
	}
	if e.Kind == ledger.Complete {
		uuid = ""
	}
	l.count(&a, err)
	if err := l.o.Ledger.Answer(e.Marker, status, uuid); err != nil {
		l.o.Ledger.Fault("%v", err)
	}
	twin := status == http.StatusConflict && e.Key != "" // an earlier request with the key is in progress
	switch {
	case status >= 400 && status < 500 && status != http.StatusTooManyRequests && !twin:
		l.o.Ledger.Fault("%s %s of %q was answered with %d: %.300s", r.Method, e.Kind, e.Marker, status, a.Body)
	case status == http.StatusInternalServerError:
		l.o.Ledger.Fault("%s %s of %q was answered with a bare 500: %.300s", r.Method, e.Kind, e.Marker, a.Body)
	case err == nil && status == http.StatusCreated && !bytes.Contains(a.Body, []byte(`"uuid":"`+uuid+`"`)):
		l.o.Ledger.Fault("%q was answered with %.300s for %s", e.Marker, a.Body, uuid)
	}
	return uuid, status
}

func (l *Load) count(a *api.Answer, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.Status < 200 || a.Status > 299 {
		l.failed++
		l.why[reason(a, err)]++
		return
	}
	l.acked++
	now := time.Now()
	l.gap, l.lastAck = max(l.gap, now.Sub(l.lastAck)), now
}

func reason(a *api.Answer, err error) string {
	if err != nil {
		text := err.Error()
		return text[strings.LastIndex(text, ": ")+1:]
	}
	var problem struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(a.Body, &problem) // what is no problem has no code
	return strconv.Itoa(a.Status) + " " + problem.Code
}

// target waits until a node runs and returns one; if the load ends first, it returns an unused address.
func (l *Load) target() string {
	for ; ; time.Sleep(time.Millisecond) {
		if list := l.o.Targets(); len(list) > 0 {
			return list[rand.IntN(len(list))] // no secret
		}
		if l.stop.Load() {
			break
		}
	}
	return "http://127.0.0.1:1"
}

func marshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

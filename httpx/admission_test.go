package httpx_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/formsvc/toolkit/httpx"
)

// A crowd is a server with one place for requests, which is taken until free is called.
type crowd struct {
	*world
	server *httptest.Server
	list   string // of responses
	free   func()
}

// newCrowd has requests wait for so long for the place.
func newCrowd(t *testing.T, w *world, opts *httpx.Options) *crowd {
	t.Helper()
	c := &crowd{world: w, list: w.campaign(plainCampaign) + "/responses"}
	opts.MaxRequests = 1
	c.serve(opts)
	c.server = httptest.NewServer(c.api)
	t.Cleanup(c.server.Close)
	inside, end, done := make(chan struct{}), make(chan struct{}), make(chan *answer, 1)
	release := sync.OnceFunc(func() { close(end) })
	t.Cleanup(release) // before the server is closed, also when the test fails
	c.store.hold.Store(new(func() {
		close(inside)
		<-end
	}))
	go func() { done <- c.call(t.Context(), "GET", c.list+"/"+noID, "") }()
	select {
	case <-inside:
	case <-time.After(patience):
		t.Fatal("nobody took the place")
	}
	c.free = func() {
		release()
		(<-done).is(404, "not_found")
	}
	return c
}

// noID is an identifier that nothing has.
const noID = "01910000-0000-7000-8000-000000000000"

// call sends a request over TCP and returns the answer; status 0 is none.
func (c *crowd) call(ctx context.Context, method, path, body string, edits ...func(*http.Request)) *answer {
	a := &answer{tb: c.tb, what: method + " " + path}
	r, err := http.NewRequestWithContext(ctx, method, c.server.URL+path, strings.NewReader(body))
	if err != nil {
		c.tb.Error(err)
		return a
	}
	r.Header.Set("Authorization", "Bearer "+c.mine.key)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, edit := range edits {
		edit(r)
	}
	response, err := c.server.Client().Do(r)
	if err != nil {
		return a
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return a
	}
	a.status, a.header, a.body = response.StatusCode, response.Header, string(text)
	if response.Close {
		a.header.Set("Connection", "close") // which the client takes out
	}
	return a
}

// waiting waits until so many requests wait for the place.
func (c *crowd) waiting(n int) {
	c.tb.Helper()
	for end := time.Now().Add(patience); c.bare.Waiting() != n; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			c.tb.Fatalf("%d requests wait, want %d", c.bare.Waiting(), n)
		}
	}
}

// Who waited in vain is told when to come back, keeps his connection, and has used
// nothing up: no quota, no idempotency key, no failure of authentication. Whoever needs
// no key is answered meanwhile.
func TestOverload(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		w.limit(100, nil)
		c := newCrowd(t, w, &httpx.Options{MaxWait: 10 * time.Millisecond})
		w.log.Reset()
		key := header("Idempotency-Key", "k")
		for range 3 {
			for _, a := range []*answer{
				c.call(t.Context(), "POST", c.list, plainResponse, key), c.call(t.Context(), "GET", c.list, ""),
				c.call(t.Context(), "GET", c.list, "", as("nonsense")),
			} {
				a.is(503, "unavailable").check("GET")
				if a.header.Get("Retry-After") == "" || a.header.Get("X-Ratelimit-Remaining") != "" || a.header.Get("Connection") != "" {
					a.errorf("header %v", a.header)
				}
			}
		}
		for _, path := range []string{"/", "/healthz", "/readyz", "/openapi.json", "/docs"} {
			c.call(t.Context(), "GET", path, "").is(200, "")
		}
		if n := strings.Count(w.log.String(), "\n"); n != 1 || !strings.Contains(w.log.String(), "level=WARN") {
			t.Errorf("logged %d lines: %s", n, w.log)
		}
		c.free()
		a := c.call(t.Context(), "POST", c.list, plainResponse, key).is(201, "")
		// The campaign was made, then the place was taken, then this came.
		if left := a.number("X-Ratelimit-Remaining"); left != 97 || a.header.Get("Idempotent-Replayed") != "" {
			t.Errorf("%d requests left, header %v", left, a.header)
		}
		if n := w.total(c.list); n != 1 {
			t.Errorf("%d responses", n)
		}
	})
}

// Who waits is served when there is a place, whether a body comes with the request or not.
func TestWaitingRequestsAreServed(t *testing.T) {
	c := newCrowd(t, newWorld(t, openMemory(t), nil), &httpx.Options{MaxWait: patience})
	const n = 5
	answers := make(chan *answer, n)
	for i := range n {
		go func() { answers <- c.call(t.Context(), "GET", c.list, "") }()
		c.waiting(i + 1)
	}
	ended := make(chan *answer, 1)
	go func() { ended <- c.call(t.Context(), "POST", c.list, plainResponse) }()
	c.waiting(n + 1)
	c.free()
	for range n {
		(<-answers).is(200, "")
	}
	(<-ended).is(201, "")
	c.waiting(0)
}

// Beyond those who may wait the answer comes at once, and the connection is closed.
func TestMaxWaiting(t *testing.T) {
	c := newCrowd(t, newWorld(t, openMemory(t), nil), &httpx.Options{MaxWait: patience, MaxWaiting: 1})
	first := make(chan *answer, 1)
	go func() { first <- c.call(t.Context(), "GET", c.list, "") }()
	c.waiting(1)
	a := c.call(t.Context(), "GET", c.list, "").is(503, "unavailable")
	if a.header.Get("Retry-After") == "" || a.header.Get("Connection") != "close" {
		t.Errorf("header %v", a.header)
	}
	c.free()
	(<-first).is(200, "")
}

// Who leaves while he waits is no longer in line, and nothing happens for him.
func TestLeavingTheLine(t *testing.T) {
	c := newCrowd(t, newWorld(t, openMemory(t), nil), &httpx.Options{MaxWait: patience, MaxWaiting: 1})
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan *answer, 1)
	go func() { gone <- c.call(ctx, "GET", c.list, "") }()
	c.waiting(1)
	leave()
	if a := <-gone; a.status != 0 {
		t.Errorf("answered %d", a.status)
	}
	c.waiting(0)
	next := make(chan *answer, 1)
	go func() { next <- c.call(t.Context(), "GET", c.list, "") }()
	c.waiting(1)
	c.free()
	(<-next).is(200, "")
}

// A panic gives the place back, whatever becomes of the answer.
func TestPanicsGivePlacesBack(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		path := w.response(w.campaign(plainCampaign))
		w.serve(&httpx.Options{MaxRequests: 1, MaxWait: time.Millisecond})
		for _, v := range []any{"a panic", http.ErrAbortHandler} {
			w.store.panic = v
			func() {
				defer func() { _ = recover() }()
				w.do("GET", path, "").is(500, "internal")
			}()
			w.store.panic = nil
			w.do("GET", path, "").is(200, "")
		}
	})
}

// A client that sends its body slowly, or reads its answer slowly, has no place
// meanwhile; neither has a file on its way.
func TestSlowClientsHaveNoPlace(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	list := w.campaign(plainCampaign) + "/responses"
	uploads := w.response(strings.TrimSuffix(list, "/responses")) + "/files"
	w.serve(&httpx.Options{MaxRequests: 1, MaxWait: time.Millisecond})
	server := httptest.NewServer(w.api)
	t.Cleanup(server.Close) // after the connections
	for _, x := range []struct{ name, path, more string }{
		{"body", list, "Content-Type: application/json\r\n"},
		{"upload", uploads, "Content-Type: text/plain\r\nContent-Disposition: attachment; filename=a\r\n"},
	} {
		conn := slowly(t, server, fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n%sContent-Length: %d\r\n"+
			"Expect: 100-continue\r\n\r\n", x.path, w.mine.key, x.more, len(plainResponse)))
		answers := bufio.NewReader(conn)
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "100 Continue") { // so it is being read
			t.Fatalf("%s: %q, %v", x.name, line, err)
		}
		w.do("GET", list, "").is(200, "")
		_, _ = io.WriteString(conn, plainResponse)
		if _, err := answers.ReadString('\n'); err != nil {
			t.Errorf("%s: %v", x.name, err)
		}
		if line, err := answers.ReadString('\n'); err != nil || !strings.Contains(line, "201 Created") {
			t.Errorf("%s: %q, %v", x.name, line, err)
		}
	}
}

// slowly begins a request.
func slowly(t *testing.T, server *httptest.Server, head string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, head); err != nil {
		t.Fatal(err)
	}
	return conn
}

// An answer that the client is slow to read takes no place.
func TestAnswersHaveNoPlace(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	path := w.response(w.campaign(plainCampaign))
	w.serve(&httpx.Options{MaxRequests: 1, MaxWait: time.Millisecond})
	during := 0
	for _, target := range []string{path, strings.TrimSuffix(path, path[len(path)-37:])} {
		w.api.ServeHTTP(&watched{httptest.NewRecorder(), func() {
			during++
			w.do("GET", path, "").is(200, "")
		}}, w.request("GET", target, ""))
	}
	if during != 2 {
		t.Errorf("%d answers were written", during)
	}
}

// A watched answer is one during whose writing something happens.
type watched struct {
	*httptest.ResponseRecorder
	do func()
}

func (w *watched) Write(p []byte) (int, error) {
	w.do()
	return w.ResponseRecorder.Write(p)
}

// A request that waited for its own body and finds no place then is not counted.
func TestNoPlaceAfterTheBody(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	w.limit(100, nil)
	list := w.campaign(plainCampaign) + "/responses"
	w.serve(&httpx.Options{MaxRequests: 1, MaxWait: time.Millisecond})
	end, done := make(chan struct{}), make(chan struct{})
	body := &arriving{Reader: strings.NewReader(plainResponse), first: func() { // then another one takes the place
		inside := make(chan struct{})
		w.store.hold.Store(new(func() {
			close(inside)
			<-end
		}))
		go func() {
			defer close(done)
			w.do("GET", list+"/"+noID, "").is(404, "")
		}()
		<-inside
	}}
	r := w.request("POST", list, plainResponse)
	r.Body = io.NopCloser(body)
	w.send(r).is(503, "unavailable")
	close(end)
	<-done
	if left := w.do("GET", list, "").is(200, "").number("X-Ratelimit-Remaining"); left != 97 {
		t.Errorf("%d requests left", left) // of 100: the campaign, the other one, the list
	}
}

// An arriving body calls first before its first byte.
type arriving struct {
	io.Reader
	first func()
}

func (a *arriving) Read(p []byte) (int, error) {
	if a.first != nil {
		a.first()
		a.first = nil
	}
	return a.Reader.Read(p)
}

// The bodies that are held have a bound together. Small ones are always taken, and
// what a request held is free after it.
func TestMaxBodies(t *testing.T) {
	w := newWorld(t, openMemory(t), nil)
	w.limit(100, nil)
	list := w.campaign(plainCampaign) + "/responses"
	const limit = 64 << 10
	w.serve(&httpx.Options{MaxBody: limit, MaxBodies: limit})
	long := strings.Replace(plainResponse, "{", "{"+strings.Repeat(" ", 60<<10), 1)
	during := 0
	other := &arriving{Reader: strings.NewReader(long[len(long)-10:]), first: func() { // when most of the body is here
		during++
		a := w.do("POST", list, long).is(503, "unavailable")
		if a.header.Get("Connection") != "close" || a.header.Get("Retry-After") == "" {
			t.Errorf("header %v", a.header)
		}
		w.do("POST", list, long, func(r *http.Request) { r.ContentLength = -1 }).is(503, "unavailable")
		w.do("POST", list, plainResponse).is(201, "")
	}}
	for range 3 { // the first of which is watched
		other.Reader = strings.NewReader(long[len(long)-10:])
		r := w.request("POST", list, long)
		r.Body = io.NopCloser(io.MultiReader(strings.NewReader(long[:len(long)-10]), other))
		w.send(r).is(201, "")
	}
	if during != 1 {
		t.Errorf("%d bodies were watched", during)
	}
	if left := w.do("GET", list, "").is(200, "").number("X-Ratelimit-Remaining"); left != 94 {
		t.Errorf("%d requests left", left) // of 100: the campaign, four responses, the list
	}
}

package torture_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	goclient "github.com/formsvc/toolkit/httpx/client"
)

// faultyProxy answers every tenth request with 503 before it reaches the service, and loses every tenth reply after it did.
func faultyProxy(t *testing.T, target string) string {
	u := must(url.Parse(target))
	forward := httputil.NewSingleHostReverseProxy(u)
	forward.ErrorLog = log.New(io.Discard, "", 0)
	forward.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch rand.IntN(10) {
		case 0:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 1:
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// linked starts a node and returns a client of it over a faulty link and proxy, and a campaign.
func linked(t *testing.T, proxy bool) (api *goclient.Client, l *link, campaign string) {
	s := setup{dsn: sqliteDSN(t), data: t.TempDir(), flags: []string{"--quota", "0", "--max-upload", "2GB", "--trusted-proxy", "127.0.0.0/8"}}
	node := s.start(t)
	l, near := newLink(t, node.url)
	if proxy {
		near = faultyProxy(t, near)
	}
	api = must(goclient.New(near, node.firstKey(t), &goclient.Options{Timeout: 5 * time.Second}))
	made := must(api.Campaigns.Create(t.Context(), goclient.CampaignInput{Title: "Linked"}))
	return api, l, made.UUID
}

// The Go client creates each of 10,000 responses once, while the link fails in every way.
func TestClientLink(t *testing.T) {
	const n, senders = 10_000, 16
	api, l, campaign := linked(t, true)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var next atomic.Int64
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			for i := next.Add(1); i <= n; i = next.Add(1) {
				in := goclient.ResponseInput{
					User:    formsvc.User{Email: "ada@example.com"},
					Answers: formsvc.NewAnswers(formsvc.Answer{Name: "marker", Value: []string{fmt.Sprint(i)}}),
				}
				if _, err := api.Responses.Create(ctx, campaign, in); err != nil {
					t.Errorf("response %d: %v", i, err)
					return
				}
			}
		})
	}
	kinds := 0
	for ; next.Load() < n && ctx.Err() == nil; kinds++ {
		l.disturb(kinds, rand.N(300*time.Millisecond))
		time.Sleep(rand.N(200 * time.Millisecond))
	}
	group.Wait()
	seen := map[string]int{}
	for r, err := range api.Responses.All(ctx, campaign, &goclient.ResponseQuery{PageQuery: goclient.PageQuery{Limit: 1000}}) {
		noError(t, err)
		marker, _ := r.Answers.Get("marker")
		seen[marker[0]]++
	}
	if len(seen) != n {
		t.Errorf("%d responses, want %d", len(seen), n)
	}
	for marker, times := range seen {
		if times != 1 {
			t.Errorf("response %s exists %d times", marker, times)
		}
	}
	if kinds < len(toxics) {
		t.Errorf("INVALID: the link failed in %d of %d ways", kinds, len(toxics))
	}
}

// A cutter cuts a link at ten places of what goes through it.
type cutter struct {
	*os.File

	link  *link
	every int64
	until int64
	cuts  int
	most  uint64 // bytes of memory in use at a cut
}

func (c *cutter) passed(n int) {
	if c.until -= int64(n); c.until < 0 && c.cuts < 10 {
		c.link.proxy.Stop()
		c.link.up()
		c.cuts++
		c.until = c.every
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		c.most = max(c.most, m.HeapAlloc)
	}
}

func (c *cutter) Read(p []byte) (int, error) {
	n, err := c.File.Read(p)
	c.passed(n)
	return n, err
}

// The Go client uploads and downloads a gigabyte over a link that is cut ten times each way, in flat memory.
func TestClientTransfer(t *testing.T) {
	const size, cut = 1 << 30, 64 << 20
	api, l, campaign := linked(t, false)
	file, err := os.Create(t.TempDir() + "/large")
	if err == nil {
		err = file.Truncate(size)
	}
	noError(t, err)
	defer func() { _ = file.Close() }()
	made := must(api.Responses.Create(t.Context(), campaign, goclient.ResponseInput{User: formsvc.User{Email: "ada@example.com"}}))
	up := &cutter{File: file, link: l, every: cut, until: cut}
	stored, err := api.Files.Upload(t.Context(), campaign, made.UUID, goclient.Upload{Name: "large", Content: up})
	if err != nil || stored.Size != size || up.cuts != 10 {
		t.Fatalf("%+v, %v after %d cuts", stored, err, up.cuts)
	}
	content := must(api.Files.Download(t.Context(), stored.UUID))
	defer content.Close()
	down := &cutter{link: l, every: cut, until: cut}
	n, err := io.Copy(writer(func(p []byte) (int, error) { down.passed(len(p)); return len(p), nil }), content)
	if err != nil || n != size || down.cuts != 10 {
		t.Errorf("%d bytes, %v after %d cuts", n, err, down.cuts)
	}
	if most := max(up.most, down.most) >> 20; most > 32 {
		t.Errorf("%d MiB were in use, want at most 32", most)
	}
	t.Logf("in use: up %d KiB, down %d KiB", up.most>>10, down.most>>10)
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

package intake_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx/intake"
	"github.com/formsvc/toolkit/storage/memory"
)

// maxFile is the largest file of a world.
const maxFile = 100_000

// blobs fails as long as there are failures, after it has skipped some.
type blobs struct {
	*memblob.Store
	skip, failures atomic.Int32
}

func (b *blobs) Put(ctx context.Context, key string, r io.Reader) (int64, error) {
	if b.skip.Add(-1) < 0 && b.failures.Add(-1) >= 0 {
		return 0, errors.New("bucket is down")
	}
	return b.Store.Put(ctx, key, r)
}

// A world is a campaign with a form, and a visitor whose address can change.
type world struct {
	t        *testing.T
	store    *memory.Store
	blobs    blobs
	svc      *formsvc.Service
	account  formsvc.ID
	campaign formsvc.Campaign
	url      string // of the form
	log      bytes.Buffer
	now      atomic.Pointer[time.Time]
	address  atomic.Value // string
}

func newWorld(t *testing.T, in formsvc.CampaignInput, opts *intake.Options, edits ...func(*formsvc.Options)) *world {
	t.Helper()
	w := &world{t: t, store: memory.New()}
	now := time.Now().UTC()
	w.now.Store(&now)
	w.address.Store("192.0.2.1")
	w.blobs.Store = memblob.New()
	t.Cleanup(func() { _ = w.store.Close() })
	clock := func() time.Time { return *w.now.Load() }
	service := formsvc.Options{Blobs: &w.blobs, MaxFile: maxFile, Now: clock}
	for _, edit := range edits {
		edit(&service)
	}
	svc, err := formsvc.New(w.store, &service)
	w.must(err)
	w.svc = svc
	w.account, err = svc.Accounts.Ensure(t.Context(), "owner")
	w.must(err)
	in.Form.Enabled, in.Title = true, cmp.Or(in.Title, "Survey")
	w.campaign, err = svc.Campaigns.Create(t.Context(), w.account, in)
	w.must(err)
	o := *cmp.Or(opts, &intake.Options{})
	o.Logger = slog.New(slog.NewTextHandler(&w.log, nil))
	o.ClientAddress = func(*http.Request) string { return w.address.Load().(string) }
	h, err := intake.New(svc, &o)
	w.must(err)
	mux := http.NewServeMux()
	mux.Handle("/sub/f/", http.StripPrefix("/sub/f", h))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	w.url = server.URL + "/sub/f/" + w.campaign.FormToken
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) wait(d time.Duration) {
	now := w.now.Load().Add(d)
	w.now.Store(&now)
}

// An answer is what the visitor gets.
type answer struct {
	t      *testing.T
	status int
	header http.Header
	body   string
}

func (w *world) do(method, address, contentType string, body io.Reader, header ...string) *answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, address, body)
	w.must(err)
	r.Header.Set("Content-Type", contentType)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	reply, err := http.DefaultTransport.RoundTrip(r) // follows no redirect
	w.must(err)
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	w.must(err)
	return &answer{w.t, reply.StatusCode, reply.Header, string(text)}
}

func (w *world) get(path string, header ...string) *answer {
	w.t.Helper()
	return w.do(http.MethodGet, strings.Replace(w.url+path, "/"+w.campaign.FormToken+"/..", "", 1), "", nil, header...)
}

// post sends names and values, in their order, as a url-encoded form.
func (w *world) post(fields ...string) *answer {
	w.t.Helper()
	var list []string
	for i := 0; i < len(fields); i += 2 {
		list = append(list, url.QueryEscape(fields[i])+"="+url.QueryEscape(fields[i+1]))
	}
	return w.do(http.MethodPost, w.url, "application/x-www-form-urlencoded", strings.NewReader(strings.Join(list, "&")))
}

func (w *world) json(body string, header ...string) *answer {
	w.t.Helper()
	return w.do(http.MethodPost, w.url, "application/json", strings.NewReader(body), header...)
}

// A part is a file of a multipart form.
type part struct{ module, name, content string }

func (w *world) upload(files []part, fields ...string) *answer {
	w.t.Helper()
	var b bytes.Buffer
	for i := 0; i < len(fields); i += 2 {
		fmt.Fprintf(&b, "--x\r\nContent-Disposition: form-data; name=%q\r\n\r\n%s\r\n", fields[i], fields[i+1])
	}
	for _, f := range files {
		fmt.Fprintf(&b, "--x\r\nContent-Disposition: form-data; name=%q; filename=%q\r\nContent-Type: text/plain\r\n\r\n%s\r\n", f.module, f.name, f.content)
	}
	b.WriteString("--x--\r\n")
	return w.do(http.MethodPost, w.url, "multipart/form-data; boundary=x", &b)
}

// responses returns the stored responses, oldest first.
func (w *world) responses() []formsvc.Response {
	w.t.Helper()
	page, err := w.svc.Responses.List(w.t.Context(), formsvc.ResponseQuery{
		AccountID: w.account, CampaignID: w.campaign.ID, Page: formsvc.PageQuery{Limit: 100, Ascending: true},
	})
	w.must(err)
	return page.Items
}

// events returns how many events were raised.
func (w *world) events() int {
	w.t.Helper()
	page, err := w.svc.Events.List(w.t.Context(), formsvc.EventQuery{AccountID: w.account, Early: true})
	w.must(err)
	for i := range page.Items {
		if !strings.Contains(string(page.Items[i].Payload), `"actor":{"type":"visitor"}`) {
			w.t.Errorf("an event by another actor: %s", page.Items[i].Payload)
		}
	}
	return len(page.Items)
}

func (a *answer) is(status int) *answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %.1000s", a.status, status, a.body)
	}
	return a
}

// has checks that the body has all texts.
func (a *answer) has(texts ...string) *answer {
	a.t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			a.t.Errorf("no %q in\n%s", text, a.body)
		}
	}
	return a
}

// elements returns all elements of the page.
func (a *answer) elements() (list []*html.Node) {
	doc, err := html.Parse(strings.NewReader(a.body))
	if err != nil {
		a.t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			list = append(list, n)
		}
	}
	return list
}

func attribute(n *html.Node, key string) string {
	for _, x := range n.Attr {
		if x.Key == key {
			return x.Val
		}
	}
	return ""
}

// styles returns the CSS inside the page, once its policy allows all of it. Before it is painted,
// nothing else is loaded but the host's stylesheet.
func (a *answer) styles() (css string) {
	a.t.Helper()
	policy := a.header.Get("Content-Security-Policy")
	for _, n := range a.elements() {
		switch {
		case n.Data == "style":
			css += n.FirstChild.Data
			if sum := sha256.Sum256([]byte(n.FirstChild.Data)); !strings.Contains(policy, " 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
				a.t.Errorf("the policy %q doesn't allow %s", policy, n.FirstChild.Data)
			}
		case attribute(n, "rel") == "stylesheet" && !strings.Contains(attribute(n, "href"), "assets/theme-") || n.Data == "script" && !slices.ContainsFunc(n.Attr, func(x html.Attribute) bool { return x.Key == "defer" }):
			a.t.Errorf("the page waits for %v", n.Attr)
		}
	}
	return css
}

// token returns the field _page.
func (a *answer) token() string {
	a.t.Helper()
	match := regexp.MustCompile(`name="_page" value="([^"]+)"`).FindStringSubmatch(a.body)
	if match == nil {
		a.t.Fatalf("no page with a form: %.500s", a.body)
	}
	return match[1]
}

// equal fails the test unless got is want. The format has a verb for each argument, and the last one for got.
func equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf(format+", want %v", append(slices.Clone(args), got, want)...)
	}
}

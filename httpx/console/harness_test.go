package console_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/httpx/console"
	"github.com/formsvc/toolkit/httpx/internal/gate"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// A world is pages over a store, and a browser that is signed in.
type world struct {
	t       *testing.T
	store   *memory.Store
	svc     *formsvc.Service
	account formsvc.Account
	pages   *console.Handler
	server  *httptest.Server
	base    string // the address of the pages
	api     string // that of the API, "" for /forms
	limits  *gate.Shared
	client  *http.Client
	log     *bytes.Buffer

	mu    sync.Mutex
	now   time.Time
	still bool // whether the clock stands still

	mailed int // links of mails that were followed
}

// newWorld serves pages below /admin/console, over the memory store.
func newWorld(t *testing.T, opts *console.Options) *world {
	t.Helper()
	w := &world{t: t, store: memory.New(), log: new(bytes.Buffer), now: time.Now()} // the client's cookies expire by that clock
	t.Cleanup(func() { _ = w.store.Close() })
	var err error
	w.svc, err = formsvc.New(w.store, &formsvc.Options{Blobs: memblob.New(), Now: w.clock})
	if err == nil {
		w.account, err = w.svc.Accounts.Create(t.Context(), "mine")
	}
	w.must(err)
	w.serve(opts)
	return w
}

// newAPI returns an API for pages with other options.
func (w *world) newAPI() *httpx.Handler {
	w.t.Helper()
	api, err := httpx.New(w.svc, nil)
	w.must(err)
	return api
}

// newSignedIn returns a world whose browser is signed in.
func newSignedIn(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, nil)
	w.signIn()
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) serve(opts *console.Options) {
	w.t.Helper()
	var o console.Options
	if opts != nil {
		o = *opts
	}
	o.Logger = slog.New(slog.NewTextHandler(w.log, nil))
	o.APIURL = cmp.Or(w.api, "/forms")
	api, err := httpx.New(w.svc, &httpx.Options{Logger: o.Logger})
	w.must(err)
	w.limits = api.Limits()
	w.pages, err = console.New(w.svc, api, &o)
	w.must(err)
	mux := http.NewServeMux()
	mux.Handle("/admin/console/", http.StripPrefix("/admin/console", w.pages))
	w.server = httptest.NewServer(mux)
	w.t.Cleanup(w.server.Close)
	w.base = w.server.URL + "/admin/console"
	w.client = newClient(w.t)
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	jar := must(cookiejar.New(nil))
	return &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.still {
		w.now = w.now.Add(time.Millisecond)
	}
	return w.now
}

func (w *world) wait(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// link creates a sign-in link for an account and returns its token.
func (w *world) link(account formsvc.ID) string {
	w.t.Helper()
	token, _, err := w.svc.Sessions.NewLink(context.Background(), account)
	w.must(err)
	return token
}

// signIn signs the client in to the account.
func (w *world) signIn() {
	w.t.Helper()
	page := w.get("/sign-in/" + w.link(w.account.ID)).is(200)
	w.submit(page, "/sign-in", nil).is(303).leadsTo("/")
}

// An answer is a page or a redirect.
type answer struct {
	w      *world
	what   string
	status int
	header http.Header
	body   string
	page   *html.Node
}

// do sends a request as the client.
func (w *world) do(method, path string, form url.Values, edits ...func(*http.Request)) *answer {
	w.t.Helper()
	var body io.Reader
	if form != nil {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, body)
	w.must(err)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, edit := range edits {
		edit(r)
	}
	response, err := w.client.Do(r)
	w.must(err)
	defer func() { _ = response.Body.Close() }()
	b, err := io.ReadAll(response.Body)
	w.must(err)
	a := &answer{w: w, what: method + " " + path, status: response.StatusCode, header: response.Header, body: string(b)}
	if a.page, err = html.Parse(strings.NewReader(a.body)); err != nil {
		w.t.Fatal(err)
	}
	return a
}

func (w *world) get(path string) *answer {
	w.t.Helper()
	return w.do("GET", path, nil)
}

// submit sends the form on a page with the given path as its action, with fields changed. As a browser does, it sends
// all fields of the form, with its line ends.
func (w *world) submit(page *answer, path string, fields url.Values, edits ...func(*http.Request)) *answer {
	w.t.Helper()
	form := page.form(path)
	for name, values := range fields {
		if len(values) == 0 {
			form.Del(name)
			continue
		}
		form[name] = values
	}
	for _, values := range form {
		for i, text := range values {
			values[i] = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
		}
	}
	return w.do("POST", path, form, append(edits, func(r *http.Request) { r.Header.Set("Origin", w.server.URL) })...)
}

// form returns the values of the form with that path as its action.
func (a *answer) form(path string) url.Values {
	a.w.t.Helper()
	for n := range a.page.Descendants() {
		if n.Data == "form" && attribute(n, "method") == "post" && a.w.server.URL+attribute(n, "action") == a.w.base+path {
			return filled(n)
		}
	}
	a.w.t.Fatalf("%s: no form leads to %s: %.3000s", a.what, path, a.body)
	return nil
}

// filled returns the values of the fields in a form.
func filled(form *html.Node) url.Values {
	values := url.Values{}
	for n := range form.Descendants() {
		name := attribute(n, "name")
		switch n.Data {
		case "input":
			_, checked := attributeOf(n, "checked")
			switch kind, value := attribute(n, "type"), attribute(n, "value"); {
			case kind == "" || kind == "email" || kind == "url": // has one line
				values.Add(name, strings.NewReplacer("\r", "", "\n", "").Replace(value))
			case kind != "checkbox" || checked:
				values.Add(name, value)
			}
		case "textarea":
			values.Add(name, textOf(n))
		case "option":
			if _, selected := attributeOf(n, "selected"); n.Parent.Data == "select" && (selected || n.Parent.FirstChild == n) {
				value, ok := attributeOf(n, "value")
				if !ok {
					value = textOf(n)
				}
				values.Set(attribute(n.Parent, "name"), value)
			}
		}
	}
	return values
}

func attribute(n *html.Node, name string) string {
	value, _ := attributeOf(n, name)
	return value
}

func attributeOf(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// textOf returns the text in an element.
func textOf(n *html.Node) string {
	var b strings.Builder
	for part := range n.Descendants() {
		if part.Type == html.TextNode {
			b.WriteString(part.Data)
		}
	}
	return b.String()
}

// is checks the status, and the invariants of every reply.
func (a *answer) is(status int) *answer {
	a.w.t.Helper()
	if a.status != status {
		a.w.t.Fatalf("%s: status %d, want %d: %s", a.what, a.status, status, a.text())
	}
	return a
}

// text returns the visible text.
func (a *answer) text() string {
	for n := range a.page.Descendants() {
		if n.Data != "main" {
			continue
		}
		var words []string
		for part := range n.Descendants() {
			if part.Type == html.TextNode {
				words = append(words, strings.Fields(part.Data)...)
			}
		}
		return strings.Join(words, " ")
	}
	return a.body
}

func (a *answer) says(texts ...string) *answer {
	a.w.t.Helper()
	for _, text := range texts {
		if !strings.Contains(a.text(), text) {
			a.w.t.Errorf("%s does not say %q: %s", a.what, text, a.text())
		}
	}
	return a
}

func (a *answer) lacks(texts ...string) *answer {
	a.w.t.Helper()
	for _, text := range texts {
		if strings.Contains(a.body, text) {
			a.w.t.Errorf("%s has %q", a.what, text)
		}
	}
	return a
}

// leadsTo checks the path of a redirect, and follows it.
func (a *answer) leadsTo(path string) *answer {
	a.w.t.Helper()
	u, err := url.Parse(a.header.Get("Location"))
	if err != nil || u.Host != "" || a.w.server.URL+u.Path != a.w.base+path {
		a.w.t.Fatalf("%s leads to %s, want %s", a.what, a.header.Get("Location"), path)
	}
	return a.w.get(strings.TrimPrefix(u.RequestURI(), "/admin/console"))
}

// secret returns the value that a page shows once.
func (a *answer) secret() string {
	a.w.t.Helper()
	for n := range a.page.Descendants() {
		if n.Data == "pre" && strings.Contains(attribute(n, "class"), "secret") {
			return textOf(n)
		}
	}
	a.w.t.Fatalf("%s shows nothing secret: %s", a.what, a.text())
	return ""
}

// links returns the links of the page, relative to the pages' path.
func (a *answer) links() []string {
	var list []string
	for n := range a.page.Descendants() {
		if n.Data == "a" {
			if path, ok := strings.CutPrefix(attribute(n, "href"), "/admin/console"); ok {
				list = append(list, path)
			}
		}
	}
	return list
}

// linkTo returns the first link of the page with that prefix.
func (a *answer) linkTo(prefix string) string {
	a.w.t.Helper()
	for _, link := range a.links() {
		if strings.HasPrefix(link, prefix) && len(link) > len(prefix) {
			return link
		}
	}
	a.w.t.Fatalf("%s has no link to %s…: %q", a.what, prefix, a.links())
	return ""
}

// campaign and the functions below create records.
func (w *world) campaign(title string) formsvc.Campaign {
	w.t.Helper()
	c, err := w.svc.Campaigns.Create(w.t.Context(), w.account.ID, formsvc.CampaignInput{Title: title})
	w.must(err)
	return c
}

func (w *world) response(c *formsvc.Campaign, name string, answers ...formsvc.Answer) formsvc.Response {
	w.t.Helper()
	r, err := w.svc.Responses.Create(w.t.Context(), c.Key(), formsvc.ResponseInput{
		User: formsvc.User{Email: "ada@example.com", FirstName: name}, Answers: answers,
	})
	w.must(err)
	return r
}

func (w *world) hook(address string) formsvc.Webhook {
	w.t.Helper()
	h, _, err := w.svc.Webhooks.Create(w.t.Context(), w.account.ID, formsvc.WebhookInput{URL: address, Events: []formsvc.EventType{"response.created"}})
	w.must(err)
	return h
}

// receiver starts a receiver that replies with a status and a body.
func (w *world) receiver(status int, body string) string {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		rw.WriteHeader(status)
		_, _ = fmt.Fprint(rw, body)
	}))
	w.t.Cleanup(s.Close)
	return s.URL
}

// drain delivers, with retries, until nothing is due.
func (w *world) drain() {
	w.t.Helper()
	e, err := delivery.New(w.store, &delivery.Options{
		Now: w.clock, Logger: slog.New(slog.NewTextHandler(w.log, nil)), Retries: []time.Duration{time.Minute},
		Control: func(string, string, syscall.RawConn) error { return nil }, // receivers run on this machine
	})
	w.must(err)
	for range 3 {
		for n := 1; n > 0; {
			n, err = e.RunOnce(w.t.Context())
			w.must(err)
		}
		w.wait(2 * time.Minute)
	}
}

// equal fails the test unless got is want. The format has a verb for each argument, and the last one for got.
func equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf(format+", want %v", append(slices.Clone(args), got, want)...)
	}
}

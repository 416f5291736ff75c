package httpx_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// A world is a service with two accounts, and the API over it.
type world struct {
	tb    testing.TB
	store *faultyStore
	blobs *faultyBlobs
	svc   *formsvc.Service
	api   http.Handler   // checked against the OpenAPI document
	bare  *httpx.Handler // the handler without the check
	log   *bytes.Buffer
	now   time.Time        // of the clock; set by tests
	clock func() time.Time // another clock
	seen  *strings.Builder // gets every reply unless nil

	mine, other tenant
}

type tenant struct {
	account formsvc.Account
	key     string // has every permission
}

// onEveryStore runs a test on every store. Most tests use memory alone, since storagetest compares the stores.
func onEveryStore(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, open := range map[string]func(testing.TB) formsvc.Store{"memory": openMemory, "sqlite": openSQLite, "postgres": openPostgres} {
		t.Run(name, func(t *testing.T) { test(t, newWorldOn(t, open(t), nil)) })
	}
}

// newWorld returns a world over the memory store.
func newWorld(tb testing.TB, opts *httpx.Options) *world {
	tb.Helper()
	return newWorldOn(tb, openMemory(tb), opts)
}

func newWorldOn(tb testing.TB, store formsvc.Store, opts *httpx.Options) *world {
	tb.Helper()
	w := &world{
		tb: tb, store: &faultyStore{Store: store}, blobs: &faultyBlobs{Store: memblob.New()}, log: new(bytes.Buffer),
		now: time.Date(2026, 11, 21, 8, 30, 0, 123e6, time.UTC),
	}
	w.clock = func() time.Time { return w.now }
	w.use(w.store, opts, nil)
	w.mine, w.other = w.tenant("mine"), w.tenant("other")
	return w
}

// use creates a new service over a store, with edited options, and a new handler for it.
func (w *world) use(store formsvc.Store, opts *httpx.Options, edit func(*formsvc.Options)) {
	w.tb.Helper()
	o := formsvc.Options{Blobs: w.blobs, MaxFile: maxFile, Quota: -1, MaxKeys: -1, Now: func() time.Time { return w.clock() }}
	if edit != nil {
		edit(&o)
	}
	w.svc = must(formsvc.New(store, &o))
	w.serve(opts)
}

// serve creates a new handler for the service.
func (w *world) serve(opts *httpx.Options) {
	w.tb.Helper()
	if opts == nil {
		opts = new(httpx.Options)
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	api := must(httpx.New(w.svc, opts))
	w.bare, w.api = api, w.checked(api, opts.Authenticate != nil)
}

// oneSlot serves one request at a time; others wait for a moment.
func (w *world) oneSlot() {
	w.bare.SetLimits(func(l *httpx.Limits) { l.Requests, l.Wait = 1, time.Millisecond })
}

func (w *world) tenant(name string) tenant {
	w.tb.Helper()
	account, key, err := w.svc.Accounts.CreateWithKey(context.Background(), name,
		formsvc.KeyInput{Name: name + " key", Permissions: formsvc.AllPermissions()})
	noError(w.tb, err)
	return tenant{account, key.Value}
}

func (w *world) key(t tenant, permissions ...formsvc.Permission) string {
	w.tb.Helper()
	key := must(w.svc.Keys.Create(context.Background(), t.account.ID,
		formsvc.KeyInput{Name: "some", Permissions: permissions}))
	return key.Value
}

// request creates a request with the key of the first account; edits change it.
func (w *world) request(method, target, body string, edits ...func(*http.Request)) *http.Request {
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, reader)
	r.Header.Set("Authorization", "Bearer "+w.mine.key)
	if method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/json")
	}
	if strings.HasSuffix(r.URL.Path, "/files") { // then the body is a file of that type
		r.Header.Set("Content-Disposition", "attachment; filename=a.json")
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

// do sends a request and checks the invariants of every reply.
func (w *world) do(method, target, body string, edits ...func(*http.Request)) *answer {
	w.tb.Helper()
	return w.send(w.request(method, target, body, edits...))
}

func (w *world) send(r *http.Request) *answer {
	w.tb.Helper()
	recorder := httptest.NewRecorder()
	w.api.ServeHTTP(recorder, r)
	a := &answer{tb: w.tb, status: recorder.Code, header: recorder.Result().Header, body: recorder.Body.String()}
	if w.seen != nil {
		fmt.Fprintln(w.seen, a.status, a.header, a.body)
	}
	a.what = r.Method + " " + r.URL.Path
	a.check(r.Method)
	return a
}

// header sets a header to these lines, or removes it if there are none.
func header(name string, values ...string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del(name)
		for _, value := range values {
			r.Header.Add(name, value)
		}
	}
}

func as(key string) func(*http.Request) { return header("Authorization", "Bearer "+key) }

// An answer is the reply to a request.
type answer struct {
	tb     testing.TB
	what   string
	status int
	header http.Header
	body   string
}

func (a *answer) errorf(format string, args ...any) {
	a.tb.Helper()
	a.tb.Errorf(a.what+": "+format, args...)
}

// check checks the invariants of every reply that the OpenAPI document doesn't state.
func (a *answer) check(method string) {
	a.tb.Helper()
	ok := a.status < 300
	switch {
	case a.header.Get("X-Request-Id") == "" || a.header.Get("Cache-Control") == "":
		a.errorf("no X-Request-Id, or no Cache-Control: %v", a.header)
	case a.status == http.StatusNotModified || a.status == http.StatusNoContent || method == http.MethodHead:
		if a.body != "" {
			a.errorf("%d %s with a body", a.status, method)
		}
	case a.header.Get("X-Content-Type-Options") != "nosniff":
		a.errorf("not nosniff: %v", a.header)
	case a.header.Get("Content-Length") != "" && a.header.Get("Content-Length") != strconv.Itoa(len(a.body)):
		a.errorf("Content-Length %s for %d bytes", a.header.Get("Content-Length"), len(a.body))
	case a.status >= 400 && a.header.Get("Idempotent-Replayed") == "": // a replay has the id of the first request
		if p := a.problem(); p.RequestID != a.header.Get("X-Request-Id") || p.Status != a.status {
			a.errorf("another status or requestId: %s", a.body)
		}
	}
	if ok && strings.Contains(a.what, "/responses.") {
		a.checkExport()
	} else if a.header.Get("Content-Disposition") != "" {
		a.checkFile()
	}
}

type problem struct {
	Type       string   `json:"type"`
	Title      string   `json:"title"`
	Status     int      `json:"status"`
	Detail     string   `json:"detail"`
	Code       string   `json:"code"`
	RequestID  string   `json:"requestId"`
	Permission string   `json:"permission"`
	Allowed    []string `json:"allowed"`
	Errors     []struct {
		Pointer   *string `json:"pointer"`
		Parameter *string `json:"parameter"`
		Code      string  `json:"code"`
		Detail    string  `json:"detail"`
	} `json:"errors"`
}

func (a *answer) problem() problem {
	a.tb.Helper()
	var p problem
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		a.errorf("problem: %v: %s", err, a.body)
	}
	return p
}

// is checks the status, and the code of a problem.
func (a *answer) is(status int, code string) *answer {
	a.tb.Helper()
	if a.status != status {
		a.tb.Fatalf("%s: status %d, want %d: %s", a.what, a.status, status, a.body)
	}
	if code != "" {
		if got := a.problem().Code; got != code {
			a.errorf("code %q, want %q: %s", got, code, a.body)
		}
	}
	return a
}

// faults checks the entries of errors, each as "/pointer code" or "parameter code".
func (a *answer) faults(want ...string) *answer {
	a.tb.Helper()
	got := []string{}
	for _, e := range a.problem().Errors {
		where := e.Parameter
		if where == nil {
			where = e.Pointer
		}
		got = append(got, *where+" "+e.Code)
	}
	if len(want) == 0 {
		want = []string{}
	}
	if !reflect.DeepEqual(got, want) {
		a.errorf("errors\n got %q\nwant %q", got, want)
	}
	return a
}

// object returns the body as an object.
func (a *answer) object() map[string]any {
	a.tb.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(a.body), &m); err != nil {
		a.tb.Fatalf("%s: %v: %s", a.what, err, a.body)
	}
	return m
}

// at returns the value at a path of field names.
func (a *answer) at(path ...string) any {
	a.tb.Helper()
	var v any = a.object()
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			a.tb.Fatalf("%s: no %v in %s", a.what, path, a.body)
		}
		v, ok = m[name]
		if !ok {
			a.tb.Fatalf("%s: no %v in %s", a.what, path, a.body)
		}
	}
	return v
}

func (a *answer) text(path ...string) string {
	a.tb.Helper()
	s, ok := a.at(path...).(string)
	if !ok {
		a.tb.Fatalf("%s: %v is no string in %s", a.what, path, a.body)
	}
	return s
}

// has checks the value at a path, given as JSON.
func (a *answer) has(want string, path ...string) *answer {
	a.tb.Helper()
	var v any
	noError(a.tb, json.Unmarshal([]byte(want), &v))
	if got := a.at(path...); !reflect.DeepEqual(got, v) {
		text, _ := json.Marshal(got)
		a.errorf("%v = %s, want %s", path, text, want)
	}
	return a
}

const (
	plainCampaign = `{"title":"Survey"}`
	plainResponse = `{"user":{"email":"ada@example.com","firstName":"Ada","lastName":"Lovelace"},` +
		`"responses":{"color":{"value":["blue"]}}}`
)

// campaign creates a campaign and returns its path.
func (w *world) campaign(body string, edits ...func(*http.Request)) string {
	w.tb.Helper()
	return "/v1/campaigns/" + w.do("POST", "/v1/campaigns", body, edits...).is(201, "").text("uuid")
}

// response creates a response and returns its path.
func (w *world) response(campaign string, edits ...func(*http.Request)) string {
	w.tb.Helper()
	return campaign + "/responses/" + w.do("POST", campaign+"/responses", plainResponse, edits...).is(201, "").text("uuid")
}

// total returns the number of records in a list.
func (w *world) total(list string, edits ...func(*http.Request)) int {
	w.tb.Helper()
	n, ok := w.do("GET", list, "", edits...).is(200, "").at("total").(float64)
	if !ok {
		w.tb.Fatal("total is no number")
	}
	return int(n)
}

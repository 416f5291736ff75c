package httpx_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/memory"
	"github.com/formsvc/toolkit/storage/postgres"
	"github.com/formsvc/toolkit/storage/postgres/postgrestest"
	"github.com/formsvc/toolkit/storage/sqlite"
	"github.com/formsvc/toolkit/webhook/delivery"
)

// maxFile is the upload limit of the worlds: a few blocks and a bit.
const maxFile = 1_000_000

func openSQLite(tb testing.TB) formsvc.Store {
	tb.Helper()
	store := must(sqlite.Open(tb.Context(), filepath.Join(tb.TempDir(), "forms.db"), nil))
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

func openPostgres(tb testing.TB) formsvc.Store {
	tb.Helper()
	store := must(postgres.Open(tb.Context(), postgrestest.DSN(tb), &postgres.Options{MaxConns: 4}))
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

func openMemory(tb testing.TB) formsvc.Store {
	store := memory.New()
	tb.Cleanup(func() {
		if err := store.Close(); err != nil {
			tb.Error(err)
		}
	})
	return store
}

// pair creates a campaign and a response and returns their paths.
func (w *world) pair() (campaign, response string) {
	w.tb.Helper()
	campaign = w.campaign(plainCampaign)
	return campaign, w.response(campaign)
}

// A sample is a valid request for a route.
type sample struct {
	httpx.Route
	path, body string
	nowhere    string // the path with unknown identifiers
	status     int    // when permitted
}

const (
	nobody     = "018f0000-0000-7000-8000-000000000000"
	subscribed = `{"url":"https://example.com/subscribed","events":["response.created"]}`
)

// requests returns a valid request for every route. Repeating it has the same result.
func (w *world) requests(campaign, response string) []sample {
	w.tb.Helper()
	w.do("POST", "/v1/webhooks", subscribed, as(w.other.key))
	hook := w.do("POST", "/v1/webhooks", subscribed)
	delivery := w.do("POST", "/v1/webhooks/"+hook.text("uuid")+"/test", "").is(201, "")
	ids := map[string]string{
		"{uuid}":          strings.TrimPrefix(campaign, "/v1/campaigns/"),
		"{response_uuid}": response[strings.LastIndexByte(response, '/')+1:],
		"{webhook_uuid}":  hook.text("uuid"),
		"{delivery_uuid}": delivery.text("uuid"),
		"{name}":          "docs.css",
		"{file_uuid}":     w.do("POST", response+"/files", "{}").is(201, "").text("uuid"),
	}
	bodies := map[string]string{
		"createCampaign":  plainCampaign,
		"replaceCampaign": plainCampaign,
		"createResponse":  plainResponse,
		"updateResponse":  `{"status":"validated"}`,
		"uploadFile":      `{"any":"content"}`,
		"createComment":   plainComment,
		"createSignature": plainSignature,
		"createWebhook":   subscribed,
		"replaceWebhook":  subscribed,
		"redeliverFailed": `{"since":"2026-11-21T08:30:00Z"}`,
	}
	created := []string{"createCampaign", "createResponse", "uploadFile", "testWebhook", "createComment", "createSignature"}
	var list []sample
	for _, route := range httpx.Routes() {
		s := sample{Route: route, path: route.Pattern, nowhere: route.Pattern, body: bodies[route.Name], status: http.StatusOK}
		if slices.Contains(created, route.Name) {
			s.status = http.StatusCreated
		}
		for name, id := range ids {
			s.path, s.nowhere = strings.ReplaceAll(s.path, name, id), strings.ReplaceAll(s.nowhere, name, nobody)
		}
		switch route.Name { // the others need the webhook and the response
		case "deleteWebhook":
			s.path, s.status = "/v1/webhooks/"+nobody, http.StatusNotFound
		case "deleteCampaign":
			s.status = http.StatusConflict
		case "deleteResponse":
			s.path, s.status = campaign+"/responses/"+nobody, http.StatusNotFound
		}
		list = append(list, s)
	}
	return list
}

// hookBody returns the body of a webhook at example.com, with further fields as JSON.
func hookBody(path string, members ...string) string {
	return hookTo("https://example.com/"+path, members...)
}

func hookTo(url string, members ...string) string {
	return `{` + strings.Join(append(members, `"url":"`+url+`","events":["response.created"]`), ",") + `}`
}

// webhook creates a webhook and returns its path.
func (w *world) webhook(body string, edits ...func(*http.Request)) string {
	w.tb.Helper()
	return "/v1/webhooks/" + w.do("POST", "/v1/webhooks", body, edits...).is(201, "").text("uuid")
}

// kept returns the stored webhook at the path, with its secrets.
func (w *world) kept(path string) formsvc.Webhook {
	w.tb.Helper()
	hook := must(w.svc.Webhooks.Get(w.tb.Context(), formsvc.WebhookKey{
		AccountID: w.mine.account.ID, ID: formsvc.ID(strings.TrimPrefix(path, "/v1/webhooks/")),
	}))
	return hook
}

// queue returns the world's deliveries as the engine sees them.
func (w *world) queue() delivery.Queue {
	w.tb.Helper()
	q, ok := w.store.Store.(delivery.Queue)
	if !ok {
		w.tb.Fatal("the store is no queue")
	}
	return q
}

// claim claims all due deliveries.
func (w *world) claim() []delivery.Claim {
	w.tb.Helper()
	endpoints := must(w.queue().Ready(w.tb.Context(), w.now))
	req := delivery.ClaimRequest{Now: w.now, Lease: time.Minute}
	for _, e := range endpoints {
		req.Shares = append(req.Shares, delivery.Share{Endpoint: e.ID, N: 100})
	}
	if len(req.Shares) == 0 {
		return nil
	}
	return must(w.queue().Claim(w.tb.Context(), req))
}

// finish records the same result for all claims.
func (w *world) finish(claims []delivery.Claim, result delivery.Result, due time.Time, attempt delivery.Attempt) {
	w.tb.Helper()
	var outcomes []delivery.Outcome
	for _, c := range claims {
		attempt.Number, attempt.StartedAt = c.Attempts+1, w.now
		outcomes = append(outcomes, delivery.Outcome{
			ID: c.ID, Endpoint: c.Endpoint, Lease: c.Lease, Result: result, Due: due, Attempt: attempt,
		})
	}
	accepted := must(w.queue().Finish(w.tb.Context(), outcomes))
	for i, ok := range accepted {
		if !ok {
			w.tb.Fatalf("%s: the outcome was not accepted", claims[i].ID)
		}
	}
}

// fail makes all due deliveries fail permanently.
func (w *world) fail() {
	w.tb.Helper()
	w.finish(w.claim(), delivery.Failed, time.Time{}, delivery.Attempt{
		Duration: 1500 * time.Microsecond, Status: 503, Error: delivery.ClassStatus, Answer: []byte("later"),
	})
}

// reads checks that the reply equals the record as it is read, apart from the secret.
func (a *answer) reads(w *world, path string) *answer {
	a.tb.Helper()
	want, got := a.object(), w.do("GET", path, "").is(200, "").object()
	delete(want, "secret")
	if !reflect.DeepEqual(want, got) {
		a.errorf("answered %v, reads %v", want, got)
	}
	return a
}

// asked returns and clears the ranges of blobs that were opened, and checks that all were closed.
func (w *world) asked() [][2]int64 {
	w.tb.Helper()
	s := w.blobs
	s.mu.Lock()
	defer s.mu.Unlock()
	equal(w.tb, s.open, 0, "%d contents are open")
	opens := s.opens
	s.opens = nil
	return opens
}

// blobCount returns the number of blobs without the marker.
func (w *world) blobCount() int {
	w.tb.Helper()
	n := 0
	for info, err := range w.blobs.List(context.Background(), "") {
		noError(w.tb, err)
		if info.Key != formsvc.MarkerKey {
			n++
		}
	}
	return n
}

// isEmpty checks that uploads to a list left no file, no blob and no event.
func (w *world) isEmpty(list string) {
	w.tb.Helper()
	equal(w.tb, w.total(list), 0, "%d files")
	equal(w.tb, w.blobCount(), 0, "%d blobs")
	events := w.do("GET", "/v1/events?event=file.uploaded", "").is(200, "")
	if items, _ := events.at("items").([]any); len(items) != 0 {
		w.tb.Errorf("%d events", len(items))
	}
}

// uploads returns the path of the files of a new response.
func (w *world) uploads() string {
	w.tb.Helper()
	return w.response(w.campaign(plainCampaign)) + "/files"
}

// upload stores a file in a new response and returns its path.
func (w *world) upload(content string, edits ...func(*http.Request)) string {
	w.tb.Helper()
	return w.do("POST", w.uploads(), content, edits...).is(201, "").header.Get("Location")
}

// noise returns n bytes without a period.
func noise(n int) string {
	b := make([]byte, n)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(b)
	return string(b)
}

func without(name string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Del(name) }
}

// named sends the body as a file with that Content-Disposition.
func named(disposition string) func(*http.Request) {
	return header("Content-Disposition", disposition)
}

// asForm sends the body as a multipart form.
func asForm(r *http.Request) {
	r.Header.Del("Content-Disposition")
	r.Header.Set("Content-Type", "multipart/form-data; boundary="+boundary)
}

const boundary = "a--boundary"

// formOf returns a form of the parts, each with its header.
func formOf(parts ...string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString("--" + boundary + "\r\n" + p + "\r\n")
	}
	return b.String() + "--" + boundary + "--\r\n"
}

// part returns a part with that name; more are further lines of its header.
func part(name, content string, more ...string) string {
	lines := append([]string{`Content-Disposition: form-data; name="` + name + `"`}, more...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n" + content
}

// filePart returns a part with a file named a.txt.
func filePart(content string, more ...string) string {
	return strings.Replace(part("file", content, more...), `"file"`, `"file"; filename="a.txt"`, 1)
}

// sha256Digest returns the SHA-256 of a content as an entry of a digest header.
func sha256Digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

// checkFile checks the invariants of every reply with a file; the OpenAPI document has the other headers.
func (a *answer) checkFile() {
	a.tb.Helper()
	for name, want := range map[string]string{
		"X-Content-Type-Options":       "nosniff",
		"Content-Security-Policy":      "default-src 'none'; sandbox",
		"Cross-Origin-Resource-Policy": "same-origin",
		"Cache-Control":                "private, no-cache",
		"Accept-Ranges":                "bytes",
	} {
		if got := a.header.Get(name); got != want {
			a.errorf("%s = %q, want %q", name, got, want)
		}
	}
}

// must returns the result of a call that can't fail here.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}

// noError ends the test unless err is nil.
func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// equal fails the test unless got is want. The format has a verb for each argument, and the last one for got.
func equal[T comparable](t testing.TB, got, want T, format string, args ...any) {
	t.Helper()
	if got != want {
		t.Errorf(format+", want %v", append(slices.Clone(args), got, want)...)
	}
}

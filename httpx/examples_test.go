package httpx_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/blobstore/memblob"
	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// The examples in the document are real replies: the tests in this file send the example requests in an order that
// works, and compare the replies. If a reply changes, the error message has the new example.

// An examples is a deterministic world with the document.
type examples struct {
	*world
	doc map[string]any
}

func newExamples(t *testing.T) *examples {
	t.Helper()
	x := &examples{world: &world{
		tb: t, store: &faultyStore{Store: openMemory(t)}, blobs: &faultyBlobs{Store: memblob.New()}, log: new(bytes.Buffer),
		now: time.Date(2026, 11, 21, 8, 30, 0, 123e6, time.UTC),
	}}
	x.clock = func() time.Time { return x.now }
	x.options(nil)
	x.mine, x.other = x.tenant("default"), x.tenant("another")
	source, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(source, &x.doc); err != nil {
		t.Fatal(err)
	}
	return x
}

// options restarts the service with other options.
func (x *examples) options(edit func(*formsvc.Options)) {
	x.tb.Helper()
	made, drawn := 0, 0
	o := &formsvc.Options{
		Blobs: x.blobs, Now: x.clock,
		NewReference: func() string {
			drawn++
			return "7XK4-MQ2PW" + string("DEFGHJKM"[drawn-1])
		},
		NewID: func(now time.Time) formsvc.ID {
			made++
			hex := fmt.Sprintf("%012x", now.UnixMilli())
			return formsvc.ID(fmt.Sprintf("%s-%s-7000-8000-%012x", hex[:8], hex[8:], made))
		},
	}
	if edit != nil {
		edit(o)
	}
	var err error
	if x.svc, err = formsvc.New(x.store, o); err != nil {
		x.tb.Fatal(err)
	}
	x.serve(nil)
}

// at returns the value at a path of names in the document, following references; nil if there is none.
func (x *examples) at(names ...string) any {
	var v any = x.doc
	for _, name := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
		if m, ok := v.(map[string]any); ok {
			if ref, ok := m["$ref"].(string); ok {
				v = x.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			}
		}
	}
	return v
}

// random matches the random part of identifiers that the store generates, those of deliveries.
var random = regexp.MustCompile(`-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[1-9a-f][0-9a-f]{11}"`)

// same compares a reply with the example at the path.
func (x *examples) same(got string, names ...string) {
	x.tb.Helper()
	got = random.ReplaceAllString(got, `-7000-8000-00000000000d"`)
	want := x.at(append(names, "example")...)
	var v any = got
	if _, text := want.(string); !text {
		if err := json.Unmarshal([]byte(got), &v); err != nil {
			v = got // not JSON
		}
	}
	if !reflect.DeepEqual(v, want) {
		x.tb.Errorf("the example of %s should be %s", strings.Join(names, " "), got)
	}
}

// play sends an operation's example to a path and compares the reply.
func (x *examples) play(operation, path string, status int, edits ...func(*http.Request)) *answer {
	x.tb.Helper()
	var route httpx.Route
	for _, r := range httpx.Routes() {
		if r.Name == operation {
			route = r
		}
	}
	x.now = x.now.Add(time.Second)
	where := []string{"paths", route.Pattern, strings.ToLower(route.Method)}
	var body string
	if example := x.at(append(where, "requestBody", "content", "application/json", "example")...); example != nil {
		text, err := json.Marshal(example)
		if err != nil {
			x.tb.Fatal(err)
		}
		body = string(text)
	}
	edits = append([]func(*http.Request){header("X-Request-Id", "5f0c7a529c1c4f3a8f0e2b6c1f1f7f11")}, edits...)
	a := x.do(route.Method, path, body, edits...).is(status, "")
	mediaType, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	if a.body != "" && operation != "downloadFile" {
		x.same(a.body, append(where, "responses", strconv.Itoa(status), "content", mediaType)...)
	}
	return a
}

func TestExamplesMatchReplies(t *testing.T) {
	x := newExamples(t)
	x.play("getHealth", "/healthz", 200)
	x.play("getReadiness", "/readyz", 200)
	x.play("getMe", "/v1/me", 200)

	campaign := x.play("createCampaign", "/v1/campaigns", 201).header.Get("Location")
	x.play("listCampaigns", "/v1/campaigns", 200)
	x.play("getCampaign", campaign, 200)
	x.play("replaceCampaign", campaign, 200)

	hook := x.play("createWebhook", "/v1/webhooks", 201).header.Get("Location")
	x.play("listWebhooks", "/v1/webhooks", 200)
	x.play("getWebhook", hook, 200)

	responses := campaign + "/responses"
	response := x.play("createResponse", responses, 201).header.Get("Location")
	x.play("getResponse", response, 200)
	upload := strings.Replace(formOf(part("module", "passport"), filePart("P<GBRLOVELACE<<ADA\n", "Content-Type: text/plain")),
		"a.txt", "passport.txt", 1)
	file := x.play("uploadFile", response+"/files", 201, asForm, withBody([]byte(upload))).header.Get("Location")
	x.play("downloadFile", file, 200)
	x.play("listFiles", response+"/files", 200)
	x.play("createComment", response+"/comments", 201)
	x.play("listComments", response+"/comments", 200)
	x.play("createSignature", response+"/signatures", 201)
	x.play("listSignatures", response+"/signatures", 200)
	x.play("updateResponse", response, 200)
	for _, patch := range []string{`{"responses":{"nationality":{"value":["FR"]}}}`, `{"status":"completed"}`} {
		x.now = x.now.Add(time.Second)
		x.do("PATCH", response, patch).is(200, "")
	}
	x.play("listResponses", responses, 200)
	x.play("exportResponsesAsCsv", responses+".csv", 200)
	x.play("exportResponsesAsNdjson", responses+".ndjson", 200)

	x.fail()
	x.play("listDeliveries", hook+"/deliveries", 200)
	sent := x.play("testWebhook", hook+"/test", 201).header.Get("Location")
	x.play("getDelivery", sent, 200)
	x.play("redeliver", sent+"/redeliver", 200)
	x.play("redeliverFailed", hook+"/redeliver", 200)
	x.play("rotateWebhook", hook+"/rotate", 200)
	x.play("replaceWebhook", hook, 200)
	x.play("deleteWebhook", hook, 204)
	x.play("deleteResponse", response, 204)
	x.play("listEvents", "/v1/events?limit=1", 200)
	x.play("getRoot", "/", 200)
	x.events()
}

// events compares the first event of each type with the example of its webhook.
func (x *examples) events() {
	x.tb.Helper()
	seen := map[string]bool{}
	for _, item := range x.feed("").Items {
		var e struct{ Event string }
		if err := json.Unmarshal(item, &e); err != nil {
			x.tb.Fatal(err)
		}
		if !seen[e.Event] {
			seen[e.Event] = true
			x.same(string(item), "webhooks", e.Event, "post", "requestBody", "content", "application/json")
		}
	}
	if hooks, _ := x.at("webhooks").(map[string]any); len(seen) != len(hooks) {
		x.tb.Errorf("events %v, and %d examples", seen, len(hooks))
	}
}

// The examples of problems, each with a request that gets it.
func TestExamplesOfProblems(t *testing.T) {
	x := newExamples(t)
	campaign := x.campaign(`{"title":"Travel grants 2027"}`)
	response := x.response(campaign)
	hook := "/v1/webhooks/" + x.do("POST", "/v1/webhooks", hookBody("a")).is(201, "").text("uuid")
	closed := x.campaign(`{"title":"Travel grants 2026","status":"closed"}`)
	file := "/v1/files/" + x.do("POST", response+"/files", "0123456789").is(201, "").text("uuid")
	delivery := "/v1/deliveries/" + x.do("POST", hook+"/test", "").is(201, "").text("uuid")
	x.claim()
	id := header("X-Request-Id", "5f0c7a529c1c4f3a8f0e2b6c1f1f7f11")
	compared := map[string]bool{}
	compare := func(component, method, path, body string, edits ...func(*http.Request)) {
		t.Helper()
		compared[component] = true
		a := x.do(method, path, body, append(edits, id)...)
		x.same(a.body, "components", "responses", component, "content", "application/problem+json")
	}
	compare("BadQuery", "GET", campaign+"?limit=1", "")
	compare("BadListQuery", "GET", "/v1/campaigns?limit=none&colour=red", "")
	compare("BadPost", "POST", "/v1/campaigns", `{"title":2027,"colour":"red"}`)
	compare("BadChange", "PUT", campaign, `{"title":"A","title":"B"}`)
	compare("BadRotation", "POST", hook+"/rotate", "{}", header("If-Match", `"1-0"`))
	compare("BadUpload", "POST", response+"/files", formOf(part("module", "passport")), asForm)
	compare("BadDelete", "DELETE", hook, "", header("If-Match", `"1-0"`))
	compare("BadConditionalDelete", "DELETE", response, "", header("If-None-Match", `"1"`))
	compare("Unauthenticated", "GET", "/v1/campaigns", "", as("fsk_unknown"))
	compare("PermissionDenied", "POST", "/v1/campaigns", `{"title":"A"}`, as(x.key(x.mine, "campaigns:read")))
	compare("NotFound", "GET", "/v1/campaigns/"+nobody, "")
	compare("NotFoundPost", "POST", "/v1/campaigns/"+nobody+"/responses", plainResponse)
	compare("PublicNotFound", "GET", "/docs/unknown.js", "")
	compare("PublicBadQuery", "GET", "/openapi.json?version=2", "")
	compare("BodyTimeout", "POST", "/v1/campaigns", "", func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(stalled{strings.NewReader(`{"`)}), 100
	})
	compare("ResponseConflict", "POST", closed+"/responses", plainResponse)
	compare("WebhookConflict", "POST", "/v1/webhooks", hookBody("a", `"secret":"correct-horse-battery-staple"`))
	compare("DeliveryInProgress", "POST", delivery+"/redeliver", "")
	compare("PreconditionFailed", "PATCH", response, `{"status":"validated"}`, header("If-Match", `"7"`))
	compare("BodyTooLarge", "POST", "/v1/campaigns", `{"description":"`+strings.Repeat("x", httpx.DefaultMaxBody)+`"}`)
	compare("UnsupportedMediaType", "POST", "/v1/campaigns", "title=A", header("Content-Type", "application/x-www-form-urlencoded"))
	compare("RangeNotSatisfiable", "GET", file, "", header("Range", "bytes=20-"))
	compare("Invalid", "PATCH", response, `{"status":"","user":{"email":"ada"}}`)
	compare("InvalidPost", "POST", campaign+"/responses", `{"user":{"email":"ada@"},"responses":{}}`)
	large := `"responses":{"q":{"value":["` + strings.Repeat(`\b`, 1<<20) + `"]}}}`
	compare("InvalidResponse", "PATCH", response, "{"+large)
	compare("InvalidResponsePost", "POST", campaign+"/responses", `{"user":{"email":"ada@example.com"},`+large)
	key := header("Idempotency-Key", "5f0c7a52-9c1c-4f3a-8f0e-2b6c1f1f7f11")
	x.do("POST", "/v1/campaigns", plainCampaign, key).is(201, "")
	compare("Mismatch", "POST", hook+"/test", "", key)
	end, err := x.svc.Begin(x.mine.account.ID, "under-way")
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	compare("InFlight", "POST", "/v1/campaigns", plainCampaign, header("Idempotency-Key", "under-way"))

	key = header("Idempotency-Key", "b1946ac9-2d4f-4e1f-9c2a-0a4b6f5e9f22")
	x.do("POST", campaign+"/responses", plainResponse, key).is(201, "")
	if _, err := x.svc.Erasure.Person(t.Context(), x.mine.account.ID, "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	compare("Erased", "POST", campaign+"/responses", plainResponse, key)
	response = x.response(campaign)
	file = "/v1/files/" + x.do("POST", response+"/files", "0123456789").is(201, "").text("uuid")

	x.blobs.damage(1, 0)
	compare("BlobCorrupt", "GET", file, "")
	without := x.svc
	few, err := formsvc.New(x.store, &formsvc.Options{MaxCampaigns: new(100), Now: x.clock})
	for err == nil {
		_, err = few.Campaigns.Create(t.Context(), x.mine.account.ID, formsvc.CampaignInput{Title: "c"})
	}
	if !errors.Is(err, formsvc.ErrLimit) {
		t.Fatal(err)
	}
	x.svc = few
	x.serve(nil)
	compare("CampaignConflict", "POST", "/v1/campaigns", plainCampaign)
	x.svc = without
	x.serve(nil)
	x.store.err = formsvc.ErrUnavailable
	compare("NotReady", "GET", "/readyz", "")
	compare("Unavailable", "GET", response, "")
	x.store.err = formsvc.ErrUnknownOutcome
	compare("UnavailableWrite", "POST", campaign+"/responses", plainResponse)
	x.store.err = formsvc.ErrNoSpace
	compare("InsufficientStorage", "POST", campaign+"/responses", plainResponse)
	x.store.err = errors.New("a cause")
	compare("Internal", "GET", response, "")
	x.store.err = nil

	compare("FileTooLarge", "POST", response+"/files", "x", func(r *http.Request) { r.ContentLength = formsvc.DefaultMaxFile + 1 })
	x.options(func(o *formsvc.Options) { o.Blobs = nil })
	compare("NotSupported", "GET", file, "")
	x.options(func(o *formsvc.Options) {
		o.Workflow = &formsvc.Workflow{Transitions: map[string][]string{"pending": {"validated", "rejected"}}}
	})
	compare("TransitionNotAllowed", "PATCH", response, `{"status":"completed"}`)
	x.options(nil)
	for range formsvc.DefaultQuota {
		x.do("GET", "/v1/me", "", as(x.other.key)).is(200, "")
	}
	compare("TooManyRequests", "GET", "/v1/me", "", as(x.other.key))

	list, _ := x.at("components", "responses").(map[string]any)
	for name := range list {
		if !compared[name] && x.at("components", "responses", name, "content", "application/problem+json", "example") != nil {
			t.Errorf("the example of %s is not compared with anything", name)
		}
	}
}

package httpx_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

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
	x := &examples{world: newWorld(t, nil)}
	x.store.Store = openMemory(t) // without the accounts of other tests
	made := 0
	x.use(x.store, nil, func(o *formsvc.Options) {
		o.Quota, o.MaxKeys, o.MaxFile = 0, 0, 0
		o.NewReference = func() string { return "7XK4-MQ2PWD" }
		o.NewID = func(now time.Time) formsvc.ID {
			made++
			hex := fmt.Sprintf("%012x", now.UnixMilli())
			return formsvc.ID(fmt.Sprintf("%s-%s-7000-8000-%012x", hex[:8], hex[8:], made))
		}
	})
	x.mine, x.other = x.tenant("default"), x.tenant("another")
	source, err := os.ReadFile("openapi.json")
	if err == nil {
		err = json.Unmarshal(source, &x.doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	return x
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
	x.play("deleteCampaign", campaign, 204)
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

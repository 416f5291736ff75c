//go:build long

package httpx_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/formsvc/toolkit/httpx"
)

var (
	generatedCount = flag.Int("generated", 3000, "how many requests TestGeneratedRequests makes on each store")
	proxiedCount   = flag.Int("generated.proxied", 20_000, "how many a proxy that validates has to judge, where there is one")
	generatedSeed  = flag.Uint64("generated.seed", 20261122, "of what TestGeneratedRequests makes")
)

// tooWrong is the number of errors that ends a test.
const tooWrong = 20

// Requests that match the document succeed, except for what a schema can't express. Others are refused, and none gets a
// 5xx. As in all tests, each request and reply is checked against the document.
func TestGeneratedRequests(t *testing.T) {
	if proxy := newProxyRun(t); proxy != nil {
		proxy.run()
		return
	}
	for _, b := range backends()[:2] {
		t.Run(b.name, func(t *testing.T) {
			w := newWorld(t, b.open(t), nil)
			known := newRecords(keys{w.mine.key, w.other.key, w.key(w.mine, fewPermission)})
			known.begin(func(key, method, path, contentType, body string) *answer {
				return w.do(method, path, body, as(key), header("Content-Type", contentType))
			})
			g := newGenerator(theContract(t), known, *generatedSeed)
			seen := newOutcomes()
			for range *generatedCount {
				r := g.next()
				sent := httptest.NewRequest(r.method, r.target(), nil)
				if text := r.text(); len(text) > 0 {
					sent.Body, sent.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
				}
				sent.Header = r.header.Clone()
				a := w.send(sent)
				known.learnFrom(r, a)
				seen.count(t, r, a)
				if w.log.Len() > 0 || t.Failed() && seen.wrong > tooWrong {
					t.Fatalf("seed %d: %s", g.seed, w.log)
				}
			}
			seen.check(t, g.c, false)
			if t.Failed() {
				t.Logf("run again with -generated.seed=%d", g.seed)
			}
		})
	}
}

// A refusal is a possible refusal of a request that matches the document.
type refusal struct {
	operations string // a pattern
	status     int
	code       string
	with       string // only for requests with this header or parameter
}

// stateful lists the refusals that depend on existing records or earlier requests.
var stateful = []refusal{
	{"Webhook|Deliver|redeliver", 404, "not_found", ""}, // deleteWebhook is called too
	{"deleteResponse", 404, "not_found", ""},            // the last known one may be deleted already
	{"getDocsFile", 404, "not_found", ""},               // its name may be anything
	{".", 412, "precondition_failed", "If-Match"},
	{"downloadFile", 412, "precondition_failed", "If-Unmodified-Since"},
	{"downloadFile", 416, "range_not_satisfiable", "Range"},
	{".", 422, "idempotency_mismatch", "Idempotency-Key"},
	{".", 409, "idempotency_in_flight", "Idempotency-Key"},
	{"createResponse", 409, "campaign_closed", ""},
	{"updateResponse", 409, "transition_not_allowed", ""}, // completed is final
	{"createWebhook", 409, "webhook_exists", ""},
	{"createWebhook", 409, "webhook_limit", ""},
	{"createCampaign", 409, "campaign_limit", ""},
	{"redeliver$", 409, "delivery_in_progress", ""}, // not tried yet
	{"list|export", 400, "invalid_cursor", "cursor"},
}

// beyondSchemas lists the errors that no schema can express.
var beyondSchemas = []struct{ operations, entry string }{
	{"(create|update)(Response|Signature)", `/(user|signer)/email invalid_email`},
	{"(create|update)Response", `/user(/email)? required`}, // a campaign may not need an address
	{"Campaign", `/closesAt out_of_range`},                 // not after opensAt
	{"Campaign", `/modules/\d+/name duplicate`},
	{"Campaign", `/modules/\d+/(options|maxLength) not_applicable`}, // by type
	{"Campaign", `/modules/\d+/options out_of_range`},               // a choice without options
	{"Campaign", `/modules/\d+/options/\d+ duplicate`},
	{"createResponse|updateResponse", `/responses/.* (unknown_module|unknown_option|required|too_many|too_long|invalid_(email|url|number|date|boolean))`},
	{"Webhook", `/url (invalid_url|url_refused)`},
	{"Webhook", `/secret out_of_range`}, // counted in bytes
	{"Webhook", `/campaignUuid unknown_campaign`},
	{"Webhook", `/headers/.* (reserved_header|duplicate)`},
	{"Webhook", `/headers/.* required`},       // null, with no value to keep
	{"Webhook", `/headers/.* invalid_header`}, // not printable ASCII
	{"createSignature", `/fileUuid unknown_file`},
	{"createSignature", `/signedAt in_the_future`},
}

// expected reports whether the refusal of a request that matches the document is in the lists above.
func expected(r *generated, a *answer) bool {
	code := codeOf([]byte(a.body))
	for _, s := range stateful {
		if s.status == a.status && (s.code == code || r.method == http.MethodHead) && matches(s.operations, r.operation.id) && (s.with == "" || r.has(s.with)) {
			return true
		}
	}
	if a.status == http.StatusRequestEntityTooLarge {
		return len(r.text()) > httpx.DefaultMaxBody
	}
	if r.method == http.MethodHead && a.status == http.StatusBadRequest {
		return countedInBytes(r)
	}
	if code == "invalid_parameter" && countedInBytes(r) {
		for _, e := range a.problem().Errors {
			if e.Code != "too_long" {
				return false
			}
		}
		return true
	}
	if code != "validation_failed" {
		return false
	}
	for _, e := range a.problem().Errors {
		if e.Pointer == nil || !slices.ContainsFunc(beyondSchemas, func(b struct{ operations, entry string }) bool {
			return matches(b.operations, r.operation.id) && matches("^(?s:"+b.entry+")$", *e.Pointer+" "+e.Code)
		}) {
			return false
		}
	}
	return true
}

// countedInBytes reports whether a parameter has more bytes than characters, which are what schemas count.
func countedInBytes(r *generated) bool {
	for _, values := range r.query {
		for _, value := range values {
			if len(value) > utf8.RuneCountInString(value) {
				return true
			}
		}
	}
	return false
}

func matches(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }

// wrong describes the error in a reply, or returns "".
func wrong(r *generated, a *answer) string {
	switch {
	case a.status >= http.StatusInternalServerError:
		return "the service failed"
	case r.operation.id == "rotateWebhook" && a.header.Get("Idempotent-Replayed") != "":
		// The key doesn't include conditions, which are refused here.
	case len(r.mutations) == 0 && a.status >= http.StatusBadRequest && expected(r, a):
	case len(r.mutations) == 0 && a.status >= http.StatusBadRequest:
		return "a valid request was refused"
	case len(r.mutations) > 0 && a.status < http.StatusBadRequest:
		return "a request outside the document was taken"
	case len(r.mutations) == 1 && !slices.Contains(r.mutations[0].want, a.status) && !expected(r, a):
		return fmt.Sprintf("refused otherwise than with %v", r.mutations[0].want)
	}
	return ""
}

// An outcomes counts replies.
type outcomes struct {
	requests, wrong int
	byStatus        map[int]int
	succeeded       map[string]int // by operation
	mutations       map[string]int
}

func newOutcomes() *outcomes {
	return &outcomes{byStatus: map[int]int{}, succeeded: map[string]int{}, mutations: map[string]int{}}
}

func (y *outcomes) count(t *testing.T, r *generated, a *answer) {
	t.Helper()
	y.requests++
	y.byStatus[a.status]++
	for _, m := range r.mutations {
		y.mutations[m.name]++
	}
	if a.status < 300 {
		y.succeeded[r.operation.id]++
	}
	if complaint := wrong(r, a); complaint != "" {
		y.wrong++
		t.Errorf("%s\n%s\n%d %.1000s", complaint, r, a.status, a.body)
	}
}

// check checks that every kind of reply occurred.
func (y *outcomes) check(t *testing.T, c *contract, passed bool) {
	t.Helper()
	text, _ := json.Marshal(y.byStatus)
	t.Logf("%d requests: %s", y.requests, text)
	if y.requests < 1000 {
		return
	}
	for _, o := range c.operations {
		if y.succeeded[o.id] == 0 {
			t.Errorf("no request for %s was good", o.id)
		}
	}
	for i := range allMutations {
		m := &allMutations[i]
		if seldom := m.name == tooLarge || m.exact && passed; y.mutations[m.name] == 0 && !seldom {
			t.Errorf("no request had %q", m.name)
		}
	}
}

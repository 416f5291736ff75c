package httpx_test

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/httpx"
)

// identifier matches an identifier's placeholder in a pattern.
var identifier = regexp.MustCompile(`\{[a-z_]+\}`)

// identifiers creates a record of every kind with a key, and returns the identifiers by their placeholders.
func (w *world) identifiers(key string) map[string]string {
	w.tb.Helper()
	campaign := w.campaign(plainCampaign, as(key))
	response := w.response(campaign, as(key))
	hook := w.do("POST", "/v1/webhooks", hookBody("isolation"), as(key)).is(201, "").text("uuid")
	return map[string]string{
		"{uuid}":          strings.TrimPrefix(campaign, "/v1/campaigns/"),
		"{response_uuid}": response[strings.LastIndexByte(response, '/')+1:],
		"{webhook_uuid}":  hook,
		"{delivery_uuid}": w.do("POST", "/v1/webhooks/"+hook+"/test", "", as(key)).is(201, "").text("uuid"),
		"{file_uuid}":     w.do("POST", response+"/files", "{}", as(key)).is(201, "").text("uuid"),
	}
}

// F1: for a record of another account the reply is the same, byte for byte, as for none, whatever else in the path is
// right.
func TestRecordsOfOtherAccountsGet404(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		samples := w.requests(campaign, w.response(campaign))
		theirs, own := w.identifiers(w.mine.key), w.identifiers(w.other.key)
		before := w.belongings(w.mine.key, theirs)
		// F1, F4: routes that name no record show only the account's own.
		for path, body := range w.belongings(w.other.key, own) {
			for name, id := range theirs {
				if strings.Contains(body, id) || strings.Contains(body, string(w.mine.account.ID)) {
					t.Errorf("%s has the other account's %s", path, name)
				}
			}
		}
		samples = slices.DeleteFunc(samples, func(s sample) bool { return s.Public }) // those belong to no account
		for _, s := range samples {
			names := identifier.FindAllString(s.Pattern, -1)
			for _, name := range names {
				if own[name] == "" {
					t.Fatalf("%s: no record for %s", s.Name, name)
				}
			}
			for choice := 1; choice < 1<<len(names); choice++ { // which identifiers belong to the other account
				foreign, nowhere := s.Pattern, s.Pattern
				for i, name := range names {
					id, none := own[name], own[name]
					if choice&(1<<i) != 0 {
						id, none = theirs[name], nobody
					}
					foreign, nowhere = strings.Replace(foreign, name, id, 1), strings.Replace(nowhere, name, none, 1)
				}
				w.sameAsNone(s, foreign, nowhere)
			}
		}
		for path, body := range w.belongings(w.mine.key, theirs) {
			equal(t, before[path], body, "%s was\n%s", path)
		}
		// A response is found only below its own campaign.
		w.do("GET", w.campaign(plainCampaign)+"/responses/"+theirs["{response_uuid}"], "").is(404, "not_found")
		// Own records are found, which shows that the others were refused for their account.
		slices.SortStableFunc(samples, func(a, b sample) int { // deletions come last
			return strings.Compare(strings.TrimPrefix(b.Method, "D"), strings.TrimPrefix(a.Method, "D"))
		})
		for _, s := range samples {
			path := s.Pattern
			for name, id := range own {
				path = strings.ReplaceAll(path, name, id)
			}
			if a := w.do(s.Method, path, s.body, as(w.other.key)); a.status >= 300 && s.Name != "deleteCampaign" { // it has responses
				t.Errorf("%s of the own account: %d %s", s.Name, a.status, a.body)
			}
		}
	})
}

// sameAsNone compares the replies for another account's record and for none, with and without conditions.
func (w *world) sameAsNone(s sample, foreign, nowhere string) {
	w.tb.Helper()
	methods, conditions := []string{s.Method}, []string{""}
	switch s.Method { // other methods, and deleteWebhook, refuse conditions first
	case http.MethodGet:
		methods, conditions = append(methods, http.MethodHead), []string{"", "If-None-Match", "If-Match"}
	case http.MethodPut, http.MethodPatch:
		conditions = []string{"", "If-Match"}
	case http.MethodDelete:
		if s.Name != "deleteWebhook" {
			conditions = []string{"", "If-Match"}
		}
	}
	for _, method := range methods {
		for _, condition := range conditions {
			ask := func(path string) *answer {
				edits := []func(*http.Request){as(w.other.key), header("X-Request-Id", "same")}
				if condition != "" {
					edits = append(edits, header(condition, "*"))
				}
				return w.do(method, path, s.body, edits...)
			}
			got, want := ask(foreign), ask(nowhere)
			if method == http.MethodHead {
				got.is(404, "")
			} else {
				got.is(404, "not_found")
			}
			if got.status != want.status || got.body != want.body || !maps.EqualFunc(got.header, want.header, slices.Equal) {
				w.tb.Errorf("%s with %q: %d %v %s\ndiffers from %d %v %s", s.Name, condition,
					got.status, got.header, got.body, want.status, want.header, want.body)
			}
		}
	}
}

// belongings returns what the API shows a key for these identifiers.
func (w *world) belongings(key string, ids map[string]string) map[string]string {
	w.tb.Helper()
	got := make(map[string]string)
	for _, r := range httpx.Routes() {
		if r.Method != http.MethodGet || r.Public {
			continue
		}
		path := r.Pattern
		for name, id := range ids {
			path = strings.ReplaceAll(path, name, id)
		}
		got[path] = w.do("GET", path, "", as(key)).is(200, "").body
	}
	return got
}

// F2: another account's record in a body isn't found either.
func TestForeignIdentifiersInBodiesLookUnknown(t *testing.T) {
	w := newWorld(t, nil)
	theirs, own := w.identifiers(w.mine.key), w.identifiers(w.other.key)
	response := "/v1/campaigns/" + own["{uuid}"] + "/responses/" + own["{response_uuid}"]
	hook := hookBody("cross", `"campaignUuid":"ID"`)
	signature := strings.TrimSuffix(plainSignature, "}") + `,"fileUuid":"ID"}`
	for _, row := range []struct{ method, path, body, name string }{
		{"POST", "/v1/webhooks", hook, "{uuid}"},
		{"PUT", "/v1/webhooks/" + own["{webhook_uuid}"], hook, "{uuid}"},
		{"POST", response + "/signatures", signature, "{file_uuid}"},
	} {
		ask := func(id string) *answer {
			return w.do(row.method, row.path, strings.ReplaceAll(row.body, "ID", id), as(w.other.key), header("X-Request-Id", "same"))
		}
		foreign, unknown := ask(theirs[row.name]).is(422, "validation_failed"), ask(nobody)
		equal(t, foreign.body, unknown.body, "%s %s: %s", row.method, row.path)
		if a := ask(own[row.name]); a.status >= 300 {
			t.Errorf("%s %s with the own record: %d %s", row.method, row.path, a.status, a.body)
		}
	}
}

var uuidInAnyCase = regexp.MustCompile(`[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`)

// wantLowerCase checks that all identifiers in a reply are in lower case.
func (a *answer) wantLowerCase() {
	a.tb.Helper()
	texts := []string{a.body}
	for _, values := range a.header {
		texts = append(texts, values...)
	}
	for _, text := range texts {
		for _, id := range uuidInAnyCase.FindAllString(text, -1) {
			if id != strings.ToLower(id) {
				a.errorf("answers with %s", id)
			}
		}
	}
}

// inUpperCase returns the text with its identifiers in upper case.
func inUpperCase(s string) string { return uuidInAnyCase.ReplaceAllStringFunc(s, strings.ToUpper) }

// Every route accepts identifiers in any case, and replies in lower case.
func TestIdentifiersInUpperCase(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	for _, s := range w.requests(campaign, w.response(campaign)) {
		w.do(s.Method, inUpperCase(s.path), s.body).is(s.status, "").wantLowerCase()
	}
	hook := w.do("POST", "/v1/webhooks", hookBody("upper", `"campaignUuid":"`+inUpperCase(strings.TrimPrefix(campaign, "/v1/campaigns/"))+`"`))
	hook.is(201, "").wantLowerCase()
	equal(t, "/v1/campaigns/"+hook.text("campaignUuid"), campaign, "a webhook for %s")
	events := "/v1/events?campaignUuid=" + strings.TrimPrefix(campaign, "/v1/campaigns/")
	lower, upper := w.do("GET", events, ""), w.do("GET", inUpperCase(events), "")
	if lower.body != upper.body || !strings.Contains(lower.body, "response.created") {
		t.Errorf("events: %s and %s", lower.body, upper.body)
	}
}

// A retry with identifiers in another case is the same request, and an export goes on after an identifier in any case.
func TestReplayWithUpperCaseIdentifiers(t *testing.T) {
	w := newWorld(t, nil)
	campaign, response := w.pair()
	for _, path := range []string{campaign + "/responses", response + "/files"} {
		first := w.do("POST", path, plainResponse, once("case"+path)).is(201, "")
		w.do("POST", inUpperCase(path), plainResponse, once("case"+path)).repeats(first)
	}
	ids, _ := w.page(campaign + "/responses")
	if rest := w.do("GET", campaign+"/responses.ndjson?cursor="+strings.ToUpper(ids[0]), "").is(200, "").body; strings.Count(rest, "\n") != 1 {
		t.Errorf("after the first of two come %q", rest)
	}
}

package httpx_test

import (
	"regexp"
	"strings"
	"testing"
)

var uuidInAnyCase = regexp.MustCompile(`[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}`)

// wantLowerCase checks that all identifiers in a reply are in lower case.
func (a *answer) wantLowerCase() {
	a.tb.Helper()
	texts := []string{a.body}
	for name, values := range a.header {
		if name != "Digest" {
			texts = append(texts, values...)
		}
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
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		for _, s := range w.requests(campaign, w.response(campaign)) {
			w.do(s.Method, inUpperCase(s.path), s.body).is(s.status, "").wantLowerCase()
		}
		response := w.response(campaign)
		file := w.do("POST", response+"/files", "{}").is(201, "").text("uuid")
		hook := w.do("POST", "/v1/webhooks", hookBody("upper", `"campaignUuid":"`+inUpperCase(strings.TrimPrefix(campaign, "/v1/campaigns/"))+`"`))
		hook.is(201, "").wantLowerCase()
		if got := "/v1/campaigns/" + hook.text("campaignUuid"); got != campaign {
			t.Errorf("a webhook for %s, wanted %s", got, campaign)
		}
		signed := w.do("POST", response+"/signatures", `{"signer":{"email":"ada@example.com"},"fileUuid":"`+strings.ToUpper(file)+`"}`)
		if signed.is(201, "").wantLowerCase(); signed.text("fileUuid") != file {
			t.Errorf("signed %s, wanted %s", signed.text("fileUuid"), file)
		}
		w.settle(9)
		events := "/v1/events?campaignUuid=" + strings.TrimPrefix(campaign, "/v1/campaigns/")
		lower, upper := w.do("GET", events, ""), w.do("GET", inUpperCase(events), "")
		if lower.body != upper.body || !strings.Contains(lower.body, "response.created") {
			t.Errorf("events: %s and %s", lower.body, upper.body)
		}
	})
}

// An export accepts an identifier in upper case as its cursor.
func TestExportCursorInUpperCase(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		for range 3 {
			w.response(campaign)
		}
		items, _ := w.do("GET", campaign+"/responses", "").at("items").([]any)
		last, _ := items[1].(map[string]any)["uuid"].(string)
		rest := w.do("GET", campaign+"/responses.ndjson?cursor="+strings.ToUpper(last), "").is(200, "").body
		if strings.Count(rest, "\n") != 1 {
			t.Errorf("after the second of three come %q", rest)
		}
	})
}

// A retry with identifiers in another case is the same request.
func TestReplayWithUpperCaseIdentifiers(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		for _, path := range []string{campaign + "/responses", w.response(campaign) + "/files"} {
			once := header("Idempotency-Key", "case-"+path[len(path)-5:])
			first := w.do("POST", path, plainResponse, once).is(201, "")
			again := w.do("POST", inUpperCase(path), plainResponse, once).is(201, "")
			if again.header.Get("Idempotent-Replayed") != "true" || again.body != first.body {
				t.Errorf("%s: not repeated: %s", path, again.body)
			}
		}
	})
}

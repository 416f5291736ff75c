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
	if got := "/v1/campaigns/" + hook.text("campaignUuid"); got != campaign {
		t.Errorf("a webhook for %s, wanted %s", got, campaign)
	}
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

package httpx_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
)

// A key that may change responses but not read them gets back what tells the response apart, its version, and what the
// key sent. Neither a reply nor an error names what is stored.
func TestPatchWithoutReadShowsOnlyWhatWasSent(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(`{"title":"x"}`)
	created := w.do("POST", campaign+"/responses", `{"user":{"email":"ada@example.com","firstName":"Ada"},`+
		`"responses":{"secret":{"value":["stored"]},"other":{"value":["stored"]}}}`).is(201, "")
	response := campaign + "/responses/" + created.text("uuid")
	writer := as(w.key(w.mine, formsvc.ResponsesWrite))
	fields := func(a *answer, want ...string) {
		t.Helper()
		got := slices.Sorted(maps.Keys(a.object()))
		slices.Sort(want)
		if !slices.Equal(got, want) {
			a.errorf("the reply has %v, want %v", got, want)
		}
	}
	always := []string{"uuid", "reference", "status", "updatedAt"}

	a := w.do("PATCH", response, `{"status":"validated"}`, writer).is(200, "")
	fields(a, always...)
	if a.text("status") != "validated" || a.text("reference") != created.text("reference") || a.text("uuid") != created.text("uuid") {
		a.errorf("another response than %s", created.body)
	}
	a = w.do("PATCH", response, `{"user":{"lastName":"King","firstName":null},"responses":{"a/b":{"value":["new"]},"other":null}}`, writer).is(200, "")
	fields(a, append(always, "user", "responses")...)
	a.has(`{"firstName":"","lastName":"King"}`, "user").has(`{"a/b":{"value":["new"]}}`, "responses")

	// The campaign's modules change: the stored answer breaks the rules, and no error names it.
	w.do("PUT", campaign, `{"title":"x","modules":[{"name":"a/b"},{"name":"needed","required":true}]}`).is(200, "")
	a = w.do("PATCH", response, `{"responses":{"a/b":{"value":["x","y"]}}}`, writer).is(422, "validation_failed")
	if strings.Contains(string(a.body), "secret") || strings.Contains(string(a.body), "needed") {
		a.errorf("the error names what is stored: %s", a.body)
	}
	if !strings.Contains(string(a.body), `"/responses/a~1b`) || !strings.Contains(string(a.body), `"stored_answers"`) {
		a.errorf("the error doesn't name what was sent, or hides that more is wrong: %s", a.body)
	}
	a = w.do("PATCH", response, `{"responses":{"a/b":{"value":["x","y"]}}}`).is(422, "validation_failed")
	if !strings.Contains(string(a.body), "/responses/secret") {
		a.errorf("a key that reads doesn't learn what is wrong: %s", a.body)
	}
}

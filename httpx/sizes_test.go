package httpx_test

import (
	"strings"
	"testing"
)

// A page of large records ends early, and nextCursor goes on to the rest; total counts all records.
func TestPagesEndAtTheirByteLimit(t *testing.T) {
	w := newWorld(t, nil)
	list := w.campaign(plainCampaign) + "/responses"
	for range 3 {
		w.do("POST", list, answers(`{"q":{"value":["`+strings.Repeat("x", 2_100_000)+`"]}}`)).is(201, "")
	}
	for _, query := range []string{"?limit=1000", "?limit=1000&email=a@example.com"} {
		a := w.do("GET", list+query, "").is(200, "").has("3", "total").has("1000", "limit")
		if ids := w.walk(list + query); len(ids) != 3 || len(a.body) > 5_000_000 || strings.Count(a.body, "reference") != 2 {
			t.Errorf("%s: %d records, a page of %d bytes", query, len(ids), len(a.body))
		}
	}
	if ids, _ := w.page(list + "?limit=1000&offset=2"); len(ids) != 1 {
		t.Errorf("%d items after offset 2", len(ids))
	}
}

// A response has at most 4 MiB of answers, however many requests they come in.
func TestAnswersAreLimitedInSum(t *testing.T) {
	w := newWorld(t, nil)
	campaign := w.campaign(plainCampaign)
	answer := func(name string, bytes int) string {
		return `"responses":{"` + name + `":{"value":["` + strings.Repeat("x", bytes) + `"]}}}`
	}
	user := `{"user":{"email":"a@example.com"},`
	made := w.do("POST", campaign+"/responses", user+answer("a", 3<<20)).is(201, "")
	response := campaign + "/responses/" + made.text("uuid")
	w.do("PATCH", response, "{"+answer("b", 1<<20)).is(422, "too_large").faults("/responses too_large")
	w.do("PATCH", response, `{"status":"",`+answer("b", 1<<20)).is(422, "too_large").faults("/status invalid_value", "/responses too_large")
	w.do("PATCH", response, "{"+answer("b", 1<<19)).is(200, "")
	w.do("PATCH", response, "{"+answer("c", 1<<20)).is(422, "too_large")
	w.do("PATCH", response, `{"responses":{"a":null}}`).is(200, "")
	w.do("PATCH", response, "{"+answer("c", 3<<20)).is(200, "")
}

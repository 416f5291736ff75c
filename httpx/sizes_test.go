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
	a := w.do("GET", list+"?limit=1000", "").is(200, "").has("3", "total").has("1000", "limit")
	if ids := w.walk(list + "?limit=1000"); len(ids) != 3 || len(a.body) > 5_000_000 || strings.Count(a.body, "reference") != 2 {
		t.Errorf("%d records, a page of %d bytes", len(ids), len(a.body))
	}
}

// A response has at most 4 MiB of answers, however many requests they come in.
func TestAnswersAreLimitedInSum(t *testing.T) {
	w := newWorld(t, nil)
	answer := func(name string) string { return `{"` + name + `":{"value":["` + strings.Repeat("x", 3<<20) + `"]}}` }
	list := w.campaign(plainCampaign) + "/responses"
	response := list + "/" + w.do("POST", list, answers(answer("a"))).is(201, "").text("uuid")
	w.do("PATCH", response, `{"status":"","responses":`+answer("b")+`}`).is(422, "too_large").faults("/status invalid_value", "/responses too_large")
	// Some characters take more room in the store than in the body.
	w.do("POST", list, answers(`{"q":{"value":["`+strings.Repeat(`\b`, 1<<20)+`"]}}`)).is(422, "too_large").faults("/responses too_large")
}

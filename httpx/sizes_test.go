package httpx_test

import (
	"fmt"
	"strings"
	"testing"
)

// A page of large records ends early, whichever way it is asked for, and nextCursor goes on to
// the rest; total counts all records.
func TestPagesEndAtTheirByteLimit(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		large := `{"user":{"email":"a@example.com"},"responses":{"q":{"value":["` + strings.Repeat("x", 2_100_000) + `"]}}}`
		for range 3 {
			w.do("POST", campaign+"/responses", large).is(201, "")
		}
		for list, total := range map[string]int{
			campaign + "/responses?limit=1000":                     3,
			campaign + "/responses?limit=1000&email=a@example.com": 3,
		} {
			seen, next, pages := map[string]bool{}, "", 0
			for ; pages == 0 || next != ""; pages++ {
				target := list
				if next != "" {
					target += "&cursor=" + next
				}
				a := w.do("GET", target, "").is(200, "").has(fmt.Sprint(total), "total").has("1000", "limit")
				if len(a.body) > 5_000_000 {
					t.Errorf("%s: a page of %d bytes", list, len(a.body))
				}
				items, _ := a.at("items").([]any)
				for _, item := range items {
					m, _ := item.(map[string]any)
					seen[fmt.Sprint(m["uuid"])] = true
				}
				next, _ = a.at("nextCursor").(string)
				if pages > total {
					t.Fatalf("%s: more pages than records", list)
				}
			}
			if len(seen) != total || pages != 2 {
				t.Errorf("%s: %d of %d records on %d pages", list, len(seen), total, pages)
			}
		}
		a := w.do("GET", campaign+"/responses?limit=1000&offset=2", "").is(200, "")
		if items, _ := a.at("items").([]any); len(items) != 1 {
			t.Errorf("%d items after offset 2", len(items))
		}
	})
}

// A response has at most 4 MiB of answers, however many requests they come in.
func TestAnswersAreLimitedInSum(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		answer := func(name string, bytes int) string {
			return `"responses":{"` + name + `":{"value":["` + strings.Repeat("x", bytes) + `"]}}}`
		}
		user := `{"user":{"email":"a@example.com"},`
		// Some characters take more room in the store than in the body.
		w.do("POST", campaign+"/responses", user+`"responses":{"q":{"value":["`+strings.Repeat(`\b`, 1<<20)+`"]}}}`).
			is(422, "too_large").faults("/responses too_large")
		made := w.do("POST", campaign+"/responses", user+answer("a", 3<<20)).is(201, "")
		response := campaign + "/responses/" + made.text("uuid")
		w.do("PATCH", response, "{"+answer("b", 1<<20)).is(422, "too_large").faults("/responses too_large")
		w.do("PATCH", response, `{"status":"",`+answer("b", 1<<20)).is(422, "too_large").faults("/status invalid_value", "/responses too_large")
		w.do("PATCH", response, "{"+answer("b", 1<<19)).is(200, "")
		w.do("PATCH", response, "{"+answer("c", 1<<20)).is(422, "too_large")
		w.do("PATCH", response, `{"responses":{"a":null}}`).is(200, "")
		w.do("PATCH", response, "{"+answer("c", 3<<20)).is(200, "")
	})
}

package httpx_test

import (
	"strings"
	"testing"
)

// A parameter with an empty value counts as absent, on every route.
func TestEmptyParameters(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		response := w.response(campaign)
		documented := map[string]*operation{}
		for _, o := range theContract(t).operations {
			documented[o.id] = o
		}
		tried := 0
		for _, s := range w.requests(campaign, response) {
			names := []string{}
			for _, p := range documented[s.Name].parameters {
				if p.in == "query" {
					names = append(names, p.name)
				}
			}
			if len(names) == 0 || s.Method != "GET" {
				continue
			}
			plain := w.do("GET", s.path, "").is(200, "")
			for _, query := range append(names, strings.Join(names, "=&")+"=", strings.Join(names, "&"), strings.Join(names, "=&")+"=&&"+strings.Join(names, "=&")) {
				tried++
				if got := w.do("GET", s.path+"?"+query, "").is(200, ""); got.body != plain.body {
					t.Errorf("%s?%s: %s, want %s", s.path, query, got.body, plain.body)
				}
			}
		}
		if tried < 50 {
			t.Errorf("only %d were tried", tried)
		}
		// Other values of the same parameter count.
		w.do("GET", campaign+"/responses?limit=&limit=7&status=&status=pending&email=", "").is(200, "").has("7", "limit").has("1", "total")
		w.do("GET", campaign+"/responses?cursor=&offset=1", "").is(200, "").has("1", "offset")
		w.do("GET", campaign+"/responses?limit=7&limit=&limit=8", "").is(400, "invalid_parameter").faults("limit repeated_parameter")
		upload := header("Content-Disposition", "attachment; filename=a.txt")
		w.do("POST", response+"/files?module=", "x", upload).is(201, "").has("null", "module")
	})
}

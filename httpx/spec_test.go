package httpx_test

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// The tests in this file check the specification row by row, without extensions; only the status codes are ours, since
// the specification leaves them open.

func TestSpecEndpointsAreInTheRouteTable(t *testing.T) {
	rows := []struct {
		method, pattern string
		permission      formsvc.Permission
	}{
		{"GET", "/v1/campaigns", "campaigns:read"},
		{"GET", "/v1/campaigns/{uuid}", "campaigns:read"},
		{"POST", "/v1/campaigns", "campaigns:write"},
		{"PUT", "/v1/campaigns/{uuid}", "campaigns:write"},
		{"GET", "/v1/campaigns/{uuid}/responses", "responses:read"},
		{"GET", "/v1/campaigns/{uuid}/responses/{response_uuid}", "responses:read"},
		{"POST", "/v1/campaigns/{uuid}/responses", "responses:write"},
		{"PATCH", "/v1/campaigns/{uuid}/responses/{response_uuid}", "responses:write"},
	}
	for _, row := range rows {
		if !slices.ContainsFunc(httpx.Routes(), func(r httpx.Route) bool {
			return r.Method == row.method && r.Pattern == row.pattern && r.Permission == row.permission && !r.Public
		}) {
			t.Errorf("no route %s %s with %s", row.method, row.pattern, row.permission)
		}
	}
}

func TestSpecListCampaigns(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		w.do("GET", "/v1/campaigns", "").is(200, "").has(`[]`, "items")
		first := w.campaign(`{"title":"First"}`)
		w.campaign(`{"title":"Second"}`)
		items, _ := w.do("GET", "/v1/campaigns", "").is(200, "").at("items").([]any)
		if len(items) != 2 {
			t.Fatalf("%d items", len(items))
		}
		if m, _ := items[1].(map[string]any); "/v1/campaigns/"+m["uuid"].(string) != first || m["title"] != "First" {
			t.Errorf("items = %v", items)
		}
	})
}

func TestSpecReadCampaign(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		path := w.campaign(`{"title":"Survey"}`)
		a := w.do("GET", path, "").is(200, "").has(`"Survey"`, "title")
		if got := "/v1/campaigns/" + a.text("uuid"); got != path {
			t.Errorf("uuid of %s, want %s", got, path)
		}
	})
}

func TestSpecCreateCampaign(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.do("POST", "/v1/campaigns", `{"title":"Survey"}`).is(201, "").has(`"Survey"`, "title")
		w.do("GET", "/v1/campaigns/"+a.text("uuid"), "").is(200, "").has(`"Survey"`, "title")
	})
}

func TestSpecModifyCampaign(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		path := w.campaign(`{"title":"Survey"}`)
		w.do("PUT", path, `{"title":"Census"}`).is(200, "").has(`"Census"`, "title")
		w.do("GET", path, "").is(200, "").has(`"Census"`, "title")
	})
}

func TestSpecListResponses(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		w.do("GET", campaign+"/responses", "").is(200, "").has(`[]`, "items")
		first := w.response(campaign)
		w.response(campaign)
		items, _ := w.do("GET", campaign+"/responses", "").is(200, "").at("items").([]any)
		if len(items) != 2 {
			t.Fatalf("%d items", len(items))
		}
		if m, _ := items[1].(map[string]any); campaign+"/responses/"+m["uuid"].(string) != first {
			t.Errorf("items = %v", items)
		}
	})
}

func TestSpecListsArePaginatedWithLimitAndOffset(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		var paths []string
		for range 5 {
			paths = append(paths, w.response(campaign))
		}
		items, _ := w.do("GET", campaign+"/responses?limit=2&offset=1", "").is(200, "").at("items").([]any)
		if len(items) != 2 {
			t.Fatalf("%d items", len(items))
		}
		for i, item := range items {
			if m, _ := item.(map[string]any); campaign+"/responses/"+m["uuid"].(string) != paths[3-i] {
				t.Errorf("item %d is not the one expected", i)
			}
		}
	})
}

func TestSpecReadResponse(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		path := w.response(w.campaign(plainCampaign))
		w.do("GET", path, "").is(200, "").
			has(`{"email":"ada@example.com","firstName":"Ada","lastName":"Lovelace"}`, "user").
			has(`{"color":{"value":["blue"]}}`, "responses").
			has(`"pending"`, "status")
	})
}

func TestSpecCreateResponse(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		a := w.do("POST", w.campaign(plainCampaign)+"/responses", plainResponse).is(201, "").
			has(`{"email":"ada@example.com","firstName":"Ada","lastName":"Lovelace"}`, "user").
			has(`{"color":{"value":["blue"]}}`, "responses")
		if a.text("uuid") == "" || a.text("reference") == "" {
			t.Error("no uuid or no reference")
		}
		utc := regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$`)
		created := a.text("createdAt")
		if at, err := time.Parse(time.RFC3339, created); err != nil || !at.Equal(w.now) || !utc.MatchString(created) {
			t.Errorf("createdAt = %s, want %s in ISO 8601 and UTC", created, w.now)
		}
	})
}

func TestSpecNewResponseIsPending(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		w.do("POST", w.campaign(plainCampaign)+"/responses", plainResponse).is(201, "").has(`"pending"`, "status")
	})
}

func TestSpecValueIsAnArrayOfStrings(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		const answers = `{"none":{"value":[]},"one":{"value":["a"]},"many":{"value":["b","a","","b"]}}`
		body := `{"user":{"email":"a@example.com","firstName":"","lastName":""},"responses":` + answers + `}`
		w.do("POST", w.campaign(plainCampaign)+"/responses", body).is(201, "").has(answers, "responses")
	})
}

func TestSpecPatchSetsTheStatusSent(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		path := w.response(w.campaign(plainCampaign))
		for _, status := range []string{"validated", "pending", "validated"} {
			w.do("PATCH", path, `{"status":"`+status+`"}`).is(200, "").has(`"`+status+`"`, "status")
			w.do("GET", path, "").is(200, "").has(`"`+status+`"`, "status")
		}
	})
}

func TestSpecEveryRequestCarriesTheAuthorizationHeader(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		for _, r := range w.requests(campaign, w.response(campaign)) {
			if r.Public {
				continue
			}
			w.do(r.Method, r.path, r.body, func(r *http.Request) { r.Header.Del("Authorization") }).is(401, "")
			w.do(r.Method, r.path, r.body).is(r.status, "")
		}
	})
}

func TestSpecPermissionsAreDefinedPerKey(t *testing.T) {
	rows := []struct {
		permission formsvc.Permission
		routes     []string
	}{
		{"campaigns:read", []string{"listCampaigns", "getCampaign"}},
		{"campaigns:write", []string{"createCampaign", "replaceCampaign"}},
		{"responses:read", []string{"listResponses", "getResponse", "listComments", "listSignatures", "exportResponsesAsCsv", "exportResponsesAsNdjson"}},
		{"responses:write", []string{"createResponse", "updateResponse", "uploadFile", "createComment", "createSignature"}},
		{"files:read", []string{"listFiles", "downloadFile"}},
	}
	onEveryStore(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		response := w.response(campaign)
		for _, row := range rows {
			key := w.key(w.mine, row.permission)
			for _, r := range w.requests(campaign, response) {
				if r.Name == "deleteResponse" || r.Permission == "" ||
					!strings.HasPrefix(r.Pattern, "/v1/campaigns") && r.Name != "downloadFile" {
					continue // TestEveryRouteWithEverySetOfPermissions covers extensions
				}
				want := 403
				if slices.Contains(row.routes, r.Name) {
					want = r.status
				}
				w.do(r.Method, r.path, r.body, as(key)).is(want, "")
			}
		}
	})
}

func TestSpecVersionIsThePathPrefix(t *testing.T) {
	onEveryStore(t, func(_ *testing.T, w *world) {
		w.do("GET", "/v1/campaigns", "").is(200, "")
		w.do("GET", "/campaigns", "").is(404, "")
		w.do("GET", "/v2/campaigns", "").is(404, "")
	})
}

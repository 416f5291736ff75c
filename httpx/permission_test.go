package httpx_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// sample is a good request for a route.
type sample struct {
	httpx.Route
	path, body string
	nowhere    string // the path with identifiers that nobody has
	status     int    // when it is allowed
}

const (
	nobody     = "018f0000-0000-7000-8000-000000000000"
	subscribed = `{"url":"https://example.com/subscribed","events":["response.created"]}`
)

// requests returns a good request for every route in the table, which can be
// repeated with the same result.
func (w *world) requests(campaign, response string) []sample {
	w.tb.Helper()
	w.do("POST", "/v1/webhooks", subscribed, as(w.other.key))
	hook := w.do("POST", "/v1/webhooks", subscribed)
	spare := "/v1/webhooks/" + w.do("POST", "/v1/webhooks", hookBody("spare")).text("uuid")
	delivery := w.do("POST", "/v1/webhooks/"+hook.text("uuid")+"/test", "").is(201, "")
	ids := map[string]string{
		"{uuid}":          strings.TrimPrefix(campaign, "/v1/campaigns/"),
		"{response_uuid}": response[strings.LastIndexByte(response, '/')+1:],
		"{webhook_uuid}":  hook.text("uuid"),
		"{delivery_uuid}": delivery.text("uuid"),
		"{name}":          "docs.css",
		"{file_uuid}":     w.do("POST", response+"/files", "{}").is(201, "").text("uuid"),
	}
	bodies := map[string]string{
		"createCampaign":  plainCampaign,
		"replaceCampaign": plainCampaign,
		"createResponse":  plainResponse,
		"updateResponse":  `{"status":"validated"}`,
		"uploadFile":      `{"any":"content"}`,
		"createComment":   plainComment,
		"createSignature": plainSignature,
		"createWebhook":   subscribed,
		"replaceWebhook":  subscribed,
		"redeliverFailed": `{"since":"2026-11-21T08:30:00Z"}`,
	}
	created := []string{"createCampaign", "createResponse", "uploadFile", "testWebhook", "createComment", "createSignature"}
	var list []sample
	for _, route := range httpx.Routes() {
		s := sample{Route: route, path: route.Pattern, nowhere: route.Pattern, body: bodies[route.Name], status: http.StatusOK}
		if slices.Contains(created, route.Name) {
			s.status = http.StatusCreated
		}
		for name, id := range ids {
			s.path, s.nowhere = strings.ReplaceAll(s.path, name, id), strings.ReplaceAll(s.nowhere, name, nobody)
		}
		if route.Method == http.MethodDelete { // the others need the webhook
			s.path, s.status = spare, http.StatusNoContent
		}
		list = append(list, s)
	}
	return list
}

// D5: every route with every set of permissions, on records of the own and of
// another account.
func TestEveryRouteWithEverySetOfPermissions(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		list := w.requests(campaign, w.response(campaign))
		all := formsvc.AllPermissions()
		for set := range 1 << len(all) {
			var held []formsvc.Permission
			for i, p := range all {
				if set&(1<<i) != 0 {
					held = append(held, p)
				}
			}
			if len(held) == 0 {
				continue // such a key can't be made; TestKeyWithoutPermissions has its place
			}
			mine, other := w.key(w.mine, held...), w.key(w.other, held...)
			for _, s := range list {
				w.matrixEntry(s, mine, held, true)
				w.matrixEntry(s, other, held, false)
			}
		}
	})
}

func (w *world) matrixEntry(s sample, key string, held []formsvc.Permission, own bool) {
	w.tb.Helper()
	a := w.do(s.Method, s.path, s.body, as(key))
	principal := formsvc.Principal{Permissions: held}
	switch {
	case s.Permission != "" && !principal.May(s.Permission):
		a.is(403, "permission_denied")
		if p := a.problem(); p.Permission != string(s.Permission) || !strings.Contains(p.Detail, string(s.Permission)) {
			a.errorf("doesn't name %s: %s", s.Permission, a.body)
		}
	case !own && !s.Public && strings.Contains(s.Pattern, "{") && s.Method != http.MethodDelete:
		a.is(404, "not_found")
	default:
		a.is(s.status, "")
	}
}

// What the service adds to the specification, and its permissions (contract, §3).
func TestPermissionsOfExtensions(t *testing.T) {
	want := map[string]formsvc.Permission{
		"GET /v1/webhooks":                              "webhooks:read",
		"POST /v1/webhooks":                             "webhooks:write",
		"GET /v1/webhooks/{webhook_uuid}":               "webhooks:read",
		"PUT /v1/webhooks/{webhook_uuid}":               "webhooks:write",
		"DELETE /v1/webhooks/{webhook_uuid}":            "webhooks:write",
		"POST /v1/webhooks/{webhook_uuid}/test":         "webhooks:write",
		"POST /v1/webhooks/{webhook_uuid}/rotate":       "webhooks:write",
		"GET /v1/webhooks/{webhook_uuid}/deliveries":    "webhooks:read",
		"POST /v1/webhooks/{webhook_uuid}/redeliver":    "webhooks:write",
		"GET /v1/deliveries/{delivery_uuid}":            "webhooks:read",
		"POST /v1/deliveries/{delivery_uuid}/redeliver": "webhooks:write",
		"GET /v1/files/{file_uuid}":                     "files:read",
		"GET /v1/events":                                "responses:read",
		"GET /v1/me":                                    "",
	}
	got := map[string]formsvc.Permission{}
	for _, r := range httpx.Routes() {
		if !r.Public && !strings.HasPrefix(r.Pattern, "/v1/campaigns") {
			got[r.Method+" "+r.Pattern] = r.Permission
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// The empty set needs an authentication of the embedder's own.
func TestKeyWithoutPermissions(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		list := w.requests(campaign, w.response(campaign))
		w.serve(&httpx.Options{Authenticate: func(*http.Request) (*formsvc.Principal, error) {
			return &formsvc.Principal{AccountID: w.mine.account.ID}, nil
		}})
		for _, s := range list {
			if s.Permission != "" {
				w.do(s.Method, s.path, s.body).is(403, "permission_denied")
				continue
			}
			w.do(s.Method, s.path, s.body).is(200, "")
		}
	})
}

func TestAnotherAccountsRecordsLookLikeNone(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		response := w.response(campaign)
		theirs := w.campaign(plainCampaign, as(w.other.key))
		id := header("X-Request-Id", "same")
		for _, s := range w.requests(campaign, response) {
			if s.Public || !strings.Contains(s.Pattern, "{") {
				continue
			}
			status, code := 404, "not_found"
			if s.Method == http.MethodDelete {
				status, code = 204, ""
			}
			foreign := w.do(s.Method, s.path, s.body, as(w.other.key), id).is(status, code)
			unknown := w.do(s.Method, s.nowhere, s.body, as(w.other.key), id).is(status, code)
			if foreign.body != unknown.body {
				t.Errorf("%s: %s differs from %s", s.Name, foreign.body, unknown.body)
			}
		}
		// A response is found below its own campaign only.
		w.do("GET", strings.Replace(response, campaign, theirs, 1), "", as(w.other.key)).is(404, "not_found")
		w.do("GET", strings.Replace(response, campaign, w.campaign(plainCampaign), 1), "").is(404, "not_found")
		if n := w.total("/v1/campaigns", as(w.other.key)); n != 1 {
			t.Errorf("the other account lists %d campaigns", n)
		}
		if n := w.total(theirs+"/responses", as(w.other.key)); n != 0 {
			t.Errorf("the other account lists %d responses", n)
		}
		w.do("GET", response, "").is(200, "").has(`"pending"`, "status")
	})
}

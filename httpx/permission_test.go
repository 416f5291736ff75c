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

// A sample is a valid request for a route.
type sample struct {
	httpx.Route
	path, body string
	nowhere    string // the path with unknown identifiers
	status     int    // when permitted
}

const (
	nobody     = "018f0000-0000-7000-8000-000000000000"
	subscribed = `{"url":"https://example.com/subscribed","events":["response.created"]}`
)

// requests returns a valid request for every route. Repeating it has the same result.
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
		switch route.Name { // the others need the webhook and the response
		case "deleteWebhook":
			s.path, s.status = spare, http.StatusNoContent
		case "deleteResponse":
			s.path, s.status = campaign+"/responses/"+nobody, http.StatusNotFound
		}
		list = append(list, s)
	}
	return list
}

// D5: every route with every set of permissions, on own records and on another account's. Permissions are checked before the
// store is asked for a record, so the fast tier and all stores but the first get only sets with one permission, or without one.
func TestEveryRouteWithEverySetOfPermissions(t *testing.T) {
	first := stores > 1
	everywhere(t, func(t *testing.T, w *world) {
		every := first
		first = false
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
			if !every && len(held) > 1 && len(held) < len(all)-1 {
				continue
			}
			if len(held) == 0 {
				continue // such a key can't be created; TestKeyWithoutPermissions covers it
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
	principal := formsvc.Principal{Permissions: held}
	if s.Name == "deleteResponse" {
		s.path = w.response(s.path[:strings.LastIndex(s.path, "/responses/")])
		s.status = http.StatusNoContent
	}
	a := w.do(s.Method, s.path, s.body, as(key))
	switch {
	case s.Permission != "" && !principal.May(s.Permission):
		a.is(403, "permission_denied")
		if p := a.problem(); p.Permission != string(s.Permission) || !strings.Contains(p.Detail, string(s.Permission)) {
			a.errorf("doesn't name %s: %s", s.Permission, a.body)
		}
	case !own && !s.Public && strings.Contains(s.Pattern, "{") && s.Name != "deleteWebhook":
		a.is(404, "not_found")
	default:
		a.is(s.status, "")
	}
}

// Permissions of the extensions (contract §3).
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

// The empty set needs authentication by the host application.
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

func TestRecordsOfOtherAccountsGet404(t *testing.T) {
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
			if s.Name == "deleteWebhook" {
				status, code = 204, ""
			}
			if s.Name == "deleteResponse" {
				s.path = response
			}
			foreign := w.do(s.Method, s.path, s.body, as(w.other.key), id).is(status, code)
			unknown := w.do(s.Method, s.nowhere, s.body, as(w.other.key), id).is(status, code)
			if foreign.body != unknown.body {
				t.Errorf("%s: %s differs from %s", s.Name, foreign.body, unknown.body)
			}
		}
		// A response is found only below its own campaign.
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

// A key that may change responses but not read them gets back what tells the response apart, its version, and what the
// key sent. Neither a reply nor an error names what is stored.
func TestPatchWithoutReadShowsOnlyWhatWasSent(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
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
		if a.header.Get("ETag") != w.do("GET", response, "").header.Get("ETag") {
			a.errorf("the ETag is not that of the response")
		}
		fields(w.do("PATCH", response, `{}`, writer).is(200, ""), always...)
		a = w.do("PATCH", response, `{"user":{"lastName":"King","firstName":null},"responses":{"a/b":{"value":["new"]},"other":null}}`, writer).is(200, "")
		fields(a, append(always, "user", "responses")...)
		a.has(`{"firstName":"","lastName":"King"}`, "user").has(`{"a/b":{"value":["new"]}}`, "responses")

		// The campaign's modules change: the stored answer breaks the rules, and no error names it.
		w.do("PUT", campaign, `{"title":"x","modules":[{"name":"a/b"},{"name":"needed","required":true}]}`).is(200, "")
		for _, body := range []string{
			`{"responses":{"a/b":{"value":["x","y"]}}}`,
			`{"status":7,"responses":{"a/b":{"value":["x","y"]}}}`,
		} {
			a = w.do("PATCH", response, body, writer)
			if a.status != 422 && a.status != 400 || strings.Contains(string(a.body), "secret") || strings.Contains(string(a.body), "needed") {
				a.errorf("the error names what is stored: %s", a.body)
			}
			if !strings.Contains(string(a.body), `"/responses/a~1b`) || !strings.Contains(string(a.body), `"stored_answers"`) {
				a.errorf("the error doesn't name what was sent, or hides that more is wrong: %s", a.body)
			}
		}
		a = w.do("PATCH", response, `{"responses":{"a/b":{"value":["x","y"]}}}`).is(422, "validation_failed")
		if !strings.Contains(string(a.body), "/responses/secret") {
			a.errorf("a key that reads doesn't learn what is wrong: %s", a.body)
		}
	})
}

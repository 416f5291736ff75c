package httpx_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
)

// sample is a good request for a route.
type sample struct {
	httpx.Route
	path, body string
	status     int // when it is allowed
}

// requests returns a good request for every route in the table.
func requests(campaign, response string) []sample {
	campaignID := strings.TrimPrefix(campaign, "/v1/campaigns/")
	responseID := response[strings.LastIndexByte(response, '/')+1:]
	bodies := map[string]string{
		"createCampaign":  plainCampaign,
		"replaceCampaign": plainCampaign,
		"createResponse":  plainResponse,
		"updateResponse":  `{"status":"validated"}`,
	}
	var list []sample
	for _, route := range httpx.Routes() {
		s := sample{Route: route, body: bodies[route.Name], status: http.StatusOK}
		if route.Method == http.MethodPost {
			s.status = http.StatusCreated
		}
		s.path = strings.ReplaceAll(route.Pattern, "{uuid}", campaignID)
		s.path = strings.ReplaceAll(s.path, "{response_uuid}", responseID)
		list = append(list, s)
	}
	return list
}

// D5: every route with every set of permissions, on records of the own and of
// another account.
func TestEveryRouteWithEverySetOfPermissions(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		list := requests(campaign, w.response(campaign))
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
	case !own && strings.Contains(s.Pattern, "{"):
		a.is(404, "not_found")
	default:
		a.is(s.status, "")
	}
}

// The empty set needs an authentication of the embedder's own.
func TestKeyWithoutPermissions(t *testing.T) {
	everywhere(t, func(t *testing.T, w *world) {
		campaign := w.campaign(plainCampaign)
		list := requests(campaign, w.response(campaign))
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
		const nobody = "/v1/campaigns/018f0000-0000-7000-8000-000000000000"
		for _, s := range requests(campaign, response) {
			if !strings.Contains(s.Pattern, "{") {
				continue
			}
			foreign := w.do(s.Method, s.path, s.body, as(w.other.key), id).is(404, "not_found")
			unknown := w.do(s.Method, strings.Replace(s.path, campaign, nobody, 1), s.body, as(w.other.key), id).
				is(404, "not_found")
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

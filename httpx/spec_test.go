package httpx_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/httpx"
	"github.com/formsvc/toolkit/storage/memory"
)

// The tests in this file check the specification row by row; only the status codes are ours, since the specification leaves them open.

// The specification's endpoints and permissions, and those of the extensions (contract §3).
func TestRoutesAndPermissions(t *testing.T) {
	const response = "/v1/campaigns/{uuid}/responses/{response_uuid}"
	want := map[string]formsvc.Permission{}
	for permission, routes := range map[formsvc.Permission][]string{
		"campaigns:read": {"GET /v1/campaigns", "GET /v1/campaigns/{uuid}"},
		"campaigns:write": {
			"POST /v1/campaigns", "PUT /v1/campaigns/{uuid}", "DELETE /v1/campaigns/{uuid}", "POST /v1/campaigns/{uuid}/form/rotate",
		},
		"responses:read": {
			"GET /v1/campaigns/{uuid}/responses", "GET " + response, "GET " + response + "/comments", "GET " + response + "/signatures",
			"GET /v1/campaigns/{uuid}/responses.csv", "GET /v1/campaigns/{uuid}/responses.ndjson", "GET /v1/events",
			"GET /v1/campaigns/{uuid}/responses.xlsx", "GET /v1/campaigns/{uuid}/responses.zip",
		},
		"responses:write": {
			"POST /v1/campaigns/{uuid}/responses", "PATCH " + response, "DELETE " + response, "POST " + response + "/files",
			"POST " + response + "/comments", "POST " + response + "/signatures",
		},
		"files:read": {"GET " + response + "/files", "GET /v1/files/{file_uuid}"},
		"webhooks:read": {
			"GET /v1/webhooks", "GET /v1/webhooks/{webhook_uuid}", "GET /v1/webhooks/{webhook_uuid}/deliveries", "GET /v1/deliveries/{delivery_uuid}",
		},
		"webhooks:write": {
			"POST /v1/webhooks", "PUT /v1/webhooks/{webhook_uuid}", "DELETE /v1/webhooks/{webhook_uuid}", "POST /v1/webhooks/{webhook_uuid}/test",
			"POST /v1/webhooks/{webhook_uuid}/rotate", "POST /v1/webhooks/{webhook_uuid}/redeliver", "POST /v1/deliveries/{delivery_uuid}/redeliver",
		},
		"": {"GET /v1/me"},
	} {
		for _, route := range routes {
			want[route] = permission
		}
	}
	got := map[string]formsvc.Permission{}
	for _, r := range httpx.Routes() {
		if !r.Public {
			got[r.Method+" "+r.Pattern] = r.Permission
			if shows := strings.HasPrefix(r.Name, "createWeb") || strings.HasPrefix(r.Name, "replaceWeb"); shows != (r.Also == formsvc.ResponsesRead) || strings.HasSuffix(r.Name, "Zip") != (r.Also == formsvc.FilesRead) {
				t.Errorf("%s also needs %q", r.Name, r.Also)
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
}

// D5: every route with keys that have a single permission, all but one, and all, on own records and on another account's.
func TestSpecPermissionsAreDefinedPerKey(t *testing.T) {
	onEveryStore(t, func(t *testing.T, w *world) {
		list, all := w.requests(w.pair()), formsvc.AllPermissions()
		if _, ok := w.store.Store.(*memory.Store); !ok {
			all = all[:2] // storagetest compares the stores
		}
		sets := [][]formsvc.Permission{all}
		for i, p := range all {
			sets = append(sets, []formsvc.Permission{p}, slices.Delete(slices.Clone(all), i, i+1))
		}
		for _, held := range sets {
			mine, other := w.key(w.mine, held...), w.key(w.other, held...)
			for _, s := range list {
				if s.Name == "deleteResponse" {
					s.path, s.status = w.response(s.path[:strings.LastIndex(s.path, "/responses/")]), http.StatusNoContent
				}
				w.permitted(s, mine, held, true)
				w.permitted(s, other, held, false)
			}
		}
	})
}

func (w *world) permitted(s sample, key string, held []formsvc.Permission, own bool) {
	w.tb.Helper()
	a := w.do(s.Method, s.path, s.body, as(key))
	switch {
	case s.Permission != "" && !slices.Contains(held, s.Permission):
		a.is(403, "permission_denied")
		if p := a.problem(); p.Permission != string(s.Permission) || !strings.Contains(p.Detail, string(s.Permission)) {
			a.errorf("doesn't name %s: %s", s.Permission, a.body)
		}
	case s.Also != "" && !slices.Contains(held, s.Also):
		if a.is(403, "permission_denied"); a.problem().Permission != string(s.Also) {
			a.errorf("doesn't name %s: %s", s.Also, a.body)
		}
	case !own && !s.Public && strings.Contains(s.Pattern, "{"):
		a.is(404, "not_found")
	default:
		a.is(s.status, "")
	}
}

// Every list pages alike: with limit and offset, and by cursor in both orders. Its cursors fit no other list.
func TestLists(t *testing.T) {
	w := newWorld(t, nil)
	campaign, response := w.pair()
	hook, n := w.webhook(hookBody("a")), 0
	create := func(path, body string) func() string {
		return func() string {
			n++
			return w.do("POST", path, strings.ReplaceAll(body, "NUMBER", fmt.Sprint(n))).is(201, "").text("uuid")
		}
	}
	lists := []struct {
		path   string
		create func() string
	}{
		{campaign + "/responses", create(campaign+"/responses", plainResponse)},
		{"/v1/campaigns", create("/v1/campaigns", plainCampaign)},
		{response + "/files", create(response+"/files", "content")},
		{response + "/comments", create(response+"/comments", plainComment)},
		{response + "/signatures", create(response+"/signatures", plainSignature)},
		{"/v1/webhooks", create("/v1/webhooks", hookBody("NUMBER"))},
		{hook + "/deliveries", create(hook+"/test", "")},
	}
	twin := w.response(w.campaign(plainCampaign))
	others := f(twin+"/files", twin+"/comments", twin+"/signatures", twin[:strings.LastIndexByte(twin, '/')], w.webhook(hookBody("b"))+"/deliveries")
	for _, list := range lists {
		others = append(others, list.path)
	}
	for _, list := range lists {
		t.Run(list.path[strings.LastIndexByte(list.path, '/'):], func(t *testing.T) {
			w.tb = t
			all, _ := w.page(list.path + "?order=asc&limit=1000")
			for i := range 7 {
				all = append(all, list.create())
				if i%3 > 0 || list.path == hook+"/deliveries" { // whose order within a millisecond is open
					w.now = w.now.Add(time.Millisecond)
				}
			}
			total := fmt.Sprint(len(all))
			w.do("GET", list.path, "").is(200, "").has(total, "total").has("50", "limit").has("0", "offset").has("null", "nextCursor").wantHeader("Cache-Control", "no-store")
			w.do("GET", list.path+"?limit=1&offset=1", "").is(200, "").has(total, "total").has("1", "limit").has("1", "offset").text("nextCursor")
			w.do("GET", list.path+"?offset=2147483647", "").is(200, "").has("[]", "items").has(total, "total").has("null", "nextCursor")
			w.do("GET", list.path+"?limit=99999999999999999999", "").is(200, "").has("1000", "limit")
			for _, order := range []string{"asc", "desc"} {
				if order == "desc" {
					slices.Reverse(all)
				}
				if ids, _ := w.page(list.path + "?limit=2&offset=1&order=" + order); !slices.Equal(ids, all[1:3]) {
					t.Errorf("%s: at offset 1 %v, want %v", order, ids, all[1:3])
				}
				for _, limit := range []int{1, 3, len(all)} {
					if ids := w.walk(fmt.Sprintf("%s?order=%s&limit=%d", list.path, order, limit)); !slices.Equal(ids, all) {
						t.Errorf("%s, limit %d: %d, want %d: %v, want %v", order, limit, len(ids), len(all), ids, all)
					}
				}
			}
			_, cursor := w.page(list.path + "?limit=1")
			w.do("GET", list.path+"?order=asc&cursor="+cursor, "").is(400, "invalid_cursor")
			for _, other := range others {
				if other != list.path {
					w.do("GET", other+"?cursor="+cursor, "").is(400, "invalid_cursor").faults("cursor invalid_cursor")
				}
			}
			if !strings.Contains(list.path[4:], "/") {
				w.do("GET", list.path+"?cursor="+cursor, "", as(w.other.key)).is(400, "invalid_cursor")
			}
		})
	}
	for w.total(campaign+"/responses") < 51 {
		w.response(campaign)
	}
	if ids, next := w.page(campaign + "/responses"); len(ids) != 50 || next == "" {
		t.Errorf("without a limit there are %d items, next %q", len(ids), next)
	}
}

// walk reads a list page by page.
func (w *world) walk(list string) (ids []string) {
	w.tb.Helper()
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		target := list
		if cursor != "" {
			target += "&cursor=" + cursor
		}
		var page []string
		page, cursor = w.page(target)
		if ids = append(ids, page...); pages > 1000 {
			w.tb.Fatalf("%s has no end", list)
		}
	}
	return ids
}
